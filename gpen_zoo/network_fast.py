"""The run-time form of a GPEN: the same function of the picture, prepared once for one device and dtype.

What differs from network.py, and why:

* Scales of the equalised learning rate and the activation gain √2 live in the weights. The gain moves into whatever
  reads the activation, so every tensor here that follows a leaky ReLU is 1/√2 of its counterpart there.
* All style modulations are one matrix product; demodulation comes from squared weights summed in advance. Style
  network, normalisation, both of these and the summed picture stay in float32 (1e-8 is 0 in float16).
* A stage whose activations outnumber its weights modulates the weights, one sample at a time; there the bias of the
  convolutions and the taps of the low-pass carry bias and demodulation for nothing. Smaller stages modulate the
  activations and share one convolution among the batch.
* Those large stages are local once the style is known, so they can run in spatial tiles, which gives the same result
  (stage_tiles.py has the halos). On a CPU a tile that fits the cache is also what makes them fast: fresh memory of
  the size of a whole stage costs more in page faults than the arithmetic on it.
* Wide float32 layers on a CPU take Winograd's convolution (winograd.py), with a quarter of the multiplications.
* The widest encoder feature is recomputed from the picture wherever it is read instead of being kept.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional as F

from gpen_zoo.network import EPS, GAIN, LR_MLP, SLOPE, Config, fir_kernel
from gpen_zoo.stage_tiles import Span, aligned, cut, down_source, grown, missing, place, tiles, up_source
from gpen_zoo.winograd import convolve, transformed

# Large tensors in huge pages, where the system gives them to who asks (Linux with "madvise"): page faults in fresh
# memory take up to a tenth of a pass. torch reads this at its first allocation; later it does nothing.
os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")

WINOGRAD_INPUTS, WINOGRAD_SIDE = 128, 32

Style: TypeAlias = dict[str, Tensor]  # name of a modulated convolution → float32 (N, inputs)


class Prepared:
    """Callable. Weights are copies in `dtype` on `device`; nothing is written after construction, so calls may overlap.

    Build it with `prepare`. Attributes: `config`, `device`, `dtype`.
    """

    def __init__(self, config: Config, source: _Source) -> None:
        self.config, self.device, self.dtype = config, source.device, source.dtype
        self.styles = _Styles(config, source)
        self.first = _Pointwise(source)
        stages = config.size.bit_length() - 3
        self.down = [_Down(source, f"ecd{stage}.0") for stage in range(1, stages + 1)]
        self.start = source.rounded(source.tensor("generator.input.input") / GAIN)
        self.start_conv = _Styled(source, "generator.conv1")
        self.start_rgb = _Rgb(source, "generator.to_rgb1")
        self.up = [_Up(source, stage, 8 << stage) for stage in range(stages)]

    @torch.inference_mode()
    def __call__(self, x: Tensor, tile: int = 0) -> Tensor:
        """(N, 3, S, S) RGB in [-1, 1], any float dtype, on `device` → the same in float32, not clipped.

        tile: side in pixels of the tiles in which large stages run, any number ≥ 1; 0 for no tiles.
        """
        x = x.to(self.dtype, memory_format=torch.channels_last)
        features = [self.down[0](x, tile, self.first)]
        for layer in self.down[1:]:
            features.append(layer(features[-1], tile))
        style = self.styles(features[-1])
        y = self.start_conv(self.start.expand(len(x), -1, -1, -1), features.pop(), style)
        picture = self.start_rgb(y, style)
        for stage in self.up[:-1]:
            y, picture = stage(y, picture, features.pop(), style, tile)
        _, picture = self.up[-1](y, picture, x, style, tile, self.first)
        return picture


class Weights(Protocol):
    """A GPEN by its tensors: the module itself, or `Tensors`."""

    @property
    def config(self) -> Config: ...
    def state_dict(self) -> Mapping[str, Tensor]: ...


@dataclass(frozen=True)
class Tensors:
    """The author's tensors by name, without a module around them.

    To build even a meta-device module makes torch import 1.4 s worth of its own code, more than a face may take.
    """

    config: Config
    tensors: Mapping[str, Tensor]

    def state_dict(self) -> Mapping[str, Tensor]:
        return self.tensors


def prepare(net: Weights, *, device: torch.device, dtype: torch.dtype) -> Prepared:
    """Fold `net`'s tensors (of any float dtype) for `device` and `dtype`. `net` itself is left as it is."""
    with torch.no_grad():
        return Prepared(net.config, _Source(net.state_dict(), device, dtype))


