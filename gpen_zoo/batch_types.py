"""What a batch is asked, and what it answers."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from gpen_zoo.hints import Note
from gpen_zoo.types import Options, RestoreResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One photo to restore.

    label: how people know it. source: path of the file, or its bytes. target: where the result goes. An `exact` target
    is the file itself and its suffix gives the format; otherwise the target lacks its suffix, which follows from the
    format. None: nothing is written.
    """

    label: str
    source: Path | bytes
    target: Path | None = None
    exact: bool = False


class Watch(Protocol):
    """Who wants to know how a background gets on; called by the thread that makes it."""

    def note(self, job: Job, what: Note) -> None:
        """How long it will take."""

    def tile(self, job: Job, done: int, total: int) -> None:
        """So many of its tiles are finished."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Done:
    """What became of a job. number: its place in the run, from 1. seconds: work spent on it, waiting not counted.

    written: the result, then what else was asked for. Either `result` or `error` is None.
    """

    job: Job
    number: int
    seconds: float
    result: RestoreResult | None = None
    written: tuple[Path, ...] = ()
    error: Note | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How to run.

    timeout: seconds of work a photo may take; photos are then decoded in processes of their own. workers: threads that
    read and find faces. format, quality: as `image_io.encode`. long_side: photos are first brought to this size.
    auto_resize: an aligned picture is brought to the nearest branch size and the result back to its own.
    save_faces: each face before (left) and after, side by side, as `<result>_face01.png`: the author's `--save_face`,
    but without loss and with the number that the report gives the face.
    """

    options: Options = field(default_factory=Options)
    timeout: float | None = None
    workers: int = 2
    format: str | None = None
    quality: int | None = None
    long_side: int | None = None
    auto_resize: bool = False
    save_faces: bool = False


def default_workers() -> int:
    """Reading threads for this machine: the network wants the processors too."""
    return max(1, min(4, (os.cpu_count() or 2) // 2))
