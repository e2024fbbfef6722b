"""Train or fine-tune a GPEN on aligned faces.

    python -m training.train --data FACES --output RUN [--init WEIGHTS] [--steps N] [--minutes M] …

Interrupted (Ctrl+C, SIGTERM, `--minutes`) it writes a checkpoint first, and the same command goes on from there with
the pictures and the state it would have had. Several processes: `torchrun --nproc-per-node=N -m training.train …`.
"""

from __future__ import annotations

import argparse
import ctypes
import logging
import math
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from gpen_zoo.architecture import Config
from gpen_zoo.convert import read_original
from gpen_zoo.errors import GpenError
from gpen_zoo.network import GPEN
from training import losses, record, validation
from training.checkpoint import NAME, Checkpoint, checked, load_checkpoint
from training.discriminator import PatchDiscriminator
from training.muon import Muon, takes
from training.pictures import Faces, Mixture, batches, face_files

log = logging.getLogger("training")

BETAS, CRITIC_BETAS = (0.9, 0.99), (0.0, 0.99)
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
    optimiser: str = "muon"
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


def _set_rate(optimiser: torch.optim.Optimizer, lr: float) -> None:
    for group in optimiser.param_groups:
        group["lr"] = lr


def _optimisers(net: GPEN, settings: Settings) -> dict[str, torch.optim.Optimizer]:
    """By their names in a checkpoint. Muon has no rule for vectors, so that it comes with an Adam."""
    muon = [p for p in net.parameters() if settings.optimiser == "muon" and takes(p)]
    taken = {id(p) for p in muon}
    adam = [p for p in net.parameters() if id(p) not in taken]
    found: dict[str, torch.optim.Optimizer] = {"g": torch.optim.Adam(adam, lr=settings.lr, betas=BETAS)}
    return found | ({"muon": Muon(muon, settings.lr)} if muon else {})


def lr_at(step: int, settings: Settings) -> float:
    """Learning rate of a step (from 0)."""
    if step < settings.warmup:
        return settings.lr * (step + 1) / settings.warmup
    cycle = max(1, (settings.steps - settings.warmup) / (settings.restarts + 1))
    place = ((step - settings.warmup) % cycle) / cycle
    return settings.lr_end + (settings.lr - settings.lr_end) * 0.5 * (1 + math.cos(math.pi * place))


@dataclass(frozen=True, kw_only=True)
class Held:
    """Faces kept out of training. worn, truth: uint8 (S, S, 3) each."""

    worn: Sequence[Any]
    truth: Sequence[Any]