@dataclass(frozen=True)
class _Source:
    """The author's tensors by name, brought to the device in the dtype that folding needs."""

    state: Mapping[str, Tensor]
    device: torch.device
    dtype: torch.dtype

    @property
    def wide(self) -> torch.dtype:
        """float32, where float16 and bfloat16 are too coarse (float64 for a float64 network)."""
        return torch.promote_types(self.dtype, torch.float32)

    def tensor(self, name: str) -> Tensor:
        return self.state[name].detach().to(self.device, self.wide)

    def scaled(self, name: str, gain: float = 1.0) -> Tensor:
        """A weight times its equalised-learning-rate scale and `gain`; the batch axis of modulated ones dropped."""
        weight = self.tensor(name)
        weight = weight[0] if weight.ndim == 5 else weight
        return weight * (gain / math.sqrt(weight[0].numel()))

    def rounded(self, value: Tensor) -> Tensor:
        value = value.to(self.dtype)
        return value.contiguous(memory_format=torch.channels_last) if value.ndim == 4 else value

    def taps(self, channels: int, gain: float) -> Tensor:
        return fir_kernel(gain).to(self.device, self.wide).repeat(channels, 1, 1, 1)


class _Styles:
    """Encoder vector → the modulation of every convolution, all in float32."""

    def __init__(self, config: Config, source: _Source) -> None:
        self.code = source.scaled("final_linear.0.weight", GAIN), source.tensor("final_linear.0.bias")
        names = [f"generator.style.{i}" for i in range(1, config.n_mlp + 1)]
        self.mlp = [(source.scaled(f"{n}.weight", LR_MLP), source.tensor(f"{n}.bias") * LR_MLP) for n in names]
        suffix = ".modulation.weight"
        self.names = [n.removesuffix(suffix) for n in source.state if n.endswith(suffix)]
        weights = [source.scaled(f"{n}{suffix}") for n in self.names]
        self.sizes = [len(w) for w in weights]
        self.weight, self.bias = (
            torch.cat(weights),
            torch.cat([source.tensor(f"{n}.modulation.bias") for n in self.names]),
        )

    def __call__(self, feature: Tensor) -> Style:
        """The 4 px feature (N, C, 4, 4) → style"""
        z = F.linear(feature.flatten(1).to(self.weight.dtype), *self.code)
        z = F.leaky_relu(z, SLOPE) * GAIN
        z = z * torch.rsqrt(z.square().mean(1, keepdim=True) + EPS)
        for weight, bias in self.mlp:
            z = F.leaky_relu(F.linear(z, weight, bias), SLOPE) * GAIN
        return dict(zip(self.names, torch.split(F.linear(z, self.weight, self.bias), self.sizes, 1), strict=True))


class _Pointwise:
    """The first encoder layer: picture → widest feature, cheap enough to be computed wherever it is read."""

    def __init__(self, source: _Source) -> None:
        self.weight = source.rounded(source.scaled("ecd0.0.0.weight"))
        self.bias = source.rounded(source.tensor("ecd0.0.1.bias"))

    def __call__(self, x: Tensor) -> Tensor:
        return F.leaky_relu_(F.conv2d(x, self.weight, self.bias), SLOPE)


