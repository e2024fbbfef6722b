"""Accelerators: kept only when faster, equal and sound; every outcome told; nothing of the process left changed."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from gpen_zoo import accelerate
from gpen_zoo.accelerate import Accelerated, Candidate, Run, Trial, accelerated, candidates, compare
from gpen_zoo.cli import main
from gpen_zoo.engine import Engine
from gpen_zoo.hints import say
from gpen_zoo.network import GPEN
from gpen_zoo.network_fast import Prepared, prepare
from gpen_zoo.restore import load
from gpen_zoo.zoo import Zoo

CPU = torch.device("cpu")
X = torch.rand(1, 3, 16, 16, generator=torch.Generator().manual_seed(0))


def taking(seconds: float, change: Callable[[Tensor], Tensor] = torch.clone) -> Run:
    def run(x: Tensor, tile: int) -> Tensor:
        time.sleep(seconds)
        return change(x)

    return run


def failing(x: Tensor, tile: int) -> Tensor:
    raise FileNotFoundError("no C++ compiler\nand a long story")


def failing_change(x: Tensor) -> Tensor:
    raise RuntimeError("accelerator first")


def refused(run: Run) -> Run:
    raise ImportError("triton")


def tried(*offered: Candidate) -> tuple[Run, dict[str, Trial]]:
    run, trials = compare(taking(0.02), offered, X, 0, bound=1e-4)
    assert [t.name for t in trials] == [c.name for c in offered]
    return run, {t.name: t for t in trials}


def test_the_faster_one_is_kept_and_its_gain_told() -> None:
    fast = taking(0)
    run, trials = tried(Candidate("fast", lambda run: fast))
    assert run is fast
    trial = trials["fast"]
    assert trial.kept and trial.ratio > 2 and trial.error == 0 and trial.setup > 0


@pytest.mark.parametrize(
    ("faster", "verdict", "reason"),
    [
        (taking(0.06), "slower", ""),
        (taking(0, lambda x: x + 0.01), "different", ""),
        (taking(0, lambda x: x * float("nan")), "different", ""),
        (failing, "failed", "no C++ compiler"),
    ],
)
def test_a_loser_is_not_used_and_the_reason_told(
    faster: Run, verdict: str, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    good = taking(0)
    with caplog.at_level(logging.INFO, "gpen_zoo.accelerate"):
        run, trials = tried(Candidate("bad", lambda run: faster), Candidate("good", lambda run: good))
    assert run is good, "the next candidate is still tried"
    assert (trials["bad"].verdict, trials["bad"].reason) == (verdict, reason)
    assert verdict in caplog.text and reason in caplog.text


def test_one_that_cannot_be_built_is_a_loser_too() -> None:
    _, trials = tried(Candidate("absent", refused))
    assert trials["absent"] == Trial(name="absent", verdict="failed", reason="triton")


def test_each_is_measured_on_top_of_those_that_won() -> None:
    seen: list[Run] = []
    fast = taking(0)

    def watching(run: Run) -> Run:
        seen.append(run)
        return run

    tried(Candidate("fast", lambda run: fast), Candidate("bad", lambda run: failing), Candidate("last", watching))
    assert seen == [fast]


def test_a_slow_comparison_stops_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accelerate, "SECONDS", 0.0)
    calls: list[int] = []
    compare(lambda x, tile: (calls.append(1), x)[1], (Candidate("same", lambda run: run),), X, 0, bound=1.0)
    assert len(calls) == 8, "the picture to compare with, the first call, and three pairs"


def test_one_lucky_pair_is_not_enough() -> None:
    waits = iter([0.03, 0.0, *[0.03] * 20])

    def lucky(x: Tensor, tile: int) -> Tensor:
        time.sleep(next(waits))
        return x

    _, trials = tried(Candidate("lucky", lambda run: lucky))
    assert trials["lucky"].ratio > 2
    assert trials["lucky"].verdict == "unsteady"
    for lang, reason in (("zh", "并非每次都更快"), ("en", "not the faster one every time")):
        assert reason in say("cli.trial_unsteady", lang, **trials["lucky"].as_dict())


def test_a_failure_later_on_goes_back_to_the_network_for_good(caplog: pytest.LogCaptureFixture) -> None:
    calls: list[int] = []

    def breaks(x: Tensor, tile: int) -> Tensor:
        calls.append(1)
        if x.shape[0] > 1:
            raise RuntimeError("graph too large")
        return x + 1

    both = Accelerated(taking(0), breaks, ())
    assert torch.equal(both(X), X + 1)
    assert torch.equal(both(X.repeat(2, 1, 1, 1)), X.repeat(2, 1, 1, 1))
    assert torch.equal(both(X), X)
    assert len(calls) == 2 and "graph too large" in caplog.text


def test_what_the_network_itself_raises_passes_through() -> None:
    with pytest.raises(FileNotFoundError):
        compare(failing, (Candidate("same", lambda run: run),), X, 0, bound=1.0)
    with pytest.raises(FileNotFoundError):
        Accelerated(failing, taking(0, failing_change), ())(X)


def test_process_settings_hold_for_a_call_only() -> None:
    seen: list[tuple[str, bool]] = []

    def look(x: Tensor, tile: int) -> Tensor:
        seen.append((torch.get_float32_matmul_precision(), torch.backends.cudnn.benchmark))
        if tile:
            raise RuntimeError("out of memory")
        return x

    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.benchmark
    both = accelerate.under(accelerate.high_precision, accelerate.under(accelerate.cudnn_search, look))
    both(X, 0)
    with pytest.raises(RuntimeError):
        both(X, 1)
    assert seen == [("high", True)] * 2
    assert (torch.get_float32_matmul_precision(), torch.backends.cudnn.benchmark) == before


def test_what_is_offered_depends_on_device_and_dtype() -> None:
    def names(device: str, dtype: torch.dtype) -> list[str]:
        return [c.name for c in candidates(torch.device(device), dtype)]

    assert names("cpu", torch.bfloat16) == ["torch.compile"]
    assert names("cpu", torch.float32) == ["torch.compile", "matmul precision high"]
    assert names("cuda:0", torch.float16) == ["torch.compile", "cudnn.benchmark", "CUDA graphs"]
    assert names("mps", torch.float16) == []


def tiny() -> GPEN:
    torch.manual_seed(3)
    return GPEN(32, style_dim=32, n_mlp=1, narrow=0.03125).eval().requires_grad_(False)


@pytest.fixture
def offering(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Let these candidates be offered, with nothing decided yet; the names that were built are listed."""

    def install(**builds: Callable[[Run], Run]) -> list[str]:
        built: list[str] = []

        def noting(name: str) -> Callable[[Run], Run]:
            return lambda run: (built.append(name), builds[name](run))[1]

        offered = tuple(Candidate(name, noting(name)) for name in builds)
        monkeypatch.setattr(accelerate, "candidates", lambda device, dtype: offered)
        monkeypatch.setattr(accelerate, "_decided", {})
        return built

    return install


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """The network takes a while, so that what skips the wait wins."""
    call = Prepared.__call__
    monkeypatch.setattr(Prepared, "__call__", lambda self, x, tile=0: (time.sleep(0.02), call(self, x, tile))[1])
    monkeypatch.setattr(accelerate, "_at_once", call, raising=False)


