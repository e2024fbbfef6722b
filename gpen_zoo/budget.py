"""Which way of running a branch fits which machine: arithmetic on bytes, no torch.

The arithmetic follows network_fast.py step by step: what is held between stages, plus the largest set of tensors that
is alive inside one stage. tests/test_budget.py compares it with peaks measured by torch's allocator.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
CACHE_TILE = 128  # fastest on CPUs: 512 px, one core, float32 2.4 s against 2.8 s whole, bfloat16 1.52 s against 1.63 s
SMALL_TILE = 64  # below, halos cost more than the memory they save
TILES = (1024, 512, 256, 128, SMALL_TILE)  # of devices whose speed does not ask for tiles, largest first
PATCHES = 128  # in a strip of winograd.convolve: enough for its matrix products, few enough for the cache
BATCHES = (8, 4, 2, 1)
SHARE = 0.9  # of free memory that a plan may fill; the rest is what convolutions use as scratch and others take
GB = 1 << 30


class Branch(Protocol):
    """What the arithmetic needs to know of a network: `architecture.Config` has it."""

    @property
    def size(self) -> int: ...
    @property
    def style_dim(self) -> int: ...
    @property
    def n_mlp(self) -> int: ...
    def width(self, resolution: int) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One way to run the network.

    device: torch's name (`cpu`, `cuda:0`, `mps`). dtype: `float32`, `float16` or `bfloat16`. batch: faces at once.
    tile: side in pixels of the tiles in which the large stages run, 0 for the whole picture at once.
    """

    device: str
    dtype: str
    batch: int = 1
    tile: int = 0

    def __str__(self) -> str:
        tile = f", tiles of {self.tile} px" if self.tile else ""
        return f"{self.device} {self.dtype}, batch {self.batch}{tile}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """A device as the ladder sees it. half: 16-bit dtype that pays there, or None. free: bytes a plan may use,
    weights included. cpu_half, cpu_free: the same of the host."""

    device: str
    half: str | None
    free: int
    cpu_half: str | None
    cpu_free: int


def weight_bytes(branch: Branch, dtype: str) -> int:
    """Bytes of the prepared weights."""
    e, style = BYTES[dtype], branch.style_dim
    sides = _sides(branch)
    width = branch.width(4)
    total = 16 * width * (style * 4 + e) + branch.n_mlp * style**2 * 4 + 3 * branch.width(branch.size) * e
    total += _styled_bytes(width, width, e, style) + _rgb_bytes(width, style)
    for low, side in zip(sides, sides[1:], strict=False):
        width = branch.width(side)
        kept = 4 if _local(branch, side) else e
        total += 9 * width * branch.width(low) * e  # encoder
        total += _styled_bytes(2 * branch.width(low), width, kept, style) + _styled_bytes(2 * width, width, kept, style)
        if _winograd(branch, side, dtype) and not _local(branch, side):
            total += (36 - 9) * 2 * width * width * e
        total += _rgb_bytes(width, style)
    return total


def activation_bytes(branch: Branch, dtype: str, *, batch: int = 1, tile: int = 0) -> int:
    """Peak bytes of one pass above the weights, from the float32 input to the float32 output, both included."""
    e, n = BYTES[dtype], batch
    size = branch.size
    held = n * 3 * size**2 * (4 + e)  # as it comes, and in channels-last
    peak = 0
    features: dict[int, int] = {}
    side = size
    while side > 4:
        width, out = branch.width(side), n * branch.width(side // 2) * (side // 2) ** 2 * e
        if tile and side > tile:
            part = (min(side, tile + 4)) ** 2 * e
            work = 2 * width * part + branch.width(side // 2) * part // 4
        else:
            work = n * width * (side + 1) ** 2 * e * (2 if side == size else 1)
        peak = max(peak, held + out + work)
        held += out
        features[side // 2] = out
        side //= 2

    held += n * 2 * branch.width(4) * 16 * e  # of the 4 px stage; its picture is too small to count
    for side in _sides(branch)[1:]:
        width, last = branch.width(side), side == size
        kept = 0 if last else n * 2 * width * side**2 * e
        picture = n * 3 * side**2 * 4
        if _local(branch, side):
            part = min(side, (tile or side) + 6) ** 2
            weights = 9 * width * (2 * branch.width(side // 2) + 2 * width) * e
            # Either where feature and result are put side by side, or where the doubled picture joins the result.
            work = max((5 if last else 4) * width * e, 2 * width * e + 3 * 4 * 3) * part
            if _winograd(branch, side, dtype):
                work = max(work, (4 if last else 3) * width * e * part + _strip_bytes(width, part // 16, e))
                weights += (36 - 9) * 2 * width * width * e
            peak = max(peak, held + kept + picture + work + weights)
        else:
            work = n * 8 * width * side**2 * e
            if _winograd(branch, side, dtype):
                work = max(work, n * 5 * width * side**2 * e + _strip_bytes(width, n * (side // 4) ** 2, e))
            peak = max(peak, held + picture + work)
        held += kept + picture - n * 3 * (side // 2) ** 2 * 4
        held -= n * 2 * branch.width(side // 2) * (side // 2) ** 2 * e
        held -= features.get(side, 0)
    return peak


def plan_bytes(branch: Branch, plan: Plan) -> int:
    """Weights and peak activations of a plan."""
    return weight_bytes(branch, plan.dtype) + activation_bytes(branch, plan.dtype, batch=plan.batch, tile=plan.tile)


def ladder(branch: Branch, facts: Facts, *, precision: str = "auto") -> tuple[Plan, ...]:
    """Plans in the order to try them; at least one.

    Smaller batches, then tiles, then 16-bit numbers, then the CPU. Plans that do not fit by arithmetic are left out,
    the very last excepted. precision: `auto`, or a dtype to start with.
    """
    plans = _on_device(branch, facts.device, _first_dtype(precision, facts.half), facts.half)
    if facts.device != "cpu":
        plans += _on_device(branch, "cpu", _first_dtype("auto", facts.cpu_half), facts.cpu_half)
    room = {facts.device: facts.free, "cpu": facts.cpu_free}
    return (*(p for p in plans[:-1] if plan_bytes(branch, p) <= SHARE * room[p.device]), plans[-1])


def ladder_float32(branch: Branch, facts: Facts) -> tuple[Plan, ...]:
    """The rungs of `ladder` that compute one face in float32, for a face that came out broken in 16 bit."""
    host = replace(facts, cpu_half=None)
    plans = ladder(branch, host, precision="float32")
    exact = tuple(p for p in plans if p.dtype == "float32" and p.batch == 1)
    return exact or (Plan(device="cpu", dtype="float32", tile=_smallest_tile(branch)),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Upscaling:
    """An upscaling network. family: `RRDBNet` or `SRVGGNetCompact`. factor: 2 or 4. features: channels. depth: blocks
    or convolutions of its body. grow: channels that each convolution of an RRDBNet's dense blocks adds."""

    family: str
    factor: int
    features: int
    depth: int
    grow: int = 0

    @property
    def fold(self) -> int:
        """Input pixels a side that an RRDBNet folds into channels before it starts; sides must be a multiple."""
        return 4 // self.factor if self.family == "RRDBNet" else 1


