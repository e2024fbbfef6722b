"""What the zoo holds, made ready for the pipeline: restorers by size, the face detector, the face parser."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from gpen_zoo.detect import embedded_detector, retinaface_detector
from gpen_zoo.device import check_device
from gpen_zoo.engine import Engine, load_engine
from gpen_zoo.errors import GpenError, OptionsInvalid, WeightMissing, WeightWrongKind
from gpen_zoo.hints import note
from gpen_zoo.manifest import Entry, Role
from gpen_zoo.parse import parsenet_parser
from gpen_zoo.types import F64, Detector, Parser, Scale
from gpen_zoo.upscaler import Upscaler
from gpen_zoo.upscaler_networks import can_run, network_with, shape_of
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


class Upscalers:
    """The weights of a zoo that enlarge photos. Safe from several threads; looks anew each time what is installed.

    device, precision, tile: as `upscaler.Upscaler`. Without a zoo there are none.
    """

    def __init__(self, zoo: Zoo | None = None, device: str = "auto", precision: str = "auto", *, tile: int = 0) -> None:
        self._zoo, self._device, self._precision, self._tile = zoo, device, precision, tile
        self._lock = threading.Lock()
        self._built: dict[str, Upscaler] = {}

    def names(self) -> tuple[tuple[str, bool], ...]:
        """Every name that `pick` takes, and whether its file is there (sound or not)."""
        return tuple((e.name, self._zoo.present(e)) for e in self._entries(2)) if self._zoo else ()

    def best(self, scale: Scale) -> str:
        """Name of the weights made for this scale, installed or not; `""` without any."""
        return next((e.name for e in self._entries(scale)), "")

    def pick(self, choice: str, scale: Scale) -> Upscaler | None:
        """The upscaler of that name, or for `auto` the best that is installed and sound; None for none (or `lanczos`).

        Best is one made for the scale, then one of a larger factor, then one of a smaller, which runs twice. Raises
        OptionsInvalid (F63) for an unknown name, WeightMissing (W16) for one that is not installed, WeightCorrupt,
        WeightWrongKind, and GpenError (B30) where basicsr is missing.
        """
        if choice == "lanczos":
            return None
        entries = self._entries(scale)
        if choice != "auto":
            entry = next((e for e in entries if e.answers_to(choice)), None)
            if entry is None or self._zoo is None:
                known = ", ".join(("auto", "lanczos", *(e.name for e in entries)))
                raise OptionsInvalid("F63", field="background", known=known, value=choice)
            return self._ready(entry, self._zoo)
        for entry in entries:
            if self._zoo is not None and can_run() and self._zoo.usable(entry):
                try:
                    return self._ready(entry, self._zoo)
                except GpenError as error:
                    log.warning("%s is not usable: %s", entry.name, error)
        return None

    def _entries(self, scale: Scale) -> list[Entry]:
        """All of the manifest, the best for this scale first."""
        found = self._zoo.upscalers() if self._zoo else ()

        def rank(entry: Entry) -> int:
            factor = entry.architecture.params["scale"]
            return 0 if factor == scale else 1 if int(factor) > scale else 2

        return sorted(found, key=rank)

    def _ready(self, entry: Entry, zoo: Zoo) -> Upscaler:
        path = zoo.locate(entry.name)
        with self._lock:
            if entry.name not in self._built:
                network = network_with(path.name, state := read_state_dict(path))
                self._built[entry.name] = Upscaler(
                    entry.name,
                    lambda: network,
                    shape_of(path.name, state),
                    device=self._device,
                    precision=self._precision,
                    tile=self._tile,
                )
            return self._built[entry.name]


def pick_branch(side: float, branches: Sequence[Branch]) -> Branch:
    """The smallest branch whose crop is at least `side` photo pixels wide, else the largest."""
    fitting = [b for b in branches if b.size >= side]
    return min(fitting, key=lambda b: b.size) if fitting else max(branches, key=lambda b: b.size)


def load_branches(zoo: Zoo, name: str, device: str, precision: str, *, accelerate: bool = False) -> tuple[Branch, ...]:
    """The branch of a restorer's name or alias, or for `auto` every installed one, by size.

    Raises WeightMissing, WeightCorrupt, WeightWrongKind, or OptionsInvalid for a device that is not there. Files are
    verified now, tensors read on first use. accelerate: as the engine's; also on with GPEN_ZOO_ACCELERATE=1.
    """
    check_device(device)
    entries = zoo.restorers() if name == "auto" else (_restorer(zoo, name),)
    accelerate = accelerate or os.environ.get("GPEN_ZOO_ACCELERATE") == "1"
    branches = tuple(_branch(e, zoo.locate(e.name), device, precision, accelerate) for e in entries)
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
        raise wrong_role(entry, "restorer")
    return entry


def wrong_role(entry: Entry, wanted: Role) -> WeightWrongKind:
    """W47: weights of another task than the wanted one."""
    return WeightWrongKind(
        "W47", name=entry.name, found=note(f"ui.role_{entry.role}"), wanted=note(f"ui.role_{wanted}")
    )


def _branch(entry: Entry, path: Path, device: str, precision: str, accelerate: bool) -> Branch:
    assert entry.branch is not None  # the manifest demands both of every restorer
    assert entry.alignment is not None
    return Branch(
        name=entry.name,
        size=entry.branch,
        template=np.array(entry.alignment),
        build=lambda: load_engine(path, device=device, precision=precision, accelerate=accelerate),
        demo=entry.bundled,
    )
