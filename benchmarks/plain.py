"""The yardstick: GPEN computed the way the author's code computes it, on the same tensors.

Written from the description in the StyleGAN2 and GPEN papers, without any of this package's shortcuts:
every sample gets its own modulated weight and its own group of one grouped convolution, and every up- and
down-sampling is the generic up-FIR-down (insert zeros, pad, filter each channel as a picture of its own).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from gpen_zoo.network import Config


class AuthorStyle:
    """Callable like `GPEN`: (N, 3, S, S) RGB in [-1, 1] → (N, 3, S, S), not clipped."""

    def __init__(self, state: dict[str, Tensor]) -> None:
        self.state, self.config = state, Config.from_state_dict(state)

    @torch.inference_mode()
    def __call__(self, x: Tensor) -> Tensor:
        features, stage = [], 0
        while f"ecd{stage}.0.0.weight" in self.state or f"ecd{stage}.0.1.weight" in self.state:
            x = self._encoder_layer(x, f"ecd{stage}.0")
            features.append(x)
            stage += 1
        code = self._linear(x.flatten(1), "final_linear.0", 1.0, activate=True)
        latent = code * torch.rsqrt(code.square().mean(1, keepdim=True) + 1e-8)
        for i in range(1, self.config.n_mlp + 1):
            latent = self._linear(latent, f"generator.style.{i}", 0.01, activate=True)

        features.reverse()
        y = self.state["generator.input.input"].repeat(x.shape[0], 1, 1, 1)
        y = self._styled(y, latent, features[0], "generator.conv1", up=False)
        picture = self._to_rgb(y, latent, "generator.to_rgb1", None)
        for i, feature in enumerate(features[1:]):
            y = self._styled(y, latent, feature, f"generator.convs.{2 * i}", up=True)
            y = self._styled(y, latent, feature, f"generator.convs.{2 * i + 1}", up=False)
            picture = self._to_rgb(y, latent, f"generator.to_rgbs.{i}", picture)
        return picture

    def _linear(self, x: Tensor, name: str, lr: float, *, activate: bool) -> Tensor:
        weight = self.state[f"{name}.weight"]
        y = F.linear(x, weight * (lr / math.sqrt(weight.shape[1])))
        bias = self.state[f"{name}.bias"] * lr
        return leaky(y, bias) if activate else y + bias

    def _encoder_layer(self, x: Tensor, name: str) -> Tensor:
        down = f"{name}.0.kernel" in self.state
        if down:
            x = up_fir_down(x, self.state[f"{name}.0.kernel"], pad=(2, 2))
        weight = self.state[f"{name}.{1 if down else 0}.weight"]
        scaled = weight * (1 / math.sqrt(weight[0].numel()))
        y = F.conv2d(x, scaled, stride=2 if down else 1)
        return leaky(y, self.state[f"{name}.{2 if down else 1}.bias"])

    def _modulated(self, x: Tensor, latent: Tensor, name: str, *, up: bool, demodulate: bool) -> Tensor:
        n, inputs, height, width = x.shape
        weight = self.state[f"{name}.weight"]
        style = self._linear(latent, f"{name}.modulation", 1.0, activate=False).view(n, 1, inputs, 1, 1)
        weight = weight * (1 / math.sqrt(weight[0, 0].numel())) * style
        if demodulate:
            weight = weight * torch.rsqrt(weight.square().sum((2, 3, 4)) + 1e-8).view(n, -1, 1, 1, 1)
        outputs, kernel = weight.shape[1], weight.shape[-1]
        x = x.reshape(1, n * inputs, height, width)
        if not up:
            y = F.conv2d(x, weight.flatten(0, 1), padding=kernel // 2, groups=n)
            return y.view(n, outputs, height, width)
        y = F.conv_transpose2d(x, weight.transpose(1, 2).flatten(0, 1), stride=2, groups=n)
        y = y.view(n, outputs, *y.shape[-2:])
        return up_fir_down(y, self.state[f"{name}.blur.kernel"], pad=(1, 1))

    def _styled(self, x: Tensor, latent: Tensor, feature: Tensor, name: str, *, up: bool) -> Tensor:
        y = self._modulated(x, latent, f"{name}.conv", up=up, demodulate=True)
        y = torch.cat((y, self.state[f"{name}.noise.weight"] * feature), 1)
        return leaky(y, self.state[f"{name}.activate.bias"])

    def _to_rgb(self, x: Tensor, latent: Tensor, name: str, skip: Tensor | None) -> Tensor:
        y = self._modulated(x, latent, f"{name}.conv", up=False, demodulate=False) + self.state[f"{name}.bias"]
        if skip is not None:
            y = y + up_fir_down(skip, self.state[f"{name}.upsample.kernel"], up=2, pad=(2, 1))
        return y


def leaky(x: Tensor, bias: Tensor) -> Tensor:
    return F.leaky_relu(x + bias.view(1, -1, *[1] * (x.ndim - 2)), 0.2) * math.sqrt(2)


def up_fir_down(x: Tensor, kernel: Tensor, *, up: int = 1, pad: tuple[int, int]) -> Tensor:
    """Insert up−1 zeros after every pixel, pad both axes by `pad`, filter."""
    n, channels, height, width = x.shape
    x = x.reshape(-1, height, 1, width, 1)
    x = F.pad(x, (0, up - 1, 0, 0, 0, up - 1)).reshape(-1, 1, height * up, width * up)
    x = F.pad(x, (*pad, *pad))
    y = F.conv2d(x, kernel.flip(0, 1)[None, None])
    return y.view(n, channels, *y.shape[-2:])
