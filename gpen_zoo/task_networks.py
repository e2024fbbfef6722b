"""The networks of GPEN's other tasks, taken from the zoo: colouring, filling in, faces from label maps.

They are GPEN like the restorers and run in the same engine; the one that is fed otherwise has that folded into its
weights.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np

from gpen_zoo.branches import Branch, wrong_role
from gpen_zoo.device import check_device
from gpen_zoo.engine import Engine, load_engine
from gpen_zoo.errors import WeightMissing
from gpen_zoo.manifest import Entry, Role
from gpen_zoo.weightfile import read_state_dict
from gpen_zoo.zoo import Zoo

if TYPE_CHECKING:
    from torch import Tensor

Task: TypeAlias = Literal["colorize", "inpaint", "seg2face"]

TASKS: tuple[Task, ...] = get_args(Task)
ROLES: dict[Task, Role] = {"colorize": "colorizer", "inpaint": "inpainter", "seg2face": "seg2face"}


def entry_for(zoo: Zoo, task: Task, name: str = "auto") -> Entry:
    """The manifest's entry that does `task`: the one called `name`, or for `auto` the first that is there, else the
    first of all, whose absence `Zoo.locate` then explains.

    Raises WeightMissing (W19) for an unknown name, WeightWrongKind (W47) for weights of another task.
    """
    role = ROLES[task]
    if name != "auto":
        entry = zoo.entry(name)
        if entry.role != role:
            raise wrong_role(entry, role)
        return entry
    entries = [e for e in zoo.entries if e.role == role and e.architecture.family == "GPEN"]
    if not entries:
        raise WeightMissing("W19", name=role, known=", ".join(e.name for e in zoo.entries))
    return next((e for e in entries if zoo.present(e)), entries[0])


def load_network(zoo: Zoo, task: Task, name: str = "auto", *, device: str = "auto", precision: str = "auto") -> Branch:
    """The network of a task. The file is verified now, its tensors are read on first use.

    Raises what `entry_for` raises, WeightMissing (W16: where to get the file and where to put it), WeightCorrupt,
    WeightWrongKind, or OptionsInvalid for a device that is not there.
    """
    check_device(device)
    entry = entry_for(zoo, task, name)
    path = zoo.locate(entry.name)
    # One template holds for all of GPEN's networks; the manifest demands it of restorers only.
    alignment = entry.alignment or next(e.alignment for e in zoo.entries if e.alignment is not None)

    def build() -> Engine:
        source = unnormalised(read_state_dict(path)) if task == "seg2face" else path
        return load_engine(source, device=device, precision=precision)

    assert entry.branch is not None  # the manifest demands it of every GPEN
    return Branch(name=entry.name, size=entry.branch, template=np.array(alignment), build=build, demo=entry.bundled)


def unnormalised(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Weights of a network that takes and gives [0, 1], so changed that it takes and gives [-1, 1] like all others.

    The author's Seg2face is fed x / 255 and its output is not rescaled. Both maps are affine, the first layer is a 1×1
    convolution with a bias behind it, and the picture is a sum of convolutions with a bias at the end; so the change
    of scale can be moved into them without touching the engine: w·(x + 1)/2 + b = (w/2)·x + (b + Σw/2), 2·y − 1.
    """
    new = {name: value.float() for name, value in state.items()}
    first = new["ecd0.0.0.weight"]
    scale = 1 / math.sqrt(first[0].numel())  # of the equalised learning rate, applied at run time
    new["ecd0.0.0.weight"] = first / 2
    new["ecd0.0.1.bias"] = new["ecd0.0.1.bias"] + scale * first.sum((1, 2, 3)) / 2
    pictures = [n for n in new if n.startswith("generator.to_rgb") and n.endswith((".conv.weight", ".bias"))]
    for name in pictures:
        if ".modulation." not in name:
            new[name] = new[name] * 2
    # The last one only: earlier pictures are enlarged, which would darken a constant at the border.
    biases = [n for n in pictures if n.startswith("generator.to_rgbs.") and n.count(".") == 3]
    last = max(biases, key=lambda n: int(n.split(".")[2]))
    new[last] = new[last] - 1
    return new
