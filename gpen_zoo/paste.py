"""Restored crops back into the photo: each inside its own window, blended by a soft head-shaped mask.

What is blended is a *difference* to the photo, so that where mask or strength is zero not a bit changes, several
faces simply add up, and grey or toned photos can take the lightness of the result without its colour.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gpen_zoo.align import Window, shifted, side_of, uncut_crop, window_of
from gpen_zoo.types import F64, U8, RestoredCrop, Tone

F32: TypeAlias = NDArray[np.float32]

# The head in GPEN's template, in fractions of the crop: centre, semi-axes of the part taken whole, and how much
# farther out (as a factor of the axes) the feather ends. The hair line lies near y = 0.25, the chin near 0.85.
CENTRE = (0.5, 0.52)
AXES = (0.30, 0.36)
FEATHER_END = 1.32
# How steeply two overlapping heads divide the pixels between them; 8 makes the seam about a tenth of a head wide.
OWNERSHIP = 8.0
LUMA = np.array([0.299, 0.587, 0.114], dtype=np.float32)  # Rec. 601, the luma of JPEG


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Place:
    """Where one face lies. frame: float64 (2, 3), photo pixels → fractions of the crop.

    whole: the crop is the picture itself and nothing is masked (aligned mode).
    """

    index: int
    frame: F64
    whole: bool = False


def head_distance(frame: F64, window: Window) -> F32:
    """float32 (h, w): 0 at the centre of the head, 1 where the feather begins, in the photo pixels of `window`."""
    local = shifted(frame, window)
    xs = np.arange(window.x1 - window.x0, dtype=np.float32)
    ys = np.arange(window.y1 - window.y0, dtype=np.float32)[:, None]
    u = (local[0, 0] * xs + local[0, 1] * ys + (local[0, 2] - CENTRE[0])) / AXES[0]
    v = (local[1, 0] * xs + local[1, 1] * ys + (local[1, 2] - CENTRE[1])) / AXES[1]
    return np.asarray(np.hypot(u, v), dtype=np.float32)


def feather(distance: F32) -> F32:
    """Weight 1 up to distance 1, 0 from FEATHER_END on, smoothstep between: no edge in value or slope."""
    t = np.clip((FEATHER_END - distance) / (FEATHER_END - 1.0), 0.0, 1.0)
    return np.asarray(t * t * (3.0 - 2.0 * t), dtype=np.float32)


def head_weight(place: Place, window: Window, neighbours: Sequence[Place]) -> F32:
    """Blend weight float32 (h, w) of one face; where heads overlap the nearer one owns the pixel.

    Neighbours count whether or not they are pasted themselves: a face left alone must stay as it is.
    """
    if place.whole:
        return np.ones((window.y1 - window.y0, window.x1 - window.x0), np.float32)
    own = head_distance(place.frame, window)
    weight = feather(own)
    if neighbours:
        rivals = np.zeros_like(own)
        for other in neighbours:
            lead = np.square(own) - np.square(head_distance(other.frame, window))
            rivals += np.exp(np.clip(OWNERSHIP * lead, -60.0, 60.0))
        weight = weight / (1.0 + rivals)
    return weight


def difference(pixels: U8, crop: RestoredCrop, window: Window) -> F32:
    """What full strength adds to the photo in `window`: float32 (h, w, 3), in 8-bit steps.

    A face no larger than the crop is replaced by the result. A larger one gets *result − input crop* on top: the crop
    cannot hold the photo's finest detail, and what it cannot hold must not be lost.
    """
    size = crop.after.shape[0]
    after = uncut_crop(crop.after, crop.frame, window).astype(np.float32)
    if side_of(crop.frame) > size:
        after -= uncut_crop(crop.before, crop.frame, window)
        return after
    return np.asarray(after - window.cut(pixels), dtype=np.float32)


def paste(
    pixels: U8,
    crops: Sequence[RestoredCrop],
    strengths: Mapping[int, float],
    places: Sequence[Place],
    tone: Tone = "colour",
) -> U8:
    """The photo with its faces: a new uint8 (H, W, 3); pixels outside every mask are the photo's own.

    strengths: 0-1 by face number. places: all faces of the photo, also those not pasted.
    For a grey or toned photo only luma changes, so grey stays grey and sepia keeps its sepia.
    """
    out: U8 = pixels.copy()
    height, width = pixels.shape[:2]
    by_index = {p.index: p for p in places}
    windows = {p.index: window_of(p.frame, width, height) for p in places}
    for crop in crops:
        strength, window = strengths.get(crop.index, 0.0), windows[crop.index]
        if strength <= 0 or window.empty:
            continue
        near = [p for p in places if p.index != crop.index and windows[p.index].meets(window)]
        weight = head_weight(by_index[crop.index], window, near) * np.float32(strength)
        change = difference(pixels, crop, window)
        if tone != "colour":
            change = (change @ LUMA)[:, :, None]
        target = window.cut(out)
        target[...] = np.clip(np.rint(target + weight[:, :, None] * change), 0, 255)
    return out
