"""A narrower GPEN that starts from a wider one: at every layer the strongest channels are taken over.

A channel is as strong as what leaves it: its root mean square over some faces, times the norm of the weights that
read it (Molchanov et al., "Pruning Convolutional Neural Networks for Resource Efficient Inference", ICLR 2017, in its
simplest form). Equalised-learning-rate scales depend on the number of inputs, so weights are scaled to make up for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from gpen_zoo.network import GPEN, EqualConv2d, EqualLinear, ModulatedConv2d, StyledConv
from training.checkpoint import checked

Kept = dict[str, Tensor]  # space of channels → int64 numbers of those kept, ascending


def narrowed(teacher: GPEN, factor: float, faces: Tensor) -> GPEN:
    """A GPEN of `factor` times the teacher's width. faces: float32 (N, 3, S, S) to measure on; a few suffice.

    ValueError when no channel would be left somewhere."""
    config = checked(replace(teacher.config, narrow=teacher.config.narrow * factor))
    student = GPEN.from_config(config)
    kept = strongest(teacher, config.width, faces)
    with torch.no_grad():
        _take(teacher, student, kept)
    return student


def strongest(net: GPEN, width: Callable[[int], int], faces: Tensor) -> Kept:
    """Which channels to keep of each space: `encoder R`, `start`, `up R` and `conv R`, R the resolution in pixels."""
    energy, read = _energies(net, faces), _norms_read(net)
    kept = {}
    for space, values in energy.items():
        resolution = 4 if space == "start" else int(space.split()[1])
        order = torch.argsort(values * read[space], descending=True)
        kept[space] = order[: width(resolution)].sort().values
    return kept


def _resolutions(net: GPEN) -> list[int]:
    return [8 << stage for stage in range(net.stages)]


def _layers(net: GPEN) -> list[tuple[StyledConv, str, str, int]]:
    """Every styled convolution: itself, the space of its output, the space it reads, and at which resolution the
    encoder channels lie that come with what it reads (0 for none)."""
    g: Any = net.generator
    layers: list[tuple[StyledConv, str, str, int]] = [(g.conv1, "conv 4", "start", 0)]
    for stage, r in enumerate(_resolutions(net)):
        layers.append((g.convs[2 * stage], f"up {r}", f"conv {r // 2}", r // 2))
        layers.append((g.convs[2 * stage + 1], f"conv {r}", f"up {r}", r))
    return layers


def _energies(net: GPEN, faces: Tensor) -> Kept:
    """Root mean square of every channel, as what follows sees it: encoder features are weighted by the injections."""
    found: dict[str, Tensor] = {"start": net.generator.input.input.detach().square().mean((0, 2, 3)).sqrt()}

    def watch(space: str) -> Callable[[nn.Module, tuple[Tensor, ...], Tensor], None]:
        def hook(_module: nn.Module, _inputs: tuple[Tensor, ...], output: Tensor) -> None:
            found[space] = output.square().mean((0, 2, 3)).sqrt()

        return hook

    size, hooks = net.config.size, []
    for stage in range(net.stages + 1):
        hooks.append(getattr(net, f"ecd{stage}").register_forward_hook(watch(f"encoder {size >> stage}")))
    for layer, space, _, _ in _layers(net):
        hooks.append(layer.conv.register_forward_hook(watch(space)))
    with torch.inference_mode():
        net(faces)
    for hook in hooks:
        hook.remove()
    return {space: value.clone() for space, value in found.items()}


def _norms_read(net: GPEN) -> Kept:
    """Norm of the weights that read each channel, over all its readers."""
    squares: dict[str, Tensor] = {}

    def add(space: str, values: Tensor) -> None:
        squares[space] = squares.get(space, torch.zeros_like(values)) + values

    for stage in range(1, net.stages + 1):
        conv = getattr(net, f"ecd{stage}")[0][1]
        add(f"encoder {net.config.size >> (stage - 1)}", (conv.weight * conv.scale).square().sum((0, 2, 3)).detach())
    last: Any = net.final_linear[0]
    per_pixel = (last.weight * last.scale).square().sum(0).detach()
    add("encoder 4", per_pixel.view(-1, 16).sum(1))
    rgbs = [net.generator.to_rgb1, *net.generator.to_rgbs]
    readers = [(layer.conv, space, r) for layer, _, space, r in _layers(net)]
    readers += [(rgb.conv, f"conv {r}", r) for rgb, r in zip(rgbs, [4, *_resolutions(net)], strict=True)]
    for conv, space, r in readers:
        norms = (conv.weight[0] * conv.scale).square().sum((0, 2, 3)).detach()
        half = len(norms) // 2 if r else len(norms)
        add(space, norms[:half])
        if r:
            add(f"encoder {r}", norms[half:] * _injection(net, space).square())
    return {space: value.sqrt() for space, value in squares.items()}


def _injection(net: GPEN, space: str) -> Tensor:
    """The learnt weight with which the encoder's feature joins a space."""
    return next(layer.noise.weight.detach() for layer, out, _, _ in _layers(net) if out == space)


