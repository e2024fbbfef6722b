"""Pillow image ↔ arrays: every mode a file can have becomes sRGB colours with alpha beside them, and the way back.

What a value means is decided by the type that the file declares, never by the values: a dark 16-bit picture is still
a 16-bit picture.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image as pil

from gpen_zoo import image_meta
from gpen_zoo.hints import Note
from gpen_zoo.tone import tone_of
from gpen_zoo.types import U8, Image, Tone

# EXIF orientation → counter-clockwise quarter turns, then mirrored left to right.
_TURNS = {
    1: (0, False),
    2: (0, True),
    3: (2, False),
    4: (2, True),
    5: (3, True),
    6: (3, False),
    7: (1, True),
    8: (1, False),
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Channels:
    """rgb: uint8 (H, W, 3) sRGB as stored, not yet upright. alpha: uint8 (H, W) or None. grey: the file is greyscale.

    icc: profile for the written file. note: what became of the colours, or None.
    """

    rgb: U8
    alpha: U8 | None
    grey: bool
    icc: bytes | None
    note: Note | None


def channels(im: pil.Image, *, depth: int, mode: str, icc: bytes | None) -> Channels:
    """Colours and alpha of a loaded image. depth: bits per channel in the file. mode: the file's, which for 16-bit
    grey with alpha differs from Pillow's. icc: embedded profile.
    """
    alpha: U8 | None = None
    key = im.info.get("transparency")
    if im.mode.startswith(("I", "F")):
        values = np.asarray(im)
        if isinstance(key, int):
            alpha = np.where(values == key, 0, 255).astype(np.uint8)
        im = pil.fromarray(_to_8_bit(values, im, depth))
    elif depth == 16 and isinstance(key, tuple):
        # The transparent colour is given in 16 bits; the pixels have lost their low bytes.
        matches = (np.asarray(im) == np.array(key) >> 8).all(axis=-1)
        alpha = np.where(matches, 0, 255).astype(np.uint8)
    elif im.mode in ("RGBA", "LA", "PA", "La", "RGBa") or key is not None:
        # "1" with a transparent value has no direct way to "LA" in Pillow.
        im = im.convert("RGBA")
        alpha = np.array(im.getchannel("A"))
        im = im.getchannel("R") if mode in ("1", "L", "LA", "La") else im.convert("RGB")
    elif im.mode == "1":
        im = im.convert("L")
    elif im.mode not in ("L", "RGB", "CMYK", "YCbCr", "LAB"):
        im = im.convert("RGB")
    im, icc, said = image_meta.to_srgb(im, icc)
    grey = im.mode == "L"
    rgb = _array(im)
    if grey:
        rgb = np.repeat(rgb[..., None], 3, axis=2)
    return Channels(rgb=rgb, alpha=alpha, grey=grey, icc=icc, note=said)


def _array(im: pil.Image) -> U8:
    """`np.array(im)` in bands of rows: at once it needs twice the room of the result, 600 MB for 100 megapixels."""
    width, height = im.size
    out = np.empty((height, width, 3) if im.mode == "RGB" else (height, width), dtype=np.uint8)
    for top in range(0, height, 512):
        # Pasted, not cropped: cropping applies Pillow's process-wide size limit.
        band = pil.new(im.mode, (width, min(512, height - top)))
        band.paste(im, (0, -top))
        out[top : top + 512] = np.asarray(band)
    return out


def _to_8_bit(values: NDArray[Any], im: pil.Image, depth: int) -> U8:
    """Grey samples of 12, 16 or 32 bits or floats as uint8, full scale to full scale, rounded to nearest."""
    if values.dtype.kind == "f":
        # Float TIFF: 0-1 is the convention of the programs that write photos into it.
        return np.asarray(np.rint(np.nan_to_num(values).clip(0, 1) * 255), dtype=np.uint8)
    if depth > 16:
        return (values.astype(np.uint32) >> 24).astype(np.uint8)
    full = (1 << depth) - 1
    whole = values.clip(0, full).astype(np.uint32)
    if getattr(im, "tag_v2", {}).get(262) == 0 and im.mode.startswith("I;16"):
        whole = full - whole  # WhiteIsZero, which Pillow honours for 8 bits only
    return ((whole * 255 + full // 2) // full).astype(np.uint8)


def upright(array: U8, orientation: int) -> U8:
    """(H, W) or (H, W, C) turned by an EXIF orientation 1-8, contiguous."""
    quarter_turns, mirrored = _TURNS[orientation]
    turned = np.rot90(array, quarter_turns)
    return np.ascontiguousarray(turned[:, ::-1] if mirrored else turned)


def toned(rgb: U8, alpha: U8 | None, grey: bool) -> tuple[U8, Tone]:
    """The tone, and pixels that keep its promise: grey means three equal channels."""
    if grey:
        return rgb, "grey"
    tone = tone_of(rgb, alpha)
    if tone != "grey":
        return rgb, tone
    if alpha is not None and not (alpha == 255).all() and tone_of(rgb) != "grey":
        # Grey to the eye, but colours lie hidden under alpha. Toned pictures keep their chroma, so both survive.
        return rgb, "toned"
    if (rgb[..., 0] == rgb[..., 1]).all() and (rgb[..., 1] == rgb[..., 2]).all():
        return rgb, "grey"
    luma = np.array(pil.fromarray(rgb).convert("L"))
    return np.repeat(luma[..., None], 3, axis=2), "grey"


def assembled(image: Image, *, with_alpha: bool) -> pil.Image:
    """Pillow image for a file: mode L, LA, RGB or RGBA. Without alpha, transparent parts are laid on white.

    One channel where the file had one and the pixels are still grey.
    """
    pixels, alpha = image.pixels, image.alpha
    if alpha is not None and not with_alpha:
        share = alpha[..., None].astype(np.float32) / 255
        pixels, alpha = np.rint(pixels * share + 255 * (1 - share)).astype(np.uint8), None
    mode = image.source.mode
    grey = (mode in ("1", "L", "LA", "La", "F") or mode.startswith("I")) and bool(
        (pixels[..., 0] == pixels[..., 1]).all() and (pixels[..., 1] == pixels[..., 2]).all()
    )
    im = pil.fromarray(np.ascontiguousarray(pixels[..., 0] if grey else pixels))
    if alpha is not None:
        im.putalpha(pil.fromarray(alpha))
    return im
