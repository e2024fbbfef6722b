"""What the zoo holds, made ready for the pipeline: restorers by size, the face detector, the face parser."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from gpen_zoo.detect import embedded_detector, retinaface_detector
from gpen_zoo.device import check_device
from gpen_zoo.engine import Engine, load_engine
from gpen_zoo.errors import GpenError, WeightMissing, WeightWrongKind
from gpen_zoo.manifest import Entry
from gpen_zoo.parse import parsenet_parser
from gpen_zoo.types import F64, Detector, Parser
from gpen_zoo.weightfile import read_state_dict
from gpen_zoo.zoo import Zoo

if TYPE_CHECKING:
    import torch

T = TypeVar("T")

log = logging.getLogger(__name__)


class Branch:
    """One set of GPEN weights. name: the manifest's. size: side of its crops in pixels. template: float64 (5, 2).

    The engine is built by `build` on first use and kept; two threads asking at once build it once.
    """

    def __init__(self, *, name: str, size: int, template: F64, build: Callable[[], Engine], demo: bool = False) -> None:
        self.name, self.size, self.template, self.demo = name, size, template, demo
        self._build, self._lock = build, threading.Lock()
        self._engine: Engine | None = None

    @property
    def engine(self) -> Engine:
        with self._lock:
            if self._engine is None:
                self._engine = self._build()
            return self._engine


def pick_branch(side: float, branches: Sequence[Branch]) -> Branch:
    """The smallest branch whose crop is at least `side` photo pixels wide, else the largest."""
    fitting = [b for b in branches if b.size >= side]
    return min(fitting, key=lambda b: b.size) if fitting else max(branches, key=lambda b: b.size)


def load_branches(zoo: Zoo, name: str, device: str, precision: str) -> tuple[Branch, ...]:
    """The branch of a restorer's name or alias, or for `auto` every installed one, by size.

    Raises WeightMissing, WeightCorrupt, WeightWrongKind, or OptionsInvalid for a device that is not there. Files are
    verified now, tensors read on first use.
    """
    check_device(device)
    entries = zoo.restorers() if name == "auto" else (_restorer(zoo, name),)
    branches = tuple(_branch(entry, zoo.locate(entry.name), device, precision) for entry in entries)
    if not branches:
        raise WeightMissing("W19", name=name, known=", ".join(e.name for e in zoo.entries))
    return branches


def load_detector(zoo: Zoo) -> Detector:
    """RetinaFace when its verified weights are in the zoo, else the detector that ships with the dependencies.

    A RetinaFace file that fails verification is passed over here and told by `zoo.problems()`.
    """
    return _first_usable(zoo, "RetinaFace", retinaface_detector) or embedded_detector()


def load_parser(zoo: Zoo) -> Parser | None:
    """ParseNet when its verified weights are in the zoo, else None: masks are then drawn from the landmarks.

    A ParseNet file that fails verification is passed over here and told by `zoo.problems()`.
    """
    return _first_usable(zoo, "ParseNet", parsenet_parser)


def _first_usable(zoo: Zoo, family: str, build: Callable[[dict[str, torch.Tensor]], T]) -> T | None:
    """What `build` makes of the first weights of a family that are there, verified and of the right shape."""
    for entry in zoo.entries:
        if entry.architecture.family == family and zoo.present(entry):
            try:
                return build(read_state_dict(zoo.locate(entry.name)))
            except GpenError as error:
                log.warning("%s is not usable: %s", entry.name, error)
    return None


def _restorer(zoo: Zoo, name: str) -> Entry:
    entry = zoo.entry(name)
    if entry.role != "restorer":
        raise WeightWrongKind("W05", file=entry.name, found=entry.role, wanted="restorer")
    return entry


def _branch(entry: Entry, path: Path, device: str, precision: str) -> Branch:
    assert entry.branch is not None  # the manifest demands both of every restorer
    assert entry.alignment is not None
    return Branch(
        name=entry.name,
        size=entry.branch,
        template=np.array(entry.alignment),
        build=lambda: load_engine(path, device=device, precision=precision),
        demo=entry.bundled,
    )
