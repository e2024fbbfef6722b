"""Small pictures for looking at: a photo fitted to a screen, and single faces."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np

from gpen_zoo.align import cut_crop
from gpen_zoo.image_io import encode
from gpen_zoo.types import F64, U8, Image, Source, Tone

LONGEST = 2048  # px; enough for a full-screen comparison, and a browser holds two of them easily
THUMBNAIL = 192  # px
QUALITY = 92


def fit(image: Image, longest: int = LONGEST) -> Image:
    """The picture shrunk by area so that its longer side is at most `longest` px; never enlarged."""
    factor = longest / max(image.width, image.height)
    if factor >= 1:
        return image
    size = max(1, round(image.width * factor)), max(1, round(image.height * factor))
    alpha = None if image.alpha is None else _shrink(image.alpha, size)
    return replace(image, pixels=_shrink(image.pixels, size), alpha=alpha)


def write_preview(image: Image, path: Path, longest: int = LONGEST) -> Path:
    """Write `image` fitted to a screen, without metadata, as `path` with the suffix .jpg, or .png if it is see-through.

    Returns the path written.
    """
    small = replace(fit(image, longest), source=Source())
    if small.alpha is None or (small.alpha == 255).all():
        path = path.with_suffix(".jpg")
        path.write_bytes(encode(replace(small, alpha=None), format="JPEG", quality=QUALITY))
        return path
    path = path.with_suffix(".png")
    pixels = np.dstack((small.pixels[..., ::-1], small.alpha))
    # Packed lightly: it is looked at once, and ten times quicker to make.
    packed = cv2.imencode(".png", pixels, (cv2.IMWRITE_PNG_COMPRESSION, 1))[1]
    path.write_bytes(packed.tobytes())
    return path


def face_before(image: Image, frame: F64) -> Image:
    """A face cut upright from its photo. frame: as in `FaceReport`."""
    return Image(pixels=cut_crop(image.pixels, frame, THUMBNAIL))


def face_after(crop: U8, tone: Tone = "colour") -> Image:
    """A restored crop at full strength, small, grey for a grey photo."""
    after = _shrink(crop, (THUMBNAIL, THUMBNAIL))
    if tone == "grey":
        grey = cv2.cvtColor(after, cv2.COLOR_RGB2GRAY)
        after = np.repeat(grey[:, :, None], 3, axis=2).astype(np.uint8)
    return Image(pixels=after)


def _shrink(pixels: U8, size: tuple[int, int]) -> U8:
    return np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)
