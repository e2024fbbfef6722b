"""The photo around the faces, enlarged: by Lanczos' filter, or by weights of the zoo (upscaler.py).

Transparent pixels hide colours that nobody meant. Before anything is enlarged they take the colour of the nearest pixel
that can be seen, or every edge would get a rim of them; and alpha keeps within what it was around each pixel, since
Lanczos' filter rings.
"""

from __future__ import annotations

import time
from dataclasses import replace

import cv2
import numpy as np

from gpen_zoo.errors import ImageTooLarge
from gpen_zoo.hints import Note, note
from gpen_zoo.image_io import DEFAULT_LIMIT_MP, MAX_SIDE
from gpen_zoo.match import luma_of
from gpen_zoo.sizing import resized_image
from gpen_zoo.types import U8, Enlarged, Image, Options, Scale, Tone
from gpen_zoo.upscaler import OnNote, OnTile, Upscaler
from gpen_zoo.upscaler_networks import can_run

LANCZOS = "lanczos"
SEEN = 8  # alpha from which a pixel's colour is meant
ROWS = 256  # of the picture worked on in floating point at once


def check_size(width: int, height: int, scale: Scale) -> None:
    """ImageTooLarge (I30) when the picture enlarged by `scale` exceeds what picture files are read with."""
    mp = width * height * scale**2 / 1e6
    if scale > 1 and (mp > DEFAULT_LIMIT_MP or max(width, height) * scale > MAX_SIDE):
        raise ImageTooLarge(
            "I30", scale=scale, width=width * scale, height=height * scale, mp=round(mp, 1), limit=DEFAULT_LIMIT_MP
        )


def enlarge(
    image: Image,
    scale: Scale,
    upscaler: Upscaler | None = None,
    *,
    tone: Tone = "colour",
    on_tile: OnTile | None = None,
    on_note: OnNote | None = None,
) -> Enlarged:
    """The picture `scale` times as wide and as high, its file's facts kept.

    upscaler: weights, None for Lanczos' filter; at scale 1 they enlarge the picture and it is shrunk back by area.
    tone: how the photo is treated. on_tile(done, total): called before the first tile and after each; what it raises
    ends the work. on_note: given the time it will take, measured on one small tile, before it starts. Raises
    ImageTooLarge (I30) before any work, and what `upscaler.Upscaler` raises.
    """
    check_size(image.width, image.height, scale)
    start = time.perf_counter()
    visible = image if image.alpha is None else image.with_pixels(bled(image.pixels, image.alpha))
    if upscaler is None:
        made = with_ringless_alpha(resized_image(visible, image.width * scale, image.height * scale), image.alpha)
        return Enlarged(image=made, method=LANCZOS, scale=scale, seconds=time.perf_counter() - start)
    answer = upscaler(visible.pixels, scale, on_tile=on_tile, on_note=on_note)
    plain = with_ringless_alpha(resized_image(visible, image.width * scale, image.height * scale), image.alpha)
    return Enlarged(
        image=replace(plain, pixels=answer.pixels),
        method=upscaler.name,
        scale=scale,
        toned=None if tone == "colour" else in_hues_of(answer.pixels, plain.pixels),
        plan=answer.plan,
        attempts=answer.attempts,
        estimate=answer.estimate,
        seconds=time.perf_counter() - start,
    )


def pixels_in_tone(enlarged: Enlarged, original: Image, tone: Tone) -> U8:
    """Pixels of the enlarged photo for a photo treated as `tone`: a grey one stays grey, a toned one in its hue."""
    if tone == "colour" or enlarged.method == LANCZOS:
        return enlarged.image.pixels
    if enlarged.toned is not None:
        return enlarged.toned
    size = enlarged.image.width, enlarged.image.height
    return in_hues_of(enlarged.image.pixels, resized_image(original, *size).pixels)


def notes_of(enlarged: Enlarged | None, options: Options, best: str) -> tuple[Note, ...]:
    """What the result has to say of its background: which way it was enlarged, and every change of plan. best: name of
    the weights that would do it better."""
    if enlarged is None:
        return ()
    if enlarged.method == LANCZOS:
        asked = options.background == LANCZOS
        if not asked and not can_run():
            return (note("B31", scale=enlarged.scale),)
        return (note("B22", scale=enlarged.scale) if asked else note("B20", scale=enlarged.scale, name=best or "?"),)
    told = note("B21", name=enlarged.method, scale=enlarged.scale)
    return (told, *dict.fromkeys(enlarged.attempts))


def in_hues_of(made: U8, plain: U8) -> U8:
    """The luma of `made` with the hues of `plain`, both uint8 (H, W, 3) RGB; a new array.

    All channels move by the same, at most so far that none saturates before the others; so equal channels stay equal.
    """
    out = np.empty_like(plain)
    for top in range(0, len(plain), ROWS):
        rows = np.s_[top : top + ROWS]
        base = plain[rows].astype(np.float32)
        change = np.clip(luma_of(made[rows].astype(np.float32)) - luma_of(base), -base.min(2), 255 - base.max(2))
        out[rows] = np.rint(base + change[:, :, None])
    return out


def bled(pixels: U8, alpha: U8) -> U8:
    """The pixels, those that alpha hides in the colour of the nearest one that is seen; a new array where needed."""
    hidden = alpha < SEEN
    if not hidden.any() or hidden.all():
        return pixels
    _, labels = cv2.distanceTransformWithLabels(hidden.astype(np.uint8), cv2.DIST_L2, 3, labelType=cv2.DIST_LABEL_PIXEL)
    colours = np.zeros((int(labels.max()) + 1, 3), np.uint8)
    colours[labels[~hidden]] = pixels[~hidden]  # every pixel that is seen has a label of its own
    return np.asarray(colours[labels], np.uint8)


def with_ringless_alpha(image: Image, alpha: U8 | None) -> Image:
    """The enlarged picture with its alpha kept within what it was around each pixel. alpha: before enlarging."""
    if alpha is None or image.alpha is None or image.alpha.shape == alpha.shape:
        return image
    around = np.ones((3, 3), np.uint8)
    size = image.width, image.height
    low, high = (
        cv2.resize(extreme(alpha, around), size, interpolation=cv2.INTER_NEAREST) for extreme in (cv2.erode, cv2.dilate)
    )
    return replace(image, alpha=np.clip(image.alpha, low, high))
