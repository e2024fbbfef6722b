"""What happens when a visitor of the page presses something, without a word about widgets.

Every method answers with a value: what to show, or the note that says why there is nothing to show. Nothing is raised,
because exceptions lose their text on the way to the browser.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any, TypeAlias

import numpy as np

from gpen_zoo.errors import Cancelled, GpenError, guarded
from gpen_zoo.hints import Note, note
from gpen_zoo.image_io import output_format, output_name, read, write
from gpen_zoo.options import check_options, options_from_json
from gpen_zoo.pace import Pace
from gpen_zoo.previews import LONGEST, face_after, face_before, fit, write_preview
from gpen_zoo.restore import Restorer, blend
from gpen_zoo.sessions import Session, Sessions, Thumbnail
from gpen_zoo.types import F64, Options, RestoredCrop, RestoreResult
from gpen_zoo.waiting import Line

OLD_PREVIEWS = 3  # kept while the browser may still be loading them

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Where a visitor's work stands. name: `line` (done people are ahead), or a stage of the restorer."""

    name: str
    done: int
    total: int


# Told a stage, or the session with one more face restored.
Tell: TypeAlias = Callable[["Stage | Session"], None]


class Desk:
    """Serves visitors with one restorer; everything that belongs to a visitor lies in `sessions`.

    faces_shown: hand over each face as it is done; not where calling the network once for each costs too much.
    """

    def __init__(self, restorer: Restorer, sessions: Sessions[Session], *, faces_shown: bool = True) -> None:
        self.restorer, self.sessions = restorer, sessions
        self.line, self.pace = Line(), Pace()
        self._faces_shown = faces_shown
        self._samples: dict[str, Session] = {}
        self._sample_photos: tuple[Path, ...] = ()
        self._preparing = Lock()
        self._changes = 0  # of weights

    def use(self, restorer: Restorer, changed: str) -> None:
        """Restore with other weights from now on. changed: name of the weight whose file is another one now."""
        loaded = {branch.name: branch for branch in self.restorer.branches if branch.name != changed}
        branches = tuple(loaded.get(branch.name, branch) for branch in restorer.branches)
        new = {field.name: getattr(restorer, field.name) for field in fields(Restorer)}
        # Of the same class: a service has put one of its own here, that watches.
        self.restorer = replace(self.restorer, **{**new, "branches": branches})
        self._changes += 1
        self._samples.clear()
        if self._sample_photos:
            Thread(target=self.prepare_samples, args=(self._sample_photos,), daemon=True).start()

    def look(self, key: str, photo: str | None, options: Options, branch: str = "") -> Session | Note:
        """Read the file `photo` and find its faces; an earlier photo of `key` is forgotten. branch: the one to use for
        every face, "" for the one that suits each."""
        if not photo:
            self.sessions.drop(key)
            return note("S01")

        def work() -> Session:
            with self.sessions.working(key) as stop:
                return self._looked(key, photo, options, branch, stop)

        return guarded(work)

    def restore(
        self, key: str, photo: str | None, options: Options, tell: Tell | None = None, branch: str = ""
    ) -> Session | Note:
        """Restore the photo and keep the result for `key`. A photo that was looked at is not searched again."""
        if not photo:
            self.sessions.drop(key)
            return note("S01")

        def work() -> Session:
            with self.sessions.working(key) as stop:
                return self._restored(key, photo, options, branch, stop, tell or _unheard)

        return guarded(work)

    def stop(self, key: str) -> None:
        """Let the running work of `key` end at its next step."""
        self.sessions.stop(key)

    def leave(self, key: str) -> None:
        """The visitor has closed the page: stop and forget."""
        self.sessions.stop(key)
        self.sessions.drop(key)

    def _looked(self, key: str, photo: str, options: Options, branch: str, stop: Event) -> Session:
        check_options(options)
        session = self.sessions.get(key)
        if session is not None and session.shows(photo):
            if (session.options.aligned, session.branch) == (options.aligned, branch):
                return session
            photo = session.photo
        self.sessions.drop(key)
        image = read(photo)
        prepared = self._restorer(branch).prepare(image, replace(options, faces=None))
        folder = self.sessions.new_folder()
        session = Session(
            photo=photo,
            branch=branch,
            image=image,
            found=prepared.found,
            options=options,
            faces=prepared.reports,
            folder=folder,
            before=write_preview(image, folder / "before"),
            thumbnails={
                r.index: Thumbnail(before=write_preview(face_before(image, r.frame), folder / f"face-{r.index}"))
                for r in prepared.reports
            },
            seconds=self.pace.seconds(prepared.reports, self._sizes()),
        )
        self._keep(key, session, stop)
        return session

    def _restored(self, key: str, photo: str, options: Options, branch: str, stop: Event, tell: Tell) -> Session:
        def told(stage: str, done: int, total: int) -> None:
            if stop.is_set():
                raise Cancelled("S05")
            tell(Stage(name=stage, done=done, total=total))

        told("read", 0, 1)
        session = self._looked(key, photo, options, branch, stop)
        partial = _Partial(session, options, tell)
        with self.line.turn(stop.is_set, lambda ahead: told("line", ahead, ahead)):
            result = self._restorer(branch)(
                session.image,
                options,
                progress=told,
                keep_all=True,  # so that ticking a face later needs no network
                found=session.found,
                on_crop=partial.add if self._faces_shown and len(session.faces) > 1 else None,
            )
        self.pace.learn(result.faces, self._sizes())
        session = self._with_result(partial.session, _with_format_told(result), options)
        self._keep(key, session, stop)
        return session

    def _keep(self, key: str, session: Session, stop: Event) -> None:
        if stop.is_set():
            raise Cancelled("S05")
        self.sessions.put(key, session)

    def _restorer(self, branch: str) -> Restorer:
        """With this branch alone; with all when there is none of that name, as after it was removed."""
        only = tuple(one for one in self.restorer.branches if one.name == branch)
        return replace(self.restorer, branches=only) if only else self.restorer

    def _sizes(self) -> dict[str, int]:
        return {branch.name: branch.size for branch in self.restorer.branches}

    def _with_result(self, session: Session, result: RestoreResult, options: Options) -> Session:
        folder, tone = session.folder, session.image.tone
        thumbnails = dict(session.thumbnails)
        for crop in result.crops:
            path = write_preview(face_after(crop.after, tone), folder / f"face-{crop.index}-after")
            thumbnails[crop.index] = replace(thumbnails[crop.index], after=path)
        return replace(
            session,
            options=options,
            faces=result.faces,
            result=result,
            after=write_preview(result.image, _next_preview(session)),
            thumbnails=thumbnails,
        )

    def blend(self, key: str, change: Callable[[Options], Options]) -> Session | Note:
        """Another strength or other ticks; no network. Before a result there is, they are kept for it."""
        session = self.sessions.get(key)
        if session is None:
            return note("S02")
        return guarded(lambda: self._blend(key, change))

    def _blend(self, key: str, change: Callable[[Options], Options]) -> Session:
        with self.sessions.working(key) as stop:
            session = self.sessions.get(key)
            if session is None:
                raise GpenError("S02")
            options = change(session.options)
            check_options(options)
            if session.result is None:
                session = replace(session, options=options)
            else:
                result = blend(session.result, options)
                after = write_preview(result.image, _next_preview(session))
                session = replace(session, options=options, faces=result.faces, result=result, after=after)
            self._keep(key, session, stop)
            return session

    def full_size(self, key: str) -> tuple[Path, Path] | Note:
        """Before and after with all their pixels, for a view at 100 %."""
        session = self.sessions.get(key)
        if session is None or session.result is None or session.after is None:
            return note("S02")
        longest = max(session.image.width, session.image.height)
        if longest <= LONGEST:
            return session.before, session.after
        folder, result, after = session.folder, session.result, session.after

        def work() -> tuple[Path, Path]:
            before = folder / "full-before.jpg"
            if not before.is_file():
                before = write_preview(result.original, folder / "full-before", longest)
            return before, write_preview(result.image, folder / f"full-{after.stem}", longest)

        return guarded(work)

    def finished_file(self, key: str) -> Path | Note:
        """The file to download: the photo at full size in the format it came in, under its own name plus a suffix."""
        session = self.sessions.get(key)
        if session is None or session.result is None:
            return note("S02")
        image = session.result.image
        return guarded(lambda: write(image, session.folder / output_name(image)))

    def prepare_samples(self, photos: tuple[Path, ...]) -> None:
        """Restore the example photos, so that trying one needs no waiting; done again whenever weights have changed.

        Meant for a thread of its own.
        """
        self._sample_photos = photos
        with self._preparing:
            changes = self._changes
            for photo in photos:
                key = f"sample {photo.name}"
                session = self.restore(key, str(photo), Options())
                if isinstance(session, Note):
                    log.info("no sample of %s: %s", photo.name, session)
                    continue
                self.sessions.take(key)
                if self._changes != changes:
                    return  # others are being made with the new weights
                self._samples[str(photo)] = session

    def try_sample(self, key: str, photo: str) -> Session | Note:
        """The restored example for this visitor, at once; looked at like any photo while it is not ready."""
        ready = self._samples.get(photo)
        if ready is None:
            return self.look(key, photo, Options())
        folder = self.sessions.new_folder()
        shutil.copytree(ready.folder, folder, dirs_exist_ok=True)

        def moved(path: Path) -> Path:
            return folder / path.name

        session = replace(
            ready,
            folder=folder,
            before=moved(ready.before),
            after=moved(ready.after) if ready.after else None,
            thumbnails={
                n: Thumbnail(before=moved(t.before), after=moved(t.after) if t.after else None)
                for n, t in ready.thumbnails.items()
            },
        )
        self.sessions.put(key, session)
        return session

    def serve(self, photo: str | None, options: Mapping[str, Any] | None) -> tuple[Path, dict[str, Any]] | Note:
        """One call of the API: file in, restored file and report out; nothing is kept for a session."""
        if not photo:
            return note("S01")
        return guarded(lambda: self._serve(photo, options))

    def _serve(self, photo: str, options: Mapping[str, Any] | None) -> tuple[Path, dict[str, Any]]:
        chosen, image = options_from_json(options), read(photo)
        with self.line.turn():
            result = _with_format_told(self.restorer(image, chosen))
        return write(result.image, self.sessions.new_folder() / output_name(result.image)), result.as_dict()


