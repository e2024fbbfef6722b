"""What happens when a visitor of the page presses something, without a word about widgets.

Every method answers with a value: what to show, or the note that says why there is nothing to show. Nothing is raised,
because exceptions lose their text on the way to the browser.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from threading import Event
from typing import Any, TypeAlias

from gpen_zoo.errors import Cancelled, GpenError, guarded
from gpen_zoo.hand_drawn import with_boxes, with_face, without_face
from gpen_zoo.hints import Note, note
from gpen_zoo.image_io import output_format, output_name, read, write
from gpen_zoo.options import check_options, options_from_json
from gpen_zoo.pace import Pace
from gpen_zoo.previews import LONGEST, face_before, write_preview
from gpen_zoo.restore import Prepared, Restorer
from gpen_zoo.samples import Samples
from gpen_zoo.sessions import Box, Session, Sessions, Thumbnail
from gpen_zoo.types import U8, Detector, Image, Options, RawFaces, RestoreResult, Scale
from gpen_zoo.unfolding import Unfolding, with_thumbnails
from gpen_zoo.waiting import Line


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Where a visitor's work stands. name: `line` (done people are ahead), or a stage of the restorer. told: how long
    it will take, where that was measured."""

    name: str
    done: int
    total: int
    told: Note | None = None


# Told a stage, or the session with one more face restored.
Tell: TypeAlias = Callable[["Stage | Session"], None]
# A file and the sign that it is not wanted any more → the picture; raises what `image_io.read` raises.
Read: TypeAlias = Callable[[str, Event], Image]


