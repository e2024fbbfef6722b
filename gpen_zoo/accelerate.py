"""Optional accelerators of a prepared network: each is tried against the network as it is, and kept only if it wins.

None is used unless asked for: torch.compile alone takes minutes. What wins on one machine loses on another, so there is
no list of who gets what, only a comparison: same input, calls in turn, a few pairs. A candidate is kept when it is the
faster one of every pair and by MARGIN at best, its picture is the same within ERROR, and nothing failed. Settings that
belong to the whole process (cuDNN's search, matrix precision) are switched on for a call and back afterwards.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor

from gpen_zoo.device import first_line
from gpen_zoo.network import Config
from gpen_zoo.network_fast import Prepared

log = logging.getLogger(__name__)

MARGIN = 1.05  # times as fast; less is within what a busy machine does to a measurement
ERROR = {torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 1e-2}  # relative; two orders of rounding in 16 bit
ROUNDS, LEAST, SECONDS = 5, 3, 20.0  # pairs of calls; after SECONDS no further one than LEAST is started
GRAPHS = 4  # shapes with a CUDA graph of their own; each holds the memory of one pass

# slower: or not faster by MARGIN. unsteady: faster by MARGIN at best, but not in every pair.
Verdict: TypeAlias = Literal["kept", "slower", "unsteady", "different", "failed"]
Run: TypeAlias = Callable[[Tensor, int], Tensor]  # picture (N, 3, S, S) and tile → picture, as Prepared.__call__


@dataclass(frozen=True, slots=True)
class Candidate:
    """build: a run → the same run, faster. It may raise, and so may the first call of what it returns."""

    name: str
    build: Callable[[Run], Run]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What came of one candidate on top of those kept before it.

    ratio: times as fast. error: relative, against the picture without it. setup: seconds of its first call, in which
    compilers compile. All three are 0 when it failed, and `reason` is then what was said.
    """

    name: str
    verdict: Verdict
    ratio: float = 0.0
    error: float = 0.0
    setup: float = 0.0
    reason: str = ""

    @property
    def kept(self) -> bool:
        return self.verdict == "kept"

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return asdict(self)


class Accelerated:
    """Callable like `Prepared`. Falls back to the network as it is, for good, when an accelerator fails later on (with
    another shape, or for memory). Attribute: `trials`."""

    def __init__(self, plain: Run, run: Run, trials: tuple[Trial, ...]) -> None:
        self._plain, self._run, self.trials = plain, run, trials

    def __call__(self, x: Tensor, tile: int = 0) -> Tensor:
        if self._run is not self._plain:
            try:
                return self._run(x, tile)
            except Exception as error:  # compilers raise of every kind; the plain run below tells what is really wrong
                log.warning("accelerators failed (%s), going on without", first_line(error))
                self._run = self._plain
        return self._plain(x, tile)


_lock = threading.Lock()  # two comparisons at once would disturb each other
_decided: dict[tuple[Config, str, torch.dtype, int], tuple[Trial, ...]] = {}  # guarded by the lock


def accelerated(network: Prepared, tile: int) -> Accelerated:
    """The network with the accelerators that win here. Measured once a process for a shape, device, dtype and tile.

    Takes seconds, or a minute where torch.compile works. What the network itself raises passes through.
    """
    key = network.config, str(network.device), network.dtype, tile
    offered = candidates(network.device, network.dtype)
    with _lock:
        if key in _decided:
            kept = {trial.name for trial in _decided[key] if trial.kept}
            run: Run = network
            for candidate in offered:
                run = candidate.build(run) if candidate.name in kept else run
        else:
            noise = torch.rand(1, 3, *[network.config.size] * 2, generator=torch.Generator().manual_seed(0))
            x = (noise * 2 - 1).to(network.device)
            run, _decided[key] = compare(network, offered, x, tile, bound=ERROR.get(network.dtype, 0.0))
        return Accelerated(network, run, _decided[key])


def compare(
    run: Run, offered: tuple[Candidate, ...], x: Tensor, tile: int, *, bound: float
) -> tuple[Run, tuple[Trial, ...]]:
    """Candidates one after another, each on top of those that won. bound: relative error still taken as the same."""
    trials = []
    for candidate in offered:
        expected = run(x, tile)
        try:
            faster = candidate.build(run)
            setup, _ = seconds_of(faster, x, tile)
            trial = _judged(candidate.name, run, faster, x, tile, expected, setup, bound)
        except Exception as error:  # whatever it is, this candidate is not usable here, and that is reported
            trial = Trial(name=candidate.name, verdict="failed", reason=first_line(error))
        log.info("%s", trial)
        trials.append(trial)
        run = faster if trial.kept else run
    return run, tuple(trials)