def test_measured_once_a_process(offering: Callable[..., list[str]], slow: None) -> None:
    built = offering(fast=lambda run: lambda x, tile: accelerate._at_once(run, x, tile), bad=lambda run: failing)
    network = prepare(tiny(), device=CPU, dtype=torch.float32)
    first = accelerated(network, 0)
    assert [t.kept for t in first.trials] == [True, False] and built == ["fast", "bad"]
    again = accelerated(network, 0)
    assert again.trials == first.trials and built == ["fast", "bad", "fast"], "the winner is built again, not measured"
    x = torch.rand(1, 3, 32, 32)
    assert torch.equal(again(x), network(x))
    accelerated(network, 16)
    assert built[3:] == ["fast", "bad"], "another tile is another question"


@pytest.mark.parametrize("by_environment", [False, True])
def test_a_restorer_passes_the_wish_on(
    by_environment: bool, offering: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    offering(bad=lambda run: failing)
    monkeypatch.setattr(accelerate, "ROUNDS", 1)
    if by_environment:
        monkeypatch.setenv("GPEN_ZOO_ACCELERATE", "1")
    restorer = load(zoo=Zoo(home=tmp_path), device="cpu", accelerate=not by_environment)
    assert [t.name for t in restorer.branches[0].engine.trials()[1]] == ["bad"]


def test_doctor_tells_what_came_of_them(
    offering: Callable[..., list[str]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # By so much slower that no busy machine turns it round.
    offering(bad=lambda run: failing, slow=lambda run: lambda x, tile: (time.sleep(0.5), run(x, tile))[1])
    monkeypatch.setenv("GPEN_ZOO_HOME", str(tmp_path))
    for lang, words in (("zh", "不采用"), ("en", "not used")):
        monkeypatch.setattr(accelerate, "ROUNDS", 1)
        assert main(["--lang", lang, "doctor", "--accelerate"]) == 0
        told = capsys.readouterr().out
        assert told.count(words) == 2 and "no C++ compiler" in told


def test_the_engine_asks_only_when_told_to(offering: Callable[..., list[str]]) -> None:
    built = offering(same=lambda run: run)
    assert Engine(tiny(), device="cpu").trials()[1] == () and built == []
    engine = Engine(tiny(), device="cpu", accelerate=True)
    plan, trials = engine.trials()
    assert [t.name for t in trials] == ["same"] and plan.device == "cpu"
    x = torch.rand(1, 3, 32, 32)
    assert torch.equal(engine.forward(x, plan), Engine(tiny(), device="cpu").forward(x, plan))
