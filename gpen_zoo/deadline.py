"""How long one photo may take, counted in work: time spent waiting for other photos in a queue is not held against it.

Python cannot stop a running thread, so a deadline is looked at between steps that are short by themselves: after each
tile that the detector sees, after each micro-batch of the network, between stages. What cannot be trusted to return at
all, a decoder fed with a hostile file, runs in a process of its own (isolated.py).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event

from gpen_zoo.errors import Cancelled, InferenceTimeoutError
from gpen_zoo.hints import Note, note
from gpen_zoo.types import U8, Detector, RawFaces

STAGES = ("read", "detect", "align", "network", "background", "paste", "encode", "write")


class Deadline:
    """The working time of one photo, in seconds; None for no limit. Used by one thread at a time.

    cancelled: set when the whole run is to end; then every check raises Cancelled (T03).
    """

    def __init__(self, seconds: float | None, cancelled: Event | None = None) -> None:
        self.seconds, self._cancelled = seconds, cancelled
        self.spent = 0.0
        self._since: float | None = None

    @contextmanager
    def working(self, stage: str) -> Iterator[None]:
        """Count the time of the block. Raises InferenceTimeoutError (T01) before or after it when time is up."""
        self.check(stage)
        self._since = time.perf_counter()
        try:
            yield
        finally:
            self.spent += time.perf_counter() - self._since
            self._since = None
        self.check(stage)

    def start(self) -> None:
        """From now on all time counts: for a photo that waits for nobody."""
        self._since = time.perf_counter()

    def charge(self, seconds: float) -> None:
        """Count work that was done elsewhere, such as this photo's share of a batch."""
        self.spent += seconds

    @property
    def left(self) -> float | None:
        """Seconds still to be had, at least 0; None without a limit."""
        if self.seconds is None:
            return None
        running = 0.0 if self._since is None else time.perf_counter() - self._since
        return max(0.0, self.seconds - self.spent - running)

    def check(self, stage: str, more: float = 0.0) -> None:
        """Raise InferenceTimeoutError (T01) when the time, with `more` seconds not counted yet, is used up."""
        if self._cancelled is not None and self._cancelled.is_set():
            raise Cancelled("T03")
        left = self.left
        if left is not None and left - more <= 0:
            raise InferenceTimeoutError("T01", seconds=f"{self.seconds:g}", stage=stage_note(stage))

    def progress(self, stage: str, done: int, total: int) -> None:
        """A `Progress` for `Restorer`: stops the work between faces."""
        self.check({"faces": "detect", "restore": "network"}.get(stage, stage))


def stage_note(stage: str) -> Note:
    """One of `STAGES` in words."""
    return note(f"stage.{stage}")


@dataclass(frozen=True, slots=True)
class TimedDetector:
    """A detector that stops between the tiles of a photo when the photo's time is up."""

    detector: Detector
    deadline: Deadline

    @property
    def name(self) -> str:
        return self.detector.name

    def __call__(self, pixels: U8) -> RawFaces:
        self.deadline.check("detect")
        return self.detector(pixels)
