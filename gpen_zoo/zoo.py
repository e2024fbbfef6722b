"""The zoo folder: name → verified file, or an error that says what to do.

A weight is handed out only after four questions: is the file there, does its digest equal what vouches for it, is its
header sound, are its names and shapes those of the network the manifest promises. What vouches for a file is, in this
order: its record in weights.lock.json (written when the zoo converted or fetched it), the manifest's digest when the
author's own file is kept as it is, and the manifest's digest of the canonical conversion.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from gpen_zoo import adopt, architecture, lock, manifest, mutex, share, weightfile
from gpen_zoo.adopt import Match
from gpen_zoo.convert import Dtype
from gpen_zoo.errors import GpenError, PathInaccessible, WeightCorrupt, WeightMissing, WeightWrongKind
from gpen_zoo.hints import Note, note
from gpen_zoo.lock import Record
from gpen_zoo.manifest import Digest, Entry
from gpen_zoo.obtain import WORK, Wish, change_record, install, obtain, parts_of, set_aside

Status: TypeAlias = Literal["bundled", "installed", "unverified", "corrupt", "missing", "unpinned"]

ADOPT_PATIENCE = 600.0  # seconds to wait for another process that is converting the same weight

ASSETS = Path(__file__).parent / "assets"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """A weight that is in place and verified. fresh: this call put it there. record: where it came from, None for the
    bundled one and for files the manifest vouches for by themselves. tried: why earlier sources did not serve."""

    entry: Entry
    path: Path
    fresh: bool
    record: Record | None
    tried: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One line of the inventory. bytes: on the disk when it is there, else what a download would take (None unknown).
    source, trust, dtype: of the installed file, "" where there is no record."""

    entry: Entry
    status: Status
    bytes: int | None
    source: str = ""
    trust: str = ""
    dtype: str = ""

    def as_dict(self) -> dict[str, Any]:
        entry = self.entry
        return {
            "name": entry.name,
            "role": entry.role,
            "branch": entry.branch,
            "status": self.status,
            "bytes": self.bytes,
            "sha256": entry.sha256,
            "pinned": entry.pinned,
            "sources": [str(source) for source in entry.sources],
            "licence": {"spdx": entry.licence.spdx, "zh": entry.licence.zh, "en": entry.licence.en},
            "source": self.source,
            "trust": self.trust,
            "dtype": self.dtype,
        }


def default_home() -> Path:
    """`GPEN_ZOO_HOME`, else the cache folder of this user on this system, `…/gpen-zoo`."""
    if chosen := os.environ.get("GPEN_ZOO_HOME"):
        return Path(chosen).expanduser().absolute()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData/Local") / "gpen-zoo"
    if sys.platform == "darwin":
        return Path.home() / "Library/Caches/gpen-zoo"
    cache = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification says to ignore a relative path.
    return (Path(cache) if cache.startswith("/") else Path.home() / ".cache") / "gpen-zoo"


