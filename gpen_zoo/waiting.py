"""Long work of several visitors on one machine: a line in which everybody knows their place, and work that can be
watched while it runs.

Gradio's own queue shows its places in English only and cannot stop a running function; this one does both.
"""

from __future__ import annotations

import contextvars
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from gpen_zoo.errors import Cancelled, GpenError

E = TypeVar("E")
T = TypeVar("T")

LONGEST = 20  # visitors in line before the next is asked to come back later
TICK = 0.2  # seconds between two looks at the stop flag while waiting

Stopped: TypeAlias = Callable[[], bool]


class Line:
    """Turns at something that serves one at a time, in order of arrival."""

    def __init__(self, longest: int = LONGEST) -> None:
        self._longest = longest
        self._tickets: deque[object] = deque()
        self._changed = threading.Condition()

    @contextmanager
    def turn(self, stopped: Stopped | None = None, waiting: Callable[[int], None] | None = None) -> Iterator[None]:
        """Wait for a turn and keep it. waiting: told how many are ahead, whenever that changes.

        Raises Cancelled when `stopped` says so while waiting, GpenError S04 when the line is full.
        """
        ticket = object()
        with self._changed:
            if len(self._tickets) > self._longest:
                raise GpenError("S04", count=self._longest)
            self._tickets.append(ticket)
        try:
            told = 0
            with self._changed:
                while ahead := self._tickets.index(ticket):
                    if stopped is not None and stopped():
                        raise Cancelled("S05")
                    if waiting is not None and ahead != told:
                        waiting(ahead)
                        told = ahead
                    self._changed.wait(TICK)
            yield
        finally:
            with self._changed:
                self._tickets.remove(ticket)
                self._changed.notify_all()


@dataclass(frozen=True, slots=True)
class Done(Generic[T]):
    """The last thing `watched` yields."""

    value: T


def watched(work: Callable[[Callable[[E], None]], T], stop: Callable[[], None]) -> Iterator[E | Done[T]]:
    """Run `work(tell)` in a thread and yield what it tells, the newest of each kind, and at last its value in `Done`.

    stop: called when nobody wants the rest, as when the page was closed. `work` must not raise.
    """
    told: queue.SimpleQueue[E | Done[T]] = queue.SimpleQueue()
    context = contextvars.copy_context()  # Gradio and ZeroGPU keep the visitor's request there
    thread = threading.Thread(target=lambda: told.put(Done(context.run(work, told.put))), daemon=True)
    thread.start()
    finished = False
    try:
        while not finished:
            latest: dict[type, E | Done[T]] = {}
            news = told.get()
            while True:
                latest.pop(type(news), None)
                latest[type(news)] = news
                if isinstance(news, Done) or told.empty():
                    break
                news = told.get()
            finished = isinstance(news, Done)
            yield from [news] if isinstance(news, Done) else latest.values()
    finally:
        if not finished:
            stop()