class _Down:
    """Low-pass, convolution with stride 2, leaky ReLU."""

    def __init__(self, source: _Source, name: str) -> None:
        self.weight = source.rounded(source.scaled(f"{name}.1.weight", GAIN))
        self.bias = source.rounded(source.tensor(f"{name}.2.bias"))
        self.taps = source.rounded(source.taps(self.weight.shape[1], 1.0))

    def __call__(self, x: Tensor, tile: int, first: _Pointwise | None = None) -> Tensor:
        """(N, C, H, W), or the picture that `first` turns into it → (N, C', H/2, W/2)"""
        side = x.shape[-1] // 2
        if not tile or x.shape[-1] <= tile:
            return self._run(x, first)
        y = empty_like(x, len(self.weight), side)
        for i in range(len(x)):
            for rows, columns in tiles(side, max(1, tile // 2)):
                read = down_source(rows, side), down_source(columns, side)
                out = self._run(place(x, i, *read), first)
                place(y, i, rows, columns).copy_(cut(out, rows, columns, read[0][0] // 2, read[1][0] // 2))
        return y

    def _run(self, x: Tensor, first: _Pointwise | None) -> Tensor:
        x = first(x) if first else x
        x = F.conv2d(x, self.taps, padding=2, groups=len(self.taps))
        return F.leaky_relu_(F.conv2d(x, self.weight, self.bias, stride=2), SLOPE)


class _Styled:
    """A modulated 3×3 convolution, the encoder feature put beside its result, leaky ReLU over both."""

    def __init__(self, source: _Source, name: str, *, up: bool = False, local: bool = False, side: int = 4) -> None:
        self.name = f"{name}.conv"
        weight = source.scaled(f"{name}.conv.weight")
        self.power = weight.square().sum((2, 3))
        self.outputs = len(weight)
        # conv_transpose2d wants inputs first. A weight that is still to be modulated is rounded after that.
        weight = (weight.transpose(0, 1) if up else weight) * GAIN
        self.winograd = not up and by_winograd(source, weight, side)
        if local:
            self.weight = weight.contiguous(memory_format=torch.channels_last)
        else:
            self.weight = transformed(weight) if self.winograd else source.rounded(weight)
        taps = source.taps(self.outputs, 4.0)
        self.taps = (taps if local else source.rounded(taps)) if up else None
        bias = source.rounded(source.tensor(f"{name}.activate.bias"))
        self.bias, self.feature_bias = bias[: self.outputs], bias[self.outputs :]
        self.noise = float(source.tensor(f"{name}.noise.weight")) * GAIN
        self.feature_taps = torch.full_like(self.feature_bias, self.noise)[:, None, None, None]
        self.by_convolution = source.device.type == "cpu" and source.dtype == torch.bfloat16

    def __call__(self, x: Tensor, feature: Tensor, style: Style) -> Tensor:
        """Modulates activations: one convolution for the batch."""
        s, d = self.scales(style)
        x = x * s[:, :, None, None].to(x.dtype)
        if self.taps is not None:
            y = F.conv_transpose2d(x, self.weight, stride=2)
            y = F.conv2d(y, self.taps, padding=1, groups=self.outputs)
        elif self.winograd:
            y = convolve(F.pad(x, (1, 1, 1, 1)), self.weight)
        else:
            y = F.conv2d(x, self.weight, padding=1)
        y = torch.addcmul(self.bias[:, None, None], y, d[:, :, None, None].to(y.dtype))
        return F.leaky_relu_(torch.cat((y, self.beside(feature)), 1), SLOPE)

    def scales(self, style: Style) -> tuple[Tensor, Tensor]:
        """float32 (N, inputs) modulation, (N, outputs) demodulation"""
        s = style[self.name]
        return s, torch.rsqrt(F.linear(s.square(), self.power) + EPS)

    def joined(self, y: Tensor, feature: Tensor, border: tuple[int, ...] = (0, 0, 0, 0)) -> Tensor:
        """One result and the feature side by side, leaky ReLU over both, `border` zeros left, right, above, below."""
        left, right, above, below = border
        height, width = y.shape[2] + above + below, y.shape[3] + left + right
        out = torch.empty((1, height, width, 2 * self.outputs), dtype=y.dtype, device=y.device).permute(0, 3, 1, 2)
        if any(border):
            out.zero_()
        inner = out[:, :, above : height - below, left : width - right]
        # Written where it belongs: concatenation, activation and padding would each be a pass over memory of its own.
        torch.ops.aten.leaky_relu.out(y, SLOPE, out=inner[:, : self.outputs])
        torch.ops.aten.leaky_relu.out(self.beside(feature), SLOPE, out=inner[:, self.outputs :])
        return out

    def beside(self, feature: Tensor) -> Tensor:
        """The feature as it stands beside the result, before the leaky ReLU."""
        if self.by_convolution:
            # torch's broadcast addition of few bfloat16 channels is 5–15 times slower than this on a CPU.
            return F.conv2d(feature, self.feature_taps, self.feature_bias, groups=self.outputs)
        return torch.add(self.feature_bias[:, None, None], feature, alpha=self.noise)


class _Rgb:
    """Modulated 1×1 convolution to RGB; the picture itself is summed up in float32."""

    def __init__(self, source: _Source, name: str) -> None:
        self.name, self.dtype = f"{name}.conv", source.dtype
        self.weight = source.scaled(f"{name}.conv.weight", GAIN)
        self.bias = source.tensor(f"{name}.bias")

    def __call__(self, x: Tensor, style: Style) -> Tensor:
        return torch.cat([self.add_to(self.bias, x[i : i + 1], self.modulated(style, i)) for i in range(len(x))])

    def modulated(self, style: Style, i: int) -> Tensor:
        return (self.weight * style[self.name][i][:, None, None]).to(self.dtype)

    def add_to(self, picture: Tensor, x: Tensor, weight: Tensor) -> Tensor:
        return picture + F.conv2d(x, weight)


class _Up:
    """Two styled convolutions and RGB: one doubling of the side, to `side` pixels."""

    def __init__(self, source: _Source, stage: int, side: int) -> None:
        width = source.state[f"generator.convs.{2 * stage}.conv.weight"].shape[1]
        self.side = side
        self.local = 9 * width <= (side // 2) ** 2  # weights of the first convolution ≤ activations it reads
        self.first = _Styled(source, f"generator.convs.{2 * stage}", up=True, local=self.local)
        self.second = _Styled(source, f"generator.convs.{2 * stage + 1}", local=self.local, side=side)
        self.rgb = _Rgb(source, f"generator.to_rgbs.{stage}")

    def __call__(
        self, x: Tensor, picture: Tensor, feature: Tensor, style: Style, tile: int, first: _Pointwise | None = None
    ) -> tuple[Tensor, Tensor]:
        """x (N, C, H, W), picture float32 (N, 3, H, W) → both at twice the side. With `first`, `feature` is the
        network's input, and of this last stage only the picture is wanted: x comes back as it is."""
        if not self.local:
            feature = first(feature) if first else feature
            x = self.second(self.first(x, feature, style), feature, style)
            return x, self.rgb(x, style) + doubled(picture)
        n, side = len(x), self.side
        larger = picture.new_empty(n, 3, side, side)
        kept = None if first else empty_like(x, 2 * self.second.outputs, side)
        for i in range(n):
            weights = self._modulated(style, i, x.dtype)
            for rows, columns in tiles(side, tile or side):
                y = self._tile(x, feature, i, rows, columns, weights, first)
                part = doubled_part(picture, i, rows, columns) + self.rgb.bias
                place(larger, i, rows, columns).copy_(self.rgb.add_to(part, y, weights[-1]))
                if kept is not None:
                    place(kept, i, rows, columns).copy_(y)
                del y, part  # or they would stand beside the next tile's
        return x if kept is None else kept, larger

    def _modulated(self, style: Style, i: int, dtype: torch.dtype) -> tuple[Tensor, ...]:
        """One sample's weights: first convolution, its low-pass (with demodulation), second convolution, RGB."""
        s1, d1 = (v[i] for v in self.first.scales(style))
        s2, d2 = (v[i] for v in self.second.scales(style))
        assert self.first.taps is not None
        first = self.first.weight * s1[:, None, None, None]
        taps = self.first.taps * d1[:, None, None, None]
        second = (self.second.weight * (d2[:, None] * s2)[:, :, None, None]).to(dtype)
        second = transformed(second) if self.second.winograd else second
        return first.to(dtype), taps.to(dtype), second, self.rgb.modulated(style, i)

    def _tile(
        self,
        x: Tensor,
        feature: Tensor,
        i: int,
        rows: Span,
        columns: Span,
        weights: tuple[Tensor, ...],
        source: _Pointwise | None,
    ) -> Tensor:
        """One tile of the stage's output. The paddings are right at the picture's border; inside, the pixels they
        spoil are computed with the halo and cut off."""
        first, taps, second, _ = weights
        blocks = (aligned(rows, 4), aligned(columns, 4)) if self.second.winograd else (rows, columns)
        around = grown(blocks[0], self.side), grown(blocks[1], self.side)  # what the second convolution reads
        low = up_source(around[0], x.shape[-1]), up_source(around[1], x.shape[-1])  # what the first one reads for that
        top, left = around[0][0], around[1][0]
        y = F.conv_transpose2d(place(x, i, *low), first, stride=2)
        y = F.conv2d(y, taps, self.first.bias, padding=1, groups=len(taps))
        y = cut(y, *around, 2 * low[0][0], 2 * low[1][0])
        part = place(feature, i, *around)
        part = source(part) if source else part
        if self.second.winograd:
            y = self.first.joined(y, part, missing(blocks[1], self.side) + missing(blocks[0], self.side))
            y = cut(convolve(y, second, self.second.bias), rows, columns, blocks[0][0], blocks[1][0])
        else:
            y = self.first.joined(y, part)
            y = cut(F.conv2d(y, second, self.second.bias, padding=1), rows, columns, top, left)
        return self.second.joined(y, cut(part, rows, columns, top, left))


def by_winograd(source: _Source, weight: Tensor, side: int) -> bool:
    """Where it wins and its rounding is welcome: below 128 inputs or 32 px the transforms cost what they save."""
    wide = weight.shape[1] >= WINOGRAD_INPUTS and side >= WINOGRAD_SIDE
    return wide and source.device.type == "cpu" and source.dtype == torch.float32


def empty_like(x: Tensor, channels: int, side: int) -> Tensor:
    shape = len(x), channels, side, side
    return torch.empty(shape, dtype=x.dtype, device=x.device, memory_format=torch.channels_last)


def doubled(picture: Tensor) -> Tensor:
    """Twice the side. Zero insertion and the low-pass (1 3 3 1) are bilinear interpolation with a border of zeros."""
    return F.interpolate(F.pad(picture, (1, 1, 1, 1)), scale_factor=2.0, mode="bilinear")[:, :, 2:-2, 2:-2]


def doubled_part(picture: Tensor, i: int, rows: Span, columns: Span) -> Tensor:
    """`rows` and `columns` of sample i's doubled picture."""
    side = picture.shape[-1]
    (t0, t1), (l0, l1) = ((max(0, s[0] // 2 - 1), min(side, (s[1] + 1) // 2 + 1)) for s in (rows, columns))
    return cut(doubled(place(picture, i, (t0, t1), (l0, l1))), rows, columns, 2 * t0, 2 * l0)
