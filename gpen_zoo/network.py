"""GPEN: the whole network on one page, in plain torch operations.

Architecture: Yang et al., "GAN Prior Embedded Network for Blind Face Restoration in the Wild", CVPR 2021, on top of
the StyleGAN2 generator (Karras et al., CVPR 2020). Tensor names and shapes are those of the author's checkpoints, so
a published state dict loads strictly; the arithmetic is written so that one ordinary convolution serves a whole batch:

    conv(x, w·s) · d  ==  conv(x·s, w) · d        s: style per input channel, d: demodulation per output channel

(the author's code folds s into w per sample, which needs one grouped convolution per sample). The same form trains.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gpen_zoo.architecture import Config as Config  # torch-free, so that a file can be judged without importing torch

SLOPE = 0.2  # of every leaky ReLU
GAIN = math.sqrt(2.0)  # keeps the variance after a leaky ReLU
LR_MLP = 0.01  # learning-rate multiplier of the style network, part of its forward arithmetic
FIR = (1.0, 3.0, 3.0, 1.0)  # separable low-pass of every up- and down-sampling
EPS = 1e-8  # of pixel norm and demodulation; rounds to 0 in float16, hence their float32


class PixelNorm(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        """(N, C) → (N, C) with unit mean square over C."""
        return x * torch.rsqrt(x.square().mean(1, keepdim=True) + EPS)


class EqualLinear(nn.Module):
    """Linear layer whose scale is applied at run time ("equalised learning rate")"""

    def __init__(
        self, inputs: int, outputs: int, *, bias: float = 0.0, lr: float = 1.0, activate: bool = False
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs) / lr)
        self.bias = nn.Parameter(torch.full((outputs,), bias))
        self.scale, self.lr, self.activate = lr / math.sqrt(inputs), lr, activate

    def forward(self, x: Tensor) -> Tensor:
        """(N, inputs) → (N, outputs)"""
        y = F.linear(x, self.weight * self.scale, self.bias * self.lr)
        return F.leaky_relu(y, SLOPE) * GAIN if self.activate else y


class EqualConv2d(nn.Module):
    def __init__(self, inputs: int, outputs: int, kernel: int, *, stride: int = 1) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs, kernel, kernel))
        self.scale, self.stride = 1 / math.sqrt(inputs * kernel**2), stride

    def forward(self, x: Tensor) -> Tensor:
        return F.conv2d(x, self.weight * self.scale, stride=self.stride)


class FusedLeakyReLU(nn.Module):
    """Bias, leaky ReLU, gain."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(channels))

    def forward(self, x: Tensor) -> Tensor:
        return F.leaky_relu(x + self.bias.view(1, -1, 1, 1), SLOPE) * GAIN


def fir_kernel(gain: float = 1.0) -> Tensor:
    """(4, 4) outer product of FIR, summing to `gain`."""
    taps = torch.tensor(FIR)
    kernel = torch.outer(taps, taps)
    return kernel * (gain / kernel.sum())


class Blur(nn.Module):
    """Zero-padded low-pass; the kernel is symmetric, so convolution and correlation agree."""

    kernel: Tensor

    def __init__(self, pad: int, *, gain: float = 1.0) -> None:
        super().__init__()
        self.register_buffer("kernel", fir_kernel(gain))
        self.pad = pad

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H, W) → (N, C, H + 2·pad − 3, W + 2·pad − 3)"""
        channels = x.shape[1]
        taps = self.kernel.to(x.dtype).expand(channels, 1, 4, 4)
        return F.conv2d(x, taps, padding=self.pad, groups=channels)


class Upsample(nn.Module):
    """Doubles a picture: zeros between pixels, then the low-pass with gain 4."""

    kernel: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("kernel", fir_kernel(4.0))

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H, W) → (N, C, 2H, 2W)"""
        channels = x.shape[1]
        taps = self.kernel.to(x.dtype).expand(channels, 1, 4, 4)
        return F.conv_transpose2d(x, taps, stride=2, padding=1, groups=channels)


class ModulatedConv2d(nn.Module):
    def __init__(
        self, inputs: int, outputs: int, kernel: int, style_dim: int, *, demodulate: bool = True, upsample: bool = False
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(1, outputs, inputs, kernel, kernel))
        self.modulation = EqualLinear(style_dim, inputs, bias=1.0)
        if upsample:
            self.blur = Blur(pad=1, gain=4.0)
        self.scale = 1 / math.sqrt(inputs * kernel**2)
        self.demodulate, self.upsample, self.padding = demodulate, upsample, kernel // 2

    def forward(self, x: Tensor, latent: Tensor) -> Tensor:
        """x (N, inputs, H, W), latent (N, style_dim) → (N, outputs, H, W), or twice the side with `upsample`"""
        weight = self.weight[0] * self.scale
        style = self.modulation(latent)
        x = x * style[:, :, None, None].to(x.dtype)
        if self.upsample:
            x = self.blur(F.conv_transpose2d(x, weight.transpose(0, 1), stride=2))
        else:
            x = F.conv2d(x, weight, padding=self.padding)
        if self.demodulate:
            power = weight.float().square().sum((2, 3))  # (outputs, inputs)
            demodulation = torch.rsqrt(F.linear(style.float().square(), power) + EPS)
            x = x * demodulation[:, :, None, None].to(x.dtype)
        return x


