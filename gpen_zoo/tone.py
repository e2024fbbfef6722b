"""Grey, toned or colour: one decision about a whole picture, taken on a small copy of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpen_zoo.types import U8, Tone

_SIDE = 192
_GREY = 2.0
_ALPHA_SEEN = 8


def tone_of(pixels: U8, alpha: U8 | None = None) -> Tone:
    """Tone of uint8 (H, W, 3) RGB pixels; those that alpha, uint8 (H, W), hides have no say.

    Grey: the colour difference stays within what JPEG and a scanner leave on a black-and-white picture.
    Toned: colour depends on lightness alone and has one hue (sepia, cyanotype, an even cast on a print).
    """
    small, seen = _shrink(pixels, alpha)
    if not seen.any():
        return "grey"
    rgb = small[seen]
    luma = rgb @ np.array([0.299, 0.587, 0.114])
    chroma = np.stack([rgb[:, 2] - luma, rgb[:, 0] - luma], axis=1) * (0.564, 0.713)
    if float(np.quantile(np.hypot(chroma[:, 0], chroma[:, 1]), 0.995)) <= _GREY:
        return "grey"
    return "toned" if _one_hue(luma, chroma) else "colour"


def _shrink(pixels: U8, alpha: U8 | None) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Box means of whole cells, float64 (h, w, 3), and which of them can be seen, bool (h, w)."""
    height, width = pixels.shape[:2]
    step = max(1, -(-max(height, width) // _SIDE))
    tall, wide = max(1, height // step), max(1, width // step)
    high, broad = min(step, height), min(step, width)

    def means(a: U8) -> NDArray[np.float64]:
        cells = a[: tall * high, : wide * broad].reshape(tall, high, wide, broad, -1)
        return np.asarray(cells.mean(axis=(1, 3)), dtype=np.float64)

    small = means(pixels)
    if alpha is None:
        return small, np.ones(small.shape[:2], dtype=bool)
    return small, means(alpha)[..., 0] >= _ALPHA_SEEN


def _one_hue(luma: NDArray[np.float64], chroma: NDArray[np.float64]) -> bool:
    """Whether all chroma lies along one direction and follows from luma alone."""
    axis = np.linalg.eigh(chroma.T @ chroma)[1][:, -1]
    along, across = chroma @ axis, chroma @ np.array([-axis[1], axis[0]])
    bins = np.clip(luma / 16, 0, 15).astype(np.intp)
    count = np.maximum(np.bincount(bins, minlength=16), 1)
    spread = along - (np.bincount(bins, along, 16) / count)[bins]
    off_hue = float(np.sqrt(np.mean(across**2)))
    off_curve = float(np.sqrt(np.mean(spread**2)))
    size = float(np.sqrt(np.mean(along**2)))
    return off_hue <= 1.0 + 0.1 * size and off_curve <= 1.5 + 0.15 * size
