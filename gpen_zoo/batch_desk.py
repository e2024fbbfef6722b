"""Many photos of one visitor: files and zips in, one row each as they finish, a zip of results out."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from threading import Event
from typing import Any

from gpen_zoo.archive import pack, unpack
from gpen_zoo.batch import run
from gpen_zoo.batch_types import Done, Job, Settings
from gpen_zoo.desk import Desk
from gpen_zoo.errors import GpenError, ImageTooLarge, ImageUnreadable, guarded
from gpen_zoo.hints import Note, note, say
from gpen_zoo.image_sniff import format_of
from gpen_zoo.outputs import Names
from gpen_zoo.previews import THUMBNAIL, write_preview
from gpen_zoo.sessions import Sessions
from gpen_zoo.types import REPORT_VERSION, Options, Verdict
from gpen_zoo.waiting import Line
from gpen_zoo.watch import WatchedRestorer

MOST_FILES = 200
MOST_BYTES = 2_000_000_000
KEPT = 4  # visitors whose last zip is kept
ERRORS, REPORT = "errors.txt", "report.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One photo. thumbnail: of the result. restored: faces of `found`. error: why there is no result."""

    number: int
    name: str
    found: int = 0
    restored: int = 0
    seconds: float = 0.0
    thumbnail: Path | None = None
    notes: tuple[Note, ...] = ()
    error: Note | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Batch:
    """How far a visitor's batch is. total: photos in all. ahead: visitors whose batch comes first. archive: the zip,
    when all is done (stopped: or the visitor wanted no more). reports: the rows for programs."""

    folder: Path
    total: int
    rows: tuple[Row, ...] = ()
    ahead: int = 0
    archive: Path | None = None
    stopped: bool = False
    reports: tuple[dict[str, Any], ...] = ()


class BatchDesk:
    """Serves batches with the restorer of `desk`. One batch runs at a time; single photos go between its faces."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._line = Line()
        self.sessions: Sessions[Batch] = Sessions(desk.sessions.root, KEPT)

    @property
    def weights(self) -> tuple[str, ...]:
        """Names of the weights that a batch may use."""
        return self._desk.in_use

    def restore(
        self,
        key: str,
        files: Sequence[str],
        options: Options,
        format: str | None = None,
        tell: Callable[[Batch], None] | None = None,
    ) -> Batch | Note:
        """Restore every photo; `tell` hears of each. The batch with its zip, or why there is none."""
        if not files:
            return note("S10")

        def work() -> Batch:
            with self.sessions.working(key) as stop:
                self.sessions.drop(key)
                folder = self.sessions.new_folder()
                restorer = self._desk.restorer
                limit = restorer.watch.timeout if isinstance(restorer, WatchedRestorer) else None
                settings = Settings(options=options, workers=1, format=format, timeout=limit)
                try:
                    batch = self._restored(folder, files, settings, stop, tell or _unheard)
                except BaseException:
                    shutil.rmtree(folder, ignore_errors=True)
                    raise
                self.sessions.put(key, batch)
                return batch

        return guarded(work)

    def stop(self, key: str) -> None:
        """End this visitor's batch after the photos under way."""
        self.sessions.stop(key)

    def leave(self, key: str) -> None:
        """The visitor has closed the page."""
        self.sessions.stop(key)
        self.sessions.drop(key)

    def _restored(
        self, folder: Path, files: Sequence[str], settings: Settings, stop: Event, tell: Callable[[Batch], None]
    ) -> Batch:
        found = list(_photos(files, folder / "in"))
        if not found:
            raise GpenError("S14")
        batch = Batch(folder=folder, total=len(found))
        done: list[Done] = []
        reports: list[dict[str, Any]] = []
        with self._line.turn(stop.is_set, lambda ahead: tell(replace(batch, ahead=ahead))):
            tell(batch)
            with closing(run(_jobs(found, folder / "out"), self._desk.restorer, settings)) as results:
                for one in _with_damaged(found, results):
                    batch = replace(batch, rows=(*batch.rows, _row(one, folder)))
                    reports.append(_report(one))
                    # Without its pictures, of which a batch of 200 photos would keep all.
                    done.append(replace(one, result=None))
                    tell(batch)
                    if stop.is_set():
                        break
        archive = pack(_results(done, folder / "out"), _papers(done, reports), folder / "restored.zip")
        for emptied in ("in", "out"):
            shutil.rmtree(folder / emptied, ignore_errors=True)
        return replace(batch, archive=archive, reports=tuple(reports), stopped=len(done) < len(found))


