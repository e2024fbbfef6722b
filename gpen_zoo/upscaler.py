"""Networks that enlarge pictures, on a device: overlapped tiles, and plans until one fits and the result is sound."""

from __future__ import annotations

import copy
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.nn import Module
from torch.nn import functional as F

from gpen_zoo.budget import Plan, Upscaling, upscaler_ladder
from gpen_zoo.device import facts_of, out_of_memory, pick_device, relieve
from gpen_zoo.errors import GpenError, OutOfMemory, WeightCorrupt
from gpen_zoo.hints import Note, note
from gpen_zoo.tiling import Tiling, auto_tiling, run_tiled, starts
from gpen_zoo.types import U8, Scale

log = logging.getLogger(__name__)

DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
PROBE = {"cpu": 64}  # side in pixels of the tile that time is measured on
PROBE_ELSEWHERE = 256  # a graphics card would only be waited for with less
STEP = 4  # pixels; tiles and overlaps are multiples, so that no network folds a tile otherwise than the whole
LEAST_OVERLAP = 32  # pixels, of the tiles of a picture that usually needs none
WORTH_A_PROBE = 8  # probes in a picture from which one is made

OnTile: TypeAlias = Callable[[int, int], None]
OnNote: TypeAlias = Callable[[Note], None]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Made:
    """pixels: uint8 (H·scale, W·scale, 3) RGB. plan: the last one used. attempts: every change of plan with its cause.
    estimate: seconds it was expected to take, None for a picture too small to ask."""

    pixels: U8
    plan: str
    attempts: tuple[Note, ...]
    estimate: float | None


