"""How much of every photo pixel a restored face may change: which part of the head, softened, and shared by neighbours.

Everything is measured in fractions of the crop, so that feathers are in proportion to the face.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import cv2
import numpy as np

from gpen_zoo.align import Patch, Window, invert, shifted
from gpen_zoo.types import F32, F64, U8, Mask


class Oval(NamedTuple):
    """An ellipse in fractions of the crop. end: how much farther out (as a factor of the axes) the feather ends."""

    centre: tuple[float, float]
    axes: tuple[float, float]
    end: float


# Drawn over faces in GPEN's template: the hair line lies near y = 0.25, the chin near 0.85, the ears at x = 0.25, 0.75.
FACE = Oval((0.5, 0.55), (0.26, 0.33), 1.35)
HEAD = Oval((0.5, 0.48), (0.39, 0.43), 1.25)
# What is weighed when heads overlap; it is the same for every mask, so that a border between two faces stays put.
OWNED = Oval((0.5, 0.52), (0.30, 0.36), 1.32)
# How steeply two overlapping heads divide the pixels between them; 8 makes the seam about a tenth of a head wide.
OWNERSHIP = 8.0
BORDER = 0.08  # over which a mask that reaches the crop's border fades, in crop sides
# Classes of ParseNet, in CelebAMask-HQ's order: skin, nose, glasses, eyes, brows, ears, mouth, lips; hair, ear rings.
FACE_PARTS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)
HAIR_PARTS = (13, 15)
GRID = 256  # side of the map in which masks are drawn; they are smooth enough to be enlarged from it
PARSED_SOFT = 0.025  # standard deviation of that, in crop sides


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Place:
    """Where one face lies. frame: float64 (2, 3), photo pixels → fractions of the crop.

    whole: the crop is the picture itself and nothing is masked (aligned mode).
    """

    index: int
    frame: F64
    whole: bool = False


def fractions(frame: F64, window: Window) -> tuple[F32, F32]:
    """Crop fractions u, v, float32 (h, w) each, of the photo pixels in `window`."""
    local = shifted(frame, window).astype(np.float32)
    xs = np.arange(window.x1 - window.x0, dtype=np.float32)
    ys = np.arange(window.y1 - window.y0, dtype=np.float32)[:, None]
    u = local[0, 0] * xs + (local[0, 1] * ys + local[0, 2])
    v = local[1, 0] * xs + (local[1, 1] * ys + local[1, 2])
    return np.asarray(u, np.float32), np.asarray(v, np.float32)


def fractions_of_grid(size: int) -> tuple[F32, F32]:
    """Crop fractions u (1, size) and v (size, 1) of a crop's own pixels."""
    steps = np.asarray((np.arange(size) + 0.5) / size, np.float32)
    return steps[None, :], steps[:, None]


def squared_distance(oval: Oval, u: F32, v: F32) -> F32:
    """0 at the oval's centre, 1 where the feather begins, oval.end² where it ends."""
    return np.asarray(
        np.square((u - oval.centre[0]) / oval.axes[0]) + np.square((v - oval.centre[1]) / oval.axes[1]),
        dtype=np.float32,
    )


def smooth(t: F32) -> F32:
    """Smoothstep of t clipped to 0-1: no edge in value or slope."""
    t = np.clip(t, 0.0, 1.0)
    return np.asarray(t * t * (3.0 - 2.0 * t), dtype=np.float32)


def fade(oval: Oval, u: F32, v: F32) -> F32:
    """1 inside the oval, 0 beyond its feather."""
    distance = np.sqrt(squared_distance(oval, u, v))
    return smooth(np.asarray((oval.end - distance) / (oval.end - 1.0), np.float32))


def fade_at_border(t: F32) -> F32:
    """1 inside the crop, 0 at fractions 0 and 1."""
    return smooth(np.asarray((0.5 - np.abs(t - 0.5)) / BORDER, np.float32))


@cache
def drawn(mask: Mask) -> F32:
    """Weight float32 (GRID, GRID) over the crop, as drawn from the landmarks alone; shared, not to be written to."""
    u, v = fractions_of_grid(GRID)
    weight = fade_at_border(u) * fade_at_border(v)
    if mask != "crop":
        weight *= fade(FACE if mask == "face" else HEAD, u, v)
    return _closed(weight)


def parsed(regions: U8, mask: Mask) -> F32:
    """Weight float32 (GRID, GRID) over the crop from ParseNet's classes uint8 (S, S) of the crop.

    Parts of the face are taken as they lie, but only about this face: another head in the crop has skin and hair too.
    """
    parts = FACE_PARTS if mask == "face" else FACE_PARTS + HAIR_PARTS
    wanted = np.isin(regions, parts).astype(np.float32)
    wanted = np.asarray(cv2.resize(wanted, (GRID, GRID), interpolation=cv2.INTER_AREA), np.float32)
    # Beyond the crop goes what lies at its border; the border's own fade comes last.
    soft = cv2.GaussianBlur(wanted, (0, 0), PARSED_SOFT * GRID, borderType=cv2.BORDER_REPLICATE)
    u, v = fractions_of_grid(GRID)
    near = Oval(HEAD.centre, (HEAD.axes[0] * 1.1, HEAD.axes[1] * 1.1), HEAD.end)
    return _closed(smooth(np.asarray(soft, np.float32)) * fade(near, u, v) * drawn("crop"))


def _closed(weight: F32) -> F32:
    """The same with a rim of zeros, which is what gets repeated beyond the crop."""
    weight[[0, -1]] = weight[:, [0, -1]] = 0.0
    return weight


def head_weight(place: Place, window: Window, neighbours: Sequence[Place], drawing: F32) -> F32:
    """Blend weight float32 (h, w) of one face over `window`; where heads overlap the nearer one owns the pixel.

    drawing: (GRID, GRID) from `drawn` or `parsed`. Neighbours count whether or not they are pasted themselves: a face
    left alone must stay as it is.
    """
    if place.whole:
        return np.ones((window.y1 - window.y0, window.x1 - window.x0), np.float32)
    # Smooth enough to be taken at points, also for a face much smaller than the drawing.
    to_crop = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5], [0.0, 0.0, GRID]]) / GRID
    weight = Patch(values=drawing, matrix=invert(place.frame) @ to_crop).over(window, cubic=False)
    if neighbours:
        own = squared_distance(OWNED, *fractions(place.frame, window))
        rivals = np.zeros_like(own)
        for other in neighbours:
            lead = own - squared_distance(OWNED, *fractions(other.frame, window))
            rivals += np.exp(np.clip(OWNERSHIP * lead, -60.0, 60.0))
        weight /= 1.0 + rivals
    return weight
