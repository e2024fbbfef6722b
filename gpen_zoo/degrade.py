"""Pictures worn on purpose, always the same way for the same seed, so that a restoration can be measured.

The steps are those of blind face restoration (Li et al., "Blind Face Restoration via Deep Multi-scale Component
Dictionaries", ECCV 2020; GPEN uses the same): blur, shrink, noise, JPEG, enlarge back. Motion blur before them and a
second JPEG after them are ours, for video frames and for pictures that a chat application saved again. Each strength
is drawn evenly from a range. `training/` wears its pictures with the same function.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, fields, replace

import cv2
import numpy as np

from gpen_zoo.errors import OptionsInvalid
from gpen_zoo.image_io import decode, encode
from gpen_zoo.types import U8, Image

SEED = 123


@dataclass(frozen=True, slots=True, kw_only=True)
class Degradation:
    """Ranges, low to high. blur: sigma of a Gaussian in pixels, drawn for each axis by itself. shrink: factor by which
    both sides shrink (area filter) and grow back (bilinear). noise: sigma of Gaussian noise in 8-bit steps, on each
    channel by itself. jpeg: quality, 100 as both ends for none. motion: length in pixels of a straight movement in any
    direction. again: quality of a second JPEG at full size, 100 as both ends for none."""

    blur: tuple[float, float] = (0.2, 4.0)
    shrink: tuple[float, float] = (1.0, 5.0)
    noise: tuple[float, float] = (0.0, 14.0)
    jpeg: tuple[float, float] = (45.0, 97.0)
    motion: tuple[float, float] = (0.0, 0.0)
    again: tuple[float, float] = (100.0, 100.0)

    def __str__(self) -> str:
        return ",".join(f"{f.name}={low:g}-{high:g}" for f in fields(self) for low, high in [getattr(self, f.name)])


# `none` leaves a picture as it is; `standard` is what the demo weights were measured with.
PRESETS = {
    "none": Degradation(blur=(0.0, 0.0), shrink=(1.0, 1.0), noise=(0.0, 0.0), jpeg=(100.0, 100.0)),
    "light": Degradation(blur=(0.2, 1.5), shrink=(1.0, 2.0), noise=(0.0, 6.0), jpeg=(70.0, 97.0)),
    "standard": Degradation(),
    "heavy": Degradation(blur=(1.0, 8.0), shrink=(3.0, 10.0), noise=(5.0, 25.0), jpeg=(25.0, 60.0)),
    "print": Degradation(blur=(0.5, 2.5), shrink=(1.0, 3.0), noise=(6.0, 22.0), jpeg=(60.0, 95.0)),
    "chat": Degradation(blur=(0.2, 1.5), shrink=(1.5, 4.0), noise=(0.0, 5.0), jpeg=(30.0, 70.0), again=(50.0, 80.0)),
    "video": Degradation(blur=(0.5, 2.0), shrink=(1.5, 4.0), noise=(0.0, 10.0), jpeg=(30.0, 70.0), motion=(0.0, 9.0)),
}
_BOUNDS = {
    "blur": (0.0, 50.0),
    "shrink": (1.0, 50.0),
    "noise": (0.0, 128.0),
    "jpeg": (1.0, 100.0),
    "motion": (0.0, 100.0),
    "again": (1.0, 100.0),
}


def degradation(text: str) -> Degradation:
    """From a preset's name, or parts such as `blur=0.2-4,jpeg=60`: a range or one value each, what is not named stays
    off. Raises OptionsInvalid (U32)."""
    if text in PRESETS:
        return PRESETS[text]
    wanted: dict[str, tuple[float, float]] = {}
    try:
        for part in text.split(","):
            name, _, values = part.strip().partition("=")
            low, _, high = values.partition("-")
            pair = float(low), float(high or low)
            least, most = _BOUNDS[name]
            if not least <= pair[0] <= pair[1] <= most:
                raise ValueError
            wanted[name] = pair
    except (ValueError, KeyError):
        known = ", ".join(f"{name}={low:g}-{high:g}" for name, (low, high) in _BOUNDS.items())
        raise OptionsInvalid("U32", spec=text, presets=", ".join(PRESETS), known=known) from None
    return replace(PRESETS["none"], **wanted)


def random_for(name: str, seed: int = SEED) -> np.random.Generator:
    """Random numbers that depend on the picture's name and the seed alone, not on which others are worn."""
    return np.random.default_rng([seed, zlib.crc32(name.encode("utf-8", "surrogateescape"))])


def degrade(pixels: U8, how: Degradation, random: np.random.Generator) -> U8:
    """uint8 (H, W, 3) RGB → the same size, worn. Draws the same numbers from `random` whatever the ranges."""
    height, width = pixels.shape[:2]
    # Of their own, so that what was worn before these two existed is still worn in the same way.
    (ours,) = random.spawn(1)
    length, angle, second = ours.uniform(*how.motion), ours.uniform(0, np.pi), int(ours.uniform(*how.again))
    sigma_x, sigma_y = random.uniform(*how.blur, 2)
    x = _moved(pixels, length, angle) if length > 1 else pixels
    if max(sigma_x, sigma_y) > 0:
        x = np.asarray(cv2.GaussianBlur(x, (0, 0), max(sigma_x, 1e-3), sigmaY=max(sigma_y, 1e-3)), dtype=np.uint8)
    factor = random.uniform(*how.shrink)
    small = max(1, round(width / factor)), max(1, round(height / factor))
    x = np.asarray(cv2.resize(x, small, interpolation=cv2.INTER_AREA), dtype=np.uint8)
    sigma = random.uniform(*how.noise)
    x = np.clip(np.rint(x + random.normal(0, sigma, x.shape)), 0, 255).astype(np.uint8)
    x = _saved(x, int(random.uniform(*how.jpeg)))
    x = np.asarray(cv2.resize(x, (width, height), interpolation=cv2.INTER_LINEAR), dtype=np.uint8)
    return _saved(x, second)


def _saved(pixels: U8, quality: int) -> U8:
    """As a JPEG of that quality gives it back; 100 leaves it alone."""
    if quality >= 100:
        return pixels
    return decode(encode(Image(pixels=pixels), format="JPEG", quality=quality)).pixels


def _moved(pixels: U8, length: float, angle: float) -> U8:
    """Mean along a straight line of `length` pixels, drawn with soft ends."""
    half = int(np.ceil(length / 2))
    y, x = np.mgrid[-half : half + 1, -half : half + 1].astype(np.float32)
    along, across = x * np.cos(angle) + y * np.sin(angle), y * np.cos(angle) - x * np.sin(angle)
    line = np.clip(length / 2 + 0.5 - np.abs(along), 0, 1) * np.clip(1 - np.abs(across), 0, 1)
    return np.asarray(cv2.filter2D(pixels, -1, line / line.sum()), dtype=np.uint8)
