"""Which network do these tensors belong to? Names and shapes only, in plain Python, so that nothing imports torch.

`Config` is GPEN's own: read off tensor shapes, and turned into every official name and shape again.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Protocol, TypeAlias

from gpen_zoo.errors import WeightWrongKind

Shape: TypeAlias = tuple[int, ...]


class Shaped(Protocol):
    """Anything with a shape: a tensor, or a tensor's entry in a safetensors header."""

    @property
    def shape(self) -> Shape: ...


@dataclass(frozen=True, slots=True)
class Config:
    """size: side of the square picture in pixels, a power of two ≥ 16. narrow scales every width, channel_multiplier
    the widths from 64 px up."""

    size: int
    style_dim: int = 512
    n_mlp: int = 8
    channel_multiplier: int = 2
    narrow: float = 1.0

    def __post_init__(self) -> None:
        if self.size < 16 or self.size & (self.size - 1):
            raise ValueError(f"size must be a power of two from 16 up, not {self.size}")

    def width(self, resolution: int) -> int:
        """Channels at a resolution: 512·narrow up to 32 px, then halving from 256·multiplier·narrow at 64 px."""
        if resolution <= 32:
            return int(512 * self.narrow)
        return int(256 * 64 // resolution * self.channel_multiplier * self.narrow)

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Shaped]) -> Config:
        """Read the configuration off tensor shapes. ValueError when the names are not GPEN's."""
        try:
            stages = sum(1 for name in state if name.startswith("ecd") and name.endswith(".0.kernel"))
            style_dim, flat = state["final_linear.0.weight"].shape
            at_4 = state["generator.input.input"].shape[1]
            at_top = state["ecd0.0.0.weight"].shape[0]
        except KeyError as missing:
            raise ValueError(f"not a GPEN state dict: {missing.args[0]} is absent") from None
        if flat != at_4 * 16:
            raise ValueError(f"not a GPEN state dict: final_linear takes {flat} values, expected {at_4 * 16}")
        size = 4 << stages
        n_mlp = sum(1 for name in state if name.startswith("generator.style.") and name.endswith(".weight"))
        narrow = at_4 / 512
        # Below 64 px no width depends on the multiplier; the author's default then stands for "any".
        multiplier = round(at_top / (256 * 64 / size * narrow)) if size >= 64 else 2
        return cls(size, style_dim, n_mlp, max(1, multiplier), narrow)


@dataclass(frozen=True, slots=True)
class Network:
    """What tensor names and shapes belong to. family: `GPEN`, `GFPGAN`…, `""` when unknown."""

    family: str
    params: Mapping[str, int | float | str]

    def __str__(self) -> str:
        size = self.params.get("size", "")
        rest = ", ".join(
            f"{k} {v:g}" if isinstance(v, float) else f"{k} {v}" for k, v in self.params.items() if k != "size"
        )
        return f"{self.family}{f' {size}' if size else ''}{f' ({rest})' if rest else ''}"


def network_of(tensors: Mapping[str, Shaped]) -> Network:
    """Which network these names and shapes belong to; a leading `module.` of DataParallel is looked through."""
    names = {name.removeprefix("module."): tensor for name, tensor in tensors.items()}
    if "ecd0.0.0.weight" in names and "generator.input.input" in names:
        return _gpen(names)
    if "final_conv.0.weight" in names and "convs.0.0.weight" in names and "final_linear.0.weight" in names:
        return Network("Discriminator", {})
    if any(name.startswith("stylegan_decoder.") for name in names):
        return Network("GFPGAN", {})
    if "position_emb" in names and "quantize.embedding.weight" in names:
        return Network("CodeFormer", {})
    if any(re.match(r"(vqvae\.)?quantize\.embedding\.weight$", name) for name in names):
        return Network("RestoreFormer", {})
    if "ClassHead.0.conv1x1.weight" in names:
        return Network("RetinaFace", {"backbone": "resnet50" if "body.conv1.weight" in names else "mobile0.25"})
    if "out_mask_conv.conv2d.weight" in names:
        return Network("ParseNet", {})
    if "cp.resnet.conv1.weight" in names and "ffm.convblk.conv.weight" in names:
        return Network("BiSeNet", {})
    if "conv_first.weight" in names and "body.0.rdb1.conv1.weight" in names:
        return _rrdb(names)
    if "body.0.weight" in names and len(names["body.0.weight"].shape) == 4 and "body.1.weight" in names:
        return _srvgg(names)
    return Network("", {})


def _gpen(names: Mapping[str, Shaped]) -> Network:
    try:
        config = Config.from_state_dict(names)
    except (ValueError, IndexError, ZeroDivisionError):
        return Network("", {})  # some names are GPEN's, the whole is not
    return Network("GPEN", {field.name: getattr(config, field.name) for field in fields(config)})


def _rrdb(names: Mapping[str, Shaped]) -> Network:
    features, inputs = names["conv_first.weight"].shape[:2]
    blocks = len({name.split(".")[1] for name in names if name.startswith("body.")})
    grow = names["body.0.rdb1.conv1.weight"].shape[0]
    scale = {3: 4, 12: 2, 48: 1}.get(inputs, 0)
    return Network("RRDBNet", {"num_feat": features, "num_block": blocks, "num_grow_ch": grow, "scale": scale})


