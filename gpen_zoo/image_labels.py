"""Raw numbers of pictures whose values stand for classes, not for light; without any change of colours."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image as pil

LOSSLESS = ("PNG", "TIFF", "BMP", "GIF")


def stored_numbers(data: bytes) -> NDArray[np.int64] | None:
    """What each pixel of a palette or one-channel picture file holds: int64 (H, W), as stored, not turned.

    None for files with colours, for lossy ones, whose numbers are not exact, and for what Pillow cannot read. Size and
    soundness of the file are `image_io.decode`'s concern, which is asked before.
    """
    try:
        with pil.open(io.BytesIO(data), formats=LOSSLESS) as im:
            if im.mode not in ("1", "L", "P") and not im.mode.startswith("I"):
                return None
            numbers: NDArray[Any] = np.asarray(im)
    except (OSError, SyntaxError, ValueError, pil.DecompressionBombError):
        return None
    return numbers.astype(np.int64)