class Trainer:
    """A network, its average and its optimisers, one step at a time."""

    def __init__(
        self,
        net: GPEN,
        settings: Settings,
        *,
        teacher: nn.Module | None = None,
        device: torch.device | None = None,
        world: int = 1,
    ) -> None:
        self.device = device or torch.device("cpu")
        self.settings, self.step = settings, 0
        self.net = net.to(self.device).train()
        self.average = GPEN.from_config(net.config).to(self.device).eval().requires_grad_(False)
        self.average.load_state_dict(net.state_dict())
        self.teacher = None if teacher is None else teacher.to(self.device).eval().requires_grad_(False)
        self.critic = PatchDiscriminator().to(self.device) if settings.adversarial else None
        self.optimisers = _optimisers(self.net, settings)
        self.critic_optimiser = (
            None
            if self.critic is None
            else torch.optim.Adam(self.critic.parameters(), lr=settings.critic_lr, betas=CRITIC_BETAS)
        )
        self.where = losses.face_weight(net.config.size, settings.weights.face, self.device)
        self.forward: nn.Module = self.net if world == 1 else DistributedDataParallel(self.net)
        if settings.compile:
            self.forward.compile()
        self.judge: nn.Module | None = self.critic
        if self.critic is not None and world > 1:
            self.judge = DistributedDataParallel(self.critic)

    def train_step(self, worn: Tensor, truth: Tensor) -> float:
        """One optimisation step on (N, 3, S, S) pairs; returns the loss of the network."""
        s = self.settings
        worn, truth = worn.to(self.device), truth.to(self.device)
        lr = lr_at(self.step, s)
        for optimiser in self.optimisers.values():
            _set_rate(optimiser, lr)
        if self.critic_optimiser is not None:
            _set_rate(self.critic_optimiser, lr / s.lr * s.critic_lr)
        with self._autocast():
            made = self.forward(worn.contiguous(memory_format=torch.channels_last))
        made = made.float()
        loss = losses.distortion(made, truth, s.weights, self.where)
        if self.teacher is not None:
            with torch.no_grad(), self._autocast():
                taught = self.teacher(worn).float()
            loss = (1 - s.teaching) * loss + s.teaching * losses.distortion(made, taught, s.weights, self.where)
        if self.judge is not None:
            loss = loss + self._adversarial(made, truth)
        self.net.zero_grad(set_to_none=True)
        loss.backward()
        for optimiser in self.optimisers.values():
            optimiser.step()
        self.step += 1
        decay = min(s.average, (1 + self.step) / (10 + self.step))  # a young average would be mostly its start
        with torch.no_grad():
            torch._foreach_lerp_(list(self.average.parameters()), list(self.net.parameters()), 1 - decay)
        return float(loss.detach())

    def _adversarial(self, made: Tensor, truth: Tensor) -> Tensor:
        """Trains the critic, and returns what the network is to make of its answer."""
        assert self.judge is not None and self.critic_optimiser is not None
        with self._autocast():
            real, _ = self.judge(truth)
            fake, _ = self.judge(made.detach())
        critic_loss = losses.discriminator_loss(real.float(), fake.float())
        self.critic_optimiser.zero_grad(set_to_none=True)
        critic_loss.backward()
        self.critic_optimiser.step()
        assert self.critic is not None
        self.critic.requires_grad_(False)
        with self._autocast():
            with torch.no_grad():
                _, wanted = self.critic(truth)
            answer, features = self.critic(made)
        self.critic.requires_grad_(True)
        matching = losses.feature_matching([w.float() for w in wanted], [f.float() for f in features])
        s = self.settings
        return s.adversarial * (losses.generator_loss(answer.float()) + s.matching * matching)

    def _autocast(self) -> Any:
        if self.settings.precision == "float32":
            return nullcontext()
        return torch.autocast(self.device.type, dtype=torch.bfloat16)

    def validate(self, held: Held) -> tuple[validation.Figures, list[Any]]:
        made = validation.restored(self.average, held.worn)
        return validation.figures(list(zip(made, held.truth, strict=True))), made

    def checkpoint(self) -> Checkpoint:
        return Checkpoint(
            step=self.step,
            config=asdict(self.net.config),
            g=self.net.state_dict(),
            g_ema=self.average.state_dict(),
            d=None if self.critic is None else self.critic.state_dict(),
            optimisers={
                **{name: optimiser.state_dict() for name, optimiser in self.optimisers.items()},
                **({} if self.critic_optimiser is None else {"d": self.critic_optimiser.state_dict()}),
            },
            settings=asdict(self.settings),
        )

    def resume(self, saved: Checkpoint) -> None:
        """Go on from a checkpoint. A critic that it lacks starts afresh: adversarial training may follow distortion.

        ValueError when it is another network's or another optimiser's."""
        if dict(saved.config) != asdict(self.net.config):
            raise ValueError(f"the run that is there trains {dict(saved.config)}, not {asdict(self.net.config)}")
        if saved.optimisers.keys() - {"d"} != self.optimisers.keys():
            raise ValueError(
                f"the run that is there was not trained with {self.settings.optimiser}; its weights can start a new one"
                f" (--init {NAME})"
            )
        self.step = saved.step
        self.net.load_state_dict(saved.g)
        self.average.load_state_dict(saved.g_ema)
        for name, optimiser in self.optimisers.items():
            optimiser.load_state_dict(saved.optimisers[name])
        if self.critic is not None and self.critic_optimiser is not None and saved.d is not None:
            self.critic.load_state_dict(saved.d)
            self.critic_optimiser.load_state_dict(saved.optimisers["d"])


class Stop:
    """Asked to end: by a signal or by the clock. The step at hand is finished."""

    def __init__(self, minutes: float) -> None:
        self.asked = False
        self._end = time.monotonic() + 60 * minutes if minutes else math.inf
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, self._ask)

    def _ask(self, _number: int, _frame: FrameType | None) -> None:
        self.asked = True

    def __bool__(self) -> bool:
        return self.asked or time.monotonic() > self._end


def train(
    trainer: Trainer,
    files: Sequence[Path],
    output: Path,
    *,
    held: Held | None = None,
    workers: int = 1,
    stop: Stop | None = None,
    rank: int = 0,
    world: int = 1,
) -> None:
    """Steps until the settings' last one. Rank 0 validates, logs and saves into `output`."""
    s, start = trainer.settings, time.monotonic()
    size = trainer.net.config.size
    done = trainer.step * s.batch * world
    left = (s.steps - trainer.step) * s.batch * world
    faces = Faces(files, size, Mixture.parse(s.wear), s.seed, first=done, count=left)
    since, total, count = time.monotonic(), 0.0, 0
    for worn, truth in batches(faces, s.batch, rank=rank, world=world, workers=workers):
        total, count = total + trainer.train_step(worn, truth), count + 1
        last = trainer.step == s.steps or _all_stop(bool(stop), world)
        if not last and trainer.step % s.every:
            continue
        row = {"step": trainer.step, "seconds": round(time.monotonic() - start, 1), "lr": lr_at(trainer.step - 1, s)}
        row |= {"loss": total / count, "samples_per_s": count * s.batch * world / (time.monotonic() - since)}
        if rank == 0:
            if held is not None:
                found, made = trainer.validate(held)
                row |= found.as_row()
                record.save_sheet(output, validation.sheet([held.worn, made, held.truth]))
                log.info("step %d: loss %.4f, %s", trainer.step, row["loss"], found)
            record.append(output, row)
            record.plot(output)
            trainer.checkpoint().save(output)
        since, total, count = time.monotonic(), 0.0, 0
        if last:
            break


