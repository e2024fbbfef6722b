"""Hugging Face ZeroGPU: a graphics card that is there only during calls of a decorated function, in another process.

Only the network runs there; finding faces and pasting stay outside, where time costs no quota. What fails comes back
as a value, because exceptions lose their text on the way. Everywhere else nothing here does anything.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from gpen_zoo.branches import Branch
from gpen_zoo.errors import GpenError, guarded
from gpen_zoo.hints import Note
from gpen_zoo.restore import Restorer
from gpen_zoo.types import U8

if TYPE_CHECKING:
    from gpen_zoo.engine import Outcome

START_SECONDS = 10.0  # to bring the weights to the card in a fresh process
FACE_SECONDS = 0.5  # of a face at 512 px, generously: what is not used is not charged

Answer: TypeAlias = "tuple[Outcome, ...] | Note"

# The other process is a fork of this one: it finds branches here by name, and gets only crops.
_branches: dict[str, Branch] = {}


def present() -> bool:
    """Whether this is a ZeroGPU Space."""
    return os.environ.get("SPACES_ZERO_GPU", "").lower() in ("1", "true")


def borrowed(restorer: Restorer) -> Restorer:
    """The restorer with its networks on the borrowed card; unchanged where there is none."""
    if not present():
        return restorer
    _branches.update({branch.name: branch for branch in restorer.branches})
    return replace(restorer, branches=tuple(_borrowing(branch) for branch in restorer.branches))


def borrowed_branch(branch: Branch) -> Branch:
    """One network on the borrowed card; unchanged where there is none."""
    if not present():
        return branch
    _branches[branch.name] = branch
    return _borrowing(branch)


def seconds(name: str, crops: U8) -> int:
    """How long to ask the card for: a longer wish waits longer and may exceed a visitor's quota."""
    return round(START_SECONDS + len(crops) * FACE_SECONDS * (_branches[name].size / 512) ** 2)


def run(name: str, crops: U8) -> Answer:
    """What happens on the card. crops: as `Engine.restore`."""
    return guarded(lambda: _branches[name].engine.restore(crops))


@cache
def _decorated() -> Callable[[str, U8], Answer]:
    import spaces

    decorated: Callable[[str, U8], Answer] = spaces.GPU(duration=seconds)(run)
    return decorated


class BorrowedEngine:
    """Takes the place of an `Engine` whose card is borrowed for each call."""

    def __init__(self, branch: Branch) -> None:
        self.size = branch.size
        self._name = branch.name
        self._run = _decorated()

    def restore(self, crops: U8, *, on_crop: Callable[[int, int], None] | None = None) -> tuple[Outcome, ...]:
        """As `Engine.restore`, all crops in one call. Raises GpenError for what `run` met, S30 for what the platform
        says instead (quota, no card free)."""
        try:
            answer = self._run(self._name, crops)
        except Exception as error:
            # `spaces` raises gradio's own Error with a sentence in it, and other kinds when its queue fails.
            reason = getattr(error, "message", None) or str(error) or type(error).__name__
            raise GpenError("S30", reason=reason, seconds=seconds(self._name, crops)) from error
        if isinstance(answer, Note):
            raise GpenError(answer.code, **answer.params)
        if on_crop is not None:
            on_crop(len(crops), len(crops))
        return answer


def _borrowing(branch: Branch) -> Branch:
    # Made now, not on first use: a Space without a decorated function at its start is stopped.
    engine: Any = BorrowedEngine(branch)
    return Branch(name=branch.name, size=branch.size, template=branch.template, build=lambda: engine, demo=branch.demo)
