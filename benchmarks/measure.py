"""How things are measured: interleaved rounds for times, a fresh process for memory and first results."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gpen_zoo.network import GPEN, Config

CONFIGS = {256: Config(256, 512, 8, 1, 0.5), 512: Config(512), 1024: Config(1024), 2048: Config(2048)}


def interleaved(
    runs: Mapping[str, Callable[[], Any]], rounds: int, *, warm_up: bool = True
) -> tuple[dict[str, float], dict[str, Any]]:
    """Best seconds of each and its last result. Rounds go through all runs in turn: they share every disturbance."""
    best, results = dict.fromkeys(runs, float("inf")), dict.fromkeys(runs)
    for round_ in range(rounds + warm_up):
        for name, run in runs.items():
            start = time.perf_counter()
            results[name] = run()
            if round_ or not warm_up:
                best[name] = min(best[name], time.perf_counter() - start)
    return best, results


def random_net(size: int) -> GPEN:
    """Official shapes with random weights; noise weights and biases are not zero, as in a trained network."""
    torch.manual_seed(size)
    net = GPEN.from_config(CONFIGS[size]).eval().requires_grad_(False)
    for name, value in net.named_parameters():
        if name.endswith("noise.weight"):
            value.uniform_(-1, 1)
        elif name.endswith("bias") and "modulation" not in name:
            value.normal_(0, 0.2)
    return net


def faces(size: int, n: int = 1) -> Tensor:
    return torch.rand(n, 3, size, size, generator=torch.Generator().manual_seed(1)) * 2 - 1


def relative_error(result: Tensor, expected: Tensor) -> float:
    return float((result.double() - expected.double()).norm() / expected.double().norm())


def multiplications(config: Config) -> dict[str, int]:
    """Multiply-adds of one face by stage, in the convolutions as they stand, without the low-pass filters.

    Stages: `encoder 512` halves 512 px, `decoder 512` doubles to it.
    """
    sides = [4 << i for i in range(config.size.bit_length() - 2)]
    stages = {}
    for low, side in zip(reversed(sides[:-1]), reversed(sides[1:]), strict=True):
        narrow, width = config.width(side), config.width(low)
        stages[f"encoder {side}"] = 9 * narrow * width * low**2
    stages[f"encoder {config.size}"] += 3 * config.width(config.size) * config.size**2
    stages["decoder 4"] = (9 * config.width(4) + 6) * config.width(4) * 16
    for low, side in zip(sides, sides[1:], strict=False):
        narrow, width = config.width(side), config.width(low)
        stages[f"decoder {side}"] = 9 * 2 * width * narrow * low**2 + (9 * narrow + 3) * 2 * narrow * side**2
    return stages


def matrix_peak(dtype: torch.dtype) -> float:
    """Multiply-adds per second of a large matrix product."""
    a, b = torch.randn(2048, 2048).to(dtype), torch.randn(2048, 2048).to(dtype)
    return 2048**3 / interleaved({"product": lambda: a @ b}, 5)[0]["product"]


def child(job: str, **arguments: Any) -> dict[str, float]:
    """Run a job of benchmarks.jobs in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.jobs", job, json.dumps(arguments)]
    root = Path(__file__).parents[1]
    done = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True)
    answer: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return answer


def resident() -> tuple[int, int]:
    """(bytes resident now, peak since `forget_peak`). Linux only."""
    status = Path("/proc/self/status").read_text()
    values = {line.split(":")[0]: line.split()[1] for line in status.splitlines() if line.startswith("Vm")}
    return int(values["VmRSS"]) * 1024, int(values["VmHWM"]) * 1024


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")
