"""The engine: outcomes in order, every rung of the ladder under injected failures, broken results, threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from gpen_zoo import device as device_module
from gpen_zoo import engine as engine_module
from gpen_zoo.budget import GB, Facts, Plan, ladder
from gpen_zoo.engine import Engine, Outcome, load_engine
from gpen_zoo.errors import Cancelled
from gpen_zoo.network import GPEN
from gpen_zoo.network_fast import Prepared

SIZE = 128
FACTS = Facts(device="cpu", half=None, free=8 * GB, cpu_half=None, cpu_free=8 * GB)
TORCH_OOM = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
CPU_OOM = RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory: you tried …")


def tiny() -> GPEN:
    torch.manual_seed(3)
    return GPEN(SIZE, style_dim=32, n_mlp=1, narrow=0.03125).eval().requires_grad_(False)


def crops(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (n, SIZE, SIZE, 3), dtype=np.uint8)


@pytest.fixture
def graphics(monkeypatch: pytest.MonkeyPatch) -> Facts:
    """A machine with a second device that does float16: torch's cpu under another name, so that plans really run."""
    facts = Facts(device="cpu:0", half="bfloat16", free=8 * GB, cpu_half=None, cpu_free=8 * GB)
    monkeypatch.setattr(engine_module, "facts_of", lambda device: facts)
    return facts


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Plan, int], BaseException | None]], list[Plan]]:
    """Install a judge that may refuse a plan (with the number of faces) and get the list of plans that were run."""

    def install(judge: Callable[[Plan, int], BaseException | None]) -> list[Plan]:
        ran: list[Plan] = []
        forward = Engine._forward

        def judged(self: Engine, x: torch.Tensor, plan: Plan) -> torch.Tensor:
            ran.append(plan)
            error = judge(plan, len(x))
            if error is not None:
                raise error
            return forward(self, x, plan)

        monkeypatch.setattr(Engine, "_forward", judged)
        return ran

    return install


def codes(outcome: Outcome) -> list[str]:
    return [a.code for a in outcome.attempts]


def test_outcomes_are_the_networks_pictures_in_order() -> None:
    net, given = tiny(), crops(5)
    outcomes = Engine(net, device="cpu", precision="float32").restore(given)
    x = torch.from_numpy(given).permute(0, 3, 1, 2).float() / 127.5 - 1
    expected = ((net(x) * 127.5 + 127.5).clamp(0, 255).round()).permute(0, 2, 3, 1).numpy()
    for outcome, picture in zip(outcomes, expected, strict=True):
        assert outcome.pixels is not None and outcome.pixels.dtype == np.uint8
        assert np.abs(outcome.pixels.astype(int) - picture).max() <= 1
        assert outcome.attempts == () and outcome.ms > 0
        assert outcome.plan.dtype == "float32"


def test_forward_runs_the_plan_it_is_given() -> None:
    engine = Engine(tiny(), device="cpu")
    x = torch.rand(2, 3, SIZE, SIZE) * 2 - 1
    whole = engine.forward(x, Plan(device="cpu", dtype="float32", batch=2))
    tiled = engine.forward(x, Plan(device="cpu", dtype="float32", batch=2, tile=48))
    half = engine.forward(x, Plan(device="cpu", dtype="bfloat16"))
    assert whole.shape == x.shape and whole.dtype == half.dtype == torch.float32
    assert float((whole - tiled).abs().max() / whole.abs().max()) <= 1e-6
    assert not torch.equal(whole, half)


def test_wrong_arrays_are_refused_and_none_is_fine() -> None:
    engine = Engine(tiny(), device="cpu")
    with pytest.raises(TypeError, match="uint8"):
        engine.restore(crops(1).astype(np.float32))
    with pytest.raises(TypeError, match="128"):
        engine.restore(crops(1)[:, :64])
    assert engine.restore(crops(0)) == ()
    with pytest.raises(ValueError, match="precision"):
        Engine(tiny(), precision="int8")


