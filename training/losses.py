"""What the network is told: how far from the truth, and how far from looking like a photograph.

All take float32 (N, 3, S, S) in [-1, 1] and give a scalar.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

FACE = (0.28, 0.88, 0.26, 0.74)  # top, bottom, left, right of the face within the crop: brow to chin, ear to ear


@dataclass(frozen=True, kw_only=True)
class Weights:
    """Shares of the loss. face: how much more a pixel of the face counts. psnr: in decibels, hence small."""

    charbonnier: float = 1.0
    frequency: float = 0.1
    coarse: float = 0.5
    psnr: float = 0.0
    face: float = 1.0


def charbonnier(a: Tensor, b: Tensor, weight: Tensor | None = None, eps: float = 1e-3) -> Tensor:
    """L1 that is smooth at zero (Lai et al., "Deep Laplacian Pyramid Networks", CVPR 2017)."""
    distance = torch.sqrt((a - b).square() + eps * eps)
    return distance.mean() if weight is None else (distance * weight).mean() / weight.mean()


def frequency(a: Tensor, b: Tensor) -> Tensor:
    """L1 between spectra (Cho et al., "Rethinking Coarse-to-Fine Approach in Single Image Deblurring", ICCV 2021),
    each scaled by the side so that it does not grow with the picture."""
    difference = torch.fft.rfft2(a - b, norm="ortho")
    return torch.view_as_real(difference).abs().mean()


def coarse(a: Tensor, b: Tensor, factor: int = 4) -> Tensor:
    """L1 of the pictures shrunk: light and shape before detail."""
    return F.l1_loss(F.avg_pool2d(a, factor), F.avg_pool2d(b, factor))


def negative_psnr(a: Tensor, b: Tensor, weight: Tensor | None = None) -> Tensor:
    """Mean over pictures of 10·log10 of the squared error: what PSNR averages (Chen et al., "HINet", CVPRW 2021)."""
    error = (a - b).square()
    if weight is not None:
        error = error * (weight / weight.mean())
    error = error.mean((1, 2, 3)) / 4
    return 10 / math.log(10) * torch.log(error + 1e-8).mean()


def face_weight(size: int, face: float, device: torch.device) -> Tensor | None:
    """(1, 1, size, size), `face` within the face and 1 around it; None when both are 1."""
    if face == 1.0:
        return None
    weight = torch.ones(1, 1, size, size, device=device)
    top, bottom, left, right = (round(edge * size) for edge in FACE)
    weight[:, :, top:bottom, left:right] = face
    return weight


def distortion(a: Tensor, b: Tensor, weights: Weights, where: Tensor | None = None) -> Tensor:
    """The weighted sum of the four above."""
    total = weights.charbonnier * charbonnier(a, b, where)
    if weights.frequency:
        total = total + weights.frequency * frequency(a, b)
    if weights.coarse:
        total = total + weights.coarse * coarse(a, b)
    if weights.psnr:
        total = total + weights.psnr * negative_psnr(a, b, where)
    return total


def discriminator_loss(real: Tensor, made: Tensor) -> Tensor:
    """Hinge (Lim and Ye, "Geometric GAN", 2017)."""
    return F.relu(1 - real).mean() + F.relu(1 + made).mean()


def generator_loss(made: Tensor) -> Tensor:
    return -made.mean()


def feature_matching(real: Sequence[Tensor], made: Sequence[Tensor]) -> Tensor:
    """L1 between the critic's features of the truth and of the restoration (Wang et al., "pix2pixHD", CVPR 2018)."""
    distances = [F.l1_loss(m, r.detach()) for r, m in zip(real, made, strict=True)]
    return torch.stack(distances).mean()
