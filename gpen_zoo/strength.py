"""How strongly a face is restored when nobody said: less where the network is likely to do harm, and why."""

from __future__ import annotations

from typing import NamedTuple

import cv2
import numpy as np

from gpen_zoo.align import patch_of
from gpen_zoo.hints import Note, note
from gpen_zoo.masks import FACE, fractions_of_grid, squared_distance
from gpen_zoo.match import luma_of
from gpen_zoo.types import F32, RestoredCrop

FRONTAL = 35.0  # degrees of yaw up to which GPEN's training faces reach in numbers; the estimate errs by up to 10
PROFILE = 65.0  # degrees from which the far half of the face is out of sight
AT_PROFILE = 0.5
AT_SHARP = 0.5
# Where a face begins to need restoring, and where it needs all of it: detail after over detail before, and noise taken
# away over detail before.
GAINED, REMOVED = (1.5, 2.5), (0.1, 0.5)
CELL = 8  # pixels: side of the cells over which detail is told from noise
FINE = 1.0  # pixels: standard deviation below which structure counts as detail or noise


class Fineness(NamedTuple):
    """Power of the finest structure of a face, in squared 8-bit steps."""

    detail: float
    noise: float


def default_strength(crop: RestoredCrop, yaw: float) -> tuple[float, Note | None]:
    """Strength 0-1 of a face turned by `yaw` degrees, and the reason when it is below 1.

    Two causes lower it, and the stronger counts. A face in profile, because the network was trained on frontal ones and
    tends to draw the hidden eye. A face that was sharp already, which the network makes neither much sharper nor much
    less noisy: it can only lose likeness. Measured at 256 px with the demo weights on 24 studio portraits and worn
    versions of them, tenth to ninetieth percentile: detail grows 1.1 to 2.0 times for clean ones and after JPEG of
    quality 50 or 80, where restoring costs 2 to 6 dB; 2.5 to 4.6 times after a blur of one pixel, as `light` and as
    `chat`, where it gains 0.6 to 3 dB; more for what is worn more. Noise of sigma 6 that was taken away is 0.75 of the
    detail (gain 0.8 dB), of sigma 12 twice the detail (5.4 dB).
    """
    by_yaw = 1.0 - (1.0 - AT_PROFILE) * _between(abs(yaw), FRONTAL, PROFILE)
    by_need = AT_SHARP + (1.0 - AT_SHARP) * need(fineness(crop.before, crop), fineness(crop.after, crop))
    strength = round(min(by_yaw, by_need), 2)
    if strength > 0.95:
        return 1.0, None
    if by_yaw <= by_need:
        return strength, note("F43", degrees=round(abs(yaw)), percent=round(100 * strength))
    return strength, note("F44", percent=round(100 * strength))


def need(before: Fineness, after: Fineness) -> float:
    """How far a face needed what the network did, 0-1; 1 where it is too small or too smooth to tell."""
    if before.detail <= 0:
        return 1.0
    gained, removed = after.detail / before.detail, (before.noise - after.noise) / before.detail
    return max(_between(gained, *GAINED), _between(removed, *REMOVED))


def _between(value: float, low: float, high: float) -> float:
    return min(max((value - low) / (high - low), 0.0), 1.0)


def fineness(pixels: F32 | np.ndarray, crop: RestoredCrop) -> Fineness:
    """Of the face in a crop (S, S, 3) at the scale of `crop` in its photo, or the crop's own if that is smaller.

    The flattest fifth of the face is taken to show noise alone; what other places have beyond it is detail.
    """
    luma = luma_of(patch_of(pixels, crop.frame).values.astype(np.float32))
    cells = luma.shape[0] // CELL
    luma = luma[: cells * CELL, : cells * CELL]
    if cells < 4:
        return Fineness(0.0, 0.0)
    fine = luma - cv2.GaussianBlur(luma, (0, 0), FINE)
    power = cv2.resize(fine * fine, (cells, cells), interpolation=cv2.INTER_AREA)
    inside = power[squared_distance(FACE, *fractions_of_grid(cells)) < 1]
    noise = float(np.quantile(inside, 0.2))
    return Fineness(max(float(inside.mean()) - noise, 0.0), noise)
