"""Many photos through one restorer: reading, network and writing overlap, results come in the order of the input.

    jobs ─► read, find faces, cut ─► network ─► paste, encode, write ─► Done… in order
            several threads          one        several threads

Faces of several photos share the engine's batches, branch by branch. Whatever happens to one photo is a note on its
own result; the run goes on. What is under way is bounded in photos and in pixels, however long the list.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np

from gpen_zoo.align import cut_crop
from gpen_zoo.batch_types import Done, Job, Settings, Watch
from gpen_zoo.deadline import STAGES, Deadline, TimedDetector
from gpen_zoo.detection_cache import DetectionCache
from gpen_zoo.engine import Outcome
from gpen_zoo.errors import GpenError, OptionsInvalid, guarded
from gpen_zoo.hints import Note
from gpen_zoo.image_io import decode, encode, output_format, read
from gpen_zoo.image_names import format_of_suffix, result_name
from gpen_zoo.isolated import IsolatedReader
from gpen_zoo.lanes import Closed, Lane, Window
from gpen_zoo.outputs import put_file
from gpen_zoo.restore import CROPS_AT_ONCE, Branch, Prepared, Restorer
from gpen_zoo.sizing import nearest_branch_side, resized_image, with_long_side
from gpen_zoo.timeline import Timeline
from gpen_zoo.types import U8, Enlarged, Image, RestoredCrop

T = TypeVar("T")

AHEAD = 6  # photos under way besides one for each reading thread
PIXELS = 160e6  # of photos under way; original and result then take a gigabyte at most
FACES = 2 * CROPS_AT_ONCE  # that the network takes up at once, if as many are ready


@dataclass(slots=True, kw_only=True, eq=False)
class _Photo:
    """A job under way; owned by one thread at a time."""

    position: int
    job: Job
    deadline: Deadline
    arrived: float = 0.0  # in the lane it waits in
    size: tuple[int, int] = (0, 0)  # as read, before any resizing
    prepared: Prepared | None = None
    crops: dict[int, U8] = field(default_factory=dict)
    outcomes: dict[int, tuple[U8, Outcome]] = field(default_factory=dict)
    enlarged: Enlarged | None = None
    laps: dict[str, float] = field(default_factory=dict)  # stage → milliseconds of work
    error: Note | None = None  # that the network stage met


def run(
    jobs: Iterable[Job],
    restorer: Restorer,
    settings: Settings | None = None,
    *,
    cache: DetectionCache | None = None,
    timeline: Timeline | None = None,
    watch: Watch | None = None,
) -> Generator[Done, None, None]:
    """Restore `jobs`; one `Done` each, in their order, as soon as it and all before it are finished.

    Closing the generator, or an exception in the thread that reads it, stops the run: what is under way ends at its
    next step, and nothing is left half-written. Raises OptionsInvalid, and WeightMissing for a background by weights
    that are not there, before anything starts.
    """
    settings = settings or Settings()
    # Checked on any picture: a wrong option should not be told once for each of ten thousand photos.
    restorer.prepare(Image(pixels=np.zeros((8, 8, 3), np.uint8)), replace(settings.options, aligned=True))
    return _Run(jobs, restorer, settings, cache or DetectionCache(), timeline or Timeline(), watch).results()


class _Run:
    def __init__(
        self,
        jobs: Iterable[Job],
        restorer: Restorer,
        settings: Settings,
        cache: DetectionCache,
        timeline: Timeline,
        watch: Watch | None,
    ) -> None:
        self._jobs, self._restorer, self._settings = enumerate(jobs), restorer, settings
        self._cache, self._timeline, self._watch = cache, timeline, watch
        self._stopped = threading.Event()
        self._next_lock = threading.Lock()
        self._window = Window(settings.workers + AHEAD, PIXELS)
        self._to_network: Lane[_Photo] = Lane(settings.workers + AHEAD)
        self._to_writers: Lane[_Photo] = Lane(AHEAD)
        self._readers: list[IsolatedReader] = []
        self._finished: dict[int, Done] = {}
        self._given = 0
        self._total: int | None = None  # known when the jobs have run out
        self._failure: BaseException | None = None
        self._changed = threading.Condition()

    def results(self) -> Generator[Done, None, None]:
        writers = min(2, self._settings.workers)
        stages: list[tuple[str, int, Callable[[], None], Lane[_Photo] | None]] = [
            ("read", self._settings.workers, self._read_photos, self._to_network),
            ("network", 1, self._run_network, self._to_writers),
            ("write", writers, self._write_photos, None),
        ]
        threads = []
        for name, count, work, following in stages:
            left = [count]
            for number in range(1, count + 1):
                target = partial(self._work, work, following, left)
                threads.append(threading.Thread(target=target, name=f"{name}-{number}", daemon=True))
        for thread in threads:
            thread.start()
        position = 0
        try:
            while (done := self._wait_for(position)) is not None:
                yield done
                self._window.leave(position)
                position += 1
        finally:
            self._stopped.set()
            for part in (self._window, self._to_network, self._to_writers):
                part.close()
            for reader in self._readers:
                reader.interrupt()
            for thread in threads:
                thread.join()

    def _work(self, work: Callable[[], None], following: Lane[_Photo] | None, left: list[int]) -> None:
        """A thread: works until its lane ends. The last of a stage ends the lane that follows."""
        try:
            work()
        except Closed:
            return
        except BaseException as error:  # a fault of this file; the reader of results has to hear of it
            with self._changed:
                self._failure = error
                self._changed.notify_all()
        finally:
            with self._changed:
                left[0] -= 1
                last = left[0] == 0
            if last and following is not None:
                following.end()

    def _wait_for(self, position: int) -> Done | None:
        """The result of a position; None when there are no more jobs."""
        with self._changed:
            while position not in self._finished:
                if self._failure is not None:
                    raise self._failure
                if self._total is not None and position >= self._total:
                    return None
                # On Windows a wait without end cannot be interrupted from the keyboard.
                self._changed.wait(0.5)
            return self._finished.pop(position)

    def _settle(self, photo: _Photo, done: Done) -> None:
        with self._changed:
            self._finished[photo.position] = done
            self._changed.notify_all()

    def _fail(self, photo: _Photo, why: Note) -> None:
        self._settle(photo, Done(job=photo.job, number=photo.position + 1, seconds=photo.deadline.spent, error=why))

    def _next(self) -> _Photo | None:
        with self._next_lock:
            answer = next(self._jobs, None)
            if answer is None:
                with self._changed:
                    self._total = self._given
                    self._changed.notify_all()
                return None
            self._given += 1
            position, job = answer
            self._window.enter(position)
        return _Photo(position=position, job=job, deadline=Deadline(self._settings.timeout, self._stopped))

    def _stage(self, photo: _Photo, stage: str, work: Callable[[], T]) -> T:
        """Do a stage's work for a photo, timed and held to its deadline."""
        with self._timed(photo, stage), photo.deadline.working(stage):
            return work()

    @contextmanager
    def _timed(self, photo: _Photo, stage: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            seconds = time.perf_counter() - start
            photo.laps[stage] = photo.laps.get(stage, 0.0) + 1000 * seconds
            self._timeline.add(photo.position + 1, stage, start, seconds)

    def _waited(self, photo: _Photo, stage: str) -> None:
        self._timeline.add(photo.position + 1, stage, photo.arrived, time.perf_counter() - photo.arrived, waiting=True)

    # --- read, find faces, cut ---

    def _read_photos(self) -> None:
        with ExitStack() as stack:
            isolated = None
            if self._settings.timeout is not None:
                isolated = stack.enter_context(IsolatedReader())
                self._readers.append(isolated)
            while (photo := self._next()) is not None:
                image = guarded(partial(self._read, photo, isolated))
                if isinstance(image, Note):
                    self._fail(photo, image)
                    continue
                self._window.weigh(photo.position, image.width * image.height * _growth(self._settings))
                why = guarded(partial(self._prepare, photo, image))
                if isinstance(why, Note):
                    self._fail(photo, why)
                    continue
                photo.arrived = time.perf_counter()
                self._to_network.put(photo)

    def _read(self, photo: _Photo, isolated: IsolatedReader | None) -> Image:
        source, name = photo.job.source, photo.job.label
        if isolated is None:
            return self._stage(
                photo, "read", lambda: read(source) if isinstance(source, Path) else decode(source, name=name)
            )
        isolated.start()

        def work() -> Image:
            left, limit = photo.deadline.left, self._settings.timeout
            if isinstance(source, Path):
                return isolated.read(source, seconds=left, limit=limit)
            return isolated.decode(source, name=name, seconds=left, limit=limit)

        return self._stage(photo, "read", work)

    def _prepare(self, photo: _Photo, image: Image) -> None:
        """Faces found and cut out of a photo that was read."""
        photo.size = image.width, image.height
        long_side, options = self._settings.long_side, self._settings.options
        if self._settings.auto_resize and options.aligned:
            long_side = nearest_branch_side(image)
        restorer = replace(self._restorer, detector=TimedDetector(self._restorer.detector, photo.deadline))

        def detect() -> Prepared:
            shown = image if long_side is None else with_long_side(image, long_side)
            if options.aligned:
                return restorer.prepare(shown, options)
            key = self._cache.key(shown, restorer.detector.name)
            prepared = restorer.prepare(shown, options, found=self._cache.get(key))
            self._cache.put(key, prepared.found)
            return prepared

        prepared = photo.prepared = self._stage(photo, "detect", detect)
        sizes = {branch.name: branch.size for branch in restorer.branches}
        photo.crops = self._stage(
            photo,
            "align",
            lambda: {
                r.index: cut_crop(prepared.image.pixels, r.frame, sizes[r.branch])
                for r in prepared.todo
                if r.branch is not None
            },
        )

    # --- network ---

    def _run_network(self) -> None:
        while photos := self._to_network.take(lambda taken: sum(len(p.crops) for p in taken) >= FACES):
            for photo in photos:
                self._waited(photo, "network")
            for branch in self._restorer.branches:
                self._run_branch(branch, photos)
            for photo in photos:
                if photo.error is None:
                    self._enlarge(photo)
                if photo.error is not None:
                    self._fail(photo, photo.error)
                else:
                    photo.arrived = time.perf_counter()
                    self._to_writers.put(photo)

    def _run_branch(self, branch: Branch, photos: Sequence[_Photo]) -> None:
        """All faces of this branch, in batches that may mix photos."""
        while True:
            faces = [
                (photo, report.index)
                for photo in photos
                if photo.error is None and photo.prepared is not None
                for report in photo.prepared.todo
                if report.branch == branch.name and report.index not in photo.outcomes
            ]
            if not faces:
                return
            if self._stopped.is_set():
                raise Closed
            self._run_faces(branch, faces[:CROPS_AT_ONCE])

    def _run_faces(self, branch: Branch, faces: Sequence[tuple[_Photo, int]]) -> None:
        """One call of the engine. A photo whose time runs out meanwhile gets its error, and the others their turn
        again; a failure of the engine itself is the error of all of them."""
        start = time.perf_counter()
        shares = {id(photo): sum(1 for other, _ in faces if other is photo) / len(faces) for photo, _ in faces}
        overdue: list[_Photo] = []

        def on_crop(done: int, total: int) -> None:
            elapsed = time.perf_counter() - start
            for photo, _ in faces if done < total else ():
                try:
                    photo.deadline.check("network", elapsed * shares[id(photo)])
                except GpenError:
                    overdue.append(photo)
                    raise

        answer = guarded(lambda: branch.engine.restore(np.stack([p.crops[i] for p, i in faces]), on_crop=on_crop))
        if isinstance(answer, Note):
            for photo in overdue or [photo for photo, _ in faces]:
                photo.error = answer
            return
        for (photo, index), outcome in zip(faces, answer, strict=True):
            photo.outcomes[index] = photo.crops[index], outcome
            photo.deadline.charge(outcome.ms / 1000)
            photo.laps["network"] = photo.laps.get("network", 0.0) + outcome.ms
            self._timeline.add(photo.position + 1, "network", start, outcome.ms / 1000)
            start += outcome.ms / 1000

    def _enlarge(self, photo: _Photo) -> None:
        """The photo's background, in this stage because weights want the device for themselves."""
        prepared, watch = photo.prepared, self._watch
        assert prepared is not None
        if prepared.options.leaves_background:
            return

        def progress(stage: str, done: int, total: int) -> None:
            photo.deadline.progress(stage, done, total)
            if watch is not None:
                watch.tile(photo.job, done, total)

        def work() -> Enlarged | None:
            on_note = None if watch is None else partial(watch.note, photo.job)
            return self._restorer.enlarge(prepared, progress, on_note=on_note)

        answer = guarded(lambda: self._stage(photo, "background", work))
        if isinstance(answer, Note):
            photo.error = answer
        else:
            photo.enlarged = answer

    # --- paste, encode, write ---

    def _write_photos(self) -> None:
        while photos := self._to_writers.take():
            for photo in photos:
                self._waited(photo, "paste")
                answer = guarded(partial(self._finish, photo))
                if isinstance(answer, Note):
                    self._fail(photo, answer)
                else:
                    self._settle(photo, answer)

    def _finish(self, photo: _Photo) -> Done:
        prepared, settings = photo.prepared, self._settings
        assert prepared is not None
        network_ms = photo.laps.get("network", 0.0)
        result = self._stage(
            photo,
            "paste",
            lambda: self._restorer.finish(prepared, photo.outcomes, photo.enlarged, network_ms=network_ms),
        )
        if settings.auto_resize and settings.options.aligned:
            width, height = (side * settings.options.scale for side in photo.size)
            result = replace(result, image=resized_image(result.image, width, height))
        files: list[tuple[Path, bytes]] = []
        if photo.job.target is not None:
            path, format, why = self._destination(photo.job, photo.job.target, result.image)
            result = replace(result, notes=(*result.notes, *([why] if why else [])))
            image = result.image
            data = self._stage(photo, "encode", lambda: encode(image, format=format, quality=settings.quality))
            files.append((path, data))
            if settings.save_faces:
                files += [
                    (path.with_name(f"{path.stem}_face{crop.index:02d}.png"), encode(_side_by_side(crop), format="PNG"))
                    for crop in result.crops
                ]
        # Checked here only: a file that is in place is not called late.
        photo.deadline.check("write")
        with self._timed(photo, "write"):
            for path, data in files:
                put_file(data, path)
        return Done(
            job=photo.job,
            number=photo.position + 1,
            seconds=photo.deadline.spent,
            result=replace(result, timings=tuple((s, photo.laps[s]) for s in STAGES if s in photo.laps)),
            written=tuple(path for path, _ in files),
        )

    def _destination(self, job: Job, target: Path, image: Image) -> tuple[Path, str | None, Note | None]:
        """Where a result goes, the format asked for, and what is to be said about that."""
        format = self._settings.format or (format_of_suffix(target.suffix) if job.exact else None)
        chosen, why = output_format(image, format)
        if job.exact:
            path = target
        else:
            # The extension stays as it was written (.JPG) where it is true.
            suffix = Path(image.source.name).suffix
            path = target.with_name(result_name(f"{target.name}{suffix or '.'}", "", chosen))
        if isinstance(job.source, Path) and path.exists() and path.samefile(job.source):
            raise OptionsInvalid("U07", path=path)
        return path, format, why


def _growth(settings: Settings) -> float:
    """What a photo under way takes, in photos that are restored at their own size: those are held twice, before and
    after; others once more, before their faces are pasted."""
    options = settings.options
    return 1.0 if options.leaves_background else (1 + 2 * options.scale**2) / 2


def _side_by_side(crop: RestoredCrop) -> Image:
    return Image(pixels=np.hstack((crop.before, crop.after)))
