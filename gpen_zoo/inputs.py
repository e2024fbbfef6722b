"""From the words of a command line to a list of photos: files, folders, patterns, standard input."""

from __future__ import annotations

import glob
import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from gpen_zoo.hints import Note, note
from gpen_zoo.image_names import format_of_suffix
from gpen_zoo.image_sniff import format_of

STDIN = "-"


@dataclass(frozen=True, slots=True)
class Input:
    """A photo. path: None for standard input. below: its folder under the one that was named, for the result."""

    path: Path | None
    below: Path = Path()


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """photos: in the order of the words, folders sorted by name. problems: words that led to nothing, with the reason.

    passed_over: files in folders that are no pictures and do not claim to be.
    """

    photos: tuple[Input, ...]
    problems: tuple[tuple[str, Note], ...]
    passed_over: int


def find_inputs(words: Iterable[str], *, recursive: bool = False, without: Collection[Path] = ()) -> Inputs:
    """Look at every word: `-`, a file, a folder (with `recursive` all below it), else a pattern (`*.jpg`, `**/*.png`).

    A file that is named is taken as it is, even if it does not exist: reading it tells what is wrong. In folders the
    content decides, so a photo without a suffix is found, and a photo that is damaged from its first byte is known by
    its suffix. without: resolved files and folders to leave out, such as earlier results. No photo is taken twice.
    """
    photos: dict[Path | None, Input] = {}
    problems: list[tuple[str, Note]] = []
    passed_over = 0
    for word in words:
        if word == STDIN:
            photos.setdefault(None, Input(None))
            continue
        path = Path(word)
        if path.is_dir():
            before = len(photos)
            for answer in _folder(path, recursive, without):
                if isinstance(answer, Input):
                    photos.setdefault(_same(answer.path), answer)
                elif answer is None:
                    passed_over += 1
                else:
                    problems.append(answer)
            if len(photos) == before and not problems:
                problems.append((word, note("U19", path=word)))
        elif os.path.lexists(path) or not glob.has_magic(word):
            photos.setdefault(_same(path), Input(path))
        else:
            matches = [Path(m) for m in sorted(glob.glob(os.path.expanduser(word), recursive=True))]
            for match in matches:
                if match.is_file() and match.resolve() not in without:
                    photos.setdefault(_same(match), Input(match))
            if not matches:
                problems.append((word, note("U20", pattern=word)))
    return Inputs(photos=tuple(photos.values()), problems=tuple(problems), passed_over=passed_over)


def _folder(top: Path, recursive: bool, without: Collection[Path]) -> Iterator[Input | tuple[str, Note] | None]:
    """Photos, problems, and None for a file that is passed over."""
    unreadable: list[OSError] = []
    for root, folders, files in os.walk(top, onerror=unreadable.append):
        folder = Path(root)
        folders[:] = sorted(f for f in folders if not f.startswith(".") and (folder / f).resolve() not in without)
        if not recursive:
            folders.clear()
        for name in sorted(files):
            path = folder / name
            if name.startswith(".") or path.resolve() in without:
                continue
            yield Input(path, folder.relative_to(top)) if _is_photo(path) else None
    for error in unreadable:
        place = str(error.filename or top)
        yield place, note("I21", path=place, reason=error.strerror or error)


def _is_photo(path: Path) -> bool:
    if format_of_suffix(path.suffix):
        return True
    try:
        with path.open("rb") as stream:
            return format_of(stream.read(64)) is not None
    except OSError:
        return False


def _same(path: Path | None) -> Path | None:
    return None if path is None else Path(os.path.abspath(path))
