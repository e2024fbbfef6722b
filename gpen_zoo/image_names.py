"""File names: which format a suffix stands for, and what a result is called."""

from __future__ import annotations

import os
import re
import unicodedata

from gpen_zoo.image_sniff import SUFFIXES

# File systems allow 255 bytes, and a Chinese character takes three; the rest is left for a caller's " (2)".
_MAX_BYTES = 230


def format_of_suffix(suffix: str) -> str | None:
    """Pillow's name of the format that a file suffix such as `.jpg` stands for, or None."""
    lower = suffix.lower()
    return next((name for name, known in SUFFIXES.items() if lower in known), None)


def named_format(text: str) -> str:
    """Pillow's name for `jpg`, `.TIF`, `webp`, `JPEG`…; unknown names come back in upper case."""
    upper = text.upper()
    return upper if upper in SUFFIXES else format_of_suffix(f".{text.lstrip('.')}") or upper


def result_name(original: str, suffix: str, chosen: str) -> str:
    """Stem of `original` + `suffix` + an extension that is true for the format `chosen`.

    An extension that fits stays as it was written (`.JPG`, `.jpeg`), a wrong one is replaced. Folders, control and
    direction characters and what Windows forbids are taken out; letters of every script stay.
    """
    stem, extension = os.path.splitext(_safe(original))
    own = format_of_suffix(extension)
    if own is None:
        stem += extension
    if own != chosen:
        extension = SUFFIXES[chosen][0]
    stem, suffix = stem.strip(". ") or "photo", _safe(suffix)
    if re.fullmatch(r"(?i)con|prn|aux|nul|(com|lpt)\d", stem + suffix):
        stem = "_" + stem  # device names on Windows, with any extension
    room = max(1, _MAX_BYTES - len((suffix + extension).encode()))
    return stem.encode()[:room].decode(errors="ignore") + suffix + extension


def _safe(name: str) -> str:
    name = name.replace("\\", "/").rsplit("/", 1)[-1]
    # Cc: control. Cf: direction marks that disguise a name. Cs: bytes that were no UTF-8 in the file system.
    marked = "".join("_" if c in '<>:"|?*' or unicodedata.category(c) == "Cs" else c for c in name)
    return "".join(c for c in marked if unicodedata.category(c) not in ("Cc", "Cf"))
