"""Where the time of a run went: one span for each stage of each photo, working and waiting apart."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Any

from gpen_zoo.deadline import STAGES


@dataclass(frozen=True, slots=True)
class Span:
    """photo: its number in the run. start: seconds since the run began. waiting: in a queue, not at work."""

    photo: int
    stage: str
    start: float
    seconds: float
    thread: str
    waiting: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Lap:
    """A stage summed over the run. ms: per photo that passed it."""

    stage: str
    photos: int
    work_ms: float
    wait_ms: float

    @property
    def ms(self) -> float:
        return self.work_ms / max(1, self.photos)


class Timeline:
    """Spans of one run, added by several threads. Takes about 200 bytes a span, some ten spans a photo."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._spans: list[Span] = []
        self._lock = threading.Lock()

    def add(self, photo: int, stage: str, start: float, seconds: float, *, waiting: bool = False) -> None:
        """Add a span, for the thread that calls. start: as `time.perf_counter` gives it."""
        thread = threading.current_thread().name
        with self._lock:
            self._spans.append(Span(photo, stage, start - self._began, seconds, thread, waiting))

    @property
    def spans(self) -> tuple[Span, ...]:
        with self._lock:
            return tuple(self._spans)

    def laps(self) -> tuple[Lap, ...]:
        """One line a stage, in the order of `STAGES`."""
        spans = self.spans
        return tuple(
            Lap(
                stage=stage,
                photos=len({s.photo for s in spans if s.stage == stage and not s.waiting}),
                work_ms=1000 * sum(s.seconds for s in spans if s.stage == stage and not s.waiting),
                wait_ms=1000 * sum(s.seconds for s in spans if s.stage == stage and s.waiting),
            )
            for stage in STAGES
            if stage != "background" or any(s.stage == stage for s in spans)
        )

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready: stages summed, and each photo's own milliseconds by stage."""
        photos: dict[int, dict[str, float]] = {}
        for span in self.spans:
            own = photos.setdefault(span.photo, {})
            key = f"{span.stage}_waiting" if span.waiting else span.stage
            own[key] = own.get(key, 0.0) + 1000 * span.seconds
        return {
            "stages": [
                {
                    "stage": lap.stage,
                    "photos": lap.photos,
                    "work_ms": round(lap.work_ms, 2),
                    "wait_ms": round(lap.wait_ms, 2),
                    "ms_per_photo": round(lap.ms, 2),
                }
                for lap in self.laps()
            ],
            "photos": [
                {"photo": photo, **{k: round(v, 2) for k, v in sorted(own.items())}}
                for photo, own in sorted(photos.items())
            ],
        }

    def chrome_trace(self) -> dict[str, Any]:
        """Trace Event Format (complete events, microseconds), for chrome://tracing and ui.perfetto.dev."""
        threads = {name: number for number, name in enumerate(dict.fromkeys(s.thread for s in self.spans), 1)}
        named = [
            {"ph": "M", "name": "thread_name", "pid": 1, "tid": number, "args": {"name": name}}
            for name, number in threads.items()
        ]
        events = [
            {
                "ph": "X",
                "name": f"{s.stage} (waiting)" if s.waiting else s.stage,
                "cat": "wait" if s.waiting else "work",
                "ts": round(s.start * 1e6, 1),
                "dur": round(s.seconds * 1e6, 1),
                "pid": 1,
                "tid": threads[s.thread],
                "args": {"photo": s.photo},
            }
            for s in self.spans
        ]
        return {"traceEvents": [*named, *events], "displayTimeUnit": "ms"}
