"""Aligned crops in, restored crops out: runs plans until one fits and the result is sound. Nothing about photos."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file
from torch import Tensor

from gpen_zoo.budget import Plan
from gpen_zoo.hints import Note, note
from gpen_zoo.network import GPEN, Config
from gpen_zoo.network_fast import Prepared, prepare

log = logging.getLogger(__name__)

U8: TypeAlias = NDArray[np.uint8]

DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
FLAT = 2  # a picture whose every channel spans at most this many of 255 levels is one colour


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """What became of one crop.

    pixels: uint8 (S, S, 3) RGB, or None when no plan gave a sound result. plan: the last one tried.
    attempts: every change of plan that touched this crop, with its cause, oldest first. ms: this crop's share of time.
    """

    pixels: U8 | None
    plan: Plan
    attempts: tuple[Note, ...]
    ms: float


class Engine:
    """A network on a device. Read-only after construction and safe from several threads: one crop batch runs at a
    time. `size`: side of its square crops in pixels."""

    def __init__(self, net: GPEN, *, device: str = "auto", precision: str = "auto") -> None:
        self.config: Config = net.config
        self.size: int = net.config.size
        self._net = net
        self._ladder = _ladder(pick_device(device), precision)
        self._lock = threading.Lock()
        self._prepared: dict[tuple[str, str], Prepared] = {}

    @torch.inference_mode()
    def forward(self, x: Tensor, plan: Plan) -> Tensor:
        """x (N, 3, S, S) float32 RGB in [-1, 1] on any device → the same, not clipped, on x's device.

        Runs exactly `plan` on all N at once; whatever torch raises passes through.
        """
        with self._lock:
            return self._forward(x, plan)

    def restore(self, crops: U8, *, on_crop: Callable[[int, int], None] | None = None) -> tuple[Outcome, ...]:
        """crops: uint8 (N, S, S, 3) RGB → one outcome each, in order.

        `on_crop(done, total)` is called after every micro-batch; what it raises passes through and leaves the engine
        usable. A crop that cannot be restored gets `pixels=None`, never an exception. TypeError for other arrays.
        """
        if crops.dtype != np.uint8 or crops.ndim != 4 or crops.shape[1:] != (self.size, self.size, 3):
            raise TypeError(f"crops must be uint8 (N, {self.size}, {self.size}, 3), not {crops.dtype} {crops.shape}")
        done: list[Outcome] = []
        rung, history = 0, []
        while len(done) < len(crops):
            plan = self._ladder[rung]
            some = crops[len(done) : len(done) + plan.batch]
            start = time.perf_counter()
            with self._lock:
                pixels, failure = self._attempt(some, plan)
                if failure is not None:
                    if rung + 1 < len(self._ladder):
                        rung += 1
                        history.append(_downgrade(failure, plan, self._ladder[rung]))
                        continue
                    pixels = [None] * len(some)
                    notes = [(*history, _dead_end(failure, plan))] * len(some)
                    plans = [plan] * len(some)
                else:
                    notes, plans = [tuple(history)] * len(some), [plan] * len(some)
                    for i, picture in enumerate(pixels):
                        if not _sound(picture, some[i]):
                            pixels[i], plans[i], notes[i] = self._redo(some[i], plan, tuple(history))
            ms = (time.perf_counter() - start) * 1000 / len(some)
            done += [Outcome(pixels=p, plan=q, attempts=n, ms=ms) for p, q, n in zip(pixels, plans, notes, strict=True)]
            if on_crop is not None:
                on_crop(len(done), len(crops))
        return tuple(done)

    def _redo(self, crop: U8, plan: Plan, history: tuple[Note, ...]) -> tuple[U8 | None, Plan, tuple[Note, ...]]:
        """One crop again in float32 after a broken result."""
        if plan.dtype == "float32":
            return None, plan, (*history, note("M05"))
        history += (note("M02", dtype=plan.dtype),)
        log.warning("broken result in %s, redoing one crop in float32", plan)
        failure: RuntimeError | MemoryError | None = None
        for exact in (p for p in self._ladder_float32(plan)):
            if failure is not None:
                history += (_downgrade(failure, plan, exact),)
            plan = exact
            pixels, failure = self._attempt(crop[None], plan)
            if failure is None:
                if _sound(pixels[0], crop):
                    return pixels[0], plan, history
                return None, plan, (*history, note("M05"))
        assert failure is not None
        return None, plan, (*history, _dead_end(failure, plan))

    def _ladder_float32(self, plan: Plan) -> tuple[Plan, ...]:
        devices = [plan.device] if plan.device == "cpu" else [plan.device, "cpu"]
        return tuple(Plan(device=d, dtype="float32", tile=plan.tile) for d in devices)

    @torch.inference_mode()
    def _attempt(self, crops: U8, plan: Plan) -> tuple[list[U8 | None], RuntimeError | MemoryError | None]:
        """Pictures, None for those with numbers that are not finite; or the failure, free of the tensors it held."""
        try:
            x = torch.from_numpy(crops).to(plan.device).permute(0, 3, 1, 2).float().div_(127.5).sub_(1)
            y = self._forward(x, plan)
            finite = y.isfinite().flatten(1).all(1).tolist()
            levels = y.mul_(127.5).add_(127.5).clamp_(0, 255).round_().to(torch.uint8)
            pixels = levels.permute(0, 2, 3, 1).contiguous().cpu().numpy()
            return [p if ok else None for p, ok in zip(pixels, finite, strict=True)], None
        except (RuntimeError, MemoryError) as error:
            # The traceback keeps every tensor of the failed pass alive; the next plan needs that memory.
            return [], error.with_traceback(None)

    def _forward(self, x: Tensor, plan: Plan) -> Tensor:
        key = plan.device, plan.dtype
        if key not in self._prepared:
            self._prepared[key] = prepare(self._net, device=torch.device(plan.device), dtype=DTYPES[plan.dtype])
        return self._prepared[key](x.to(plan.device), tile=plan.tile).to(x.device)


def load_engine(source: Path | Mapping[str, Tensor], *, device: str = "auto", precision: str = "auto") -> Engine:
    """Engine for a `.safetensors` file (memory-mapped: pages are read when first used) or for tensors by name.

    ValueError when the names are not GPEN's; RuntimeError from torch when a shape does not fit.
    """
    state = load_file(source) if isinstance(source, Path) else source
    with torch.device("meta"):  # neither allocates nor draws random weights
        net = GPEN.from_config(Config.from_state_dict(state))
    net.load_state_dict(state, strict=True, assign=True)
    return Engine(net.eval().requires_grad_(False), device=device, precision=precision)


def pick_device(device: str) -> str:
    """`auto` → the best of cuda:0, mps, cpu; anything else is taken as it is."""
    if device != "auto":
        return device
    if torch.cuda.is_available():
        return "cuda:0"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def out_of_memory(error: BaseException) -> bool:
    """Whether an error of torch or numpy says that memory ran out. torch's CPU allocator has no class of its own."""
    text = str(error).lower()
    return isinstance(error, MemoryError) or any(
        words in text for words in ("out of memory", "can't allocate memory", "not enough memory", "alloc_failed")
    )


