"""Muon: momentum whose matrices are made orthogonal before each step, for the weights of convolutions.

Jordan et al., "Muon: An optimizer for hidden layers in neural networks" (2024); the scale that lets it share a learning
rate with Adam is that of Liu et al., "Muon is Scalable for LLM Training" (2025). A convolution's weight counts as the
matrix (outputs, inputs·k·k).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

QUINTIC = (3.4445, -4.7750, 2.0315)  # Jordan's coefficients: fast to about 1, not exact
ROUNDS = 5
ADAM_LIKE = 0.2  # root mean square of Adam's usual update, by Liu et al.


def orthogonalised(matrices: Tensor) -> Tensor:
    """(B, m, n) → the same shape, singular values between about 0.7 and 1.2, by Newton-Schulz iterations in bfloat16.
    A matrix of zeros stays zero."""
    x = matrices.bfloat16()
    tall = x.shape[1] > x.shape[2]
    if tall:
        x = x.mT
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    a, b, c = QUINTIC
    for _ in range(ROUNDS):
        square = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return (x.mT if tall else x).to(matrices.dtype)


def takes(parameter: nn.Parameter) -> bool:
    """Whether it is the weight of a convolution with enough channels on both sides to be worth it."""
    return parameter.ndim >= 4 and min(_matrix(parameter).shape) >= 8


def _matrix(value: Tensor) -> Tensor:
    """(outputs, inputs·k·k) of (…1, outputs, inputs, k, k)"""
    return value.reshape(value.shape[-4], -1)


class Muon(torch.optim.Optimizer):
    """Nesterov momentum, made orthogonal. Weights of one shape go through the iterations together."""

    def __init__(self, parameters: Iterable[nn.Parameter], lr: float, momentum: float = 0.95) -> None:
        super().__init__(parameters, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """One step from the gradients that are there; a closure is not taken."""
        for group in self.param_groups:
            alike: dict[tuple[int, ...], list[tuple[Tensor, Tensor]]] = defaultdict(list)
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                state: dict[str, Any] = self.state[parameter]
                momentum = state.setdefault("momentum", torch.zeros_like(parameter))
                momentum.lerp_(parameter.grad, 1 - group["momentum"])
                ahead = _matrix(torch.lerp(parameter.grad, momentum, group["momentum"]))
                alike[tuple(ahead.shape)].append((parameter, ahead))
            for (m, n), members in alike.items():
                updates = orthogonalised(torch.stack([ahead for _, ahead in members]))
                scale = ADAM_LIKE * max(m, n) ** 0.5
                for (parameter, _), update in zip(members, updates, strict=True):
                    parameter.sub_(update.reshape(parameter.shape), alpha=group["lr"] * scale)
