"""Aligned crops in, restored crops out: runs plans until one fits and the result is sound. Nothing about photos."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file
from torch import Tensor

from gpen_zoo.accelerate import Accelerated, Trial, accelerated
from gpen_zoo.architecture import gpen_shapes
from gpen_zoo.budget import Facts, Plan, ladder, ladder_float32, weight_bytes
from gpen_zoo.device import facts_of, first_line, onto, out_of_memory, relieve
from gpen_zoo.device import pick_device as pick_device  # callers ask the engine, whatever file decides
from gpen_zoo.hints import Note, note
from gpen_zoo.network import Config
from gpen_zoo.network_fast import Prepared, Tensors, Weights, prepare

log = logging.getLogger(__name__)

U8: TypeAlias = NDArray[np.uint8]
Failure: TypeAlias = RuntimeError | MemoryError

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
    """A network on a device. Read-only to callers and safe from several threads: one micro-batch runs at a time.

    device: `auto`, or torch's name. precision: `auto` (16 bit where it pays, else float32), `float32`, `float16` or
    `bfloat16`. ValueError for another precision. accelerate: try torch.compile and its like on the first face and keep
    what wins (accelerate.py); that face then takes up to minutes longer.
    Attributes: `weights`, `config`, `size` (side of its crops in pixels).
    """

    def __init__(
        self, net: Weights, *, device: str = "auto", precision: str = "auto", accelerate: bool = False
    ) -> None:
        if precision != "auto" and precision not in DTYPES:
            raise ValueError(f"precision must be auto, {', '.join(DTYPES)}, not {precision}")
        self.config: Config = net.config
        self.size: int = net.config.size
        self.weights = net
        self._device, self._precision, self._accelerate = pick_device(device), precision, accelerate
        self._lock = threading.Lock()
        self._prepared: dict[tuple[str, str], Prepared | Accelerated] = {}  # guarded by the lock

    def plans(self) -> tuple[Plan, ...]:
        """The ladder `restore` would climb down now, given the memory that is free now."""
        with self._lock:
            return ladder(self.config, self._facts(), precision=self._precision)

    @torch.inference_mode()
    def trials(self) -> tuple[Plan, tuple[Trial, ...]]:
        """What came of each accelerator under the plan that comes first now; none without `accelerate`.

        Measures now if no face has been restored yet; what torch raises passes through.
        """
        with self._lock:
            plan, *_ = ladder(self.config, self._facts(), precision=self._precision)
            run = self._network(plan)
        return plan, run.trials if isinstance(run, Accelerated) else ()

    @torch.inference_mode()
    def forward(self, x: Tensor, plan: Plan) -> Tensor:
        """x (N, 3, S, S) float32 RGB in [-1, 1] on any device → the same, not clipped, on x's device.

        Runs exactly `plan`, on all N at once whatever its batch; what torch raises passes through.
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
        plans: tuple[Plan, ...] = ()
        changes: tuple[Note, ...] = ()
        while len(done) < len(crops):
            with self._lock:
                plans = plans or ladder(self.config, self._facts(), precision=self._precision)
                some, plans, changes = self._micro_batch(crops[len(done) :], plans, changes)
                if len(done) + len(some) < len(crops):
                    relieve(plans[0].device)
            done += some
            if on_crop is not None:
                on_crop(len(done), len(crops))
        return tuple(done)

    def _micro_batch(
        self, crops: U8, plans: tuple[Plan, ...], changes: tuple[Note, ...]
    ) -> tuple[list[Outcome], tuple[Plan, ...], tuple[Note, ...]]:
        """Outcomes of the first few crops, and for the next ones the plans that are left and the changes so far."""
        start = time.perf_counter()
        step = self._descend(crops, plans, changes)
        some = crops[: step.plan.batch]
        results: list[tuple[U8 | None, Plan, tuple[Note, ...]]]
        if step.failure is not None:
            results = [(None, step.plan, (*step.changes, _dead_end(step.failure, step.plan)))] * len(some)
        else:
            results = [
                (picture, step.plan, step.changes) if picture is not None else self._again(crop, step)
                for picture, crop in zip(step.pixels, some, strict=True)
            ]
        ms = (time.perf_counter() - start) * 1000 / len(some)
        outcomes = [Outcome(pixels=p, plan=plan, attempts=notes, ms=ms) for p, plan, notes in results]
        return outcomes, step.plans, step.changes

    def _descend(self, crops: U8, plans: tuple[Plan, ...], changes: tuple[Note, ...]) -> _Step:
        """Down the ladder until a plan runs through."""
        while True:
            plan, *others = plans
            pixels, failure = self._attempt(crops[: plan.batch], plan)
            left = _after(failure, plan, others) if failure is not None else ()
            if failure is None or not left:
                return _Step(pixels=pixels, plans=plans, changes=changes, failure=failure)
            changes += (_change(failure, plan, left[0]),)
            plans = left
            self._keep_only(plans[0])
            relieve(plan.device)

    def _again(self, crop: U8, step: _Step) -> tuple[U8 | None, Plan, tuple[Note, ...]]:
        """One crop whose result was broken, in float32."""
        if step.plan.dtype == "float32":
            return None, step.plan, (*step.changes, note("M05"))
        log.warning("broken result of %s, one crop again in float32", step.plan)
        changes = (*step.changes, note("M02", dtype=step.plan.dtype))
        exact = self._descend(crop[None], ladder_float32(self.config, self._facts()), changes)
        if exact.failure is not None:
            return None, exact.plan, (*exact.changes, _dead_end(exact.failure, exact.plan))
        picture = exact.pixels[0]
        return picture, exact.plan, exact.changes if picture is not None else (*exact.changes, note("M05"))

    @torch.inference_mode()
    def _attempt(self, crops: U8, plan: Plan) -> tuple[list[U8 | None], Failure | None]:
        """Pictures, None for the broken ones; or the failure, free of the tensors it held."""
        try:
            x = onto(torch.from_numpy(crops), plan.device).permute(0, 3, 1, 2).float().div_(127.5).sub_(1)
            y = self._forward(x, plan)
            finite = y.isfinite().flatten(1).all(1).tolist()
            levels = y.mul_(127.5).add_(127.5).clamp_(0, 255).round_().to(torch.uint8)
            pictures = levels.permute(0, 2, 3, 1).contiguous().cpu().numpy()
        except (RuntimeError, MemoryError) as error:
            # Its traceback would keep every tensor of the failed pass alive; the next plan needs that memory.
            return [], error.with_traceback(None)
        sound = [ok and (not _flat(p) or _flat(c)) for ok, p, c in zip(finite, pictures, crops, strict=True)]
        return [p if ok else None for p, ok in zip(pictures, sound, strict=True)], None

    def _forward(self, x: Tensor, plan: Plan) -> Tensor:
        return self._network(plan)(x.to(plan.device), tile=plan.tile).to(x.device)

    def _network(self, plan: Plan) -> Prepared | Accelerated:
        key = plan.device, plan.dtype
        if key not in self._prepared:
            network = prepare(self.weights, device=torch.device(plan.device), dtype=DTYPES[plan.dtype])
            self._prepared[key] = accelerated(network, plan.tile) if self._accelerate else network
        return self._prepared[key]

    def _facts(self) -> Facts:
        """Facts of the device now, with what our own weights occupy counted as free: plans include them."""
        facts = facts_of(self._device)
        loaded = {device: 0 for device in ("cpu", self._device)}
        for device, dtype in self._prepared:
            loaded[device] = loaded.get(device, 0) + weight_bytes(self.config, dtype)
        return replace(facts, free=facts.free + loaded[self._device], cpu_free=facts.cpu_free + loaded["cpu"])

    def _keep_only(self, plan: Plan) -> None:
        for key in [k for k in self._prepared if k != (plan.device, plan.dtype)]:
            del self._prepared[key]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """Where a descent ended. plans: the ladder from the last plan tried downwards."""

    pixels: list[U8 | None]
    plans: tuple[Plan, ...]
    changes: tuple[Note, ...]
    failure: Failure | None

    @property
    def plan(self) -> Plan:
        return self.plans[0]


