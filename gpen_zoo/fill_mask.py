"""Which pixels of a photo are to be filled in: read from a picture, brought to the photo's size, softened inwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from gpen_zoo.errors import GpenError
from gpen_zoo.masks import smooth
from gpen_zoo.types import F32, U8, Image

Bools: TypeAlias = NDArray[np.bool_]

HALF = 128  # from this lightness or opacity on a pixel counts as white or there
DARK, LIGHT = 64, 191  # between them a pixel is neither black nor white
MOST_BETWEEN = 0.1  # share of such pixels, above which the picture is no mask
SAME = 24  # levels within which all of a painting is of one colour
SOFTEST = 16.0  # pixels


def mask_of(picture: Image, width: int, height: int) -> Bools:
    """What `picture` marks as to be filled: bool (height, width), brought to that size by nearest neighbour.

    Without see-through parts white is to be filled. With them: a painting in one colour on a see-through ground marks
    what is painted, a black and white one what is white, and a picture with holes marks the holes.

    Raises GpenError: P10 a picture that is neither black nor white, P11 nothing is marked, P12 everything is.
    """
    light, seen = picture.pixels.max(2), picture.alpha
    if seen is not None and seen.min() < HALF <= seen.max():
        there = seen >= HALF
        painted = picture.pixels[there]
        if int(np.ptp(painted, axis=0).max()) <= SAME:
            marked = there
        elif _between(painted.max(1)) <= MOST_BETWEEN:
            marked = there & (light >= HALF)
        else:
            marked = ~there
    else:
        share = _between(light)
        if share > MOST_BETWEEN:
            raise GpenError("P10", pct=round(100 * share))
        marked = light >= HALF
    small = np.asarray(marked, np.uint8)
    mask = cv2.resize(small, (width, height), interpolation=cv2.INTER_NEAREST_EXACT).astype(np.bool_)
    if not mask.any():
        raise GpenError("P11")
    if mask.all():
        raise GpenError("P12")
    return np.asarray(mask)


def painted_over(layers: Sequence[Image], width: int, height: int) -> Bools:
    """What was painted on see-through layers of one size, whatever the colour; result and errors as of `mask_of`."""
    marked = np.zeros((1, 1), np.bool_)
    for layer in layers:
        if layer.alpha is not None:
            marked = marked | (layer.alpha >= HALF)
    return mask_of(Image(pixels=np.repeat(marked[..., None].astype(np.uint8) * 255, 3, axis=2)), width, height)


def _between(light: U8) -> float:
    return float(np.mean((light > DARK) & (light < LIGHT)))


def inner_weight(mask: Bools) -> F32:
    """How much of each pixel is filled, float32 (H, W): 0 outside the mask, in it rising to 1 within a few pixels.

    The rise is in proportion to the picture, at most half as deep as the marked spot: of a thin scratch nothing of the
    photo's own is to shine through.
    """
    weight = np.zeros(mask.shape, np.float32)
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    if not len(rows):
        return weight
    # With a rim of pixels that are not marked, to which depth is measured.
    around = tuple(slice(max(0, int(n[0]) - 1), int(n[-1]) + 2) for n in (rows, columns))
    there = mask[around]
    marked = there.astype(np.uint8)
    depth = np.asarray(cv2.distanceTransform(marked, cv2.DIST_L2, cv2.DIST_MASK_5), np.float32)
    spots = np.asarray(cv2.connectedComponents(marked, connectivity=8)[1], np.intp)
    deepest = np.zeros(int(spots.max()) + 1, np.float32)
    np.maximum.at(deepest, spots[there], depth[there])
    soft = np.clip(deepest / 2, 1.0, np.clip(max(mask.shape) / 512, 1.0, SOFTEST)).astype(np.float32)
    weight[around] = smooth(np.asarray(depth / soft[spots], np.float32)) * there
    return weight