@pytest.mark.parametrize("error", [TORCH_OOM, CPU_OOM, MemoryError()])
def test_out_of_memory_at_every_rung(error: BaseException, graphics: Facts, failing) -> None:
    """For each k: the first k plans fail for memory, plan k runs, every face is restored and every step is told."""
    net, given = tiny(), crops(3)
    plans = ladder(net.config, graphics)
    assert len({(p.device, p.dtype, p.batch, p.tile) for p in plans}) == len(plans) >= 7
    for k, fitting in enumerate(plans):
        refused = set(plans[:k])
        ran = failing(lambda plan, n, refused=refused: error if plan in refused else None)
        outcomes = Engine(net, device="cpu:0").restore(given)
        assert [o.plan for o in outcomes] == [fitting] * 3
        assert all(o.pixels is not None for o in outcomes)
        assert all(codes(o) == ["M01"] * k for o in outcomes)
        assert [a.params["plan"] for a in outcomes[0].attempts] == list(plans[1 : k + 1])
        assert ran[: k + 1] == list(plans[: k + 1]), "no plan is skipped and none tried twice"


def test_no_plan_fits_is_an_outcome_and_the_engine_stays_usable(graphics: Facts, failing) -> None:
    hungry = True
    failing(lambda plan, n: TORCH_OOM if hungry else None)
    engine = Engine(tiny(), device="cpu:0")
    outcomes = engine.restore(crops(2))
    assert [o.pixels for o in outcomes] == [None, None]
    assert all(codes(o)[-1] == "M03" for o in outcomes)
    hungry = False
    assert engine.restore(crops(1))[0].pixels is not None


def test_memory_that_runs_out_midway_keeps_earlier_faces(graphics: Facts, failing) -> None:
    seen: list[int] = []

    def judge(plan: Plan, n: int) -> BaseException | None:
        seen.append(n)
        return TORCH_OOM if len(seen) > 1 and plan.batch == 8 else None

    failing(judge)
    outcomes = Engine(tiny(), device="cpu:0").restore(crops(11))
    assert [o.plan.batch for o in outcomes] == [8] * 8 + [4] * 3
    assert [codes(o) for o in outcomes] == [[]] * 8 + [["M01"]] * 3


def test_other_failures_change_the_device_not_the_batch(graphics: Facts, failing) -> None:
    ran = failing(
        lambda plan, n: RuntimeError("CUDNN_STATUS_EXECUTION_FAILED\nlong story") if ":" in plan.device else None
    )
    outcome = Engine(tiny(), device="cpu:0").restore(crops(1))[0]
    assert outcome.pixels is not None
    assert codes(outcome) == ["M04"]
    assert outcome.attempts[0].params["reason"] == "CUDNN_STATUS_EXECUTION_FAILED"
    assert [p.device for p in ran] == ["cpu:0", "cpu"]


def test_a_failure_everywhere_is_told_once(failing) -> None:
    failing(lambda plan, n: RuntimeError("no kernel image"))
    outcome = Engine(tiny(), device="cpu", precision="bfloat16").restore(crops(1))[0]
    assert outcome.pixels is None and codes(outcome)[-1] == "M06"