class Desk:
    """Serves visitors with one restorer; everything that belongs to a visitor lies in `sessions`.

    faces_shown: hand over faces as they are done; not where calling the network more than once costs too much. read:
    how photos are read, None for in this process.
    """

    def __init__(
        self,
        restorer: Restorer,
        sessions: Sessions[Session],
        *,
        faces_shown: bool = True,
        read: Read | None = None,
    ) -> None:
        self.restorer, self.sessions = restorer, sessions
        self.line, self.pace = Line(), Pace()
        self._faces_shown = faces_shown
        self.read = read or _read_here
        self._samples = Samples(sessions, lambda key, photo: self.restore(key, photo, Options()))

    @property
    def samples_ready(self) -> int:
        """How many examples can be tried at once."""
        return len(self._samples)

    @property
    def in_use(self) -> tuple[str, ...]:
        """Names of the weights that restore faces now."""
        return tuple(branch.name for branch in self.restorer.branches)

    def use(self, restorer: Restorer, changed: str) -> None:
        """Restore with other weights from now on. changed: name of the weight whose file is another one now."""
        loaded = {branch.name: branch for branch in self.restorer.branches if branch.name != changed}
        branches = tuple(loaded.get(branch.name, branch) for branch in restorer.branches)
        new = {field.name: getattr(restorer, field.name) for field in fields(Restorer)}
        # Of the same class: a service has put one of its own here, that watches.
        self.restorer = replace(self.restorer, **{**new, "branches": branches})
        self._samples.outdate()

    def look(
        self, key: str, photo: str | None, options: Options, branch: str = "", tell: Tell | None = None
    ) -> Session | Note:
        """Read the file `photo` and find its faces; an earlier photo of `key` is forgotten. branch: the one to use for
        every face, "" for the one that suits each."""
        return self._for_photo(
            key, photo, tell, lambda path, stop, told: self._looked(key, path, options, branch, stop, told)
        )

    def restore(
        self, key: str, photo: str | None, options: Options, tell: Tell | None = None, branch: str = ""
    ) -> Session | Note:
        """Restore the photo and keep the result for `key`. A photo that was looked at is not searched again."""

        def work(path: str, stop: Event, told: _Told) -> Session:
            session = self._looked(key, path, options, branch, stop, told)
            return self._restored(key, session, options, stop, told, tell or _unheard)

        return self._for_photo(key, photo, tell, work)

    def blend(self, key: str, change: Callable[[Options], Options], tell: Tell | None = None) -> Session | Note:
        """Other options: strength, ticks, mask. Before there is a result they are kept for it; afterwards it is blended
        anew, and the network runs only for faces that it has not seen."""
        return self._for_session(key, tell, lambda session, *more: self._changed(key, session, change, *more))

    def draw(self, key: str, box: Box, tell: Tell | None = None) -> Session | Note:
        """One more face, drawn by hand as x, y, width, height in photo pixels; restored at once where there is a
        result. Notes beside the usual ones: see `hand_drawn.with_face`."""

        def work(session: Session, stop: Event, told: _Told) -> Session:
            more = with_face(session, self._restorer(session.branch, stop), box)
            return self._changed(key, more, _same, stop, told)

        return self._for_session(key, tell, work)

    def erase(self, key: str, number: int) -> Session | Note:
        """Take a drawn face back."""
        return self._for_session(
            key, None, lambda session, *more: self._changed(key, without_face(session, number), _same, *more)
        )

    def stop(self, key: str) -> None:
        """Let the running work of `key` end at its next step."""
        self.sessions.stop(key)

    def leave(self, key: str) -> None:
        """The visitor has closed the page: stop and forget."""
        self.sessions.stop(key)
        self.sessions.drop(key)

    def _for_photo(
        self, key: str, photo: str | None, tell: Tell | None, work: Callable[[str, Event, _Told], Session]
    ) -> Session | Note:
        if not photo:
            self.sessions.drop(key)
            return note("S01")
        return self._working(key, tell, lambda stop, told: work(photo, stop, told))

    def _for_session(
        self, key: str, tell: Tell | None, work: Callable[[Session, Event, _Told], Session]
    ) -> Session | Note:
        def on_session(stop: Event, told: _Told) -> Session:
            session = self.sessions.get(key)
            if session is None:
                raise GpenError("S02")
            return work(session, stop, told)

        return self._working(key, tell, on_session)

    def _working(self, key: str, tell: Tell | None, work: Callable[[Event, _Told], Session]) -> Session | Note:
        """`work` as the only one of this visitor, told how far it is, until it is stopped."""

        def alone() -> Session:
            with self.sessions.working(key) as stop:
                return work(stop, _Told(stop, tell or _unheard))

        return guarded(alone)

    def _looked(self, key: str, photo: str, options: Options, branch: str, stop: Event, told: _Told) -> Session:
        check_options(options)
        session = self.sessions.get(key)
        if session is not None and session.shows(photo):
            if (_plan(session.options), session.branch) == (_plan(options), branch):
                return session
            if session.options.aligned == options.aligned:
                return self._planned_anew(key, session, options, branch, stop)
            photo = session.photo
        self.sessions.drop(key)
        told("read", 0, 1)
        image = self.read(photo, stop)
        told("faces", 0, 1)
        prepared = self._restorer(branch, stop).prepare(image, replace(options, faces=None))
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
            last=len(prepared.reports),
            seconds=self.pace.seconds(prepared.reports, self._sizes()),
        )
        return self._kept(key, session, stop)

    def _planned_anew(self, key: str, session: Session, options: Options, branch: str, stop: Event) -> Session:
        """The same photo and faces for another branch or another size."""
        asked = replace(options, faces=session.options.faces, strengths=session.options.strengths)
        session = replace(session, options=with_boxes(asked, session), branch=branch, result=None)
        prepared = self._restorer(branch, stop).prepare(session.image, session.options, found=session.found)
        return self._kept(key, self._with_plan(session, prepared), stop)

    def _with_plan(self, session: Session, prepared: Prepared) -> Session:
        seconds = self.pace.seconds(prepared.reports, self._sizes())
        bare = {n: replace(t, after=None) for n, t in session.thumbnails.items()}
        return replace(session, faces=prepared.reports, seconds=seconds, thumbnails=bare)

    def _restored(self, key: str, session: Session, options: Options, stop: Event, told: _Told, tell: Tell) -> Session:
        bare = {n: replace(t, after=None) for n, t in session.thumbnails.items()}
        session = replace(session, thumbnails=bare, round=session.round + 1)
        options = with_boxes(options, session)
        shown = Unfolding(session, options, tell)
        with self.line.turn(stop.is_set, lambda ahead: told("line", ahead, ahead)):
            result = self._restorer(session.branch, stop)(
                session.image,
                options,
                progress=told,
                on_note=told.estimate,
                found=session.found,
                on_crop=shown.add if self._faces_shown and len(session.faces) > 1 else None,
            )
        self.pace.learn(result.faces, self._sizes())
        return self._kept(key, self._with_result(shown.session, _with_format_told(result), options), stop)

    def _changed(
        self, key: str, session: Session, change: Callable[[Options], Options], stop: Event, told: _Told
    ) -> Session:
        options = with_boxes(change(session.options), session)
        check_options(options)
        session = replace(session, options=options)
        restorer, result = self._restorer(session.branch, stop), session.result
        prepared = restorer.prepare(session.image, options, found=session.found)
        if result is None:
            return self._kept(key, self._with_plan(session, prepared), stop)
        unseen = {r.index for r in prepared.todo} - {f.index for f in result.faces if f.plan is not None}
        if not unseen:
            result = restorer.complete(result, options, found=session.found)
            return self._kept(key, self._with_result(session, result, options), stop)
        self._kept(key, session, stop)  # what was chosen outlives a stop
        with self.line.turn(stop.is_set, lambda ahead: told("line", ahead, ahead)):
            result = restorer.complete(result, options, found=session.found, progress=told)
        self.pace.learn((f for f in result.faces if f.index in unseen), self._sizes())
        return self._kept(key, self._with_result(session, result, options), stop)

    def _kept(self, key: str, session: Session, stop: Event) -> Session:
        if stop.is_set():
            raise Cancelled("S05")
        self.sessions.put(key, session)
        return session

    def _restorer(self, branch: str, stop: Event) -> Restorer:
        """With this branch alone; with all when there is none of that name, as after it was removed."""
        only = tuple(one for one in self.restorer.branches if one.name == branch)
        detector = _Interruptible(self.restorer.detector, stop)
        return replace(self.restorer, branches=only or self.restorer.branches, detector=detector)

    def _sizes(self) -> dict[str, int]:
        return {branch.name: branch.size for branch in self.restorer.branches}

    def _with_result(self, session: Session, result: RestoreResult, options: Options) -> Session:
        return replace(
            with_thumbnails(session, result.crops),
            options=options,
            faces=result.faces,
            result=result,
            after=write_preview(result.image, session.next_after()),
        )

    def full_size(self, key: str) -> tuple[Path, Path] | Note:
        """Before and after with all their pixels, for a view at 100 %."""
        session = self.sessions.get(key)
        if session is None or session.result is None or session.after is None:
            return note("S02")
        image = session.result.image
        longest = max(image.width, image.height)
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
        """Restore the example photos; done again whenever weights have changed. Meant for a thread of its own."""
        self._samples.prepare(photos)

    def try_sample(self, key: str, photo: str) -> Session | Note:
        """The restored example for this visitor, at once; looked at like any photo while it is not ready."""
        session = self._samples.copy(photo)
        if session is None:
            return self.look(key, photo, Options())
        self.sessions.put(key, session)
        return session

    def serve(self, photo: str | None, options: Mapping[str, Any] | None) -> tuple[Path, dict[str, Any]] | Note:
        """One call of the API: file in, restored file and report out; nothing is kept for a session."""
        if not photo:
            return note("S01")
        return guarded(lambda: self._serve(photo, options))

    def _serve(self, photo: str, options: Mapping[str, Any] | None) -> tuple[Path, dict[str, Any]]:
        chosen, image = options_from_json(options), self.read(photo, Event())
        with self.line.turn():
            result = _with_format_told(self.restorer(image, chosen))
        return write(result.image, self.sessions.new_folder() / output_name(result.image)), result.as_dict()


