"""A run on disk: everything the next step depends on, replaced whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gpen_zoo.architecture import Config

NAME = "checkpoint.pt"


@dataclass(kw_only=True)
class Checkpoint:
    """step: steps done. config: of the network, by name. g_ema: the averaged weights, which are the ones to ship;
    `gpen-zoo weights inspect` and the converter know the key. optimisers: state dicts by name. settings: as text."""

    step: int
    config: Mapping[str, Any]
    g: Mapping[str, Tensor]
    g_ema: Mapping[str, Tensor]
    d: Mapping[str, Tensor] | None
    optimisers: Mapping[str, Any]
    settings: Mapping[str, Any]

    def save(self, folder: Path) -> Path:
        path, part = folder / NAME, folder / (NAME + ".part")
        torch.save(vars(self), part)
        os.replace(part, path)
        return path


def load_checkpoint(path: Path) -> Checkpoint:
    """Reads data only; a pickle with code inside is refused by torch."""
    return Checkpoint(**torch.load(path, map_location="cpu", weights_only=True))


def checked(config: Config) -> Config:
    """The same. ValueError where it has no channels left at some resolution."""
    if not config.width(32) or not config.width(config.size):
        raise ValueError(f"narrow {config.narrow:g} leaves no channels at {config.size} px")
    return config
