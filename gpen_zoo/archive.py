"""Zip files: photos out of one that a stranger has sent, results into one."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from gpen_zoo.errors import ImageTooLarge, ImageUnreadable
from gpen_zoo.image_names import format_of_suffix, result_name
from gpen_zoo.image_sniff import format_of
from gpen_zoo.outputs import not_written

PIECE = 1 << 20
UTF8 = 0x800  # flag of an entry whose name is UTF-8
ENCRYPTED = 0x1


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpacked:
    """A file from a zip. name: its path there, for people; path: where it lies now."""

    name: str
    path: Path


def unpack(archive: Path, into: Path, *, most_files: int, most_bytes: int) -> Iterator[Unpacked]:
    """Write the pictures of a zip into the folder `into` under names of our own and yield them in order.

    What is no picture by content nor by name is passed over. Limits are held while reading, whatever the directory of
    the zip claims. Raises ImageUnreadable (S11 damaged, S13 encrypted), ImageTooLarge (S12), PathInaccessible.
    """
    count, total = 0, 0
    try:
        with zipfile.ZipFile(archive) as opened:
            for info in opened.infolist():
                name = name_of(info)
                if info.is_dir() or any(map(_hidden, PurePosixPath(name).parts)):
                    continue
                if info.flag_bits & ENCRYPTED:
                    raise ImageUnreadable("S13", file=archive.name)
                with opened.open(info) as source:
                    head = source.read(64)
                    if format_of(head) is None and format_of_suffix(PurePosixPath(name).suffix) is None:
                        continue
                    count += 1
                    target = into / f"{count:05d}" / result_name(PurePosixPath(name).name, "", "PNG")
                    target = target.with_name(PurePosixPath(name).name if _plain(name) else target.name)
                    target.parent.mkdir(parents=True)
                    with target.open("wb") as written:
                        piece = head
                        while piece:
                            total += len(piece)
                            if count > most_files or total > most_bytes:
                                raise ImageTooLarge(
                                    "S12", file=archive.name, files=most_files, gb=f"{most_bytes / 1e9:g}"
                                )
                            written.write(piece)
                            piece = source.read(PIECE)
                yield Unpacked(name=name, path=target)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, UnicodeDecodeError) as error:
        raise ImageUnreadable("S11", file=archive.name, reason=str(error) or type(error).__name__) from error


def name_of(info: zipfile.ZipInfo) -> str:
    """The name of an entry with `/` between folders, those that lead out of the zip left out.

    Chinese Windows writes GBK without saying so.
    """
    name = info.filename
    if not info.flag_bits & UTF8:
        try:
            name = name.encode("cp437").decode("gbk")
        except (UnicodeEncodeError, UnicodeDecodeError):
            name = info.filename
    return "/".join(part for part in name.replace("\\", "/").split("/") if part not in ("", ".", ".."))


def _hidden(part: str) -> bool:
    """What macOS and other systems add for themselves."""
    return part == "__MACOSX" or part.startswith(".")


def _plain(name: str) -> bool:
    """Whether the last part of a name can be a file name everywhere as it is."""
    last = PurePosixPath(name).name
    return result_name(last, "", format_of_suffix(PurePosixPath(last).suffix) or "PNG") == last


def pack(files: Iterable[tuple[Path, str]], texts: Iterable[tuple[str, str]], to: Path) -> Path:
    """Write a zip of files (path, name in the zip) and texts (name, text). Raises as `put_file`."""
    try:
        # Pictures are compressed already.
        with zipfile.ZipFile(to, "w", zipfile.ZIP_STORED) as made:
            for path, name in files:
                made.write(path, name)
            for name, text in texts:
                made.writestr(name, text)
    except OSError as error:
        raise not_written(to, error) from error
    return to
