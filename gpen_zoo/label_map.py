"""Label maps of faces in their several forms → the one that GPEN-Seg2face is fed.

The author's example maps carry numbers of CelebAMask-HQ's test set and are read as colours, so the network is taken to
know the colours that CelebAMask-HQ's own scripts give its 19 classes. (With the official weights this has not been
tried here.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpen_zoo.errors import GpenError
from gpen_zoo.hints import Note, note
from gpen_zoo.image_io import decode
from gpen_zoo.image_labels import LOSSLESS, stored_numbers
from gpen_zoo.types import U8, Image

CLASSES = (
    *("background", "skin", "nose", "glasses", "left eye", "right eye", "left brow", "right brow", "left ear"),
    *("right ear", "mouth", "upper lip", "lower lip", "hair", "hat", "ear ring", "necklace", "neck", "clothes"),
)
# RGB of each, in CelebAMask-HQ's order.
_HEX = (
    *("000000", "cc0000", "4c9900", "cccc00", "3333ff", "cc00cc", "00ffff", "ffcccc", "663300", "ff0000"),
    *("66cc00", "ffff00", "000099", "0000cc", "ff3399", "00cccc", "003300", "ff9933", "00cc00"),
)
COLOURS: U8 = np.array([list(bytes.fromhex(text)) for text in _HEX], np.uint8)
NEAR = 25  # two colours of the table are at least 51 apart, so that nothing lies near to two
MOST_STRAY = 0.05  # share of pixels that may be near to no colour, as on the edges of a compressed map


class LabelMap(NamedTuple):
    """image: the map in colours, its file's name kept. classes: uint8 (H, W), 0-18. notes: what was guessed."""

    image: Image
    classes: U8
    notes: tuple[Note, ...] = ()


def read_label_map(data: bytes, *, name: str = "") -> LabelMap:
    """A label map from a picture file.

    Taken are colours of CelebAMask-HQ (RGB, or a palette that has them), and class numbers 0-18 (one channel of 8 or 16
    bits, three equal channels, or a palette of other colours). Colours slightly off, as after JPEG, are taken for the
    nearest class, with note P21.

    Raises ImageUnreadable and ImageTooLarge as `decode`, GpenError P20 for numbers beyond the classes, P22 for colours
    that no class has, P23 for a map with a single class.
    """
    image = decode(data, name=name)
    numbers = stored_numbers(data)
    exact = _classes_of_colours(image.pixels, 0)
    notes: tuple[Note, ...] = image.notes
    # One channel holds numbers; so does a palette, but where its colours are the classes' they say the same or more.
    if numbers is not None and (image.source.mode != "P" or exact is None):
        if numbers.max() >= len(CLASSES) or numbers.min() < 0:
            raise GpenError("P20", value=int(numbers.max()), most=len(CLASSES) - 1)
        classes = numbers.astype(np.uint8)
        notes = tuple(n for n in notes if n.code != "I08")  # nothing was brought to 8 bits
    elif exact is not None:
        classes = exact
    elif (
        image.source.format in LOSSLESS and image.pixels.max() < len(CLASSES) and not np.ptp(image.pixels, axis=2).any()
    ):
        classes = image.pixels[..., 0]
    else:
        near = _classes_of_colours(image.pixels, NEAR)
        if near is None:
            raise GpenError("P22")
        classes, notes = near, (*notes, note("P21"))
    if classes.min() == classes.max():
        raise GpenError("P23", kind=CLASSES[int(classes.flat[0])])
    return LabelMap(Image(pixels=COLOURS[classes], source=image.source), classes, notes)


def _classes_of_colours(pixels: U8, near: int) -> U8 | None:
    """Classes uint8 (H, W) of uint8 (H, W, 3) colours, None when these are not the classes' colours.

    near: how far, in 8-bit steps of the worst channel, a colour may be off; with 0 every pixel has to fit exactly.
    """
    packed = pixels.astype(np.int32) @ np.array([1 << 16, 1 << 8, 1], np.int32)
    found, where, counts = np.unique(packed, return_inverse=True, return_counts=True)
    if near == 0 and len(found) > len(CLASSES):
        return None
    colours = np.stack([found >> 16, found >> 8 & 255, found & 255], axis=1)
    classes, off = np.zeros(len(found), np.uint8), np.zeros(len(found), np.int64)
    for first in range(0, len(found), 1 << 16):
        some = slice(first, first + (1 << 16))
        apart = np.abs(colours[some, None] - COLOURS.astype(np.int32)).max(2)
        classes[some], off[some] = apart.argmin(1), apart.min(1)
    stray = counts[off > near].sum() / packed.size
    if stray > (MOST_STRAY if near else 0):
        return None
    return np.asarray(classes[where.reshape(packed.shape)], np.uint8)