def _unheard(batch: Batch) -> None:
    """For those who only want the zip."""


def _photos(files: Sequence[str], into: Path) -> Iterator[tuple[str, Path | Note]]:
    """Name and path of every photo; zips are unpacked, and one that cannot be comes with the reason, after what could
    be had of it. Raises ImageTooLarge for too many photos."""
    count = 0
    for number, file in enumerate(files, 1):
        path = Path(file)
        if _is_zip(path):
            left = MOST_FILES - count
            try:
                for inner in unpack(path, into / str(number), most_files=left, most_bytes=MOST_BYTES):
                    count += 1
                    yield inner.name, inner.path
            except ImageUnreadable as error:
                yield path.name, error.note
        else:
            count += 1
            if count > MOST_FILES:
                raise ImageTooLarge("S12", file=path.name, files=MOST_FILES, gb=f"{MOST_BYTES / 1e9:g}")
            yield path.name, path


def _is_zip(path: Path) -> bool:
    with path.open("rb") as opened:
        head = opened.read(64)
    return head.startswith(b"PK\x03\x04") and format_of(head) is None


def _jobs(found: Sequence[tuple[str, Path | Note]], out: Path) -> list[Job]:
    names = Names()
    jobs = []
    for number, (name, path) in enumerate(found, 1):
        if isinstance(path, Note):
            continue
        parts = PurePosixPath(name)
        # Folders of a zip come back, but never lead out of ours.
        below = out.joinpath(*(p for p in parts.parent.parts if p not in ("/", "..", "") and ":" not in p))
        jobs.append(Job(label=name, source=path, target=below / names.stem(below, parts.stem, number)))
    return jobs


def _with_damaged(found: Sequence[tuple[str, Path | Note]], results: Iterator[Done]) -> Iterator[Done]:
    """Results with their place in the batch as number, and between them what could not be unpacked."""
    for number, (name, path) in enumerate(found, 1):
        if isinstance(path, Note):
            yield Done(job=Job(label=name, source=b""), number=number, seconds=0.0, error=path)
        else:
            yield replace(next(results), number=number)


def _row(done: Done, folder: Path) -> Row:
    if done.result is None:
        return Row(number=done.number, name=done.job.label, seconds=done.seconds, error=done.error)
    faces = done.result.faces
    return Row(
        number=done.number,
        name=done.job.label,
        found=len(faces),
        restored=sum(1 for face in faces if face.verdict is Verdict.RESTORED),
        seconds=done.seconds,
        thumbnail=write_preview(done.result.image, folder / f"thumb-{done.number}", THUMBNAIL),
        notes=(*done.result.notes, *(f.note for f in faces if f.verdict is not Verdict.RESTORED)),
    )


def _report(done: Done) -> dict[str, Any]:
    head = {"input": done.job.label, "output": done.written[0].name if done.written else None}
    if done.result is None:
        return {**head, "error": done.error.as_dict() if done.error else None}
    return {**head, "error": None, **done.result.as_dict()}


def _results(done: Sequence[Done], out: Path) -> Iterator[tuple[Path, str]]:
    for one in done:
        for path in one.written:
            yield path, path.relative_to(out).as_posix()


def _papers(done: Sequence[Done], reports: Sequence[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """The report, and the error log in both languages when there were errors."""
    text = json.dumps({"version": REPORT_VERSION, "results": list(reports)}, ensure_ascii=False, indent=2)
    yield REPORT, text + "\n"
    errors = [(one.job.label, one.error) for one in done if one.error is not None]
    if errors:
        lines = [f"{name}\n  {e.code} {say(e, 'zh')}\n  {e.code} {say(e, 'en')}\n" for name, e in errors]
        yield ERRORS, "\n".join(lines)
