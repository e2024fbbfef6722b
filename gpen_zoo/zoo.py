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
from pathlib import Path
from typing import Literal, TypeAlias

from gpen_zoo import lock, manifest, weightfile
from gpen_zoo.errors import GpenError, WeightCorrupt, WeightMissing
from gpen_zoo.hints import Note
from gpen_zoo.manifest import Entry

Status: TypeAlias = Literal["bundled", "installed", "unverified", "corrupt", "missing", "unpinned"]

ASSETS = Path(__file__).parent / "assets"

log = logging.getLogger(__name__)


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
    """The weights on this machine. Safe to share between threads; makes no network call."""

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

        Raises WeightMissing (with folder, file, sha256 and addresses), WeightCorrupt or WeightWrongKind.
        """
        entry = self.entry(name)
        path = self.path_of(entry)
        if not path.is_file():
            raise self._missing(entry)
        with self._guard:
            self._verify(entry, path)
        return path

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

    def _verify(self, entry: Entry, path: Path) -> None:
        stamp = lock.stamp_of(path)
        if path.suffix == ".safetensors" and self._structure.get(path) != stamp:
            wanted = weightfile.Network(entry.architecture.family, entry.architecture.params)
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
        found = self._digest(path, stamp)
        if found != digest:
            raise WeightCorrupt("W04", file=path, expected=digest, found=found)

    def _digest(self, path: Path, stamp: list[int]) -> str:
        known = self._checked.get(path)
        if known and known[0] == stamp:
            return known[1]
        digest = None if path.parent == ASSETS else lock.verified_digest(path)
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
        record = None if entry.bundled else lock.read_records(self.home).get(entry.name)
        if record:
            return record.bytes, record.sha256
        kept_as_is = Path(entry.file).suffix == Path(entry.stored_as).suffix
        if kept_as_is and entry.bytes is not None and entry.sha256 is not None:
            return entry.bytes, entry.sha256
        return (entry.converted.bytes, entry.converted.sha256) if entry.converted else None

    def _contradiction(self, entry: Entry) -> GpenError | None:
        """A record whose original is not the one the manifest pins, as after a pin was added or corrected."""
        record = None if entry.bundled else lock.read_records(self.home).get(entry.name)
        if record is None or entry.sha256 in (None, record.original_sha256):
            return None
        return WeightCorrupt("W27", file=self.path_of(entry), found=record.original_sha256, expected=entry.sha256)

    def _missing(self, entry: Entry) -> WeightMissing:
        where = ", ".join(str(source) for source in entry.sources) or "-"
        return WeightMissing(
            "W16", name=entry.name, folder=self.home, file=entry.file, sha256=entry.sha256 or "?", where=where
        )