def _take(teacher: GPEN, student: GPEN, kept: Kept) -> None:
    size = teacher.config.size
    rgb = torch.arange(3)
    for stage in range(teacher.stages + 1):
        old, new = getattr(teacher, f"ecd{stage}")[0], getattr(student, f"ecd{stage}")[0]
        outputs = kept[f"encoder {size >> stage}"]
        inputs = kept[f"encoder {size >> (stage - 1)}"] if stage else rgb
        at = 1 if stage else 0
        _take_conv(old[at], new[at], outputs, inputs)
        new[at + 1].bias.copy_(old[at + 1].bias[outputs])
    pixels = (kept["encoder 4"][:, None] * 16 + torch.arange(16)).flatten()
    ends: tuple[Any, Any] = teacher.final_linear[0], student.final_linear[0]
    _take_linear(*ends, slice(None), pixels)
    student.generator.style.load_state_dict(teacher.generator.style.state_dict())
    student.generator.input.input.copy_(teacher.generator.input.input[:, kept["start"]])

    def both(space: str, resolution: int) -> Tensor:
        """Numbers within a concatenation of a space and the encoder's feature."""
        own = kept[space]
        count = teacher.config.width(resolution) if resolution else 0
        return torch.cat([own, count + kept[f"encoder {resolution}"]]) if resolution else own

    for (old, out, read, r), (new, *_) in zip(_layers(teacher), _layers(student), strict=True):
        _take_modulated(old.conv, new.conv, kept[out], both(read, r))
        new.noise.weight.copy_(old.noise.weight)
        new.activate.bias.copy_(old.activate.bias[both(out, int(out.split()[1]))])
    resolutions = [4, *_resolutions(teacher)]
    old_rgbs: list[Any] = [teacher.generator.to_rgb1, *teacher.generator.to_rgbs]
    new_rgbs: list[Any] = [student.generator.to_rgb1, *student.generator.to_rgbs]
    for old_rgb, new_rgb, r in zip(old_rgbs, new_rgbs, resolutions, strict=True):
        _take_modulated(old_rgb.conv, new_rgb.conv, rgb, both(f"conv {r}", r))
        new_rgb.bias.copy_(old_rgb.bias)


def _take_conv(old: EqualConv2d, new: EqualConv2d, outputs: Tensor, inputs: Tensor) -> None:
    new.weight.copy_(old.weight[outputs][:, inputs] * (old.scale / new.scale))


def _take_linear(old: EqualLinear, new: EqualLinear, outputs: Tensor | slice, inputs: Tensor | slice) -> None:
    new.weight.copy_(old.weight[outputs][:, inputs] * (old.scale / new.scale))
    new.bias.copy_(old.bias[outputs])


def _take_modulated(old: ModulatedConv2d, new: ModulatedConv2d, outputs: Tensor, inputs: Tensor) -> None:
    new.weight.copy_(old.weight[:, outputs][:, :, inputs] * (old.scale / new.scale))
    _take_linear(old.modulation, new.modulation, inputs, slice(None))
