"""The photo's grain over a restored face, so that a face in a grainy print does not look cut out.

Grain is measured beside the face, in four bands of fineness, where the photo is flattest; what the restored face
lacks in each band is made up by synthetic luma noise of the same fineness. The noise depends on the face's number only,
so the same photo gives the same result.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from gpen_zoo.types import F32

Levels: TypeAlias = tuple[float, ...]  # standard deviation in each band, in 8-bit steps

BANDS = (0.7, 1.4, 2.8, 5.6)  # pixels: standard deviations between which the bands lie, finest first
CELL = 12  # pixels: side of the cells in which flatness is judged
QUIET = 0.2  # quantile over the cells, band by band, that is taken to show grain alone: faces have few flat places
# What that quantile is of white noise's own standard deviation in each band, measured over 10,000 cells.
SHARE = (0.94, 0.93, 0.86, 0.74)
FEWEST = 16  # cells, below which nothing is said: faces below some 90 px get no grain rather than a guess
MOST = 16.0  # 8-bit steps: stronger "grain" is texture
RISE = 1.3  # from a band to the next coarser one; grain has no more, and what has is the picture's own structure


def bands(luma: F32) -> Iterator[F32]:
    """The bands of a picture (h, w), finest first."""
    finer = luma
    for sigma in BANDS:
        coarser = np.asarray(cv2.GaussianBlur(luma, (0, 0), sigma), np.float32)
        yield finer - coarser
        finer = coarser


def grain_of(luma: F32, where: NDArray[np.bool_]) -> Levels:
    """Standard deviation of grain in each band, in 8-bit steps, over the flat parts of luma (h, w) inside `where`."""
    height, width = (n // CELL for n in luma.shape)
    if not height or not width:
        return (0.0,) * len(BANDS)
    whole = (width, height)
    part = np.s_[: height * CELL, : width * CELL]
    inside = cv2.resize(where[part].astype(np.float32), whole, interpolation=cv2.INTER_AREA) > 0.99
    if inside.sum() < FEWEST:
        return (0.0,) * len(BANDS)
    quiet = [
        float(np.quantile(cv2.resize(np.square(band[part]), whole, interpolation=cv2.INTER_AREA)[inside], QUIET))
        for band in bands(luma)
    ]
    return tuple(math.sqrt(power) / share for power, share in zip(quiet, SHARE, strict=True))


def lacking(beside: Levels, before: Levels, after: Levels) -> Levels:
    """What a face lacks of the grain beside it. before, after: of the face in the photo, and restored.

    A face's bands hold its features too, so that what was taken away tells more than what is there.
    """
    levels: list[float] = []
    for there, given, made in zip(beside, before, after, strict=True):
        most = levels[-1] * RISE if levels else MOST
        levels.append(min(math.sqrt(max(min(there**2, given**2 - made**2), 0.0)), most))
    return tuple(levels)


def grain(shape: tuple[int, int], levels: Levels, seed: int) -> F32:
    """Noise float32 `shape` with these standard deviations in the bands."""
    white = np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)
    out = np.zeros(shape, np.float32)
    for band, level in zip(bands(white), levels, strict=True):
        if level > 0:
            out += band * np.float32(level / max(float(band.std()), 1e-6))
    return out
