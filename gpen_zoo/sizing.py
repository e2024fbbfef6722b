"""A picture brought to another size, with its alpha."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np

from gpen_zoo.types import U8, Image

CANONICAL = (512, 1024, 2048)  # sides of GPEN's own branches


def resized_image(image: Image, width: int, height: int) -> Image:
    """The picture at width × height: by area where it shrinks, by Lanczos where it grows."""
    if (width, height) == (image.width, image.height):
        return image

    def scaled(channel: U8) -> U8:
        shrinks = width * height < image.width * image.height
        method = cv2.INTER_AREA if shrinks else cv2.INTER_LANCZOS4
        return np.asarray(cv2.resize(channel, (width, height), interpolation=method), dtype=np.uint8)

    alpha = None if image.alpha is None else scaled(image.alpha)
    return replace(image, pixels=scaled(image.pixels), alpha=alpha)


def with_long_side(image: Image, side: int) -> Image:
    """The picture with its longer side `side`, shape kept."""
    factor = side / max(image.width, image.height)
    return resized_image(image, max(1, round(image.width * factor)), max(1, round(image.height * factor)))


def nearest_branch_side(image: Image) -> int:
    """The one of `CANONICAL` that is nearest to the longer side, by ratio."""
    longest = max(image.width, image.height)
    return min(CANONICAL, key=lambda side: max(side / longest, longest / side))
