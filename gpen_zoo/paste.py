"""Restored crops back into the photo: each inside its own window, blended by a soft mask.

What is blended is a *difference* to the photo, so that where mask or strength is zero not a bit changes, several
faces simply add up, and grey or toned photos can take the lightness of the result without its colour.

With U for "laid over the photo", the result of a face is

    U(after) + kept · (photo − U(before))

The bracket is the detail that the crop could not carry. For a face twice as large as the crop, kept is 1 and the
photo's finer detail stays. For a smaller one the network decides: see `match.kept_detail`. A network that changes
nothing thus returns the photo itself, at any size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from gpen_zoo.align import Patch, Window, cut_crop, patch_of, side_of, window_of
from gpen_zoo.grain import Levels, grain, grain_of, lacking
from gpen_zoo.masks import FACE, Place, drawn, fractions, head_weight, parsed, squared_distance
from gpen_zoo.match import kept_detail, luma_of, matched_light
from gpen_zoo.types import F32, U8, Mask, RestoredCrop, Tone

__all__ = ["Layer", "Place", "layer_of", "paste"]

# Photo pixels worked on at once: some 80 bytes each, so that a face of 50 megapixels needs no more than a small one.
BAND = 1 << 20
CAST_GRID = 48  # cells per crop side at which the light of two backgrounds is compared
CAST_SOFT = 0.1  # standard deviation of what counts as light, in crop sides
LEAST_GRAIN = 0.5  # 8-bit steps below which nobody sees it


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Layer:
    """One face ready to be laid over the photo, at any strength.

    delta: float32 (k, k, 3), what full strength changes. before: float32 (k, k, 3), what the network was given, and
    kept (k, k), see above; both None for a face that keeps all of the photo's finer detail. cast: (c, c, 3), how
    the light of the pixels pasted into differs from that of what the network was given, or None.
    """

    delta: Patch
    before: Patch | None
    kept: Patch | None
    cast: Patch | None = None

    def change(self, pixels: U8, window: Window) -> F32:
        """What full strength adds to the photo in `window`: float32 (h, w, 3), in 8-bit steps."""
        change = self.delta.over(window)
        if self.before is not None and self.kept is not None:
            lost = self.before.over(window)
            np.subtract(window.cut(pixels), lost, out=lost)
            if self.cast is not None:
                lost -= self.cast.over(window)
            lost *= (1.0 - self.kept.over(window, cubic=False))[:, :, None]
            change -= lost
        return change


def layer_of(crop: RestoredCrop, mask: Mask = "face", *, whole: bool = False, onto: U8 | None = None) -> Layer:
    """The layer of a crop. Light and colour at large stay the photo's, except in aligned mode (`whole`), where no photo
    surrounds the face and the network's own light is wanted.

    onto: the picture to paste into, where another network made it: a cast that this one gave it is the face's too.
    """
    before, after = (patch_of(x, crop.frame) for x in (crop.before, crop.after))
    given, made = (x.values.astype(np.float32) for x in (before, after))
    delta = made - given
    if not whole:
        delta = matched_light(delta, drawn(mask))
    keep = min(max(side_of(crop.frame) / crop.after.shape[0] - 1.0, 0.0), 1.0)  # all from twice the crop's size on
    needed = keep < 1
    kept = np.maximum(kept_detail(given, made), np.float32(keep)) if needed else None
    return Layer(
        delta=Patch(values=delta, matrix=before.matrix),
        before=Patch(values=given, matrix=before.matrix) if needed else None,
        kept=Patch(values=kept, matrix=before.matrix) if kept is not None else None,
        cast=None if onto is None or whole or not needed else _cast(crop, onto),
    )


def _cast(crop: RestoredCrop, onto: U8) -> Patch:
    """The light of `onto` minus that of the crop before the network."""
    there = cut_crop(onto, crop.frame, CAST_GRID).astype(np.float32)
    here = cut_crop(crop.before, np.eye(2, 3) / crop.before.shape[0], CAST_GRID)
    shift = cv2.GaussianBlur(there - here, (0, 0), CAST_SOFT * CAST_GRID)
    return patch_of(np.asarray(shift, np.float32), crop.frame)


def missing_grain(layer: Layer, pixels: U8, place: Place, window: Window) -> Levels | None:
    """What a restored face lacks of the grain around it: standard deviation by band (see grain.py), None for nothing.

    A face that keeps all of the photo's finer detail keeps its grain too.
    """
    if layer.before is None:
        return None
    u, v = fractions(place.frame, window)
    distance = squared_distance(FACE, u, v)
    given = luma_of(window.cut(pixels).astype(np.float32))
    made = luma_of(window.cut(pixels) + layer.change(pixels, window))
    missing = lacking(
        grain_of(given, distance > FACE.end**2), grain_of(given, distance < 1), grain_of(made, distance < 1)
    )
    return missing if max(missing) > LEAST_GRAIN else None


def paste(
    pixels: U8,
    crops: Sequence[RestoredCrop],
    strengths: Mapping[int, float],
    places: Sequence[Place],
    *,
    tone: Tone = "colour",
    mask: Mask = "face",
    grainy: bool = False,
    remade: bool = False,
) -> U8:
    """The photo with its faces: a new uint8 (H, W, 3); pixels outside every mask are the photo's own.

    strengths: 0-1 by face number. places: all faces of the photo, also those not pasted.
    For a grey or toned photo only luma changes, so grey stays grey and sepia keeps its sepia. grainy: a face smoother
    than the photo around it gets the photo's grain. remade: the pixels are another network's work.
    """
    out: U8 = pixels.copy()
    height, width = pixels.shape[:2]
    by_index = {p.index: p for p in places}
    windows = {p.index: window_of(p.frame, width, height) for p in places}
    for crop in crops:
        strength, place = strengths.get(crop.index, 0.0), by_index[crop.index]
        if strength <= 0 or windows[crop.index].empty:
            continue
        layer = layer_of(crop, mask, whole=place.whole, onto=pixels if remade else None)
        drawing = drawn(mask) if crop.regions is None or mask == "crop" else parsed(crop.regions, mask)
        missing = missing_grain(layer, pixels, place, windows[crop.index]) if grainy else None
        for window in windows[crop.index].bands(BAND):
            near = [p for p in places if p.index != crop.index and windows[p.index].meets(window)]
            weight = head_weight(place, window, near, drawing) * np.float32(strength)
            change = layer.change(pixels, window)
            if missing is not None:
                # Seeded by place, so that bands of a face do not repeat one another.
                change += grain(weight.shape, missing, seed=crop.index * 100_003 + window.y0)[:, :, None]
            change *= weight[:, :, None]
            target = window.cut(out)
            if tone != "colour":
                # No channel may saturate before the others: that would be a change of hue.
                low, high = target.min(2).astype(np.float32), target.max(2).astype(np.float32)
                change = np.clip(luma_of(change), -low, 255 - high)[:, :, None]
                change = np.repeat(change, 3, axis=2)
            target[...] = cv2.add(target, change, dtype=cv2.CV_8U)  # rounds and saturates
    return out