def _all_stop(mine: bool, world: int) -> bool:
    """Whether any process was asked to stop: all must leave after the same step, or the rest wait for ever."""
    if world == 1:
        return mine
    asked = torch.tensor([float(mine)])
    torch.distributed.all_reduce(asked)
    return bool(asked.item())


def load_network(path: Path) -> GPEN:
    """A GPEN from weights in any form the zoo reads (safetensors, `.pth`, a checkpoint's average), in float32."""
    state = read_original(path).state
    net = GPEN.from_config(Config.from_state_dict(state))
    net.load_state_dict({name: value.float() for name, value in state.items()})
    return net


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
            elif f.name == "optimiser":
                to.add_argument(flag, choices=OPTIMISERS, default=f.default, help=f"default {f.default}")
            else:
                to.add_argument(flag, type=type(f.default), default=f.default, help=f"default {f.default}")


def settings_from(args: argparse.Namespace) -> Settings:
    weights = losses.Weights(**{f.name: getattr(args, "loss_" + f.name) for f in fields(losses.Weights)})
    return Settings(weights=weights, **{f.name: getattr(args, f.name) for f in fields(Settings) if f.name != "weights"})


def run(args: argparse.Namespace, net: GPEN, teacher: nn.Module | None = None) -> None:
    """What the command lines of training and distilling share."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    settings = settings_from(args)
    with plainly():
        Mixture.parse(settings.wear)
        names = args.validation.read_text().split() if args.validation else []
        files = face_files(args.data, without=names)
        pairs = list(validation.worn_faces(args.data, names, net.config.size))
        args.output.mkdir(parents=True, exist_ok=True)
    if args.low_priority:
        os.nice(19)
        if hasattr(os, "sched_setscheduler"):
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    if args.threads:
        torch.set_num_threads(args.threads)
    keep_memory()
    world, rank = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("RANK", 0))
    cuda = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)) if cuda else 0) if cuda else torch.device("cpu")
    if world > 1:
        torch.distributed.init_process_group("nccl" if cuda else "gloo")
    held = None
    if pairs:
        worn, truth = zip(*pairs, strict=True)
        held = Held(worn=worn, truth=truth)
    trainer = Trainer(net, settings, teacher=teacher, device=device, world=world)
    if (args.output / NAME).exists():
        with plainly():
            trainer.resume(load_checkpoint(args.output / NAME))
        log.info("going on at step %d", trainer.step)
    elif held is not None and rank == 0:
        log.info("at the start: %s", trainer.validate(held)[0])
    train(
        trainer,
        files,
        args.output,
        held=held,
        workers=args.workers,
        stop=Stop(args.minutes),
        rank=rank,
        world=world,
    )
    if world > 1:
        torch.distributed.destroy_process_group()


def keep_memory() -> None:
    """Have glibc keep freed memory instead of returning it: a step frees and asks for the same gigabyte again, and
    half of its time went into the kernel's clearing of pages (1.78 s → 0.94 s, 8 crops at 256 px on two cores)."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        trim_threshold, top_pad, mmap_max = -1, -2, -4  # malloc.h
        mallopt(mmap_max, 0)
        mallopt(trim_threshold, 2**31 - 1)
        mallopt(top_pad, 2**28)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser)
    parser.add_argument("--init", type=Path, help="weights to start from; without, random ones")
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--narrow", type=float, default=0.25)
    parser.add_argument("--channel-multiplier", type=int, default=1)
    parser.add_argument("--style-dim", type=int, default=128)
    parser.add_argument("--n-mlp", type=int, default=2)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    with plainly():
        net = load_network(args.init) if args.init else GPEN.from_config(config_from(args))
    run(args, net)


def config_from(args: argparse.Namespace) -> Config:
    """ValueError for a network without channels somewhere."""
    config = Config(args.size, args.style_dim, args.n_mlp, args.channel_multiplier, args.narrow)
    return checked(config)


@contextmanager
def plainly() -> Iterator[None]:
    """What is wrong with files and flags in a line, without a traceback."""
    try:
        yield
    except (OSError, ValueError, GpenError) as error:
        raise SystemExit(f"training: {error}") from error


if __name__ == "__main__":
    main()
