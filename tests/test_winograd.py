"""Winograd's convolution is a convolution: to 1e-12 in float64, so that rounding cannot hide a wrong coefficient."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from gpen_zoo.winograd import convolve, transformed


@pytest.mark.parametrize(
    "shape", [(1, 8, 4, 4), (2, 5, 8, 12), (3, 16, 32, 32), (1, 4, 7, 9), (1, 3, 68, 64), (2, 3, 64, 48)]
)
def test_equals_the_direct_convolution(shape: tuple[int, int, int, int]) -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(shape, dtype=torch.float64, generator=generator)
    weight = torch.randn(7, shape[1], 3, 3, dtype=torch.float64, generator=generator)
    bias = torch.randn(7, dtype=torch.float64, generator=generator)
    for layout in (torch.contiguous_format, torch.channels_last):
        padded = F.pad(x, (1, 1, 1, 1)).contiguous(memory_format=layout)
        y = convolve(padded, transformed(weight), bias)
        assert torch.allclose(y, F.conv2d(x, weight, bias, padding=1), atol=1e-12, rtol=0)
    assert shape[2] % 4 or y.is_contiguous(memory_format=torch.channels_last)


def test_rounding_in_float32_stays_small() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(1, 512, 16, 16, generator=generator)
    weight = torch.randn(64, 512, 3, 3, generator=generator) / 68
    exact = F.conv2d(x.double(), weight.double(), padding=1)
    error = float((convolve(F.pad(x, (1, 1, 1, 1)), transformed(weight)).double() - exact).norm() / exact.norm())
    print(f"relative error {error:.1e}")
    assert error <= 5e-6
