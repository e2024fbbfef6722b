"""Hugging Face ZeroGPU: a graphics card that is there only during calls of a decorated function, in another process.

Only networks run there, those of faces and those that enlarge the background; finding faces and pasting stay outside,
where time costs no quota. What fails comes back as a value, because exceptions lose their text on the way. Everywhere
else nothing here does anything.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from gpen_zoo.branches import Branch, Upscalers
from gpen_zoo.errors import GpenError, guarded
from gpen_zoo.hints import Note
from gpen_zoo.restore import Restorer
from gpen_zoo.types import U8, Scale

if TYPE_CHECKING:
    from gpen_zoo.engine import Outcome
    from gpen_zoo.upscaler import Made, OnNote, OnTile

START_SECONDS = 10.0  # to bring the weights to the card in a fresh process
FACE_SECONDS = 0.5  # of a face at 512 px, generously: what is not used is not charged
MEGAPIXEL_SECONDS = 1.5  # of an enlarged picture, generously too

# The other process is a fork of this one: it finds networks here by name, and gets only pixels.
_branches: dict[str, Branch] = {}
_upscalers: list[Upscalers] = []


def present() -> bool:
    """Whether this is a ZeroGPU Space."""
    return os.environ.get("SPACES_ZERO_GPU", "").lower() in ("1", "true")


def borrowed(restorer: Restorer) -> Restorer:
    """The restorer with its networks on the borrowed card; unchanged where there is none."""
    if not present():
        return restorer
    _branches.update({branch.name: branch for branch in restorer.branches})
    _upscalers[:] = [restorer.upscalers]
    upscalers: Any = BorrowedUpscalers(restorer.upscalers)
    return replace(restorer, branches=tuple(_borrowing(branch) for branch in restorer.branches), upscalers=upscalers)


def borrowed_branch(branch: Branch) -> Branch:
    """One network on the borrowed card; unchanged where there is none."""
    if not present():
        return branch
    _branches[branch.name] = branch
    return _borrowing(branch)


def seconds(name: str, crops: U8) -> int:
    """How long to ask the card for: a longer wish waits longer and may exceed a visitor's quota."""
    return round(START_SECONDS + len(crops) * FACE_SECONDS * (_branches[name].size / 512) ** 2)


def run(name: str, crops: U8) -> tuple[Outcome, ...] | Note:
    """What happens on the card. crops: as `Engine.restore`."""
    return guarded(lambda: _branches[name].engine.restore(crops))


def upscaling_seconds(name: str, pixels: U8, scale: Scale) -> int:
    """As `seconds`, for a photo's background."""
    made: int = pixels.shape[0] * pixels.shape[1] * scale**2
    return round(START_SECONDS + made / 1e6 * MEGAPIXEL_SECONDS)


def upscale(name: str, pixels: U8, scale: Scale) -> Made | Note:
    """What happens on the card. pixels: as `Upscaler`."""

    def work() -> Made:
        upscaler = _upscalers[0].pick(name, scale)
        assert upscaler is not None, "lanczos borrows no card"
        return upscaler(pixels, scale)

    return guarded(work)


@cache
def _decorated() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """`run` and `upscale` for the card."""
    import spaces

    return spaces.GPU(duration=seconds)(run), spaces.GPU(duration=upscaling_seconds)(upscale)


def _answer(call: Callable[..., Any], wish: Callable[..., int], *given: Any) -> Any:
    """The answer of a decorated function. Raises GpenError for what it met, S30 for what the platform says instead
    (quota, no card free). wish: `given` → the seconds asked for."""
    try:
        answer = call(*given)
    except Exception as error:
        # `spaces` raises gradio's own Error with a sentence in it, and other kinds when its queue fails.
        reason = getattr(error, "message", None) or str(error) or type(error).__name__
        raise GpenError("S30", reason=reason, seconds=wish(*given)) from error
    if isinstance(answer, Note):
        raise GpenError(answer.code, **answer.params)
    return answer


class BorrowedEngine:
    """Takes the place of an `Engine` whose card is borrowed for each call."""

    def __init__(self, branch: Branch) -> None:
        self.size = branch.size
        self._name = branch.name
        self._run = _decorated()[0]

    def restore(self, crops: U8, *, on_crop: Callable[[int, int], None] | None = None) -> tuple[Outcome, ...]:
        """As `Engine.restore`, all crops in one call. Raises as `_answer` does."""
        answer: tuple[Outcome, ...] = _answer(self._run, seconds, self._name, crops)
        if on_crop is not None:
            on_crop(len(crops), len(crops))
        return answer


class BorrowedUpscalers:
    """Takes the place of `Upscalers`; those it gives borrow a card for each photo."""

    def __init__(self, plain: Upscalers) -> None:
        self._run = _decorated()[1]
        self._plain, self.names, self.best = plain, plain.names, plain.best

    def pick(self, choice: str, scale: Scale) -> BorrowedUpscaler | None:
        """As `Upscalers.pick`."""
        found = self._plain.pick(choice, scale)
        return None if found is None else BorrowedUpscaler(found.name, self._run)


class BorrowedUpscaler:
    """Takes the place of an `Upscaler`."""

    def __init__(self, name: str, run: Callable[..., Any]) -> None:
        self.name, self._run = name, run

    def __call__(
        self, pixels: U8, scale: Scale, *, on_tile: OnTile | None = None, on_note: OnNote | None = None
    ) -> Made:
        """As `Upscaler`, in one step and without an estimate. Raises as `_answer` does."""
        made: Made = _answer(self._run, upscaling_seconds, self.name, pixels, scale)
        if on_tile is not None:
            on_tile(1, 1)
        return made


def _borrowing(branch: Branch) -> Branch:
    # Made now, not on first use: a Space without a decorated function at its start is stopped.
    engine: Any = BorrowedEngine(branch)
    return Branch(name=branch.name, size=branch.size, template=branch.template, build=lambda: engine, demo=branch.demo)
