"""Training pictures: aligned faces, varied, and worn by `gpen_zoo.degrade`.

A sample depends on the seed and its number alone, never on a worker or on what was drawn before. That is what makes
a resumed run see the pictures the unbroken one would have seen, and several machines share a run without talking.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from gpen_zoo.degrade import degradation, degrade
from gpen_zoo.image_io import read
from gpen_zoo.match import luma_of
from gpen_zoo.types import F32, U8

SUFFIXES = {".jpg", ".jpeg", ".png", ".webp"}
GREY, SEPIA = 0.10, 0.05  # shares of the pictures that lose their colour, as old prints did


def face_files(folder: Path, *, without: Sequence[str] = ()) -> tuple[Path, ...]:
    """Pictures of a folder, sorted by name, less those named in `without`. ValueError when none is left."""
    left_out = set(without)
    files = sorted(p for p in folder.iterdir() if p.suffix.lower() in SUFFIXES and p.name not in left_out)
    if not files:
        raise ValueError(f"no pictures in {folder}")
    return tuple(files)


def square(pixels: U8, size: int) -> U8:
    """uint8 (H, W, 3) → (size, size, 3): area filter when it shrinks, cubic when it grows."""
    filter_ = cv2.INTER_AREA if pixels.shape[0] > size else cv2.INTER_CUBIC
    return np.asarray(cv2.resize(pixels, (size, size), interpolation=filter_), dtype=np.uint8)


@dataclass(frozen=True)
class Mixture:
    """Kinds of wear (presets or specifications of `gpen_zoo.degrade`) with their shares, such as `standard:7,heavy:1`.

    A specification that holds commas itself is written with `+` in their place: `blur=4-8+shrink=2-4:1`."""

    kinds: tuple[str, ...]
    shares: tuple[float, ...]

    @classmethod
    def parse(cls, text: str) -> Mixture:
        pairs = [part.rpartition(":") for part in text.split(",")]
        kinds = tuple(kind.replace("+", ",") for kind, _, _ in pairs)
        for kind in kinds:
            degradation(kind)  # complain now, not in a worker
        total = sum(float(share) for _, _, share in pairs)
        return cls(kinds, tuple(float(share) / total for _, _, share in pairs))

    def pick(self, random: np.random.Generator) -> str:
        return str(random.choice(self.kinds, p=self.shares))


class Faces(Dataset[tuple[Tensor, Tensor]]):
    """Sample number → (worn, truth), each float32 (3, size, size) RGB in [-1, 1]. Endless: any number from 0 on.

    Decoded pictures are kept (about 370 kB each at 352 px), so that a step is not spent on JPEG. first: the number
    that index 0 stands for.
    """

    def __init__(
        self, files: Sequence[Path], size: int, wear: Mixture, seed: int, *, first: int = 0, count: int
    ) -> None:
        self.files, self.size, self.wear, self.seed, self.first, self.count = files, size, wear, seed, first, count
        self._kept: dict[int, U8] = {}

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        number = self.first + index
        epoch, place = divmod(number, len(self.files))
        which = int(np.random.default_rng([self.seed, epoch]).permutation(len(self.files))[place])
        random = np.random.default_rng([self.seed, number, 1])
        truth = recoloured(shifted(self._decoded(which), self.size, random), random)
        worn = degrade(truth, degradation(self.wear.pick(random)), random)
        return as_tensor(worn), as_tensor(truth)

    def _decoded(self, which: int) -> U8:
        if which not in self._kept:
            self._kept[which] = read(self.files[which]).pixels
        return self._kept[which]


def batches(faces: Faces, batch: int, *, rank: int = 0, world: int = 1, workers: int = 1) -> Iterator[list[Tensor]]:
    """Batches in order of number; with several processes each takes its own share of every global batch."""
    steps = len(faces) // (batch * world)
    order = [[s * batch * world + rank * batch + i for i in range(batch)] for s in range(steps)]
    loader = DataLoader(
        faces,
        batch_sampler=order,
        num_workers=workers,
        prefetch_factor=4 if workers else None,
        worker_init_fn=_one_thread,
        # A fork inherits OpenCV's thread pool without its threads, and waits for them for ever.
        multiprocessing_context="spawn" if workers else None,
    )
    yield from loader


def shifted(pixels: U8, size: int, random: np.random.Generator) -> U8:
    """A crop of the size wanted; half are mirrored, half turned, scaled and moved a little, as landmarks are."""
    flip, move = random.random(2) < 0.5
    angle, scale, dx, dy = random.uniform([-5, 0.92, -0.04, -0.04], [5, 1.10, 0.04, 0.04])
    if flip:
        pixels = np.ascontiguousarray(pixels[:, ::-1])
    if move:
        side = pixels.shape[0]
        matrix = cv2.getRotationMatrix2D((side / 2, side / 2), angle, scale)
        matrix[:, 2] += (dx * side, dy * side)
        pixels = np.asarray(
            cv2.warpAffine(pixels, matrix, (side, side), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REFLECT_101),
            dtype=np.uint8,
        )
    return square(pixels, size)


def recoloured(pixels: U8, random: np.random.Generator) -> U8:
    """Another gamma, white balance and saturation; some grey, some sepia. Truth and worn picture share it."""
    kind = random.random()
    gamma, saturation = random.uniform(0.75, 1.35), random.uniform(0.5, 1.3)
    gains = random.uniform(0.9, 1.1, 3)
    x: F32 = np.asarray((pixels.astype(np.float32) / 255) ** gamma * gains.astype(np.float32), np.float32)
    luma = luma_of(x)[..., None]
    if kind < GREY:
        x = np.repeat(luma, 3, axis=2)
    elif kind < GREY + SEPIA:
        x = luma * np.array([1.08, 0.97, 0.78], np.float32)
    else:
        x = np.asarray(luma + (x - luma) * np.float32(saturation), np.float32)
    return np.clip(np.rint(x * 255), 0, 255).astype(np.uint8)


def as_tensor(pixels: U8) -> Tensor:
    """uint8 (S, S, 3) → float32 (3, S, S) in [-1, 1]"""
    return torch.from_numpy(pixels).permute(2, 0, 1).float() / 127.5 - 1


def as_pixels(picture: Tensor) -> U8:
    """(3, S, S) in [-1, 1] → uint8 (S, S, 3), clipped and rounded"""
    rounded = (picture.float() * 127.5 + 127.5).clamp(0, 255).round().to(torch.uint8)
    return np.ascontiguousarray(rounded.permute(1, 2, 0).cpu().numpy())


def _one_thread(_worker: int) -> None:
    torch.set_num_threads(1)
    cv2.setNumThreads(1)