def upscaler_bytes(net: Upscaling, dtype: str, height: int, width: int) -> int:
    """Weights and peak activations of one tile of `height` × `width` input pixels."""
    e, f, g = BYTES[dtype], net.features, net.grow
    pixels = height * width
    answer = pixels * 3 * net.factor**2 * (e + 8)  # as it comes, as float32, and in levels
    if net.family == "RRDBNet":
        dense = 9 * sum((f + i * g) * (g if i < 4 else f) for i in range(5))
        weights = 3 * net.depth * dense + 5 * 9 * f * f
        # In the body: the long skip, inputs of block and dense block, what is put side by side and its parts, the
        # result. At the end: the full picture before and after a convolution, the one half as wide, the body's result.
        held = pixels // net.fold**2 * max(5 * f + 8 * g, 37 * f)
    else:
        ends = 3 * net.factor**2
        weights = 9 * f * (net.depth * f + 3 + ends)
        held = pixels * max(2 * f, f + ends, 3 * ends)
    return weights * e + pixels * 3 * e + max(held * e, answer)


UPSCALER_TILES = (512, 384, 256, 128, SMALL_TILE)


def upscaler_ladder(
    net: Upscaling, facts: Facts, height: int, width: int, *, precision: str = "auto", tile: int = 0
) -> tuple[Plan, ...]:
    """Plans for a picture of `height` × `width`, in the order to try them; at least one.

    tile: side to begin with, 0 for the whole picture. Smaller tiles, then 16-bit numbers, then the CPU; plans that do
    not fit by arithmetic are left out, the very last excepted.
    """
    longest = max(height, width)
    start = tile if tile < longest else 0
    sides = (start, *(t for t in UPSCALER_TILES if t < (start or longest)))

    def needed(plan: Plan) -> int:
        return upscaler_bytes(net, plan.dtype, min(plan.tile or height, height), min(plan.tile or width, width))

    def on(device: str, dtype: str, half: str | None) -> list[Plan]:
        plans = [Plan(device=device, dtype=dtype, tile=side) for side in sides]
        # On a CPU slow where it is emulated, yet half the memory.
        half = half or ("bfloat16" if device == "cpu" else None)
        return plans if dtype != "float32" or half is None else [*plans, replace(plans[-1], dtype=half)]

    plans = on(facts.device, _first_dtype(precision, facts.half), facts.half)
    if facts.device != "cpu":
        plans += on("cpu", _first_dtype("auto", facts.cpu_half), facts.cpu_half)
    room = {facts.device: facts.free, "cpu": facts.cpu_free}
    return (*(p for p in plans[:-1] if needed(p) <= SHARE * room[p.device]), plans[-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table of plans. bytes: what the plan needs by arithmetic, weights included."""

    branch: str
    device: str
    gigabytes: int
    plan: Plan
    bytes: int


SIZES_GB = (2, 4, 6, 8, 12, 24)
TAKEN = {"cuda": int(0.6 * GB), "cpu": int(1.2 * GB)}  # by driver context and screen, or system and Python with torch


def plans_table(branches: Mapping[str, Branch], device: str = "cuda") -> tuple[Row, ...]:
    """Which plan a machine with 2 … 24 GB gets for each branch, by the same code that plans a run.

    device: `cuda` (graphics memory is counted) or `cpu` (with bfloat16 that pays; all memory is counted).
    """
    rows = []
    for name, branch in branches.items():
        for gigabytes in SIZES_GB:
            free = gigabytes * GB - TAKEN[device]
            half = "float16" if device == "cuda" else "bfloat16"
            facts = Facts(device=device, half=half, free=free, cpu_half="bfloat16", cpu_free=free)
            plan = ladder(branch, facts)[0]
            needed = plan_bytes(branch, plan)
            rows.append(Row(branch=name, device=device, gigabytes=gigabytes, plan=plan, bytes=needed))
    return tuple(rows)


def _first_dtype(precision: str, half: str | None) -> str:
    return (half or "float32") if precision == "auto" else precision


def _on_device(branch: Branch, device: str, dtype: str, half: str | None) -> list[Plan]:
    if device == "cpu":
        # No batches: a CPU is busy with one face. Tiles from the start: they are faster than the whole there.
        plans = [Plan(device=device, dtype=dtype, tile=t if t < branch.size else 0) for t in (CACHE_TILE, SMALL_TILE)]
        half = half or "bfloat16"  # slow where it is emulated, yet half the memory
    else:
        plans = [Plan(device=device, dtype=dtype, batch=batch) for batch in BATCHES]
        plans += [Plan(device=device, dtype=dtype, tile=tile) for tile in TILES if tile < branch.size]
    if dtype == "float32" and half is not None:
        plans.append(replace(plans[-1], dtype=half))
    rungs = plans[:1]
    for plan in plans[1:]:
        if plan_bytes(branch, plan) < plan_bytes(branch, rungs[-1]):  # else it would fail where the last one did
            rungs.append(plan)
    return rungs


def _smallest_tile(branch: Branch) -> int:
    return SMALL_TILE if branch.size > SMALL_TILE else 0


def _sides(branch: Branch) -> list[int]:
    """4, 8, … size"""
    return [4 << i for i in range(branch.size.bit_length() - 2)]


def _local(branch: Branch, side: int) -> bool:
    """network_fast's rule for stages that run in tiles: their activations outnumber their weights."""
    return 9 * branch.width(side) <= (side // 2) ** 2


def _winograd(branch: Branch, side: int, dtype: str) -> bool:
    """network_fast's rule for convolutions on a CPU; counted everywhere, since it only makes plans more careful."""
    return dtype == "float32" and side >= 32 and 2 * branch.width(side) >= 128


def _strip_bytes(width: int, patches: int, e: int) -> int:
    """Scratch of winograd.convolve from 2·width channels: patches and products of a strip, half transformed ones."""
    return min(PATCHES, patches) * ((36 + 6 * 4 + 2 * 6 * 4) * 2 * width + (36 + 6 * 4) * width) * e


def _styled_bytes(inputs: int, outputs: int, e: int, style: int) -> int:
    """3×3 weight, its squared sums and its modulation; the latter two in float32."""
    return inputs * outputs * (9 * e + 4) + inputs * style * 4


def _rgb_bytes(width: int, style: int) -> int:
    """1×1 weight and modulation of twice `width`, in float32."""
    return 2 * width * (3 + style) * 4
