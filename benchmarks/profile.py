"""Where one pass of the prepared network spends its time: by stage, and by kind of work. Part of benchmarks.engine."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch.profiler import ProfilerActivity

from benchmarks.measure import CONFIGS, faces, multiplications, random_net
from gpen_zoo.budget import CACHE_TILE
from gpen_zoo.network_fast import Prepared, prepare

CPU = torch.device("cpu")
SMALL = 64  # px; stages below count together


def by_stage(
    sizes: tuple[int, ...], dtypes: Mapping[str, torch.dtype], peaks: Mapping[torch.dtype, float]
) -> Iterator[str]:
    """A table. peaks: multiply-adds per second."""
    yield "\n## Where the time goes\n"
    yield f"Prepared, tiles of {CACHE_TILE} px. GFLOP: of the convolutions as they stand, two per multiply-add. Floor:"
    yield "ms of that at the matrix peak. Share: floor by ms; above 100% where Winograd needs fewer.\n"
    columns = " | ".join(f"{name} ms | floor | share" for name in dtypes)
    yield f"| px | stage | GFLOP | {columns} |"
    yield "|---|---|---|" + "---|---|---|" * len(dtypes)
    for size in sizes:
        work = grouped(multiplications(CONFIGS[size]))
        net = random_net(size)
        times = {d: grouped(stage_seconds(prepare(net, device=CPU, dtype=d), size)) for d in dtypes.values()}
        for stage in (*work, "sum"):
            macs = work.get(stage) or sum(work.values())
            cells = []
            for dtype, seconds in times.items():
                taken, floor = seconds.get(stage) or sum(seconds.values()), macs / peaks[dtype]
                cells.append(f"{1e3 * taken:.0f} | {1e3 * floor:.0f} | {floor / taken:.0%}")
            yield f"| {size} | {stage} | {2e-9 * macs:.1f} | {' | '.join(cells)} |"


def stage_seconds(fast: Prepared, size: int) -> dict[str, float]:
    """Best of two passes for each stage; the names are those of `multiplications`."""
    best: dict[str, float] = {}

    def timed(name: str, stage: Callable[..., Any]) -> Any:
        def run(*given: Any) -> Any:
            start = time.perf_counter()
            result = stage(*given)
            best[name] = min(best.get(name, float("inf")), time.perf_counter() - start)
            return result

        return run

    fast.down = [timed(f"encoder {size >> i}", stage) for i, stage in enumerate(fast.down)]
    fast.up = [timed(f"decoder {8 << i}", stage) for i, stage in enumerate(fast.up)]
    x = faces(size)
    for _ in range(3):
        fast(x, tile=CACHE_TILE)
    return best


def grouped(stages: Mapping[str, Any]) -> dict[str, Any]:
    """Small stages of each half together."""
    sums: dict[str, Any] = defaultdict(int)
    for name, value in stages.items():
        half, side = name.split()
        sums[name if int(side) >= SMALL else f"{half} below {SMALL}"] += value
    return dict(sums)


def by_kind(size: int, dtypes: Mapping[str, torch.dtype]) -> Iterator[str]:
    """A table of shares, from torch's profiler, whose own cost is in them."""
    yield f"\nBy kind of work, {size} px:\n"
    tables = {}
    net, x = random_net(size), faces(size)
    for name, dtype in dtypes.items():
        fast = prepare(net, device=CPU, dtype=dtype)
        fast(x, tile=CACHE_TILE)
        with torch.profiler.profile(activities=[ProfilerActivity.CPU], record_shapes=True) as record:
            fast(x, tile=CACHE_TILE)
        sums: dict[str, float] = defaultdict(float)
        for event in record.key_averages(group_by_input_shape=True):
            sums[kind_of(event.key, event.input_shapes)] += event.self_cpu_time_total
        tables[name] = {kind: spent / sum(sums.values()) for kind, spent in sums.items()}
    yield "| | " + " | ".join(KINDS) + " |"
    yield "|---" * (len(KINDS) + 1) + "|"
    for name, shares in tables.items():
        yield f"| {name} | " + " | ".join(f"{shares.get(kind, 0.0):.0%}" for kind in KINDS) + " |"


KINDS = (
    "convolutions",
    "up-convolutions",
    "Winograd's products",
    "low-pass",
    "transforms and sums",
    "activation and copies",
)


def kind_of(operation: str, shapes: list[list[int]]) -> str:
    """Which of KINDS an operator of torch belongs to."""
    name = operation.removeprefix("aten::").rstrip("_")
    if "conv" in name:
        weight = shapes[1] if len(shapes) > 1 else []
        if len(weight) == 4 and weight[1] == 1:
            return "low-pass"
        return "up-convolutions" if name == "_convolution" else "convolutions"
    if name == "bmm":
        return "Winograd's products"
    sums = "add", "sub", "mul", "addcmul", "select", "as_strided", "slice", "unfold"
    return "transforms and sums" if name in sums else "activation and copies"
