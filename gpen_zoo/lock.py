"""What the zoo folder remembers: `weights.lock.json`, binding records, and `.verified.json`, a cache of stamps.

A record says which digest a weight's file must have from now on, and where that trust comes from. It is written once,
when the file is put there. A stamp says "the file with this size, these times and this inode had that digest", so that
a load needs no hashing; losing the stamps costs one hash, never trust.
"""

from __future__ import annotations

import json
import logging
import os
import re
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from gpen_zoo.errors import PathInaccessible, WeightCorrupt

Trust: TypeAlias = Literal["pinned", "hub", "user"]

LOCK_FILE = "weights.lock.json"
STAMP_FILE = ".verified.json"
VERSION = 1
TICK_NS = 100_000_000  # coarsest clock of a file system worth reckoning with, and some

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One installed weight. bytes, sha256: of `file` in the zoo folder. original_*: of the file it was made from.

    trust: what vouched for the original: `pinned` the manifest, `hub` the digest its host listed, `user` the user's
    word. source: where it came from. date: UTC, ISO 8601. dtype: `float32` or `float16`.
    """

    file: str
    bytes: int
    sha256: str
    original_file: str
    original_bytes: int
    original_sha256: str
    trust: Trust
    source: str
    date: str
    dtype: str = "float32"


def read_records(home: Path) -> dict[str, Record]:
    """Records by weight name; empty when there are none yet. Raises WeightCorrupt when the file is damaged."""
    path = home / LOCK_FILE
    try:
        raw = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise PathInaccessible("I21", path=path, reason=error.strerror or error) from error
    try:
        data = json.loads(raw)
        if data["version"] != VERSION:
            raise ValueError(data["version"])
        return {str(name): _record(fields) for name, fields in data["weights"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise WeightCorrupt("W26", file=path) from error


def _record(fields: dict[str, Any]) -> Record:
    record = Record(**fields)
    for digest in (record.sha256, record.original_sha256):
        if not re.fullmatch(r"[0-9a-f]{64}", digest):
            raise ValueError(digest)
    if type(record.bytes) is not int or not isinstance(record.file, str):
        raise TypeError(record)
    return record


def write_records(home: Path, records: Mapping[str, Record]) -> None:
    """Replace the record file in one step. Hold the folder's lock while reading, changing and writing."""
    weights = {name: asdict(record) for name, record in sorted(records.items())}
    write_text(
        home / LOCK_FILE, json.dumps({"version": VERSION, "weights": weights}, indent=1, ensure_ascii=False) + "\n"
    )


def write_text(path: Path, text: str) -> None:
    """Write beside the target, flush to the disk, rename: readers see the old text or the new one."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def stamp_of(path: Path) -> list[int]:
    """Size, both times and inode. The change time cannot be set back, so a restored mtime does not pass on POSIX."""
    info = path.stat()
    return [info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino]


def verified_digest(path: Path) -> str | None:
    """The digest this very file was last seen to have, or None when it changed or was never hashed."""
    stamp = _stamps(path.parent).get(path.name)
    if isinstance(stamp, dict) and stamp.get("stamp") == stamp_of(path):
        return str(stamp.get("sha256"))
    return None


def settled(stamp: list[int]) -> bool:
    """False while the file is so young that another write could still get the very same times."""
    return time.time_ns() - max(stamp[1], stamp[2]) > TICK_NS


def remember_digest(path: Path, stamp: list[int], sha256: str) -> None:
    """Keep `sha256` for the file as it was when `stamp` was taken, which must be before it was hashed."""
    stamps = _stamps(path.parent)
    stamps[path.name] = {"stamp": stamp, "sha256": sha256}
    try:
        write_text(path.parent / STAMP_FILE, json.dumps(stamps))
    except OSError as error:  # a read-only zoo is fine: the file is hashed once per process instead
        log.debug("cannot keep the stamp of %s: %s", path, error)


def _stamps(folder: Path) -> dict[str, Any]:
    try:
        data = json.loads((folder / STAMP_FILE).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}  # a cache: absent or unreadable means "hash again"
    return data if isinstance(data, dict) else {}
