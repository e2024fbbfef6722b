"""The run-time form of a GPEN: the same function of the picture, with everything folded that never changes."""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from gpen_zoo.network import GPEN


class Prepared:
    """A network ready to run on one device in one dtype."""

    def __init__(self, net: GPEN, device: torch.device, dtype: torch.dtype) -> None:
        self.device, self.dtype = device, dtype
        self._net = copy.deepcopy(net).eval().requires_grad_(False).to(device, dtype)

    def __call__(self, x: Tensor, tile: int = 0) -> Tensor:
        """(N, 3, S, S) RGB in [-1, 1] on `device`, any float dtype → same shape in float32"""
        with torch.inference_mode():
            y: Tensor = self._net(x.to(self.dtype))
            return y.float()


def prepare(net: GPEN, *, device: torch.device, dtype: torch.dtype) -> Prepared:
    return Prepared(net, device, dtype)