class Upscaler:
    """A network that enlarges, on a device. Safe from several threads: one tile runs at a time.

    build: gives the network, float32 on the CPU; called once, when it is needed. device, precision: as the engine's.
    tile: side of tiles in pixels of the photo, 0 for the usual rule (tiling.py) and smaller ones where memory is short.
    """

    def __init__(
        self,
        name: str,
        build: Callable[[], Module],
        shape: Upscaling,
        *,
        device: str = "auto",
        precision: str = "auto",
        tile: int = 0,
    ) -> None:
        self.name, self.shape = name, shape
        self._build, self._device, self._precision = build, pick_device(device), precision
        self._tile = -(-tile // STEP) * STEP
        self._lock = threading.Lock()
        self._network: Module | None = None  # this and the next are guarded by the lock
        self._prepared: dict[tuple[str, str], Module] = {}

    def __call__(
        self, pixels: U8, scale: Scale, *, on_tile: OnTile | None = None, on_note: OnNote | None = None
    ) -> Made:
        """uint8 (H, W, 3) RGB → `scale` times as large.

        A network of a larger factor is shrunk back by area, one of a smaller factor runs twice. on_tile(done, total):
        before the first tile and after each (more often where tiles had to be divided); what it raises passes through.
        on_note: given the estimate (B23). Raises OutOfMemory (B24) when even the smallest plan does not fit,
        WeightCorrupt (B26) when the result is not finite in float32 either, GpenError (B27) for other failures.
        """
        passes = self._passes(pixels.shape[0], pixels.shape[1], scale)
        total = sum(p.tiles for p in passes)
        state = _State(total=total, tell=on_tile or _silent)
        first = _Descent(self, passes[0], state)
        estimate = self._estimate(pixels, first, passes)
        if estimate is not None and on_note is not None:
            on_note(note("B23", name=self.name, seconds=max(1, round(estimate)), tiles=total))
        state.tell(0, total)
        for number, each in enumerate(passes):
            descent = _Descent(self, each, state) if number else first
            height, width, fold = *pixels.shape[:2], self.shape.fold
            # Tiles have to start where the network's own folding does, or it would see another picture.
            if height % fold or width % fold:
                pixels = np.pad(pixels, ((0, -height % fold), (0, -width % fold), (0, 0)), mode="edge")
            pixels = run_tiled(pixels, descent, each.tiling, on_tile=state.next)
            grown = self.shape.factor // each.shrink
            pixels = np.ascontiguousarray(pixels[: height * grown, : width * grown])
        return Made(pixels=pixels, plan=str(descent.plans[0]), attempts=tuple(state.attempts), estimate=estimate)

    def _passes(self, height: int, width: int, scale: int) -> list[_Pass]:
        passes: list[_Pass] = []
        reached = 1
        while not passes or reached < scale:
            shrink = max(1, reached * self.shape.factor // scale)
            height, width = (-(-side // self.shape.fold) * self.shape.fold for side in (height, width))
            usual = auto_tiling(height, width)
            facts = facts_of(self._device)
            plans = upscaler_ladder(
                self.shape, facts, height, width, precision=self._precision, tile=self._tile or usual.tile
            )
            passes.append(
                _Pass(height=height, width=width, shrink=shrink, plans=plans, overlap=usual.overlap or LEAST_OVERLAP)
            )
            grown = self.shape.factor // shrink
            height, width, reached = height * grown, width * grown, reached * grown
        return passes

    def _estimate(self, pixels: U8, descent: _Descent, passes: list[_Pass]) -> float | None:
        """Seconds all passes will take, from one small tile out of the middle; it may already change the plan."""
        side = PROBE.get(descent.plans[0].device, PROBE_ELSEWHERE)
        area = sum(p.pixels for p in passes)
        height, width = pixels.shape[:2]
        if area < WORTH_A_PROBE * side**2 or min(height, width) < side:
            return None
        top, left = (height - side) // 2, (width - side) // 2
        tile = pixels[top : top + side, left : left + side]
        descent(tile)  # loads the weights and warms up
        start = time.perf_counter()
        descent(tile)
        return (time.perf_counter() - start) * area / side**2

    @torch.inference_mode()
    def attempt(self, tile: U8, plan: Plan, shrink: int) -> tuple[U8 | None, BaseException | None]:
        """The tile enlarged by exactly `plan`, None where it is not finite; or the failure, free of its tensors."""
        height, width = tile.shape[0] * self.shape.factor, tile.shape[1] * self.shape.factor
        try:
            with self._lock:
                network = self._on(plan)
                x = torch.from_numpy(np.ascontiguousarray(tile)).to(plan.device).permute(2, 0, 1)[None]
                x = x.to(DTYPES[plan.dtype]).div_(255).contiguous(memory_format=torch.channels_last)
                right, below = -tile.shape[1] % self.shape.fold, -tile.shape[0] % self.shape.fold
                if right or below:
                    x = F.pad(x, (0, right, 0, below), mode="replicate")
                y: Tensor = network(x)[:, :, :height, :width].float()
                if shrink > 1:
                    y = F.avg_pool2d(y, shrink)
                if not bool(y.isfinite().all()):
                    return None, None
                levels = y.mul(255).round_().clamp_(0, 255).to(torch.uint8)[0].permute(1, 2, 0)
                return np.ascontiguousarray(levels.cpu().numpy()), None
        except (RuntimeError, MemoryError) as error:
            return None, error.with_traceback(None)  # which would keep every tensor of the failed pass alive

    def keep_only(self, plan: Plan) -> None:
        """Let the weights of other plans go, and what their device's allocator holds."""
        with self._lock:
            for key in [k for k in self._prepared if k != (plan.device, plan.dtype)]:
                del self._prepared[key]
        relieve(self._device)

    def exact_plans(self, tile: int) -> tuple[Plan, ...]:
        """The ladder of float32 plans for a tile with this longer side."""
        facts = replace(facts_of(self._device), half=None, cpu_half=None)
        plans = upscaler_ladder(self.shape, facts, tile, tile, precision="float32", tile=0)
        return tuple(p for p in plans if p.dtype == "float32")

    def _on(self, plan: Plan) -> Module:
        key = plan.device, plan.dtype
        if key not in self._prepared:
            if self._network is None:
                self._network = self._build().eval().requires_grad_(False)
            module = copy.deepcopy(self._network).to(device=plan.device, dtype=DTYPES[plan.dtype])
            self._prepared[key] = module.to(memory_format=torch.channels_last)
        return self._prepared[key]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pass:
    """One run over a picture of `height` × `width`. shrink: by which each result is shrunk by area."""

    height: int
    width: int
    shrink: int
    plans: tuple[Plan, ...]
    overlap: int

    @property
    def tiling(self) -> Tiling:
        return _tiling(self.plans[0].tile, self.overlap)

    @property
    def tiles(self) -> int:
        return len(self._starts(self.height)) * len(self._starts(self.width))

    @property
    def pixels(self) -> int:
        """That the network sees, those of overlaps as often as they are seen."""
        side = self.tiling.tile
        return self.tiles * min(side or self.height, self.height) * min(side or self.width, self.width)

    def _starts(self, length: int) -> list[int]:
        return starts(length, self.tiling.tile or length, self.tiling.overlap)


@dataclass(slots=True, kw_only=True)
class _State:
    """What one call of an upscaler has done so far."""

    total: int
    tell: OnTile
    done: int = 0
    attempts: list[Note] = field(default_factory=list)

    def next(self, _done: int, _total: int) -> None:
        self.done += 1
        self.tell(self.done, self.total)

    def again(self, _done: int, _total: int) -> None:
        """After a part of a tile: nothing new to tell, but a chance to end."""
        self.tell(self.done, self.total)

    def changed(self, what: Note) -> None:
        if what not in self.attempts:
            self.attempts.append(what)


class _Descent:
    """A tile → the tile enlarged, by the first plan that works; plans that failed are not tried again.

    A tile larger than its plan's is divided, so that tiles that are done stay done.
    """

    def __init__(self, upscaler: Upscaler, each: _Pass, state: _State) -> None:
        self._upscaler, self._pass, self._state = upscaler, each, state
        self.plans = each.plans

    def __call__(self, tile: U8) -> U8:
        while True:
            plan = self.plans[0]
            if plan.tile and max(tile.shape[:2]) > plan.tile:
                divided = _tiling(plan.tile, self._pass.overlap)
                return np.asarray(run_tiled(tile, self, divided, on_tile=self._state.again), np.uint8)
            pixels, failure = self._upscaler.attempt(tile, plan, self._pass.shrink)
            if pixels is not None:
                return pixels
            if failure is None:
                return self._exact(tile, plan)
            self._step_down(failure, plan)

    def _exact(self, tile: U8, plan: Plan) -> U8:
        """A tile whose result was not finite, again in float32."""
        if plan.dtype == "float32":
            raise WeightCorrupt("B26", name=self._upscaler.name)
        log.warning("result of %s with %s is not finite, the tile again in float32", self._upscaler.name, plan)
        self._state.changed(note("B25", dtype=plan.dtype))
        exact = _Descent(
            self._upscaler,
            replace(self._pass, plans=self._upscaler.exact_plans(max(tile.shape[:2]))),
            self._state,
        )
        return exact(tile)

    def _step_down(self, failure: BaseException, failed: Plan) -> None:
        memory = out_of_memory(failure)
        reason = (str(failure).splitlines() or [type(failure).__name__])[0][:200]
        others = self.plans[1:]
        if not memory:  # a smaller tile would fail in the same way
            others = tuple(p for p in others if (p.device, p.dtype) != (failed.device, failed.dtype))
        if not others:
            log.error("%s with %s failed (%s), no plan left", self._upscaler.name, failed, reason)
            if memory:
                raise OutOfMemory("B24", name=self._upscaler.name, plan=failed) from failure
            raise GpenError("B27", name=self._upscaler.name, plan=failed, reason=reason) from failure
        log.warning("%s failed (%s), continuing with %s", failed, reason, others[0])
        self._state.changed(
            note("M01", failed=failed, plan=others[0])
            if memory
            else note("M04", failed=failed, plan=others[0], reason=reason)
        )
        self.plans = others
        self._upscaler.keep_only(others[0])


def _tiling(tile: int, overlap: int) -> Tiling:
    return Tiling(tile=tile, overlap=min(overlap, tile // 4) // STEP * STEP)


def _silent(done: int, total: int) -> None:
    """Progress nobody watches."""