class _Told:
    """A `Progress` that ends the work when it is stopped, and carries on what was estimated for the background."""

    def __init__(self, stop: Event, tell: Tell) -> None:
        self._stop, self._tell = stop, tell
        self._estimate: Note | None = None

    def estimate(self, why: Note) -> None:
        """How long the background will take."""
        self._estimate = why

    def __call__(self, stage: str, done: int, total: int) -> None:
        if self._stop.is_set():
            raise Cancelled("S05")
        why = self._estimate if stage == "background" else None
        self._tell(Stage(name=stage, done=done, total=total, told=why))


@dataclass(frozen=True, slots=True)
class _Interruptible:
    """A detector that does not go on to its next tile when nobody waits for it."""

    detector: Detector
    stop: Event

    @property
    def name(self) -> str:
        return self.detector.name

    def __call__(self, pixels: U8) -> RawFaces:
        if self.stop.is_set():
            raise Cancelled("S05")
        return self.detector(pixels)


def _plan(options: Options) -> tuple[bool, Scale, str]:
    """What cannot be changed without restoring anew."""
    return options.aligned, options.scale, options.background


def _same(options: Options) -> Options:
    return options


def _read_here(photo: str, stop: Event) -> Image:
    return read(photo)


def _with_format_told(result: RestoreResult) -> RestoreResult:
    """With a notice when the file will not be of the format that the photo came in."""
    told = output_format(result.image)[1]
    return replace(result, notes=(*result.notes, told)) if told else result


def _unheard(news: Stage | Session) -> None:
    """For those who only want the result."""