def _judged(
    name: str, run: Run, faster: Run, x: Tensor, tile: int, expected: Tensor, setup: float, bound: float
) -> Trial:
    before: list[float] = []
    after: list[float] = []
    error = 0.0
    give_up = time.perf_counter() + SECONDS
    for pair in range(ROUNDS):
        if pair >= LEAST and time.perf_counter() > give_up:
            break
        # By turns also within a pair: a clock that slows down would favour whoever goes first.
        for side in (0, 1) if pair % 2 else (1, 0):
            taken, picture = seconds_of((run, faster)[side], x, tile)
            (before, after)[side].append(taken)
            error = float((picture - expected).norm() / expected.norm()) if side else error
    same, ratio = error <= bound, min(before) / min(after)  # NaN is not the same either
    always = all(b > a for b, a in zip(before, after, strict=True))
    verdict: Verdict = "slower" if ratio < MARGIN else "kept" if always else "unsteady"
    if not same:
        verdict = "different"
    return Trial(name=name, verdict=verdict, ratio=ratio, error=error, setup=setup)


def seconds_of(run: Run, x: Tensor, tile: int) -> tuple[float, Tensor]:
    """Wall seconds of one call, and its picture."""
    _finish(x.device)
    start = time.perf_counter()
    picture = run(x, tile)
    _finish(x.device)
    return time.perf_counter() - start, picture


def _finish(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def candidates(device: torch.device, dtype: torch.dtype) -> tuple[Candidate, ...]:
    """What is worth a try, in the order in which one builds on the other."""
    offered = [Candidate("torch.compile", compiled)]
    if device.type == "cuda":
        offered.append(Candidate("cudnn.benchmark", lambda run: under(cudnn_search, run)))
    if dtype == torch.float32:
        offered.append(Candidate("matmul precision high", lambda run: under(high_precision, run)))
    if device.type == "cuda":
        offered.append(Candidate("CUDA graphs", graphed))
    return tuple(offered) if device.type in ("cpu", "cuda") else ()


def compiled(run: Run) -> Run:
    """torch.compile, a program for each shape. On a CPU it needs a C++ compiler."""
    return torch.compile(lambda x, tile: run(x, tile), dynamic=False)


def under(setting: Callable[[], Any], run: Run) -> Run:
    """`run` with a context around every call."""

    def call(x: Tensor, tile: int) -> Tensor:
        with setting():
            return run(x, tile)

    return call


@contextmanager
def cudnn_search() -> Iterator[None]:
    """cuDNN tries its algorithms once for every shape and remembers the fastest."""
    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = True
    try:
        yield
    finally:
        torch.backends.cudnn.benchmark = before


@contextmanager
def high_precision() -> Iterator[None]:
    """float32 matrix products may use TF32, or whatever else the device has for it."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def graphed(run: Run) -> Run:
    """CUDA graphs: all kernels of a pass recorded once for every shape and started at once."""
    graphs: dict[tuple[torch.Size, int], tuple[Any, Tensor, Tensor]] = {}

    def record(x: Tensor, tile: int) -> tuple[Any, Tensor, Tensor]:
        given, aside = x.clone(), torch.cuda.Stream(x.device)  # type: ignore[no-untyped-call, unused-ignore]
        aside.wait_stream(torch.cuda.current_stream(x.device))
        with torch.cuda.stream(aside):
            run(given, tile)  # searches and first allocations cannot be recorded
        torch.cuda.current_stream(x.device).wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = run(given, tile)
        return graph, given, result

    def replay(x: Tensor, tile: int) -> Tensor:
        key = x.shape, tile
        with torch.cuda.device(x.device):
            if key not in graphs:
                if len(graphs) >= GRAPHS:
                    del graphs[next(iter(graphs))]
                graphs[key] = record(x, tile)
            graph, given, result = graphs[key]
            given.copy_(x)
            graph.replay()
            return result.clone()  # the next replay writes into the recorded one

    return replay
