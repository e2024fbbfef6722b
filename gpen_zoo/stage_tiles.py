"""Which pixels a tile of a stage reads: the geometry that makes tiled equal whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from torch import Tensor

Span: TypeAlias = tuple[int, int]  # rows or columns [start, stop)


def tiles(side: int, tile: int) -> Iterator[tuple[Span, Span]]:
    """(rows, columns) of tiles that cover a square once; the last of a row or column may be smaller."""
    spans = [(start, min(start + tile, side)) for start in range(0, side, tile)]
    return ((rows, columns) for rows in spans for columns in spans)


def grown(span: Span, side: int) -> Span:
    """With the one pixel around it that a padded 3×3 convolution reads."""
    return max(0, span[0] - 1), min(side, span[1] + 1)


def missing(span: Span, side: int) -> Span:
    """How much of that pixel lies outside the picture, before and after."""
    return int(span[0] == 0), int(span[1] == side)


def aligned(span: Span, step: int) -> Span:
    """Grown to multiples of `step`, so that blocks of a picture lie where they lie without tiles."""
    return span[0] // step * step, -(-span[1] // step) * step


def up_source(span: Span, side: int) -> Span:
    """Pixels of the low-resolution side that `span` of an up-convolution's result reads.

    The low-pass reads i-1…i+2 of the transposed convolution for pixel i, and that one's pixel j reads p with
    0 ≤ j - 2p ≤ 2. Running both on the span returned, with the low-pass padded by 1, yields 2·start…2·stop, of which
    `span` is right.
    """
    return max(0, (span[0] - 2) // 2), min(side, (span[1] + 1) // 2 + 1)


def down_source(span: Span, side: int) -> Span:
    """Pixels of the doubled side that `span` of a down-convolution's result (of `side` pixels) reads.

    Result q reads low-passed 2q…2q+2, and that one's pixel j reads j-2…j+1. One more result on each inner side is
    computed from the padding and dropped.
    """
    return 2 * max(0, span[0] - 1), 2 * min(side, span[1] + 1)


def place(x: Tensor, i: int, rows: Span, columns: Span) -> Tensor:
    """A view of sample i, still with a batch axis."""
    return x[i : i + 1, :, slice(*rows), slice(*columns)]


def cut(x: Tensor, rows: Span, columns: Span, top: int, left: int) -> Tensor:
    """The rows and columns of a picture of which x is the part that starts at `top`, `left`. A view."""
    return x[:, :, rows[0] - top : rows[1] - top, columns[0] - left : columns[1] - left]
