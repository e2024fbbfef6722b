"""Example photos, restored beforehand with the weights in use, so that trying one needs no waiting."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Lock, Thread

from gpen_zoo.hints import Note
from gpen_zoo.sessions import Session, Sessions, Thumbnail

log = logging.getLogger(__name__)


class Samples:
    """restore: makes a session of the photo at a path, kept in `sessions` under the key it is given."""

    def __init__(self, sessions: Sessions[Session], restore: Callable[[str, str], Session | Note]) -> None:
        self._sessions, self._restore = sessions, restore
        self._ready: dict[str, Session] = {}
        self._photos: tuple[Path, ...] = ()
        self._preparing = Lock()
        self._lock = Lock()  # of what is ready
        self._changes = 0  # of weights

    def __len__(self) -> int:
        return len(self._ready)

    def prepare(self, photos: tuple[Path, ...]) -> None:
        """Restore the photos now, and again whenever weights have changed. Meant for a thread of its own."""
        self._photos = photos
        with self._preparing:
            changes = self._changes
            for photo in photos:
                key = f"sample {photo.name}"
                session = self._restore(key, str(photo))
                self._sessions.take(key)
                if isinstance(session, Note):
                    log.info("no sample of %s: %s", photo.name, session)
                    continue
                with self._lock:
                    if self._changes == changes:
                        self._ready[str(photo)] = session
                        continue
                _delete(session)
                return  # others are being made with the new weights

    def outdate(self) -> None:
        """Other weights are in use: forget what the old ones made, files included, and begin anew."""
        with self._lock:
            self._changes += 1
            old = list(self._ready.values())
            self._ready.clear()
            for session in old:
                _delete(session)
        if self._photos:
            Thread(target=self.prepare, args=(self._photos,), daemon=True).start()

    def copy(self, photo: str) -> Session | None:
        """The restored photo in a folder of its own, for one visitor; None while it is not ready."""
        with self._lock:
            ready = self._ready.get(photo)
            if ready is None:
                return None
            folder = self._sessions.new_folder()
            shutil.copytree(ready.folder, folder, dirs_exist_ok=True)

        def moved(path: Path) -> Path:
            return folder / path.name

        return replace(
            ready,
            folder=folder,
            before=moved(ready.before),
            after=moved(ready.after) if ready.after else None,
            thumbnails={
                n: Thumbnail(before=moved(t.before), after=moved(t.after) if t.after else None)
                for n, t in ready.thumbnails.items()
            },
        )


def _delete(session: Session) -> None:
    shutil.rmtree(session.folder, ignore_errors=True)