@pytest.mark.parametrize("broken", ["nan", "flat"])
def test_a_broken_half_precision_face_is_redone_alone_in_float32(
    broken: str,
    graphics: Facts,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    call = Prepared.__call__

    def sabotaged(self: Prepared, x: torch.Tensor, tile: int = 0) -> torch.Tensor:
        y = call(self, x, tile)
        if self.dtype is not torch.float32:
            y[1] = float("nan") if broken == "nan" else -3.0  # black after clipping
        return y

    net, given = tiny(), crops(3)
    whole = Engine(net, device="cpu", precision="float32").restore(given)
    monkeypatch.setattr(Prepared, "__call__", sabotaged)
    outcomes = Engine(net, device="cpu:0").restore(given)
    assert [codes(o) for o in outcomes] == [[], ["M02"], []]
    assert [o.plan.dtype for o in outcomes] == ["bfloat16", "float32", "bfloat16"]
    assert outcomes[1].plan.batch == 1
    assert outcomes[1].pixels is not None and whole[1].pixels is not None
    assert np.abs(outcomes[1].pixels.astype(int) - whole[1].pixels).max() <= 1


def test_memory_that_runs_out_in_the_float32_redo_is_told_too(graphics: Facts, monkeypatch, failing) -> None:
    call = Prepared.__call__
    monkeypatch.setattr(
        Prepared,
        "__call__",
        lambda self, x, tile=0: call(self, x, tile) * (1.0 if self.dtype is torch.float32 else float("nan")),
    )
    failing(lambda plan, n: TORCH_OOM if plan.dtype == "float32" and plan.tile == 0 else None)
    outcome = Engine(tiny(), device="cpu:0").restore(crops(1))[0]
    assert outcome.pixels is not None
    assert codes(outcome) == ["M02", "M01"]
    failing(lambda plan, n: TORCH_OOM if plan.dtype == "float32" else None)
    outcome = Engine(tiny(), device="cpu:0").restore(crops(1))[0]
    assert outcome.pixels is None
    assert codes(outcome)[0] == "M02" and codes(outcome)[-1] == "M03"


def test_damaged_weights_fail_the_face_with_a_reason() -> None:
    net = tiny()
    net.generator.to_rgbs[0].conv.weight.fill_(float("nan"))
    for precision, expected in (("float32", ["M05"]), ("bfloat16", ["M02", "M05"])):
        outcome = Engine(net, device="cpu", precision=precision).restore(crops(1))[0]
        assert outcome.pixels is None
        assert codes(outcome) == expected


def test_a_flat_crop_may_give_a_flat_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Prepared, "__call__", lambda self, x, tile=0: torch.zeros_like(x, dtype=torch.float32))
    engine = Engine(tiny(), device="cpu", precision="float32")
    flat = np.full((1, SIZE, SIZE, 3), 90, np.uint8)
    assert engine.restore(flat)[0].pixels is not None
    assert engine.restore(crops(1))[0].pixels is None


def test_progress_counts_and_its_exception_passes_through() -> None:
    engine = Engine(tiny(), device="cpu")
    told: list[tuple[int, int]] = []
    engine.restore(crops(3), on_crop=lambda done, total: told.append((done, total)))
    assert told == [(1, 3), (2, 3), (3, 3)]

    def stop(done: int, total: int) -> None:
        raise Cancelled("M03", plan="-")

    with pytest.raises(Cancelled):
        engine.restore(crops(3), on_crop=stop)
    assert engine.restore(crops(1))[0].pixels is not None


def test_progress_may_call_the_engine_itself() -> None:
    engine = Engine(tiny(), device="cpu")
    nested: list[Outcome] = []
    engine.restore(crops(1), on_crop=lambda done, total: nested.extend(engine.restore(crops(1, seed=9))))
    assert nested[0].pixels is not None


def test_two_threads_get_their_own_faces() -> None:
    engine = Engine(tiny(), device="cpu", precision="float32")
    given = {seed: crops(3, seed) for seed in range(4)}
    alone = {seed: engine.restore(c) for seed, c in given.items()}
    together: dict[int, tuple[Outcome, ...]] = {}
    threads = [threading.Thread(target=lambda s=s: together.update({s: engine.restore(given[s])})) for s in given]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed, outcomes in alone.items():
        for a, b in zip(outcomes, together[seed], strict=True):
            assert a.pixels is not None and b.pixels is not None
            assert np.array_equal(a.pixels, b.pixels)


def test_weights_of_a_failed_plan_do_not_stay(graphics: Facts, failing) -> None:
    engine = Engine(tiny(), device="cpu:0")
    assert engine.restore(crops(1))[0].pixels is not None
    failing(lambda plan, n: TORCH_OOM if ":" in plan.device else None)
    assert engine.restore(crops(1))[0].plan.device == "cpu"
    assert {d for d, _ in engine._prepared} == {"cpu"}


