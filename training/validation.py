"""Figures on faces that no training saw: the 40 of `validation.txt`, each worn once with a fixed seed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import cv2
import numpy as np
import torch
from skimage.metrics import structural_similarity
from torch import nn

from gpen_zoo.degrade import SEED, degradation, degrade
from gpen_zoo.image_io import read
from gpen_zoo.match import luma_of
from gpen_zoo.measures import psnr
from gpen_zoo.types import U8
from training.losses import FACE
from training.pictures import as_pixels, as_tensor, square


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Means over the faces. psnr, face: decibels. detail: as a share of the truth's."""

    psnr: float
    face: float
    ssim: float
    detail: float

    def __str__(self) -> str:
        return (
            f"PSNR {self.psnr:.2f} dB, face {self.face:.2f} dB, SSIM {self.ssim:.3f}, detail {100 * self.detail:.0f} %"
        )

    def as_row(self) -> dict[str, float]:
        return {name: round(value, 4) for name, value in asdict(self).items()}


def ssim(a: U8, b: U8) -> float:
    return float(structural_similarity(a, b, channel_axis=2))  # type: ignore[no-untyped-call, unused-ignore]


def face_of(x: U8) -> U8:
    top, bottom, left, right = (round(edge * x.shape[0]) for edge in FACE)
    return x[top:bottom, left:right]


def worn_faces(folder: Path, names: Sequence[str], size: int, wear: str = "standard") -> Iterator[tuple[U8, U8]]:
    """(worn, truth), uint8 (size, size, 3), always the same for the same names in the same order."""
    random = np.random.default_rng(SEED)
    for name in names:
        truth = square(read(folder / name).pixels, size)
        yield degrade(truth, degradation(wear), random), truth


def detail(picture: U8) -> float:
    """Root mean square of what a Gaussian of one pixel takes away from the face's luma, in 8-bit steps. Sharpness
    where a picture is clean; noise and the blocks of JPEG count too."""
    luma = luma_of(face_of(picture).astype(np.float32))
    return float(np.sqrt(np.square(luma - cv2.GaussianBlur(luma, (0, 0), 1.0)).mean()))


def scores(picture: U8, truth: U8) -> tuple[float, float, float, float]:
    """PSNR, PSNR of the face, SSIM, detail as a share of the truth's."""
    face = psnr(face_of(picture), face_of(truth))
    return psnr(picture, truth), face, ssim(picture, truth), detail(picture) / max(detail(truth), 1e-3)


def figures(pairs: Sequence[tuple[U8, U8]]) -> Figures:
    """Of pictures against their truths."""
    mean = np.mean([scores(picture, truth) for picture, truth in pairs], axis=0)
    return Figures(**dict(zip((f.name for f in fields(Figures)), map(float, mean), strict=True)))


def restored(net: nn.Module, worn: Sequence[U8], batch: int = 4) -> list[U8]:
    """What a network makes of worn faces, in float32."""
    device = next(net.parameters()).device
    pictures: list[U8] = []
    with torch.inference_mode():
        for first in range(0, len(worn), batch):
            x = torch.stack([as_tensor(w) for w in worn[first : first + batch]]).to(device)
            pictures += [as_pixels(y) for y in net(x)]
    return pictures


def sheet(columns: Sequence[Sequence[U8]], rows: int = 12) -> U8:
    """Pictures side by side, one column a version, for the eye."""
    height = min(rows, len(columns[0]))
    return np.vstack([np.hstack([column[row] for column in columns]) for row in range(height)])
