"""What happens when a visitor of the page presses something, without a word about widgets.

Every method answers with a value: what to show, or the note that says why there is nothing to show. Nothing is raised,
because exceptions lose their text on the way to the browser.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpen_zoo.errors import guarded
from gpen_zoo.hints import Note, note
from gpen_zoo.image_io import output_name, read, write
from gpen_zoo.options import options_from_json
from gpen_zoo.previews import face_pair, write_preview
from gpen_zoo.restore import Progress, Restorer, blend
from gpen_zoo.sessions import Session, Sessions
from gpen_zoo.types import Options, RestoreResult

OLD_PREVIEWS = 3  # kept while the browser may still be loading them


class Desk:
    """Serves visitors with one restorer; everything that belongs to a visitor lies in `sessions`."""

    def __init__(self, restorer: Restorer, sessions: Sessions) -> None:
        self.restorer, self.sessions = restorer, sessions

    def restore(
        self, key: str, photo: str | None, options: Options, progress: Progress | None = None
    ) -> Session | Note:
        """Read the file `photo`, restore it, and keep the result for `key`. An earlier result of `key` is forgotten."""
        self.sessions.drop(key)
        if not photo:
            return note("S01")
        return guarded(lambda: self._restore(key, photo, options, progress))

    def _restore(self, key: str, photo: str, options: Options, progress: Progress | None) -> Session:
        if progress:
            progress("read", 0, 1)
        # Every face goes through the network, so that ticking one later needs none.
        result = self.restorer(read(photo), replace(options, faces=None), progress=progress)
        folder = self.sessions.new_folder()
        tone = result.original.tone
        session = Session(
            result=blend(result, options) if options.faces is not None else result,
            folder=folder,
            before=write_preview(result.original, folder / "before"),
            after=write_preview(result.image, folder / "after-0"),
            pairs=tuple((c.index, write_preview(face_pair(c, tone), folder / f"face-{c.index}")) for c in result.crops),
        )
        self.sessions.put(key, session)
        return session

    def blend(self, key: str, options: Options) -> Session | Note:
        """Another strength or other ticks on the kept result; no network."""
        session = self.sessions.get(key)
        if session is None:
            return note("S02")
        return guarded(lambda: self._blend(key, session, options))

    def _blend(self, key: str, session: Session, options: Options) -> Session:
        result = blend(session.result, options)
        number = int(session.after.stem.partition("-")[2]) + 1
        after = write_preview(result.image, session.folder / f"after-{number}")
        for old in session.folder.glob(f"after-{number - OLD_PREVIEWS}.*"):
            old.unlink(missing_ok=True)
        session = replace(session, result=result, after=after)
        self.sessions.put(key, session)
        return session

    def finished_file(self, key: str) -> Path | Note:
        """The file to download: the photo at full size in the format it came in, under its own name plus a suffix."""
        session = self.sessions.get(key)
        if session is None:
            return note("S02")
        image = session.result.image
        return guarded(lambda: write(image, session.folder / output_name(image)))

    def serve(self, photo: str | None, options: Mapping[str, Any] | None) -> tuple[Path, dict[str, Any]] | Note:
        """One call of the API: file in, restored file and report out; nothing is kept for a session."""
        if not photo:
            return note("S01")
        return guarded(lambda: self._serve(photo, options))

    def _serve(self, photo: str, options: Mapping[str, Any] | None) -> tuple[Path, dict[str, Any]]:
        result: RestoreResult = self.restorer(read(photo), options_from_json(options))
        return write(result.image, self.sessions.new_folder() / output_name(result.image)), result.as_dict()
