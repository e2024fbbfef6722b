"""Example photos, made on the spot from public-domain pictures that ship inside two of our dependencies.

Nothing is downloaded and no photo is kept in the repository. The pictures are NASA's portrait of Eileen Collins
(scikit-image) and the US Navy's portrait of Grace Hopper (matplotlib), worn down in the ways people's own photos are.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import cv2
import numpy as np

from gpen_zoo.image_io import decode, encode, read
from gpen_zoo.types import U8, Image

ASTRONAUT = ("skimage", "data/astronaut.png")
HOPPER = ("matplotlib", "mpl-data/sample_data/grace_hopper.jpg")


def make_examples(folder: Path) -> list[Path]:
    """Write the example photos into `folder` (made if absent) and return their paths.

    A source picture that is not installed leaves its examples out: the list may be shorter, also empty.
    """
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for name, (package, inside), wear in RECIPES:
        source = packaged(package, inside)
        if source is None:
            continue
        path = folder / name
        path.write_bytes(encode(Image(pixels=wear(read(source).pixels)), format="JPEG", quality=70))
        made.append(path)
    return made


def packaged(package: str, inside: str) -> Path | None:
    """Path of a file inside an installed package, found without importing the package."""
    spec = find_spec(package)
    for root in (spec.submodule_search_locations or []) if spec else []:
        path = Path(root) / inside
        if path.is_file():
            return path
    return None


def chat_photo(pixels: U8) -> U8:
    """Shrunk, sharpened and compressed more than once, as a messenger does."""
    small = _resize(pixels, 0.6)
    for quality in (35, 45):
        small = decode(encode(Image(pixels=small), format="JPEG", quality=quality)).pixels
    return small


def old_print(pixels: U8) -> U8:
    """Soft, grainy and sepia, as a scanned print from a family album."""
    soft = cv2.GaussianBlur(_resize(pixels, 0.8), (0, 0), 1.3).astype(np.float32)
    grain = np.random.default_rng(1927).normal(0, 9, soft.shape[:2]).astype(np.float32)
    luma = (soft @ np.array([0.299, 0.587, 0.114], np.float32) - 128) * 0.8 + 135 + grain
    sepia = luma[:, :, None] + np.array([22, 2, -24], np.float32)
    return np.asarray(np.clip(np.rint(sepia), 0, 255), dtype=np.uint8)


def noisy_evening(pixels: U8) -> U8:
    """Small, dark and noisy, as an early camera phone indoors."""
    dim = _resize(pixels, 0.7).astype(np.float32) * 0.75
    noise = np.random.default_rng(2004).normal(0, 11, dim.shape)
    return np.clip(np.rint(dim + noise), 0, 255).astype(np.uint8)


RECIPES: tuple[tuple[str, tuple[str, str], Callable[[U8], U8]], ...] = (
    ("chat-photo.jpg", ASTRONAUT, chat_photo),
    ("old-print.jpg", HOPPER, old_print),
    ("noisy-evening.jpg", ASTRONAUT, noisy_evening),
)


def _resize(pixels: U8, factor: float) -> U8:
    return np.asarray(cv2.resize(pixels, None, fx=factor, fy=factor, interpolation=cv2.INTER_AREA), dtype=np.uint8)