class NoiseInjection(nn.Module):
    """GPEN's own idea: encoder features take the place of StyleGAN2's noise and are concatenated, not added."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))

    def forward(self, x: Tensor, feature: Tensor) -> Tensor:
        """Two of (N, C, H, W) → (N, 2C, H, W)"""
        return torch.cat((x, self.weight * feature), dim=1)


class StyledConv(nn.Module):
    def __init__(self, inputs: int, outputs: int, style_dim: int, *, upsample: bool = False) -> None:
        super().__init__()
        self.conv = ModulatedConv2d(inputs, outputs, 3, style_dim, upsample=upsample)
        self.noise = NoiseInjection()
        self.activate = FusedLeakyReLU(outputs * 2)

    def forward(self, x: Tensor, latent: Tensor, feature: Tensor) -> Tensor:
        """→ (N, 2·outputs, H', W')"""
        y: Tensor = self.activate(self.noise(self.conv(x, latent), feature))
        return y


class ToRGB(nn.Module):
    def __init__(self, inputs: int, style_dim: int, *, upsample: bool = True) -> None:
        super().__init__()
        if upsample:
            self.upsample = Upsample()
        self.conv = ModulatedConv2d(inputs, 3, 1, style_dim, demodulate=False)
        self.bias = nn.Parameter(torch.zeros(1, 3, 1, 1))

    def forward(self, x: Tensor, latent: Tensor, skip: Tensor | None = None) -> Tensor:
        y: Tensor = self.conv(x, latent) + self.bias
        return y if skip is None else y + self.upsample(skip)


class ConstantInput(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.input = nn.Parameter(torch.randn(1, channels, 4, 4))

    def forward(self, batch: int) -> Tensor:
        return self.input.expand(batch, -1, -1, -1)


class Generator(nn.Module):
    """StyleGAN2's decoder with GPEN's concatenation, which doubles the inputs of every convolution but the first."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        style = config.style_dim
        mlp = [EqualLinear(style, style, lr=LR_MLP, activate=True) for _ in range(config.n_mlp)]
        self.style = nn.Sequential(PixelNorm(), *mlp)
        width = config.width(4)
        self.input = ConstantInput(width)
        self.conv1 = StyledConv(width, width, style)
        self.to_rgb1 = ToRGB(width * 2, style, upsample=False)
        self.convs, self.to_rgbs = nn.ModuleList(), nn.ModuleList()
        resolution = 8
        while resolution <= config.size:
            wider, width = width * 2, config.width(resolution)
            self.convs.append(StyledConv(wider, width, style, upsample=True))
            self.convs.append(StyledConv(width * 2, width, style))
            self.to_rgbs.append(ToRGB(width * 2, style))
            resolution *= 2

    def forward(self, code: Tensor, features: list[Tensor]) -> Tensor:
        """code (N, style_dim); features from 4 px up to full size → (N, 3, S, S)"""
        latent = self.style(code)
        x = self.conv1(self.input(code.shape[0]), latent, features[0])
        picture = self.to_rgb1(x, latent)
        for stage, to_rgb in enumerate(self.to_rgbs):
            feature = features[stage + 1]
            x = self.convs[2 * stage](x, latent, feature)
            x = self.convs[2 * stage + 1](x, latent, feature)
            picture = to_rgb(x, latent, picture)
        return picture  # type: ignore[no-any-return]


class GPEN(nn.Module):
    """The restorer. Callable on any batch; `forward` is also what training uses."""

    def __init__(
        self, size: int, style_dim: int = 512, n_mlp: int = 8, channel_multiplier: int = 2, narrow: float = 1.0
    ) -> None:
        super().__init__()
        self.config = config = Config(size, style_dim, n_mlp, channel_multiplier, narrow)
        self.generator = Generator(config)
        width = config.width(size)
        self.ecd0 = encoder_layer(3, width, down=False)
        self.stages = size.bit_length() - 3  # halvings from `size` to 4
        for stage in range(1, self.stages + 1):
            narrower, width = width, config.width(size >> stage)
            setattr(self, f"ecd{stage}", encoder_layer(narrower, width, down=True))
        self.final_linear = nn.Sequential(EqualLinear(width * 16, style_dim, activate=True))

    @classmethod
    def from_config(cls, config: Config) -> GPEN:
        return cls(config.size, config.style_dim, config.n_mlp, config.channel_multiplier, config.narrow)

    def forward(self, x: Tensor) -> Tensor:
        """(N, 3, S, S) RGB in [-1, 1] → (N, 3, S, S), nominally [-1, 1], not clipped"""
        features = []
        for stage in range(self.stages + 1):
            x = getattr(self, f"ecd{stage}")(x)
            features.append(x)
        code = self.final_linear(x.flatten(1))
        picture: Tensor = self.generator(code, features[::-1])
        return picture


def encoder_layer(inputs: int, outputs: int, *, down: bool) -> nn.Sequential:
    """One encoder step. The outer Sequential only reproduces the author's tensor names (`ecd3.0.1.weight`)."""
    if not down:
        return nn.Sequential(nn.Sequential(EqualConv2d(inputs, outputs, 1), FusedLeakyReLU(outputs)))
    conv = EqualConv2d(inputs, outputs, 3, stride=2)
    return nn.Sequential(nn.Sequential(Blur(pad=2), conv, FusedLeakyReLU(outputs)))
