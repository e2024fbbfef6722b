"""How long a face takes here: measured, never guessed from a table."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from statistics import median

from gpen_zoo.types import FaceReport, Verdict

LAST = 9  # faces that count; their median, because the first one of a branch also loads its weights


class Pace:
    """Milliseconds per face and branch on this machine; safe from several threads.

    A branch that has not run yet is reckoned from one that has: the work grows with the pixels of the crop.
    """

    def __init__(self) -> None:
        self._ms: dict[str, deque[float]] = {}
        self._lock = threading.Lock()

    def learn(self, faces: Iterable[FaceReport], sizes: dict[str, int]) -> None:
        """Take in what the faces of a finished photo took. sizes: side of each branch's crops by its name."""
        with self._lock:
            for face in faces:
                if face.ms > 0 and face.branch in sizes:
                    self._ms.setdefault(face.branch, deque(maxlen=LAST)).append(face.ms)

    def seconds(self, faces: Iterable[FaceReport], sizes: dict[str, int]) -> float | None:
        """Expected seconds for the faces that want the network; None while nothing was measured."""
        total = 0.0
        with self._lock:
            known = {name: median(ms) for name, ms in self._ms.items() if name in sizes}
        for face in faces:
            if face.verdict is not Verdict.RESTORED or face.branch not in sizes:
                continue
            if not known:
                return None
            size = sizes[face.branch]
            nearest = face.branch if face.branch in known else min(known, key=lambda name: abs(sizes[name] - size))
            total += known[nearest] * (size / sizes[nearest]) ** 2
        return total / 1000
