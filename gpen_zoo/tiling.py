"""Pictures in overlapping tiles, for image-to-image functions that look only a little around each pixel.

Not for GPEN itself, whose encoder sees the whole face: its tiles are inside the network (stage_tiles.py).

Neighbours are blended as a + (b - a)·w with w rising over the overlap. So the weights of all tiles add up to one
everywhere, the picture's own border has weight one (a window that falls to zero at every edge darkens it), and
where two tiles agree their common value passes through exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Pixels: TypeAlias = NDArray[Any]  # (H, W) or (H, W, C), any dtype
Ramp: TypeAlias = Literal["hann", "linear"]

WHOLE_BELOW = 800  # px of the long side; users of such tools expect no seams on small pictures
WIDE_ABOVE = 1280  # px of the long side from which the overlap is 64 px
TILE = 640


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiling:
    """tile: side in pixels, 0 for the whole picture at once. overlap: pixels shared by neighbours, < tile."""

    tile: int
    overlap: int = 0
    ramp: Ramp = "hann"

    def __post_init__(self) -> None:
        if self.tile < 0 or self.overlap < 0 or (self.tile and self.overlap >= self.tile):
            raise ValueError(f"tiles of {self.tile} px cannot overlap by {self.overlap} px")


def auto_tiling(height: int, width: int) -> Tiling:
    """Below 800 px the whole picture; then tiles of 640 px that overlap by 32 px, above 1280 px by 64 px."""
    side = max(height, width)
    if side < WHOLE_BELOW:
        return Tiling(tile=0)
    return Tiling(tile=TILE, overlap=64 if side > WIDE_ABOVE else 32)


def run_tiled(
    picture: Pixels,
    function: Callable[[Pixels], Pixels],
    tiling: Tiling,
    *,
    on_tile: Callable[[int, int], None] | None = None,
) -> Pixels:
    """`function` applied to every tile of `picture`, blended.

    picture: (H, W) or (H, W, C). function: a tile → the same times a whole factor (1, 2, 4…) on both sides, any
    number of channels, any dtype, which is also the result's. Every tile has the side asked for, or the picture's
    where that is smaller: the last of a row or column is moved inwards, not shrunk. `on_tile(done, total)` is called
    after each tile; what it raises passes through. ValueError when a tile comes back in another size.
    """
    height, width = picture.shape[:2]
    tall, wide = min(tiling.tile or height, height), min(tiling.tile or width, width)
    tops, lefts = starts(height, tall, tiling.overlap), starts(width, wide, tiling.overlap)
    if len(tops) == len(lefts) == 1:
        result = function(picture)
        _factor(picture, result)
        if on_tile is not None:
            on_tile(1, 1)
        return result
    whole: Pixels | None = None
    # Rows of the strips above that the next strip is blended with, not rounded yet. Only they are kept as numbers with
    # a fraction: a whole picture of 48 megapixels would be 576 MB of them.
    pending: Pixels | None = None
    factor, dtype, done = 1, np.dtype(np.float32), 0
    for top, following in zip(tops, [*tops[1:], None], strict=True):
        strip: Pixels | None = None
        for left in lefts:
            tile = picture[top : top + tall, left : left + wide]
            result = function(tile)
            factor, dtype = _factor(tile, result), result.dtype
            if strip is None:
                strip = np.empty((result.shape[0], width * factor, *result.shape[2:]), _working(dtype))
            _blend(strip, result, left * factor, axis=1, tiling=tiling, factor=factor)
            done += 1
            if on_tile is not None:
                on_tile(done, len(tops) * len(lefts))
        assert strip is not None
        if whole is None:
            whole = np.empty((height * factor, *strip.shape[1:]), dtype)
        if pending is not None:
            _mix(pending, strip, tiling.ramp)
            strip[: len(pending)] = pending
        finished = whole[top * factor : (top + tall) * factor]
        finished[...] = strip if strip.dtype == dtype else np.rint(strip)
        if following is not None:
            begin = (following - top) * factor
            pending = strip[begin : begin + tiling.overlap * factor].copy()
    assert whole is not None
    return whole


def starts(length: int, tile: int, overlap: int) -> list[int]:
    """Where tiles begin along one axis: every tile − overlap pixels, the last moved inwards to end at the border."""
    if tile >= length:
        return [0]
    return [*range(0, length - tile, tile - overlap), length - tile]


def ramp_weights(kind: Ramp, length: int) -> NDArray[np.float32]:
    """(length,) weights of the new tile, from just above 0 to just below 1, symmetric: w[i] + w[-1 - i] = 1."""
    t = (np.arange(length) + 0.5) / max(1, length)
    return (t if kind == "linear" else 0.5 - 0.5 * np.cos(np.pi * t)).astype(np.float32)


def _blend(into: Pixels, part: Pixels, start: int, *, axis: int, tiling: Tiling, factor: int) -> None:
    """Lay `part` over what `into` holds; everything before `start` + overlap is filled already, except at start 0."""
    into, part = np.moveaxis(into, axis, 0), np.moveaxis(part, axis, 0)
    begin = start + (tiling.overlap * factor if start else 0)
    _mix(into[start:begin], part, tiling.ramp)
    into[begin : start + len(part)] = part[begin - start :]


def _mix(held: Pixels, part: Pixels, ramp_kind: Ramp) -> None:
    """Let `held` pass into the first rows of `part`, in place."""
    ramp = ramp_weights(ramp_kind, len(held)).reshape(-1, *[1] * (part.ndim - 1))
    held += (part[: len(held)] - held) * ramp


def _working(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Integers are blended as float32 and rounded once at the end."""
    return dtype if dtype.kind == "f" and dtype.itemsize >= 4 else np.dtype(np.float32)


def _factor(tile: Pixels, result: Pixels) -> int:
    factor = int(result.shape[0]) // int(tile.shape[0])
    if result.shape[:2] != (tile.shape[0] * factor, tile.shape[1] * factor) or not factor:
        raise ValueError(f"a tile of {tile.shape[:2]} came back as {result.shape[:2]}")
    return factor
