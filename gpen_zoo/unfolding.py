"""A photo as it is shown while its faces are being restored: new faces pasted into a picture of the preview's size."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from gpen_zoo.previews import face_after, fit, write_preview
from gpen_zoo.restore import blend
from gpen_zoo.sessions import Session
from gpen_zoo.types import F64, Options, RestoredCrop, RestoreResult

EVERY = 0.7  # seconds between two pictures
SHARE = 0.2  # of the time that pictures may take at most


class Unfolding:
    """Takes one restored crop after the other and tells `session` with a new picture, the first at once, others no more
    often than they are worth."""

    def __init__(self, session: Session, options: Options, tell: Callable[[Session], None]) -> None:
        self.session, self._options, self._tell = session, options, tell
        small = fit(session.image)
        self._factor = small.width / session.image.width
        self._waiting: list[RestoredCrop] = []
        self._next = 0.0
        self._result = RestoreResult(
            image=small,
            original=small,
            faces=tuple(replace(face, frame=self._scaled(face.frame)) for face in session.faces),
            notes=(),
            timings=(),
            weights=(),
            detector=session.found.detector,
            aligned=options.aligned,
            options=replace(options, scale=1, background="auto"),
        )

    def _scaled(self, frame: F64) -> F64:
        return np.column_stack((frame[:, :2] / self._factor, frame[:, 2]))

    def add(self, crop: RestoredCrop) -> None:
        """One more face."""
        self.session = with_thumbnails(self.session, (crop,))
        self._waiting.append(replace(crop, frame=self._scaled(crop.frame)))
        if (start := time.perf_counter()) < self._next:
            return
        # What is there already counts as the photo, so that each face is pasted once.
        so_far = replace(self._result, original=self._result.image, crops=tuple(self._waiting))
        self._result = replace(blend(so_far, self._options), faces=self._result.faces)
        self._waiting.clear()
        self.session = replace(self.session, after=write_preview(self._result.image, self.session.next_after()))
        self._tell(self.session)
        end = time.perf_counter()
        self._next = end + max(EVERY, (end - start) / SHARE)


def with_thumbnails(session: Session, crops: tuple[RestoredCrop, ...]) -> Session:
    """The session with small pictures of these faces, where it has none yet."""
    made = dict(session.thumbnails)
    for crop in crops:
        if made[crop.index].after is None:
            path = session.folder / f"face-{crop.index}-after-{session.round}"
            made[crop.index] = replace(
                made[crop.index], after=write_preview(face_after(crop.after, session.image.tone), path)
            )
    return replace(session, thumbnails=made)
