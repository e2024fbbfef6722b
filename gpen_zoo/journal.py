"""What was done in an output folder, a line for each photo, so that a run which was killed continues where it was.

A line is added after its result is in place under its final name; a run killed between the two finds the result
itself. A last line cut short by the kill is passed over. Failures are also told in a text file for people.
"""

from __future__ import annotations

import json
import logging
import os
from datetime import datetime
from pathlib import Path
from typing import Any

from gpen_zoo.errors import PathInaccessible
from gpen_zoo.hints import Lang, Note, say
from gpen_zoo.image_names import format_of_suffix

log = logging.getLogger(__name__)

NAME = ".gpen_zoo_run.jsonl"
ERROR_LOG = "error_log.txt"
VERSION = 1


class Journal:
    """The journal of one output folder; for one thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._entries = {e["input"]: e for e in _entries(folder / NAME)}
        self._present: dict[Path, set[str]] = {}

    def finished(self, source: Path, target: Path) -> bool:
        """Whether `source` needs no work: its result was written and is still there, and the photo is the same.

        target: the result's path without its suffix. A result nobody recorded counts too.
        """
        entry = self._entries.get(_key(source))
        if entry is None:
            return target.name in self._pictures(target.parent)
        if entry.get("error") or entry.get("photo") != _state(source):
            return False
        return all((self._folder / name).is_file() for name in entry["outputs"])

    @property
    def outputs(self) -> set[Path]:
        """Every result on record, resolved: none of them is a photo to restore."""
        return {(self._folder / name).resolve() for e in self._entries.values() for name in e.get("outputs", ())}

    def record(self, source: Path, written: tuple[Path, ...], error: Note | None) -> None:
        """Add a line. A folder that cannot be written has already been told by the result; that is only logged."""
        entry: dict[str, Any] = {
            "version": VERSION,
            "input": _key(source),
            "photo": _state(source),
            "outputs": [os.path.relpath(path, self._folder) for path in written],
            "error": error.code if error else None,
            "time": _now(),
        }
        self._entries[entry["input"]] = entry
        _append(self._folder / NAME, json.dumps(entry, ensure_ascii=False))

    def _pictures(self, folder: Path) -> set[str]:
        """Stems of the picture files in a folder, as it was when first asked."""
        if folder not in self._present:
            try:
                files = [Path(e.name) for e in os.scandir(folder)]
            except OSError:
                files = []
            self._present[folder] = {f.stem for f in files if format_of_suffix(f.suffix)}
        return self._present[folder]


def log_error(folder: Path, label: str, error: Note, lang: Lang) -> None:
    """Add a line to the error log of an output folder: time, photo, code, hint, between tabs."""
    _append(folder / ERROR_LOG, "\t".join((_now(), label, error.code, say(error, lang))))


def _append(path: Path, line: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8", errors="backslashreplace") as stream:
            stream.write(line.replace("\n", " ") + "\n")
    except OSError as error:
        log.warning("%s", PathInaccessible("I22", path=path, reason=error.strerror or error))


def _entries(path: Path) -> list[dict[str, Any]]:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    entries = []
    for line in lines:
        try:
            entry = json.loads(line)
            if entry["version"] == VERSION and isinstance(entry["input"], str):
                entries.append(entry)
        except (ValueError, KeyError, TypeError):
            log.info("a line of %s cannot be used", path)
    return entries


def _key(source: Path) -> str:
    return os.path.abspath(source)


def _state(source: Path) -> list[int] | None:
    """Size and time of the photo, by which a changed one is known."""
    try:
        found = source.stat()
    except OSError:
        return None
    return [found.st_size, found.st_mtime_ns]


def _now() -> str:
    return datetime.now().astimezone().isoformat(timespec="seconds")