def _ladder(device: str, precision: str) -> tuple[Plan, ...]:
    plans = [Plan(device=device, dtype="float32")]
    if device != "cpu":
        plans.append(Plan(device="cpu", dtype="float32"))
    return tuple(plans)


def _downgrade(failure: BaseException, failed: Plan, plan: Plan) -> Note:
    log.warning("%s failed (%s), continuing with %s", failed, failure, plan)
    if out_of_memory(failure):
        return note("M01", failed=failed, plan=plan)
    return note("M04", failed=failed, plan=plan, reason=_first_line(failure))


def _dead_end(failure: BaseException, plan: Plan) -> Note:
    log.error("%s failed (%s), no plan left", plan, failure)
    return note("M03", plan=plan) if out_of_memory(failure) else note("M06", plan=plan, reason=_first_line(failure))


def _first_line(failure: BaseException) -> str:
    return (str(failure).splitlines() or [type(failure).__name__])[0][:200]


def _sound(picture: U8 | None, crop: U8) -> bool:
    """Finite, and not one flat colour unless the crop was."""
    return picture is not None and (not _flat(picture) or _flat(crop))


def _flat(picture: U8) -> bool:
    span = picture.max(axis=(0, 1)).astype(int) - picture.min(axis=(0, 1))
    return bool((span <= FLAT).all())
