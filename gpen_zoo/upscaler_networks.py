"""Weights that enlarge pictures made into networks: RRDBNet (Real-ESRGAN's and GPEN's own) and SRVGGNetCompact.

Sources: Wang and others, "ESRGAN" (ECCVW 2018) and "Real-ESRGAN" (ICCVW 2021). Only basicsr's *modules* are used, with
tensors that the zoo has verified.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from torch import Tensor
from torch.nn import Module

from gpen_zoo.architecture import network_of
from gpen_zoo.basicsr_shim import import_basicsr
from gpen_zoo.budget import Upscaling
from gpen_zoo.errors import GpenError, WeightWrongKind


def can_run() -> bool:
    """Whether basicsr, whose modules these networks are, is installed."""
    return find_spec("basicsr") is not None


def shape_of(file: str, state: Mapping[str, Tensor]) -> Upscaling:
    """What the arithmetic needs to know of these tensors. Raises WeightWrongKind (W05) for another network's."""
    network = network_of(state)
    params: Mapping[str, Any] = network.params
    if network.family == "RRDBNet" and params["scale"] in (2, 4):
        return Upscaling(
            family="RRDBNet",
            factor=params["scale"],
            features=params["num_feat"],
            depth=params["num_block"],
            grow=params["num_grow_ch"],
        )
    if network.family == "SRVGGNetCompact" and params["scale"] in (2, 4):
        return Upscaling(
            family="SRVGGNetCompact",
            factor=params["scale"],
            features=params["num_feat"],
            depth=params["num_conv"],
        )
    raise WeightWrongKind("W05", file=file, found=network or "?", wanted="RRDBNet, SRVGGNetCompact ×2, ×4")


def network_with(file: str, state: Mapping[str, Tensor]) -> Module:
    """basicsr's module with the tensors of `state`, float32.

    Raises WeightWrongKind (W05) when names or shapes are another network's, GpenError (B30) without basicsr.
    """
    shape = shape_of(file, state)
    try:
        if shape.family == "RRDBNet":
            network: Module = import_basicsr("basicsr.archs.rrdbnet_arch").RRDBNet(
                *(3, 3), shape.factor, shape.features, shape.depth, shape.grow
            )
        else:
            network = import_basicsr("basicsr.archs.srvgg_arch").SRVGGNetCompact(
                *(3, 3), shape.features, shape.depth, shape.factor, "prelu"
            )
    except ImportError as error:
        raise GpenError("B30", reason=str(error)) from error
    try:
        network.load_state_dict({name: value.float() for name, value in state.items()}, strict=True)
    except RuntimeError as error:
        raise WeightWrongKind("W05", file=file, found=f"{len(state)} tensors", wanted=shape.family) from error
    return network
