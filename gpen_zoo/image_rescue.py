"""Pixels of files that end too early, and an honest figure of how much of the picture the file determines.

Pillow's switch for this (`LOAD_TRUNCATED_IMAGES`) is a global of the process and would change what other threads do.
Here the decoder fails as usual and the rows that it had already written are taken from the image it was filling.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image as pil
from PIL.ImageFile import ImageFile

_EOI = b"\xff\xd9"
# libjpeg spends a whole pass over the picture on every scan of a progressive file.
MAX_SCANS = 100
# Start of scan: length 6 + 2 n for n = 1-4 components.
_SCAN = re.compile(rb"\xff\xda\x00[\x08\x0a\x0c\x0e]")
_ROW_BY_ROW = ("JPEG", "PNG", "TIFF", "BMP", "GIF", "PPM")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Loaded:
    """A picture whose pixels are in memory. usable: share of its rows that the file determines, 0-1.

    intact: the decoder met no damage. coarse: a progressive file that ends early; its usable rows lack fine detail.
    """

    image: pil.Image
    usable: float = 1.0
    intact: bool = True
    coarse: bool = False


def load(data: bytes, opened: Callable[[bytes], ImageFile]) -> Loaded:
    """Decode `data`; `opened` makes an image with its header read.

    Raises what the plugin raises (OSError, SyntaxError, ValueError, struct.error…) when nothing at all can be used.
    """
    im = opened(data)
    if im.format == "JPEG":
        start = first_scan(data)
        if len(scan_starts(data, start)) > MAX_SCANS:
            raise OSError(f"more than {MAX_SCANS} scans")
        # The end marker cannot occur inside picture data, so without one behind the first scan the file was cut.
        # What cards and downloads leave instead, often zeros, libjpeg would take for picture without complaint.
        if start and data.find(_EOI, start) < 0:
            return _load_cut_jpeg(data.rstrip(b"\0"), start, opened)
    if im.format == "TIFF":
        # Memory that is there already is not measured against Pillow's process-wide limit; ours was checked before.
        _background(im, 0)
    try:
        im.load()
    except (OSError, SyntaxError, ValueError, EOFError):
        # A TIFF that lies on its side is turned by the plugin at the end, which a cut one does not reach.
        if im.format not in _ROW_BY_ROW or _stored_size(im) != im.size:
            raise
        loaded = _load_rows(data, opened)
        if not loaded.usable:
            raise
        return loaded
    return Loaded(image=im)


def _load_rows(data: bytes, opened: Callable[[bytes], ImageFile]) -> Loaded:
    """Decode into two different backgrounds: rows that come out equal were written by the decoder."""
    rescued = _filled(data, opened, 0)
    pixels = np.asarray(rescued)
    if rescued.format == "GIF":
        # The plugin chooses its own background, which is also what the missing rows are left with.
        return Loaded(image=rescued, usable=_until_flat(pixels), intact=False)
    other = np.asarray(_filled(data, opened, 255))
    same = (pixels == other).reshape(len(pixels), -1).all(axis=1)
    return Loaded(image=rescued, usable=float(same.mean()), intact=False)


def _filled(data: bytes, opened: Callable[[bytes], ImageFile], fill: int) -> ImageFile:
    """Decode into an image that starts out filled with `fill`, and keep what was there when the decoder gave up."""
    im = opened(data)
    _background(im, fill)
    try:
        im.load()
    except (OSError, SyntaxError, ValueError, EOFError):
        im.tile = []  # nothing is left to decode
    return im


def _background(im: ImageFile, fill: int) -> None:
    """Give a decoder the memory that it will write to."""
    bands = len(im.getbands())
    im.im = pil.new(im.mode, _stored_size(im), fill if bands == 1 else (fill,) * bands).im


def _stored_size(im: ImageFile) -> tuple[int, int]:
    return getattr(im, "_tile_size", im.size)


def _load_cut_jpeg(body: bytes, start: int, opened: Callable[[bytes], ImageFile]) -> Loaded:
    ended = opened(body + _EOI)
    ended.load()
    pixels = np.asarray(ended)
    if ended.info.get("progressive"):
        usable = 1.0 if _first_pass_done(body, start) else _until_flat(pixels)
        return Loaded(image=ended, usable=usable, intact=False, coarse=True)
    # Two different bogus endings: the rows above the first difference do not depend on what follows.
    other = opened(body + b"\x55\xaa\x33" * 40 + _EOI)
    other.load()
    different = np.flatnonzero((pixels != np.asarray(other)).reshape(len(pixels), -1).any(axis=1))
    usable = float(different[0]) / len(pixels) if len(different) else 1.0
    return Loaded(image=ended, usable=usable, intact=usable == 1)


def first_scan(data: bytes) -> int:
    """Offset of the first start-of-scan marker of the picture itself (not of its thumbnail), 0 when there is none."""
    at = 2
    while at + 4 <= len(data) and data[at] == 0xFF:
        if data[at + 1] == 0xDA:
            return at
        at += 1 if data[at + 1] == 0xFF else 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return 0


def scan_starts(data: bytes, first: int) -> list[int]:
    """Offsets of the start-of-scan markers from `first` up to the end of the picture."""
    end = data.find(_EOI, first)
    return [m.start() for m in _SCAN.finditer(data, first, end if end >= 0 else len(data))]


def _first_pass_done(data: bytes, first: int) -> bool:
    """Whether a cut progressive file has the first pass (DC coefficients) of every component behind it."""
    covered: set[int] = set()
    for start in scan_starts(data, first):
        count = data[start + 4]
        parts = data[start + 5 : start + 5 + 2 * count : 2]
        # A scan of finer coefficients, or a second one over a component, comes after that pass.
        if data[start + 5 + 2 * count : start + 6 + 2 * count] != b"\0" or covered & set(parts):
            return True
        covered |= set(parts)
    return False


def _until_flat(pixels: NDArray[Any]) -> float:
    """Share of rows down to the last one that differs from the row at the bottom."""
    rows = pixels.reshape(len(pixels), -1)
    different = np.flatnonzero((rows != rows[-1]).any(axis=1))
    return (float(different[-1]) + 1) / len(rows) if len(different) else 0.0
