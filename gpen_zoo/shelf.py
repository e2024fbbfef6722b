"""The files of the zoo as they lie on the disk: what vouches for each, and whether it is what was vouched for.

A weight is handed out only after four questions: is the file there, does its digest equal what vouches for it, is its
header sound, are its names and shapes those of the network the manifest promises. What vouches for a file is, in this
order: its record in weights.lock.json (written when the zoo converted or fetched it), the manifest's digest when the
author's own file is kept as it is, and the manifest's digest of the canonical conversion.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Literal, TypeAlias

from gpen_zoo import lock, weightfile
from gpen_zoo.architecture import Network
from gpen_zoo.errors import GpenError, WeightCorrupt
from gpen_zoo.lock import Record
from gpen_zoo.manifest import Digest, Entry

Status: TypeAlias = Literal["bundled", "installed", "unverified", "corrupt", "missing", "unpinned"]

ASSETS = Path(__file__).parent / "assets"


class Shelf:
    """The zoo folder `home` together with the bundled assets. Safe to share between threads."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._hashed: dict[Path, tuple[list[int], str]] = {}  # stamp and digest of what this process has hashed itself
        self._sound: dict[Path, list[int]] = {}  # stamps of files whose header was checked
        self._guard = threading.Lock()

    def path_of(self, entry: Entry) -> Path:
        """Where the file of `entry` lies or would lie."""
        return ASSETS / entry.file if entry.bundled else self.home / entry.stored_as

    def originals_of(self, entry: Entry) -> list[Path]:
        """Author's files that somebody put into the zoo folder and that are not taken in yet."""
        if entry.bundled or self.path_of(entry).is_file():
            return []
        return [path for name in (entry.file, *entry.aliases) if (path := self.home / name).is_file()]

    def record_of(self, entry: Entry) -> Record | None:
        """Its record in weights.lock.json. Raises WeightCorrupt when that file is damaged."""
        return None if entry.bundled else lock.read_records(self.home).get(entry.name)

    def check(self, entry: Entry, *, thorough: bool = False) -> Digest:
        """Verify the file of `entry`, which must exist; thorough hashes it whatever was remembered.

        Returns its size and digest. Raises WeightCorrupt or WeightWrongKind.
        """
        path = self.path_of(entry)
        with self._guard:
            stamp = lock.stamp_of(path)
            self._check_header(entry, path, stamp)
            expected = self._expected(entry)
            if expected is None:
                raise WeightCorrupt("W17", file=path, original=entry.file)
            if contradiction := self._contradiction(entry):
                raise contradiction
            if stamp[0] != expected.bytes:
                raise WeightCorrupt("W06", file=path, expected=expected.bytes, found=stamp[0])
            found = self._digest(path, stamp, thorough)
            if found != expected.sha256:
                raise WeightCorrupt("W04", file=path, expected=expected.sha256, found=found)
        return expected

    def status(self, entry: Entry) -> Status:
        """How things stand, without hashing: `unverified` is a file that `check` would hash first."""
        path = self.path_of(entry)
        if self.originals_of(entry):
            return "unverified"
        if not path.is_file():
            return "missing" if entry.pinned else "unpinned"
        expected = self._expected(entry)
        if expected is None:
            return "unverified"
        if path.stat().st_size != expected.bytes or self._contradiction(entry):
            return "corrupt"
        if entry.bundled:
            return "bundled"
        known = lock.verified_digest(path)
        return "unverified" if known is None else "installed" if known == expected.sha256 else "corrupt"

    def _check_header(self, entry: Entry, path: Path, stamp: list[int]) -> None:
        if path.suffix != ".safetensors" or self._sound.get(path) == stamp:
            return
        weightfile.check_file(path, Network(entry.architecture.family, entry.architecture.params), entry.name)
        if lock.settled(stamp):
            self._sound[path] = stamp

    def _digest(self, path: Path, stamp: list[int], thorough: bool) -> str:
        known = self._hashed.get(path)
        if known and known[0] == stamp and not thorough:
            return known[1]
        bundled = path.parent == ASSETS
        digest = None if thorough or bundled else lock.verified_digest(path)
        if digest is None:
            settled = lock.settled(stamp)
            digest = weightfile.sha256_of(path)
            if not settled:
                return digest
            if not bundled:
                lock.remember_digest(path, stamp, digest)
        self._hashed[path] = (stamp, digest)
        return digest

    def _expected(self, entry: Entry) -> Digest | None:
        """Size and digest the stored file must have, or None when nothing vouches for it."""
        if record := self.record_of(entry):
            return Digest(bytes=record.bytes, sha256=record.sha256)
        kept_as_is = Path(entry.file).suffix == Path(entry.stored_as).suffix
        if kept_as_is and entry.bytes is not None and entry.sha256 is not None:
            return Digest(bytes=entry.bytes, sha256=entry.sha256)
        return entry.converted

    def _contradiction(self, entry: Entry) -> GpenError | None:
        """A record whose original is not the one the manifest pins, as after a pin was added or corrected."""
        record = self.record_of(entry)
        if record is None or entry.sha256 in (None, record.original_sha256):
            return None
        if entry.converted and entry.converted.sha256 == record.sha256:
            return None  # fetched as the pinned conversion
        return WeightCorrupt("W27", file=self.path_of(entry), found=record.original_sha256, expected=entry.sha256)