def test_loading_from_a_file_and_from_tensors(tmp_path: Path) -> None:
    net = tiny()
    path = tmp_path / "net.safetensors"
    save_file(net.state_dict(), path)
    expected = Engine(net, device="cpu", precision="float32").restore(crops(1))[0].pixels
    for source in (path, net.state_dict()):
        engine = load_engine(source, device="cpu", precision="float32")
        assert engine.size == SIZE and engine.config == net.config
        assert np.array_equal(engine.restore(crops(1))[0].pixels, expected)
    with pytest.raises(ValueError, match="not a GPEN"):
        load_engine({"conv.weight": torch.zeros(1)})
    missing = {k: v for k, v in net.state_dict().items() if k != "generator.to_rgbs.0.bias"}
    with pytest.raises(ValueError, match=r"generator\.to_rgbs\.0\.bias"):
        load_engine(missing)
    with pytest.raises(ValueError, match=r"generator\.conv1\.noise\.weight"):
        load_engine({**net.state_dict(), "generator.conv1.noise.weight": torch.zeros(2)})


def test_the_cache_is_emptied_only_when_crowded(monkeypatch: pytest.MonkeyPatch) -> None:
    emptied: list[bool] = []
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: emptied.append(True))
    for share, expected in ((0.5, []), (0.85, []), (0.9, [True])):
        emptied.clear()
        monkeypatch.setattr(device_module, "used_share", lambda device, share=share: share)
        device_module.relieve("cuda:0")
        assert emptied == expected


def test_relief_comes_only_while_more_is_to_come(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(engine_module, "relieve", asked.append)
    engine = Engine(tiny(), device="cpu")
    engine.restore(crops(1))
    assert asked == []
    engine.restore(crops(3))
    assert asked == ["cpu", "cpu"]


def test_bfloat16_is_judged_by_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    for seconds, expected in (
        ({"32": 1.0, "16": 0.5}, True),
        ({"32": 1.0, "16": 0.95}, False),
        ({"32": 1, "16": 9}, False),
    ):
        monkeypatch.setattr(
            device_module,
            "_convolution_seconds",
            lambda dtype, seconds=seconds: seconds["16" if dtype is torch.bfloat16 else "32"],
        )
        device_module.bfloat16_pays.cache_clear()
        assert device_module.bfloat16_pays() is expected
    device_module.bfloat16_pays.cache_clear()


def test_facts_of_graphics_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked of a stand-in for torch.cuda: no such device is needed to see that the numbers are put together right."""
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (3 * GB, 4 * GB))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: GB)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: GB // 2)
    for name, half in (("NVIDIA GeForce GTX 1650", None), ("NVIDIA GeForce RTX 3050", "float16")):
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda device, name=name: name)
        facts = device_module.facts_of("cuda:0")
        assert (facts.half, facts.free) == (half, 3 * GB + GB // 2)
    assert device_module.used_share("cuda:0") == 0.25


def test_container_limit_counts(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text(f"{2 * GB}\n")
    (tmp_path / "memory.current").write_text(f"{GB}\n")
    assert device_module._container_free(tmp_path) == GB
    (tmp_path / "memory.max").write_text("max\n")
    assert device_module._container_free(tmp_path) > 1000 * GB
    assert 0 < device_module.host_free_bytes() < 1000 * GB


def test_plans_follow_free_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(tiny(), device="cpu")
    monkeypatch.setattr(engine_module, "facts_of", lambda device: FACTS)
    assert engine.plans()[0] == Plan(device="cpu", dtype="float32")
    monkeypatch.setattr(engine_module, "facts_of", lambda device: replace(FACTS, free=0, cpu_free=0))
    assert engine.plans() == (Plan(device="cpu", dtype="bfloat16", tile=64),)