class _Partial:
    """The photo with the faces that are done so far, at the size of the preview."""

    def __init__(self, session: Session, options: Options, tell: Tell) -> None:
        self.session, self._options, self._tell = session, options, tell
        small = fit(session.image)
        self._factor = small.width / session.image.width
        self._result = RestoreResult(
            image=small,
            original=small,
            faces=tuple(replace(face, frame=self._scaled(face.frame)) for face in session.faces),
            notes=(),
            timings=(),
            weights=(),
            detector=session.found.detector,
            aligned=options.aligned,
        )

    def _scaled(self, frame: F64) -> F64:
        return np.column_stack((frame[:, :2] / self._factor, frame[:, 2]))

    def add(self, crop: RestoredCrop) -> None:
        """Paste one more face and tell."""
        here = replace(crop, frame=self._scaled(crop.frame))
        # What is there already counts as the photo, so that each face is pasted once.
        so_far = replace(self._result, original=self._result.image, crops=(here,))
        self._result = replace(blend(so_far, self._options), faces=self._result.faces)
        folder, number = self.session.folder, crop.index
        path = write_preview(face_after(crop.after, self.session.image.tone), folder / f"face-{number}-after")
        self.session = replace(
            self.session,
            after=write_preview(self._result.image, _next_preview(self.session)),
            thumbnails={**self.session.thumbnails, number: replace(self.session.thumbnails[number], after=path)},
        )
        self._tell(self.session)


def _with_format_told(result: RestoreResult) -> RestoreResult:
    """With a notice when the file will not be of the format that the photo came in."""
    told = output_format(result.image)[1]
    return replace(result, notes=(*result.notes, told)) if told else result


def _next_preview(session: Session) -> Path:
    """A new name, or the browser would show the old picture; makes room for it."""
    number = int(session.after.stem.partition("-")[2]) + 1 if session.after else 0
    for old in session.folder.glob(f"after-{number - OLD_PREVIEWS}.*"):
        old.unlink(missing_ok=True)
    return session.folder / f"after-{number}"


def _unheard(news: Stage | Session) -> None:
    """For those who only want the result."""
