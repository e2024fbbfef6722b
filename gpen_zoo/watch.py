"""A restorer with a deadline, whose work is counted and whose silence is noticed: what a service needs around one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, cast

from gpen_zoo.branches import Branch
from gpen_zoo.deadline import Deadline, TimedDetector
from gpen_zoo.errors import GpenError
from gpen_zoo.restore import Prepared, Restorer
from gpen_zoo.types import U8, RestoreResult

if TYPE_CHECKING:
    from gpen_zoo.engine import Engine, Outcome


class Pulse:
    """When the work under way last showed a sign of life; safe from several threads."""

    def __init__(self, silence: float) -> None:
        self._silence = silence
        self._lock = threading.Lock()
        self._last: dict[object, float] = {}

    def start(self) -> object:
        """A piece of work begins; the key for `beat` and `stop`."""
        key = object()
        self.beat(key)
        return key

    def beat(self, key: object) -> None:
        """It is alive."""
        with self._lock:
            self._last[key] = time.monotonic()

    def stop(self, key: object) -> None:
        """It is over."""
        with self._lock:
            self._last.pop(key, None)

    @property
    def wedged(self) -> bool:
        """Whether some work has been silent for longer than it may."""
        with self._lock:
            return any(time.monotonic() - last > self._silence for last in self._last.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """timeout: seconds for one photo, None for no limit. stopped: set when everything is to end. restored, failed:
    told a result, or the code of what went wrong."""

    timeout: float | None
    stopped: threading.Event
    pulse: Pulse
    restored: Callable[[RestoreResult], None]
    failed: Callable[[str], None]


class WatchedEngine:
    """Takes the place of an `Engine` for those who restore crops: every call shows signs of life, or none."""

    def __init__(self, engine: Engine, pulse: Pulse) -> None:
        self.size = engine.size
        self._engine, self._pulse = engine, pulse

    def restore(self, crops: U8, *, on_crop: Callable[[int, int], None] | None = None) -> tuple[Outcome, ...]:
        """As `Engine.restore`."""
        key = self._pulse.start()

        def beat(done: int, total: int) -> None:
            self._pulse.beat(key)
            if on_crop is not None:
                on_crop(done, total)

        try:
            return self._engine.restore(crops, on_crop=beat)
        finally:
            self._pulse.stop(key)


class WatchedBranch(Branch):
    """A branch whose engine is watched, whoever uses it: a photo, a folder on the page, the trial at the start."""

    def __init__(self, branch: Branch, pulse: Pulse) -> None:
        super().__init__(
            name=branch.name,
            size=branch.size,
            template=branch.template,
            build=lambda: cast("Engine", WatchedEngine(branch.engine, pulse)),
            demo=branch.demo,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedRestorer(Restorer):
    """Takes the place of a `Restorer`. Its methods take whatever the restorer's take."""

    watch: Watch

    def __post_init__(self) -> None:
        pulse = self.watch.pulse
        branches = tuple(b if isinstance(b, WatchedBranch) else WatchedBranch(b, pulse) for b in self.branches)
        object.__setattr__(self, "branches", branches)  # frozen; and `replace` brings new ones when weights change

    # Any arguments: what they mean is the restorer's business, and only `progress` is looked at.
    def __call__(self, *args: Any, **more: Any) -> RestoreResult:
        """As `Restorer`; raises InferenceTimeoutError (T01) when time is up and Cancelled (T03) when all is to end."""
        result = self._watched(Restorer.__call__, args, more)
        self.watch.restored(result)
        return result

    def complete(self, *args: Any, **more: Any) -> RestoreResult:
        """As `Restorer`, watched like a call; the photo has been counted before."""
        return self._watched(Restorer.complete, args, more)

    def finish(self, *args: Any, **more: Any) -> RestoreResult:
        """As `Restorer`: the last step of those who take the steps one by one, and where their photos are counted."""
        result = Restorer.finish(self, *args, **more)
        self.watch.restored(result)
        return result

    def prepare(self, *args: Any, **more: Any) -> Prepared:
        """As `Restorer`, with a deadline of its own."""
        key = self.watch.pulse.start()
        try:
            return self._timed(self._deadline()).prepare(*args, **more)
        except GpenError as error:
            self.watch.failed(error.code)
            raise
        finally:
            self.watch.pulse.stop(key)

    def _watched(
        self, work: Callable[..., RestoreResult], args: tuple[Any, ...], more: dict[str, Any]
    ) -> RestoreResult:
        """A method of a restorer with a deadline, whose progress is a sign of life."""
        watch = self.watch
        deadline = self._deadline()
        given = more.pop("progress", None)
        key = watch.pulse.start()

        def progress(stage: str, done: int, total: int) -> None:
            watch.pulse.beat(key)
            deadline.progress(stage, done, total)
            if given is not None:
                given(stage, done, total)

        try:
            return work(self._timed(deadline), *args, progress=progress, **more)
        except GpenError as error:
            watch.failed(error.code)
            raise
        except Exception:
            watch.failed("S03")
            raise
        finally:
            watch.pulse.stop(key)

    def _deadline(self) -> Deadline:
        deadline = Deadline(self.watch.timeout, self.watch.stopped)
        deadline.start()
        return deadline

    def _timed(self, deadline: Deadline) -> Restorer:
        own = {f.name: getattr(self, f.name) for f in fields(Restorer)}
        return Restorer(**{**own, "detector": TimedDetector(self.detector, deadline)})


def watched(restorer: Restorer, watch: Watch) -> WatchedRestorer:
    """`restorer` under watch."""
    return WatchedRestorer(**{f.name: getattr(restorer, f.name) for f in fields(Restorer)}, watch=watch)
