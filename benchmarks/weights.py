"""What weights cost before the first face: taking one in, verifying it, loading it, on an official-size file.

    python -m benchmarks.weights [FOLDER]

Makes a random GPEN-512 as a `.pth` (284 MB) in FOLDER (a temporary one by default), adopts it into a zoo there, and
measures each step in a process of its own, so that peak memory is that of the step.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from gpen_zoo import manifest
from gpen_zoo.zoo import Zoo

NAME = "GPEN-BFR-512"
ROUNDS = 5


def zoo_in(folder: Path) -> Zoo:
    """A zoo whose only weight is unpinned, so that a random file can stand for it."""
    official = next(entry for entry in manifest.load() if entry.name == NAME)
    return Zoo(folder / "zoo", (replace(official, bytes=None, sha256=None),))


def adopt(folder: Path) -> None:
    import torch

    from gpen_zoo.network import GPEN

    original = folder / f"{NAME}.pth"
    torch.manual_seed(0)
    torch.save(GPEN(512).state_dict(), original)
    began = time.perf_counter()
    (done,) = zoo_in(folder).adopt(original, name=NAME, accept_unpinned=True)
    seconds = time.perf_counter() - began
    print(
        f"adopt   {seconds:.2f} s: {original.stat().st_size} bytes of .pth → {done.path.stat().st_size} of safetensors"
    )


def verify(folder: Path) -> None:
    before, began = peak_mb(), time.perf_counter()
    zoo_in(folder).verify(NAME)
    print(f"verify  {time.perf_counter() - began:.2f} s, peak memory {peak_mb():.1f} MB ({before:.1f} MB before)")
    began = time.perf_counter()
    zoo_in(folder).locate(NAME)
    print(f"locate  {1000 * (time.perf_counter() - began):.1f} ms when verified before")


def load(folder: Path) -> None:
    import torch

    from gpen_zoo.weightfile import read_state_dict

    original, stored = folder / f"{NAME}.pth", zoo_in(folder).locate(NAME)
    print(f"load    .pth, weights_only    {median(lambda: torch.load(original, weights_only=True)):.3f} s")
    print(f"load    safetensors           {median(lambda: read_state_dict(stored)):.3f} s, pages still on the disk")
    copied = median(lambda: {name: value.clone() for name, value in read_state_dict(stored).items()})
    print(f"load    safetensors, copied   {copied:.3f} s")


def median(work: Callable[[], object]) -> float:
    seconds = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


STEPS = {"adopt": adopt, "verify": verify, "load": load}

if __name__ == "__main__":
    if len(sys.argv) > 2:
        STEPS[sys.argv[2]](Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            place = sys.argv[1] if len(sys.argv) > 1 else temporary
            for step in STEPS:
                subprocess.run([sys.executable, "-m", "benchmarks.weights", place, step], check=True)