def load_engine(
    source: Path | Mapping[str, Tensor], *, device: str = "auto", precision: str = "auto", accelerate: bool = False
) -> Engine:
    """Engine for a `.safetensors` file (memory-mapped: pages are read when first used) or for tensors by name.

    ValueError when names or shapes are not GPEN's. Tensors are not copied and must not change afterwards.
    """
    state = load_file(source) if isinstance(source, Path) else source
    config = Config.from_state_dict(state)
    expected, found = gpen_shapes(config), {name: tuple(value.shape) for name, value in state.items()}
    if expected != found:
        wrong = sorted(n for n in {*expected, *found} if expected.get(n) != found.get(n))
        raise ValueError(f"not a GPEN state dict: {', '.join(wrong[:3])} missing, unknown or of another shape")
    return Engine(Tensors(config, state), device=device, precision=precision, accelerate=accelerate)


def _after(failure: Failure, failed: Plan, others: list[Plan]) -> tuple[Plan, ...]:
    """Plans that may succeed where one failed: any smaller one for memory, else another device or dtype."""
    if out_of_memory(failure):
        return tuple(others)
    return tuple(p for p in others if (p.device, p.dtype) != (failed.device, failed.dtype))


def _change(failure: Failure, failed: Plan, plan: Plan) -> Note:
    log.warning("%s failed (%s), continuing with %s", failed, first_line(failure), plan)
    if out_of_memory(failure):
        return note("M01", failed=failed, plan=plan)
    return note("M04", failed=failed, plan=plan, reason=first_line(failure))


def _dead_end(failure: Failure, plan: Plan) -> Note:
    log.error("%s failed (%s), no plan left", plan, first_line(failure))
    return note("M03", plan=plan) if out_of_memory(failure) else note("M06", plan=plan, reason=first_line(failure))


def _flat(picture: U8) -> bool:
    """One colour all over."""
    span = picture.max(axis=(0, 1)).astype(int) - picture.min(axis=(0, 1))
    return bool((span <= FLAT).all())
