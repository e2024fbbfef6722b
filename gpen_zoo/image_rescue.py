"""Pixels of files that end too early, and an honest figure of how much of the picture the file determines.

Pillow's switch for this (`LOAD_TRUNCATED_IMAGES`) is a global of the process and would change what other threads do.
Here the decoder fails as usual and the rows that it had already written are taken from the image it was filling.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from PIL import Image as pil
from PIL.ImageFile import ImageFile

_EOI = b"\xff\xd9"
# libjpeg spends a whole pass over the picture on every scan of a progressive file.
MAX_SCANS = 100


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
        return _load_jpeg(data, im, opened)
    try:
        im.load()
    except (OSError, SyntaxError, ValueError, EOFError):
        if im.format not in ("PNG", "TIFF", "BMP", "GIF", "PPM"):
            raise
        rescued = _filled(data, opened, 0)
        usable = _leading_equal(np.asarray(rescued), np.asarray(_filled(data, opened, 255)))
        if usable == 0:
            raise
        return Loaded(image=rescued, usable=usable, intact=False)
    return Loaded(image=im)


def _filled(data: bytes, opened: Callable[[bytes], ImageFile], fill: int) -> ImageFile:
    """Decode into an image that starts out filled with `fill`, and keep what was there when the decoder gave up."""
    im = opened(data)
    im.im = pil.new(im.mode, im.size, fill if len(im.getbands()) == 1 else (fill,) * len(im.getbands())).im
    try:
        im.load()
    except (OSError, SyntaxError, ValueError, EOFError):
        im.tile = []  # the documented sign that nothing is left to decode
    return im


def _leading_equal(a: np.ndarray, b: np.ndarray) -> float:
    """Share of rows from the top that are equal in both."""
    if a.shape != b.shape:
        return 0.0
    different = np.flatnonzero((a != b).reshape(len(a), -1).any(axis=1))
    return 1.0 if not len(different) else float(different[0]) / len(a)


def _load_jpeg(data: bytes, im: ImageFile, opened: Callable[[bytes], ImageFile]) -> Loaded:
    body = data.rstrip(b"\0")
    # A card or a download that failed often leaves zeros instead of the missing end; libjpeg takes them for picture.
    if len(data) - len(body) < 64 or body.endswith(_EOI):
        try:
            im.load()
        except OSError:
            pass  # ends too early: the rows that are there are fetched below
        else:
            return Loaded(image=im)
    ended = opened(body + _EOI)
    ended.load()
    if im.info.get("progressive"):
        usable = _first_scans(body, np.asarray(ended))
        if usable == 0:
            raise OSError("image file is truncated")
        return Loaded(image=ended, usable=usable, intact=False, coarse=True)
    # Two different bogus endings: rows that do not care which one follows come from the file.
    other = opened(body + b"\x55\xaa\x33" * 40 + _EOI)
    other.load()
    usable = _leading_equal(np.asarray(ended), np.asarray(other))
    if usable == 0:
        raise OSError("image file is truncated")
    return Loaded(image=ended, usable=usable, intact=False)


def scan_starts(data: bytes) -> list[int]:
    """Offsets of the start-of-scan markers of a JPEG file (those of an embedded thumbnail included)."""
    return [m.start() for m in re.finditer(rb"\xff\xda\x00[\x08\x0a\x0c\x0e]", data)]


def _first_scans(data: bytes, pixels: np.ndarray) -> float:
    """Share of rows that the first pass (DC coefficients) of a cut progressive file reached."""
    starts = scan_starts(data)
    # A scan that is not a DC scan (Ss > 0) or a second one over the same component follows a complete first pass.
    covered: set[int] = set()
    for start in starts:
        count = data[start + 4]
        parts = data[start + 5 : start + 5 + 2 * count : 2]
        spectral = data[start + 5 + 2 * count : start + 6 + 2 * count]
        if spectral != b"\0" or covered & set(parts):
            return 1.0
        covered |= set(parts)
    # Inside the first pass: what lies below the cut repeats the last value that was read.
    rows = pixels.reshape(len(pixels), -1)
    flat = np.flatnonzero((rows != rows[-1]).any(axis=1))
    return (float(flat[-1]) + 1) / len(rows) if len(flat) else 0.0
