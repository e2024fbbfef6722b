"""What a run depends on besides its pictures, and the flags that say it."""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass, field, fields
from pathlib import Path

from training import losses

OPTIMISERS = ("muon", "adam")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All that a run depends on, besides the pictures.

    batch: of one process. optimiser: `muon` (an Adam takes the vectors) or `adam` for all, which wants a tenth of the
    rate. lr falls along a cosine from `lr` to `lr_end`, `restarts` times anew, after `warmup` steps of rising, and
    critic_lr, the critic's, with it. average: decay of the weights' moving average. adversarial: 0 trains for
    distortion alone. teaching: share of the loss that compares with the teacher instead of the truth, where there is
    one. every: steps between validations; saves go with them. compile: through torch.compile, which takes a minute or
    two at the start and a C++ compiler; a step of 8 crops at 256 px on two cores then takes 0.58 s instead of 0.92 s.
    """

    steps: int = 10_000
    batch: int = 4
    optimiser: str = field(default="muon", metadata={"choices": OPTIMISERS})
    lr: float = 8e-3
    lr_end: float = 1e-5
    critic_lr: float = 5e-4
    warmup: int = 200
    restarts: int = 0
    average: float = 0.999
    seed: int = 1
    wear: str = "standard:6,light:1,heavy:1,print:0.7,chat:0.7,video:0.6"
    weights: losses.Weights = field(default_factory=losses.Weights)
    adversarial: float = 0.0
    matching: float = 4.0
    teaching: float = 0.5
    every: int = 500
    precision: str = "bfloat16"
    compile: bool = False


def lr_at(step: int, settings: Settings) -> float:
    """Learning rate of a step (from 0)."""
    if step < settings.warmup:
        return settings.lr * (step + 1) / settings.warmup
    cycle = max(1, (settings.steps - settings.warmup) / (settings.restarts + 1))
    place = ((step - settings.warmup) % cycle) / cycle
    return settings.lr_end + (settings.lr - settings.lr_end) * 0.5 * (1 + math.cos(math.pi * place))


def add_arguments(to: argparse.ArgumentParser) -> None:
    """Flags of every setting, and of the surroundings."""
    to.add_argument("--data", type=Path, required=True, help="folder of aligned faces")
    to.add_argument("--output", type=Path, required=True, help="folder of the run")
    to.add_argument("--validation", type=Path, help="text file, a name a line: kept out of training and measured")
    to.add_argument("--minutes", type=float, default=0, help="stop after so long, with a checkpoint")
    to.add_argument("--threads", type=int, default=0)
    to.add_argument("--workers", type=int, default=1, help="processes that prepare pictures")
    to.add_argument("--low-priority", action="store_true", help="only what nothing else wants of the processor")
    for f in [*fields(Settings), *fields(losses.Weights)]:
        if f.name != "weights":
            flag = "--" + ("loss-" if f.name in losses.Weights.__dataclass_fields__ else "") + f.name.replace("_", "-")
            if f.default is False:
                to.add_argument(flag, action="store_true")
            else:
                choices, told = f.metadata.get("choices"), f"default {f.default}"
                to.add_argument(flag, type=type(f.default), choices=choices, default=f.default, help=told)


def settings_from(args: argparse.Namespace) -> Settings:
    weights = losses.Weights(**{f.name: getattr(args, "loss_" + f.name) for f in fields(losses.Weights)})
    return Settings(weights=weights, **{f.name: getattr(args, f.name) for f in fields(Settings) if f.name != "weights"})
