"""How near one picture is to another: PSNR, SSIM and, where it is installed, LPIPS.

PSNR and SSIM are basicsr's, which papers on restoration use. Without basicsr (it does not install on Python 3.13) the
same formulas are computed here, and `Measures.source` says so.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

import cv2
import numpy as np

from gpen_zoo.basicsr_shim import import_basicsr
from gpen_zoo.hints import Note, note
from gpen_zoo.types import U8

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """Functions of two uint8 (H, W, 3) RGB pictures of one size. psnr: decibels, infinite for equal ones. ssim: up to
    1 (Wang et al., 2004: Gaussian window of 11, sigma 1.5). lpips: 0 for equal ones, smaller is better, or None.
    source: `basicsr` or `own`. without_lpips: why it is None although it is installed."""

    psnr: Callable[[U8, U8], float]
    ssim: Callable[[U8, U8], float]
    lpips: Callable[[U8, U8], float] | None
    source: str
    without_lpips: Note | None = None


def load_measures() -> Measures:
    """What this installation can measure. Takes a second or two with basicsr."""
    lpips, why = None, None
    if find_spec("lpips"):
        try:
            lpips = _lpips()
        except (OSError, RuntimeError) as error:
            # The package brings its own weights; those of AlexNet below them are fetched by torchvision.
            log.warning("LPIPS left out: %s", error)
            why = note("E06", reason=str(error) or type(error).__name__)
    try:
        metrics = import_basicsr("basicsr.metrics.psnr_ssim")
    except ImportError:
        return Measures(psnr=psnr, ssim=ssim, lpips=lpips, source="own", without_lpips=why)

    def theirs(name: str) -> Callable[[U8, U8], float]:
        function = getattr(metrics, name)
        return lambda a, b: float(function(a[:, :, ::-1], b[:, :, ::-1], crop_border=0))

    return Measures(
        psnr=theirs("calculate_psnr"),
        ssim=theirs("calculate_ssim"),
        lpips=lpips,
        source="basicsr",
        without_lpips=why,
    )


def psnr(a: U8, b: U8) -> float:
    """20·log10(255 / root mean square difference)."""
    error = float(np.square(a.astype(np.float64) - b).mean())
    return math.inf if error == 0 else 10 * math.log10(255.0**2 / error)


def ssim(a: U8, b: U8) -> float:
    """Mean over channels and over the pixels whose window lies inside, as in the authors' Matlab code."""
    kernel = cv2.getGaussianKernel(11, 1.5)
    window = kernel @ kernel.T

    def blurred(x: np.ndarray) -> np.ndarray:
        return np.asarray(cv2.filter2D(x, -1, window)[5:-5, 5:-5])

    c1, c2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2
    values = []
    for channel in range(3):
        x, y = a[:, :, channel].astype(np.float64), b[:, :, channel].astype(np.float64)
        mx, my = blurred(x), blurred(y)
        vx, vy, cov = blurred(x * x) - mx * mx, blurred(y * y) - my * my, blurred(x * y) - mx * my
        values.append(((2 * mx * my + c1) * (2 * cov + c2) / ((mx * mx + my * my + c1) * (vx + vy + c2))).mean())
    return float(np.mean(values))


def _lpips() -> Callable[[U8, U8], float]:
    """LPIPS 0.1 on AlexNet (Zhang et al., 2018), as its package computes it on pictures in [-1, 1]."""
    from importlib import import_module

    import torch

    net = import_module("lpips").LPIPS(net="alex", verbose=False).eval()

    @torch.inference_mode()
    def measure(a: U8, b: U8) -> float:
        x, y = (torch.from_numpy(p.copy()).permute(2, 0, 1)[None].float() / 127.5 - 1 for p in (a, b))
        return float(net(x, y))

    return measure