def _srvgg(names: Mapping[str, Shaped]) -> Network:
    numbers = [int(n.split(".")[1]) for n in names if re.fullmatch(r"body\.\d+\.weight", n)]
    last = names[f"body.{max(numbers)}.weight"].shape  # the convolution whose channels become pixels
    features = names["body.0.weight"].shape[0]
    scale = math.isqrt(last[0] // 3) if len(last) == 4 else 0
    return Network("SRVGGNetCompact", {"num_feat": features, "num_conv": max(numbers) // 2 - 1, "scale": scale})


def gpen_shapes(config: Config) -> dict[str, Shape]:
    """Official names and shapes of a GPEN; equal to those of `network.GPEN`, which a test holds it to."""
    return dict(_gpen_tensors(config))


def _gpen_tensors(config: Config) -> Iterator[tuple[str, Shape]]:
    style, width = config.style_dim, config.width(4)
    for layer in range(1, config.n_mlp + 1):
        yield from _linear(f"generator.style.{layer}", style, style)
    yield "generator.input.input", (1, width, 4, 4)
    yield from _styled("generator.conv1", width, width, style)
    yield from _to_rgb("generator.to_rgb1", width * 2, style)
    resolutions = [8 << step for step in range(config.size.bit_length() - 3)]
    for stage, resolution in enumerate(resolutions):
        wider, width = width * 2, config.width(resolution)
        yield from _styled(f"generator.convs.{2 * stage}", wider, width, style)
        yield f"generator.convs.{2 * stage}.conv.blur.kernel", (4, 4)
        yield from _styled(f"generator.convs.{2 * stage + 1}", width * 2, width, style)
        yield from _to_rgb(f"generator.to_rgbs.{stage}", width * 2, style)
        yield f"generator.to_rgbs.{stage}.upsample.kernel", (4, 4)
    width = config.width(config.size)
    yield "ecd0.0.0.weight", (width, 3, 1, 1)
    yield "ecd0.0.1.bias", (width,)
    for stage in range(1, len(resolutions) + 1):
        narrower, width = width, config.width(config.size >> stage)
        yield f"ecd{stage}.0.0.kernel", (4, 4)
        yield f"ecd{stage}.0.1.weight", (width, narrower, 3, 3)
        yield f"ecd{stage}.0.2.bias", (width,)
    yield from _linear("final_linear.0", width * 16, style)


def _linear(name: str, inputs: int, outputs: int) -> Iterator[tuple[str, Shape]]:
    yield f"{name}.weight", (outputs, inputs)
    yield f"{name}.bias", (outputs,)


def _modulated(name: str, inputs: int, outputs: int, kernel: int, style: int) -> Iterator[tuple[str, Shape]]:
    yield f"{name}.weight", (1, outputs, inputs, kernel, kernel)
    yield from _linear(f"{name}.modulation", style, inputs)


def _styled(name: str, inputs: int, outputs: int, style: int) -> Iterator[tuple[str, Shape]]:
    yield from _modulated(f"{name}.conv", inputs, outputs, 3, style)
    yield f"{name}.noise.weight", (1,)
    yield f"{name}.activate.bias", (outputs * 2,)


def _to_rgb(name: str, inputs: int, style: int) -> Iterator[tuple[str, Shape]]:
    yield from _modulated(f"{name}.conv", inputs, 3, 1, style)
    yield f"{name}.bias", (1, 3, 1, 1)


def check_network(file: str, tensors: Mapping[str, Shaped], wanted: Network, title: str) -> None:
    """Compare names and shapes with what `title` must hold.

    GPEN: every official name and shape and nothing else. Other families: the family and the numbers `wanted` gives;
    their own module then loads strictly. Raises WeightWrongKind.
    """
    found = network_of(tensors)
    if not found.family and wanted.family != "GPEN":
        raise WeightWrongKind("W13", file=file)
    shared = [key for key in wanted.params if key in found.params]
    same = found.family == wanted.family and all(found.params[key] == wanted.params[key] for key in shared)
    if found.family and not same:
        raise WeightWrongKind("W05", file=file, found=found, wanted=f"{title}: {wanted}")
    if wanted.family != "GPEN":
        return
    expected = gpen_shapes(Config(**wanted.params))  # type: ignore[arg-type]
    actual = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    if expected != actual:
        raise WeightWrongKind("W12", file=file, wanted=title, problem=_difference(expected, actual))


def _difference(expected: Mapping[str, Shape], actual: Mapping[str, Shape]) -> str:
    """`-` absent, `+` left over, `≠` another shape; the first three, then how many more."""
    lines = [f"-{name}" for name in expected if name not in actual]
    lines += [f"+{name}" for name in actual if name not in expected]
    lines += [f"{name} {actual[name]}≠{shape}" for name, shape in expected.items() if actual.get(name, shape) != shape]
    return ", ".join(lines[:3]) + (f" … {len(lines) - 3}" if len(lines) > 3 else "")
