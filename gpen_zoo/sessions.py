"""What the page keeps between two clicks of one visitor: a bounded store, oldest out first.

Gradio's own State keeps an hour of everybody's photos after they have left; this store is bounded in number, and an
entry leaves with its visitor.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import uuid
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, Protocol, TypeAlias, TypeVar

from gpen_zoo.detect import Found
from gpen_zoo.types import FaceReport, Image, Options, RestoreResult

Box: TypeAlias = tuple[float, float, float, float]

OLD_PREVIEWS = 3  # kept while the browser may still be loading them
LIMIT = 8  # visitors whose last photo is kept; at 12 megapixels an entry takes about 80 MB


@dataclass(frozen=True, slots=True, kw_only=True)
class Thumbnail:
    """One face on the page. after: None until the network has seen it."""

    before: Path
    after: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Session:
    """A visitor's photo: looked at, and (result) restored. Files the browser may fetch lie in `folder`.

    photo: the uploaded file. branch: the one asked for, "" for what suits each face. before, after: the photo fitted
    to a screen. found: all faces, drawn ones included. drawn: their boxes (x, y, width, height in photo pixels) by
    number. last: the highest number that was given to a face. faces: planned, later what became of them. thumbnails:
    by number of the face. seconds: how long restoring is expected to take, None while nothing was measured. round: how
    often it was restored.
    """

    photo: str
    branch: str = ""
    image: Image
    found: Found
    options: Options
    faces: tuple[FaceReport, ...]
    folder: Path
    before: Path
    thumbnails: dict[int, Thumbnail]
    drawn: dict[int, Box] = field(default_factory=dict)
    last: int = 0
    round: int = 0
    seconds: float | None = None
    result: RestoreResult | None = None
    after: Path | None = None

    def shows(self, path: str) -> bool:
        """Whether the page's photo field, which holds `path`, means this photo."""
        return path in (self.photo, str(self.before))

    def next_after(self) -> Path:
        """Where the next picture for `after` goes, without suffix: a new name, or the browser would show the old one.
        Makes room for it."""
        number = int(self.after.stem.partition("-")[2]) + 1 if self.after else 0
        for old in self.folder.glob(f"after-{number - OLD_PREVIEWS}.*"):
            old.unlink(missing_ok=True)
        return self.folder / f"after-{number}"


@dataclass(slots=True)
class _Visitor:
    stop: threading.Event = field(default_factory=threading.Event)
    busy: threading.Lock = field(default_factory=threading.Lock)
    pieces: int = 0


class Kept(Protocol):
    """What can be kept for a visitor."""

    @property
    def folder(self) -> Path: ...


S = TypeVar("S", bound=Kept)


class Sessions(Generic[S]):
    """What is kept for visitors, by key; safe from several threads.

    root: folder in which each session gets a folder of its own with an unguessable name, since whoever knows the path
    of a file in Gradio's folder can fetch it. Gradio serves files in its own folder in place and copies others into it.
    """

    def __init__(self, root: Path | None = None, limit: int = LIMIT) -> None:
        served = os.environ.get("GRADIO_TEMP_DIR") or Path(tempfile.gettempdir()) / "gradio"
        self.root, self._limit = root or Path(served), limit
        self._kept: OrderedDict[str, S] = OrderedDict()
        self._working: dict[str, _Visitor] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def new_folder(self) -> Path:
        """A new empty folder with an unguessable name."""
        folder = self.root / uuid.uuid4().hex
        folder.mkdir(parents=True)
        return folder

    @contextmanager
    def working(self, key: str) -> Iterator[threading.Event]:
        """One piece of work at a time for this visitor. The event says that it is to stop."""
        with self._lock:
            visitor = self._working.setdefault(key, _Visitor())
            visitor.pieces += 1
        try:
            with visitor.busy:
                try:
                    yield visitor.stop
                finally:
                    visitor.stop.clear()
        finally:
            with self._lock:
                visitor.pieces -= 1
                if not visitor.pieces:
                    del self._working[key]

    def stop(self, key: str) -> None:
        """Ask this visitor's work to stop at its next step."""
        with self._lock:
            if visitor := self._working.get(key):
                visitor.stop.set()

    def put(self, key: str, session: S) -> None:
        """Keep a session as this key's latest; what it replaces or pushes out is deleted with its files."""
        with self._lock:
            gone = [old for old in [self._kept.pop(key, None)] if old and old.folder != session.folder]
            self._kept[key] = session
            while len(self._kept) > self._limit:
                gone.append(self._kept.popitem(last=False)[1])
        _delete(gone)

    def get(self, key: str) -> S | None:
        """The session, which thereby counts as the latest; None when it was never there or had to go."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def take(self, key: str) -> S | None:
        """Hand a session over: it is forgotten, and its files are the caller's."""
        with self._lock:
            return self._kept.pop(key, None)

    def drop(self, key: str) -> None:
        """Forget a visitor, files included."""
        if gone := self.take(key):
            _delete([gone])


def _delete(sessions: Sequence[Kept]) -> None:
    for session in sessions:
        # A file that is being sent right now cannot be deleted on Windows; the system's sweep of its temp folder can.
        shutil.rmtree(session.folder, ignore_errors=True)
