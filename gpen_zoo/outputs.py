"""Names for results, and files that are whole or absent."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import string
import time
import uuid
from datetime import datetime
from pathlib import Path

from gpen_zoo.errors import OptionsInvalid, PathInaccessible
from gpen_zoo.image_names import result_name

DEFAULT_PATTERN = "{stem}_restored"
FIELDS = ("stem", "time", "date", "n")
_FULL = (errno.ENOSPC, errno.EDQUOT)
_STALE_SECONDS = 600  # a file is written in one go
_PART = re.compile(r"^\..+\.gpen-part$")


class Names:
    """Stems for the results of one run; the same inputs in the same order give the same ones.

    pattern: text with any of {stem}, {time} (20260131-235959), {date} (20260131) and {n} (1, 2…; {n:04d} pads), time
    being the start of the run. Raises OptionsInvalid (U18) for any other field.
    """

    def __init__(self, pattern: str = DEFAULT_PATTERN, now: datetime | None = None) -> None:
        now = now or datetime.now()
        self._pattern = pattern
        self._fields = {"time": now.strftime("%Y%m%d-%H%M%S"), "date": now.strftime("%Y%m%d")}
        self._taken: set[tuple[Path, str]] = set()
        try:
            known = all(name in (None, *FIELDS) for _, name, _, _ in string.Formatter().parse(pattern))
            if not known or not self._filled("a", 1).strip(". "):
                raise ValueError
        except (ValueError, IndexError, KeyError):
            raise OptionsInvalid("U18", pattern=pattern, fields=", ".join(f"{{{f}}}" for f in FIELDS)) from None

    def stem(self, folder: Path, original: str, number: int) -> str:
        """A stem that no other photo of this run has in `folder`: the second of a name gets `_2`."""
        wanted = Path(result_name(f"{self._filled(original, number)}.png", "", "PNG")).stem
        # Folded, because a.jpg and A.JPG are one file on Windows and macOS.
        count, stem = 2, wanted
        while (folder, stem.casefold()) in self._taken:
            stem, count = f"{wanted}_{count}", count + 1
        self._taken.add((folder, stem.casefold()))
        return stem

    def _filled(self, stem: str, number: int) -> str:
        return self._pattern.format(stem=stem, n=number, **self._fields)


def put_file(data: bytes, path: Path) -> None:
    """Write a file under a temporary name beside it and rename; folders are made.

    Raises PathInaccessible: U17 when the disk is full, else I22.
    """
    try:
        # A name of its own: threads may write one path at the same time, and a long name would grow too long.
        part = path.with_name(f".{uuid.uuid4().hex}.gpen-part")
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            part.write_bytes(data)
            os.replace(part, path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                part.unlink()
    except (OSError, ValueError) as error:
        raise not_written(path, error) from error


def not_written(path: str | Path, error: OSError | ValueError) -> PathInaccessible:
    """Why a file was not written: U17 for a full disk, else I22."""
    if getattr(error, "errno", None) in _FULL:
        return PathInaccessible("U17", path=str(path))
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return PathInaccessible("I22", path=str(path), reason=reason)


def sweep(folder: Path) -> int:
    """Delete what killed runs left half-written in `folder` and below; the number of files.

    Young ones are left alone: another run may be writing them this moment.
    """
    count, before = 0, time.time() - _STALE_SECONDS
    for root, _, names in os.walk(folder):
        for path in (Path(root, name) for name in names if _PART.match(name)):
            with contextlib.suppress(OSError):
                if path.stat().st_mtime < before:
                    path.unlink()
                    count += 1
    return count
