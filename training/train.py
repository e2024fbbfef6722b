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
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import torch
from torch import nn

from gpen_zoo.architecture import Config
from gpen_zoo.convert import read_original
from gpen_zoo.errors import GpenError
from gpen_zoo.network import GPEN
from training import record, validation
from training.checkpoint import NAME, checked, load_checkpoint
from training.pictures import Faces, Mixture, batches, face_files
from training.settings import add_arguments, lr_at, settings_from
from training.trainer import Held, Trainer

log = logging.getLogger("training")


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
