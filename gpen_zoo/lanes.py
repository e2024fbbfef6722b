"""Between the stages of a pipeline: queues that can be closed, and a window that bounds what is under way."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Closed(Exception):
    """The lane or window was closed: the run is over or was stopped."""


class Lane(Generic[T]):
    """A bounded queue. `end` says that nothing more will come; `close` throws away what is left and frees waiters."""

    def __init__(self, size: int) -> None:
        self._items: deque[T] = deque()
        self._size, self._ended, self._closed = size, False, False
        self._changed = threading.Condition()

    def put(self, item: T) -> None:
        """Add an item, waiting for room. Raises Closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or len(self._items) < self._size)
            if self._closed:
                raise Closed
            self._items.append(item)
            self._changed.notify_all()

    def take(self, enough: Callable[[list[T]], bool] = lambda _: True) -> list[T]:
        """The next item, and more of those that are there already until `enough` of them; never waits for company.

        Empty when the lane has ended. Raises Closed.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._ended or self._items)
            if self._closed:
                raise Closed
            taken: list[T] = []
            while self._items and not (taken and enough(taken)):
                taken.append(self._items.popleft())
            self._changed.notify_all()
            return taken

    def end(self) -> None:
        """Nothing more will be put."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def close(self) -> None:
        """Stop everybody."""
        with self._changed:
            self._closed = True
            self._items.clear()
            self._changed.notify_all()

    def __len__(self) -> int:
        return len(self._items)


class Window:
    """Bounds how many items, and how much of them, are between the first stage and the last, counted in order.

    The oldest item under way is always let through, so that a bound smaller than one item cannot stop everything.
    """

    def __init__(self, count: int, weight: float) -> None:
        self._count, self._most = count, weight
        self._oldest = 0
        self._weights: dict[int, float] = {}
        self._closed = False
        self._changed = threading.Condition()

    def enter(self, position: int) -> None:
        """Wait until fewer than `count` items are under way before this one. Raises Closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or position < self._oldest + self._count)
            if self._closed:
                raise Closed

    def weigh(self, position: int, weight: float) -> None:
        """Wait until there is room for this item's weight. Raises Closed."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._closed or position == self._oldest or sum(self._weights.values()) + weight <= self._most
            )
            if self._closed:
                raise Closed
            self._weights[position] = weight

    def leave(self, position: int) -> None:
        """The oldest item has left; its successor is the oldest now."""
        with self._changed:
            self._weights.pop(position, None)
            self._oldest = position + 1
            self._changed.notify_all()

    def close(self) -> None:
        """Stop everybody."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
