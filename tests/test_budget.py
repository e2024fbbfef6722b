"""The arithmetic of plans: against peaks that torch's allocator saw, and the order of the ladder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from gpen_zoo.budget import (
    GB,
    SHARE,
    Facts,
    Plan,
    activation_bytes,
    ladder,
    ladder_float32,
    plan_bytes,
    plans_table,
    weight_bytes,
)
from gpen_zoo.network import GPEN, Config
from gpen_zoo.network_fast import prepare

BRANCHES = {"256": Config(256, 512, 8, 1, 0.5), "512": Config(512), "1024": Config(1024), "2048": Config(2048)}
RICH = Facts(device="cuda:0", half="float16", free=40 * GB, cpu_half="bfloat16", cpu_free=40 * GB)


def allocated_peak(run: Callable[[], Any]) -> int:
    """Largest number of bytes alive at once, from the allocator's events (scratch included)."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as record:
        run()
    events = [e for e in record.profiler.kineto_results.events() if e.name() == "[memory]"]  # type: ignore[union-attr]
    live = peak = 0
    for event in sorted(events, key=lambda e: e.start_ns()):
        live += event.nbytes()
        peak = max(peak, live)
    return peak


def stored_bytes(thing: Any, seen: set[int]) -> int:
    if isinstance(thing, torch.Tensor):
        storage = thing.untyped_storage()
        new = storage.data_ptr() not in seen
        seen.add(storage.data_ptr())
        return storage.nbytes() if new else 0
    if isinstance(thing, (list, tuple)):
        return sum(stored_bytes(t, seen) for t in thing)
    return sum(stored_bytes(t, seen) for t in vars(thing).values()) if hasattr(thing, "__dict__") else 0


@pytest.mark.parametrize(
    ("config", "batch"),
    [
        (Config(64, 64, 2, 2, 0.125), 3),
        (Config(32, 64, 1, 2, 0.5), 2),  # wide enough for Winograd's convolution
        (Config(256, 64, 2, 1, 0.25), 1),
        (Config(256, 64, 1, 2, 0.5), 1),  # Winograd's convolution in tiles
        (Config(512, 64, 2, 2, 0.125), 1),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_bytes_agree_with_the_allocator(config: Config, batch: int, dtype: str) -> None:
    torch.manual_seed(0)
    fast = prepare(GPEN.from_config(config).eval(), device=torch.device("cpu"), dtype=getattr(torch, dtype))
    weights = weight_bytes(config, dtype) / stored_bytes(fast, set())
    print(f"weights: {weights:.3f} of the real size")
    assert 0.95 <= weights <= 1.05
    x = torch.rand(batch, 3, config.size, config.size)
    for tile in (0, 128, 64):
        if tile < config.size:
            measured = allocated_peak(lambda tile=tile: fast(x, tile=tile)) + x.nbytes
            share = activation_bytes(config, dtype, batch=batch, tile=tile) / measured
            print(f"{config.size} px × {batch}, {dtype}, tile {tile}: {measured / 1e6:.1f} MB, predicted {share:.2f}")
            assert 0.8 <= share <= 1.2


@pytest.mark.parametrize("name", BRANCHES)
@pytest.mark.parametrize("device", ["cuda:0", "cpu", "mps"])
@pytest.mark.parametrize("precision", ["auto", "float32"])
def test_every_rung_needs_less_or_changes_device(name: str, device: str, precision: str) -> None:
    half = "bfloat16" if device == "cpu" else "float16"
    plans = ladder(BRANCHES[name], replace(RICH, device=device, half=half), precision=precision)
    for earlier, later in zip(plans, plans[1:], strict=False):
        if earlier.device == later.device:
            assert plan_bytes(BRANCHES[name], later) < plan_bytes(BRANCHES[name], earlier)
    assert len(set(plans)) == len(plans)
    assert plans[-1].device == "cpu"


def test_the_order_is_batch_tiles_sixteen_bit_cpu() -> None:
    plans = ladder(BRANCHES["1024"], RICH, precision="float32")
    graphics = [p for p in plans if p.device == "cuda:0"]
    assert [p.batch for p in graphics] == [8, 4, 2, 1, *[1] * 5]
    assert [p.tile for p in graphics] == [0, 0, 0, 0, 512, 256, 128, 64, 64]
    assert [p.dtype for p in graphics] == ["float32"] * 8 + ["float16"]
    assert plans[len(graphics)] == Plan(device="cpu", dtype="bfloat16", tile=128)


def test_auto_starts_in_the_dtype_that_pays() -> None:
    assert ladder(BRANCHES["512"], RICH)[0].dtype == "float16"
    assert ladder(BRANCHES["512"], replace(RICH, half=None))[0].dtype == "float32"
    assert ladder(BRANCHES["512"], replace(RICH, device="cpu", half=None, cpu_half=None))[0].dtype == "float32"


@pytest.mark.parametrize("name", BRANCHES)
@pytest.mark.parametrize("gigabytes", [0.3, 0.5, 1, 2, 3, 8])
def test_the_first_plan_fits_and_the_ladder_never_ends_empty(name: str, gigabytes: float) -> None:
    branch, free = BRANCHES[name], int(gigabytes * GB)
    plans = ladder(branch, replace(RICH, free=free, cpu_free=free))
    assert all(plan_bytes(branch, p) <= SHARE * free for p in plans[:-1])
    assert ladder(branch, replace(RICH, free=0, cpu_free=0)) == (plans[-1],)


def test_float32_ladder_has_only_single_faces_in_float32() -> None:
    for free in (40 * GB, GB, 0):
        plans = ladder_float32(BRANCHES["2048"], replace(RICH, free=free, cpu_free=free))
        assert plans
        assert all(p.dtype == "float32" and p.batch == 1 for p in plans)


def test_table_of_plans_covers_every_branch_and_size() -> None:
    rows = plans_table(BRANCHES)
    assert [(r.branch, r.gigabytes) for r in rows] == [(b, g) for b in BRANCHES for g in (2, 4, 6, 8, 12, 24)]
    assert all(r.bytes <= r.gigabytes * GB for r in rows)
    by_branch = {b: [r.plan for r in rows if r.branch == b] for b in BRANCHES}
    assert by_branch["2048"][0] != by_branch["2048"][-1], "2 GB and 24 GB cannot get the same plan at 2048 px"
    assert all(p.device == "cpu" for r in plans_table(BRANCHES, "cpu") for p in [r.plan])


def test_plans_read_well() -> None:
    assert str(Plan(device="cuda:0", dtype="float16", batch=4)) == "cuda:0 float16, batch 4"
    assert str(Plan(device="cpu", dtype="float32", tile=128)) == "cpu float32, batch 1, tiles of 128 px"
