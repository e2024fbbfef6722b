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
from dataclasses import dataclass
from pathlib import Path

from gpen_zoo.types import RestoreResult

LIMIT = 8  # visitors whose last photo is kept; at 12 megapixels an entry takes about 80 MB


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Session:
    """A visitor's last result and the files the browser may fetch, all in `folder`.

    before, after: the photo fitted to a screen. pairs: each restored face, before and after side by side, by number.
    """

    result: RestoreResult
    folder: Path
    before: Path
    after: Path
    pairs: tuple[tuple[int, Path], ...]


class Sessions:
    """Sessions by key; safe from several threads.

    root: folder in which each session gets a folder of its own with an unguessable name, since whoever knows the path
    of a file in Gradio's folder can fetch it. Gradio serves files in its own folder in place and copies others into it.
    """

    def __init__(self, root: Path | None = None, limit: int = LIMIT) -> None:
        served = os.environ.get("GRADIO_TEMP_DIR") or Path(tempfile.gettempdir()) / "gradio"
        self._root, self._limit = root or Path(served), limit
        self._kept: OrderedDict[str, Session] = OrderedDict()
        self._lock = threading.Lock()

    def new_folder(self) -> Path:
        """A new empty folder with an unguessable name."""
        folder = self._root / uuid.uuid4().hex
        folder.mkdir(parents=True)
        return folder

    def put(self, key: str, session: Session) -> None:
        """Keep a session as this key's latest; what it replaces or pushes out is deleted with its files."""
        with self._lock:
            gone = [old for old in [self._kept.pop(key, None)] if old and old.folder != session.folder]
            self._kept[key] = session
            while len(self._kept) > self._limit:
                gone.append(self._kept.popitem(last=False)[1])
        _delete(gone)

    def get(self, key: str) -> Session | None:
        """The session, which thereby counts as the latest; None when it was never there or had to go."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def drop(self, key: str) -> None:
        """Forget a visitor, files included."""
        with self._lock:
            gone = self._kept.pop(key, None)
        if gone is not None:
            _delete([gone])


def _delete(sessions: list[Session]) -> None:
    for session in sessions:
        # A file that is being sent right now cannot be deleted on Windows; the system's sweep of its temp folder can.
        shutil.rmtree(session.folder, ignore_errors=True)