class Zoo:
    """The weights on this machine. Safe to share between threads and processes. Only `download` uses the network."""

    def __init__(self, home: Path | None = None, entries: tuple[Entry, ...] | None = None) -> None:
        self.home = default_home() if home is None else Path(home).absolute()
        self.entries = manifest.load() if entries is None else entries
        self._checked: dict[Path, tuple[list[int], str]] = {}  # what this process has hashed itself
        self._structure: dict[Path, list[int]] = {}  # stamps of files whose header was checked
        self._guard = threading.Lock()

    def entry(self, name: str) -> Entry:
        """The entry with this name, author's file name or alias, in any case. Raises WeightMissing for others."""
        for entry in self.entries:
            if entry.answers_to(name):
                return entry
        raise WeightMissing("W19", name=name, known=", ".join(entry.name for entry in self.entries))

    def path_of(self, entry: Entry) -> Path:
        """Where the file of `entry` lies or would lie."""
        return ASSETS / entry.file if entry.bundled else self.home / entry.stored_as

    def locate(self, name: str) -> Path:
        """Path of the verified file of a weight: safetensors, or ONNX for the entries that are ONNX.

        An author's file that somebody put into the zoo folder is converted first. Makes no network call. Raises
        WeightMissing (with folder, file, sha256 and addresses), WeightCorrupt, WeightWrongKind or PathInaccessible.
        """
        entry = self.entry(name)
        path = self.path_of(entry)
        if not path.is_file():
            self._take_in(entry)
        with self._guard:
            self._verify(entry, path)
        return path

    def verify(self, name: str) -> Note:
        """Hash the whole file again, whatever was remembered; the note says size and digest. Raises like `locate`."""
        entry = self.entry(name)
        path = self.path_of(entry)
        if not path.is_file():
            raise self._missing(entry)
        with self._guard:
            digest = self._verify(entry, path, thorough=True)
        return note("W35", name=entry.name, bytes=path.stat().st_size, sha256=digest)

    def download(self, name: str, wish: Wish | None = None) -> Installed:
        """Make sure that a weight is installed: no network when it is, else the manifest's sources in order.

        Another process that fetches the same weight is waited for. Raises FetchFailed, Cancelled, WeightMissing (no
        sources), PathInaccessible.
        """
        wish, entry = wish or Wish(), self.entry(name)
        ready = self._ready(entry, wish.dtype)
        if ready is not None and not any(parts_of(self.home, entry)):
            return ready
        with self._alone(entry, wish.limits.deadline, wish.cancelled), _accessible(self.home):
            if (ready := self._ready(entry, wish.dtype)) is None:
                ready = self._halve(entry, self.path_of(entry), wish.dtype) or self._obtain(entry, wish)
            for leftover in parts_of(self.home, entry):  # also those of a process that died while it cleaned up
                leftover.unlink(missing_ok=True)
        return ready

    def adopt(
        self, path: Path, *, name: str = "", accept_unpinned: bool = False, dtype: Dtype = "float32"
    ) -> tuple[Installed, ...]:
        """Take in a file, or every file below a folder that has a recorded digest, by copy or conversion.

        name: the weight a single file is meant to be; with accept_unpinned a file that no digest confirms is taken
        for it, if its names and shapes are right, and its digest is binding from then on. Raises WeightCorrupt or
        WeightWrongKind for a file that is refused, PathInaccessible.
        """
        path = Path(path)
        if path.is_dir():
            return tuple(self._install(found, dtype) for found in self.find((path,)))
        with _accessible(path, "I21"):
            records = lock.read_records(self.home)
            wanted = (self.entry(name),) if name else self.entries
            found = adopt.match(path, wanted, records)
            if found is None and name and accept_unpinned:
                found = adopt.by_the_users_word(path, wanted[0], records)
            if found is None:
                raise adopt.refusal(path, self.entries)
        return (self._install(found, dtype),)

    def find(self, places: tuple[Path, ...] | None = None) -> tuple[Match, ...]:
        """Files that could be adopted, by digest, below `places` (by default where other programs keep weights)."""
        places = adopt.likely_places() if places is None else places
        return adopt.scan(places, self.entries, lock.read_records(self.home))

    def remove(self, name: str, *, forget: bool = False) -> int:
        """Delete a weight's file and what is left of its downloads; returns the bytes freed.

        Its record stays binding for the next download unless `forget`. Raises WeightWrongKind for the bundled one.
        """
        entry = self.entry(name)
        if entry.bundled:
            raise WeightWrongKind("W38", name=entry.name)
        if not self.home.is_dir():
            return 0
        with self._alone(entry, ADOPT_PATIENCE, None), _accessible(self.home):
            files = [path for path in (self.path_of(entry), *parts_of(self.home, entry)) if path.is_file()]
            freed = sum(path.stat().st_size for path in files)
            for path in files:
                path.unlink()
            if forget:
                change_record(self.home, entry.name, None)
        return freed

    def export(self, name: str, to: Path) -> tuple[Path, ...]:
        """Folder for a Hugging Face model repository: weights, card, digests, manifest block. Raises like `locate`."""
        entry = self.entry(name)
        stored = self.locate(name)
        with _accessible(to):
            return share.export(entry, self._record(entry), stored, to)

    def pin(self, name: str) -> str:
        """YAML with the digests that were accepted for a weight, for the manifest. Raises WeightMissing without any."""
        entry = self.entry(name)
        record = self._record(entry)
        if record is None:
            raise WeightMissing("W46", name=entry.name)
        return share.pin_block(entry, record)

    def listing(self) -> tuple[Listed, ...]:
        """Every weight of the manifest with its state, in the manifest's order; hashes nothing."""
        records = lock.read_records(self.home)
        lines = []
        for entry in self.entries:
            path, record = self.path_of(entry), records.get(entry.name)
            there = path.is_file()
            line = Listed(
                entry=entry,
                status=self.status(entry),
                bytes=path.stat().st_size if there else entry.expected_bytes,
                source=record.source if record and there else "",
                trust=record.trust if record and there else "",
                dtype=record.dtype if record and there else "",
            )
            lines.append(line)
        return tuple(lines)

    def disk_use(self) -> int:
        """Bytes of everything in the zoo folder, unfinished downloads included."""
        return sum(path.stat().st_size for path in self.home.rglob("*") if path.is_file())

    def status(self, entry: Entry) -> Status:
        """How things stand, without hashing: `unverified` is a file that `locate` would hash first."""
        path = self.path_of(entry)
        if not path.is_file():
            return "missing" if entry.pinned else "unpinned"
        expected = self._expected(entry)
        if expected is None:
            return "unverified"
        size, digest = expected
        if path.stat().st_size != size or self._contradiction(entry):
            return "corrupt"
        if entry.bundled:
            return "bundled"
        known = lock.verified_digest(path)
        return "unverified" if known is None else "installed" if known == digest else "corrupt"

    def restorers(self) -> tuple[Entry, ...]:
        """Usable GPEN face restorers, smallest branch first; the bundled demo only when there is no other.

        A file that is there but fails verification is left out; `problems` says why.
        """
        official = [e for e in self._gpen_restorers() if not e.bundled and self._usable(e) is None]
        found = official or [e for e in self._gpen_restorers() if e.bundled and self._usable(e) is None]
        return tuple(sorted(found, key=lambda entry: (entry.branch or 0, entry.name)))

    def problems(self) -> tuple[Note, ...]:
        """One note for each weight file that lies in the zoo folder but cannot be used."""
        found = (self._usable(entry) for entry in self.entries if self.path_of(entry).is_file())
        return tuple(note for note in found if note is not None)

    def _gpen_restorers(self) -> list[Entry]:
        return [e for e in self.entries if e.role == "restorer" and e.architecture.family == "GPEN"]

    def _usable(self, entry: Entry) -> Note | None:
        try:
            self.locate(entry.name)
        except GpenError as error:
            if not isinstance(error, WeightMissing):
                log.warning("%s is not usable: %s", entry.name, error)
            return error.note
        return None

    def _ready(self, entry: Entry, dtype: Dtype) -> Installed | None:
        """The weight if it is in place, sound, and of the wanted dtype; damage to the record file is an error."""
        record = self._record(entry)
        if record is not None and record.dtype != dtype:
            return None
        try:
            path = self.locate(entry.name)
        except (WeightMissing, WeightCorrupt, WeightWrongKind) as error:
            log.info("%s has to be fetched: %s", entry.name, error)
            return None
        return Installed(entry=entry, path=path, fresh=False, record=self._record(entry))

    def _obtain(self, entry: Entry, wish: Wish) -> Installed:
        path = self.path_of(entry)
        if path.is_file():
            set_aside(path, self.home / WORK)
        record, tried = obtain(self.home, entry, wish)
        return Installed(entry=entry, path=self.locate(entry.name), fresh=True, record=record, tried=tried)

    def _halve(self, entry: Entry, path: Path, dtype: Dtype) -> Installed | None:
        """A float16 copy from the verified float32 file in place, which spares the download."""
        record = self._record(entry)
        if dtype != "float16" or record is None or record.dtype != "float32" or self._usable(entry) is not None:
            return None
        digest = Digest(bytes=record.original_bytes, sha256=record.original_sha256)
        with _accessible(self.home):
            record = install(
                *(self.home, entry, path, digest, record.trust),
                source=record.source,
                file=record.original_file,
                dtype=dtype,
            )
        return Installed(entry=entry, path=self.locate(entry.name), fresh=True, record=record)

    def _install(self, found: Match, dtype: Dtype) -> Installed:
        entry = found.entry
        if (ready := self._ready(entry, dtype)) is not None:
            return ready
        with self._alone(entry, ADOPT_PATIENCE, None), _accessible(self.home):
            if (ready := self._ready(entry, dtype)) is not None:
                return ready
            record = install(
                *(self.home, entry, found.path, found.digest, found.trust),
                source=str(found.path),
                file=found.path.name,
                dtype=dtype,
            )
        return Installed(entry=entry, path=self.locate(entry.name), fresh=True, record=record)

    def _take_in(self, entry: Entry) -> None:
        """Convert an author's file lying in the zoo folder under one of its names; raises WeightMissing for none."""
        if entry.bundled:
            raise self._missing(entry)
        records = lock.read_records(self.home)
        for name in (entry.file, *entry.aliases):
            path = self.home / name
            if not path.is_file():
                continue
            found = adopt.match(path, (entry,), records)
            if found is None and not entry.pinned and weightfile.container(path) in ("pickle", "pickle-zip"):
                raise WeightMissing("W34", file=path, name=entry.name)
            if found is None:
                raise adopt.refusal(path, self.entries)
            with self._alone(entry, ADOPT_PATIENCE, None), _accessible(self.home):
                if not self.path_of(entry).is_file():  # else another process has just done it
                    install(self.home, entry, path, found.digest, found.trust, source=str(path), file=path.name)
            return
        raise self._missing(entry)

    @contextmanager
    def _alone(self, entry: Entry, timeout: float, cancelled: Callable[[], bool] | None) -> Iterator[None]:
        """Hold the lock of one weight against other threads and processes."""
        path = self.home / WORK / f"{entry.name}.lock"
        with _accessible(self.home):
            path.parent.mkdir(parents=True, exist_ok=True)

        def waiting(owner: mutex.Owner | None) -> None:
            log.info("waiting for process %s, which works on %s", owner.pid if owner else "?", entry.name)

        with mutex.hold(path, timeout=timeout, waiting=waiting, cancelled=cancelled):
            yield

    def _record(self, entry: Entry) -> Record | None:
        return None if entry.bundled else lock.read_records(self.home).get(entry.name)

    def _verify(self, entry: Entry, path: Path, thorough: bool = False) -> str:
        stamp = lock.stamp_of(path)
        if path.suffix == ".safetensors" and (thorough or self._structure.get(path) != stamp):
            wanted = architecture.Network(entry.architecture.family, entry.architecture.params)
            weightfile.check_file(path, wanted, entry.name)
            if lock.settled(stamp):
                self._structure[path] = stamp
        expected = self._expected(entry)
        if expected is None:
            raise WeightCorrupt("W17", file=path, original=entry.file)
        if contradiction := self._contradiction(entry):
            raise contradiction
        size, digest = expected
        if stamp[0] != size:
            raise WeightCorrupt("W06", file=path, expected=size, found=stamp[0])
        found = self._digest(path, stamp, thorough)
        if found != digest:
            raise WeightCorrupt("W04", file=path, expected=digest, found=found)
        return found

    def _digest(self, path: Path, stamp: list[int], thorough: bool) -> str:
        known = self._checked.get(path)
        if known and known[0] == stamp and not thorough:
            return known[1]
        digest = None if thorough or path.parent == ASSETS else lock.verified_digest(path)
        if digest is None:
            settled = lock.settled(stamp)
            digest = weightfile.sha256_of(path)
            if not settled:
                return digest
            if path.parent != ASSETS:
                lock.remember_digest(path, stamp, digest)
        self._checked[path] = (stamp, digest)
        return digest

    def _expected(self, entry: Entry) -> tuple[int, str] | None:
        """Size and digest the stored file must have, or None when nothing vouches for it."""
        if record := self._record(entry):
            return record.bytes, record.sha256
        kept_as_is = Path(entry.file).suffix == Path(entry.stored_as).suffix
        if kept_as_is and entry.bytes is not None and entry.sha256 is not None:
            return entry.bytes, entry.sha256
        return (entry.converted.bytes, entry.converted.sha256) if entry.converted else None

    def _contradiction(self, entry: Entry) -> GpenError | None:
        """A record whose original is not the one the manifest pins, as after a pin was added or corrected."""
        record = self._record(entry)
        if record is None or entry.sha256 in (None, record.original_sha256):
            return None
        if entry.converted and entry.converted.sha256 == record.sha256:
            return None  # fetched as the pinned conversion
        return WeightCorrupt("W27", file=self.path_of(entry), found=record.original_sha256, expected=entry.sha256)

    def _missing(self, entry: Entry) -> WeightMissing:
        where = ", ".join(str(source) for source in entry.sources) or "-"
        return WeightMissing(
            "W16", name=entry.name, folder=self.home, file=entry.file, sha256=entry.sha256 or "?", where=where
        )


@contextmanager
def _accessible(path: Path, code: Literal["I21", "I22"] = "I22") -> Iterator[None]:
    """An OSError of the file system gets a code (I21 reading, I22 writing) and the path it concerns."""
    try:
        yield
    except GpenError:
        raise  # several are OSErrors as well
    except OSError as error:
        raise PathInaccessible(code, path=error.filename or path, reason=error.strerror or error) from error
