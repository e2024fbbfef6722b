"""The zoo: name → verified file, or an error that says what to do; and everything that fills or empties the folder."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gpen_zoo import adopt, lock, manifest, mutex, share, weightfile
from gpen_zoo.adopt import Match
from gpen_zoo.convert import Dtype
from gpen_zoo.errors import GpenError, PathInaccessible, WeightCorrupt, WeightMissing, WeightWrongKind
from gpen_zoo.hints import Note, note
from gpen_zoo.identify import Finding, identify
from gpen_zoo.inventory import Listed, listing
from gpen_zoo.lock import Record
from gpen_zoo.manifest import Digest, Entry
from gpen_zoo.obtain import WORK, Wish, change_record, install, missing, obtain, parts_of, set_aside
from gpen_zoo.shelf import Shelf, Status

ADOPT_PATIENCE = 600.0  # seconds to wait for another process that is converting the same weight

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
        self._shelf = Shelf(self.home)

    def entry(self, name: str) -> Entry:
        """The entry with this name, author's file name or alias, in any case. Raises WeightMissing for others."""
        for entry in self.entries:
            if entry.answers_to(name):
                return entry
        raise WeightMissing("W19", name=name, known=", ".join(entry.name for entry in self.entries))

    def path_of(self, entry: Entry) -> Path:
        """Where the file of `entry` lies or would lie."""
        return self._shelf.path_of(entry)

    def status(self, entry: Entry) -> Status:
        """How things stand, without hashing: `unverified` is a file that `locate` would hash (or convert) first."""
        return self._shelf.status(entry)

    def present(self, entry: Entry) -> bool:
        """True when its file is there, sound or not, or an author's file that `locate` would convert."""
        return self.path_of(entry).is_file() or bool(self._shelf.originals_of(entry))

    def locate(self, name: str) -> Path:
        """Path of the verified file of a weight: safetensors, or ONNX for the entries that are ONNX.

        An author's file that somebody put into the zoo folder is converted first. Makes no network call. Raises
        WeightMissing (with folder, file, sha256 and addresses), WeightCorrupt, WeightWrongKind or PathInaccessible.
        """
        entry = self.entry(name)
        if not self.path_of(entry).is_file():
            self._take_in(entry)
        self._shelf.check(entry)
        return self.path_of(entry)

    def verify(self, name: str) -> Note:
        """Hash the whole file again, whatever was remembered; the note says size and digest. Raises like `locate`."""
        entry = self.entry(name)
        if not self.path_of(entry).is_file():
            raise missing(self.home, entry)
        digest = self._shelf.check(entry, thorough=True)
        return note("W35", name=entry.name, bytes=digest.bytes, sha256=digest.sha256)

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
            if (ready := self._ready(entry, wish.dtype, alone=True)) is None:
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

    def inspect(self, path: Path) -> Finding:
        """What any file is and what to do with it. Raises PathInaccessible."""
        with _accessible(path, "I21"):
            return identify(path, self.entries)

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
            return share.export(entry, self._shelf.record_of(entry), stored, to)

    def pin(self, name: str) -> str:
        """YAML with the digests that were accepted for a weight, for the manifest. Raises WeightMissing without any."""
        entry = self.entry(name)
        record = self._shelf.record_of(entry)
        if record is None:
            raise WeightMissing("W46", name=entry.name)
        return share.pin_block(entry, record)

    def listing(self) -> tuple[Listed, ...]:
        """Every weight of the manifest with its state, in the manifest's order; hashes nothing."""
        return listing(self._shelf, self.entries)

    def disk_use(self) -> int:
        """Bytes of everything in the zoo folder, unfinished downloads included."""
        return sum(path.stat().st_size for path in self.home.rglob("*") if path.is_file())

    def branches(self) -> tuple[Entry, ...]:
        """The official GPEN face restorers of the manifest, smallest first, installed or not."""
        return tuple(sorted((e for e in self._gpen_restorers() if not e.bundled), key=_by_branch))

    def restorers(self) -> tuple[Entry, ...]:
        """Usable GPEN face restorers, smallest branch first; the bundled demo only when there is no other.

        A file that is there but fails verification is left out; `problems` says why.
        """
        official = [e for e in self._gpen_restorers() if not e.bundled and self._usable(e) is None]
        found = official or [e for e in self._gpen_restorers() if e.bundled and self._usable(e) is None]
        return tuple(sorted(found, key=_by_branch))

    def upscalers(self) -> tuple[Entry, ...]:
        """Weights of the manifest that enlarge pictures, in its order, installed or not."""
        return tuple(e for e in self.entries if e.role == "upscaler")

    def usable(self, entry: Entry) -> bool:
        """True when `locate` gives its file: there and verified. A file that fails is told by `problems`."""
        return self._usable(entry) is None

    def problems(self) -> tuple[Note, ...]:
        """One note for each weight file that lies in the zoo folder but cannot be used."""
        found = (self._usable(entry) for entry in self.entries if self.present(entry))
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

    def _ready(self, entry: Entry, dtype: Dtype, *, alone: bool = False) -> Installed | None:
        """The weight if it is in place, sound, and of the wanted dtype; damage to the record file is an error.

        alone: the weight's lock is held, so nothing that takes it itself may run.
        """
        record = self._shelf.record_of(entry)
        if (record is not None and record.dtype != dtype) or (alone and not self.path_of(entry).is_file()):
            return None
        try:
            path = self.locate(entry.name)
        except (WeightMissing, WeightCorrupt, WeightWrongKind) as error:
            log.info("%s has to be fetched: %s", entry.name, error)
            return None
        return Installed(entry=entry, path=path, fresh=False, record=self._shelf.record_of(entry))

    def _obtain(self, entry: Entry, wish: Wish) -> Installed:
        path = self.path_of(entry)
        if path.is_file():
            set_aside(path, self.home / WORK)
        record, tried = obtain(self.home, entry, wish)
        return Installed(entry=entry, path=self.locate(entry.name), fresh=True, record=record, tried=tried)

    def _halve(self, entry: Entry, path: Path, dtype: Dtype) -> Installed | None:
        """A float16 copy from the verified float32 file in place, which spares the download."""
        record = self._shelf.record_of(entry)
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
            if (ready := self._ready(entry, dtype, alone=True)) is not None:
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
        records = lock.read_records(self.home)
        for path in self._shelf.originals_of(entry):
            found = adopt.match(path, (entry,), records)
            if found is None and not entry.pinned and weightfile.container(path) in ("pickle", "pickle-zip"):
                raise WeightMissing("W34", file=path, name=entry.name)
            if found is None:
                raise adopt.refusal(path, self.entries)
            with self._alone(entry, ADOPT_PATIENCE, None), _accessible(self.home):
                if not self.path_of(entry).is_file():  # else another process has just done it
                    install(self.home, entry, path, found.digest, found.trust, source=str(path), file=path.name)
            return
        raise missing(self.home, entry)

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


def _by_branch(entry: Entry) -> tuple[int, str]:
    return entry.branch or 0, entry.name


@contextmanager
def _accessible(path: Path, code: Literal["I21", "I22"] = "I22") -> Iterator[None]:
    """An OSError of the file system gets a code (I19 absent, I21 reading, I22 writing) and the path it concerns."""
    try:
        yield
    except GpenError:
        raise  # several are OSErrors as well
    except OSError as error:
        if code == "I21" and isinstance(error, FileNotFoundError):
            raise PathInaccessible("I19", path=error.filename or path) from error
        raise PathInaccessible(code, path=error.filename or path, reason=error.strerror or error) from error
