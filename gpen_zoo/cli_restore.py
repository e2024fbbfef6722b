"""`gpen-zoo restore`: one photo, a folder of ten thousand, or a pipe."""
# ruff: noqa: T201

from __future__ import annotations

import argparse
import logging
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpen_zoo.cli_flags import STDOUT, device_of, settings_of
from gpen_zoo.cli_totals import Totals, laps_table, tell_result
from gpen_zoo.console import FAILED, INTERRUPTED, OK, complain, open_zoo, write_json
from gpen_zoo.errors import OptionsInvalid, PathInaccessible
from gpen_zoo.hints import Lang, Note, note, say
from gpen_zoo.types import REPORT_VERSION, Verdict

if TYPE_CHECKING:
    from gpen_zoo.batch_types import Done, Job
    from gpen_zoo.inputs import Input
    from gpen_zoo.journal import Journal
    from gpen_zoo.outputs import Names

log = logging.getLogger(__name__)

DISK_FULL = "U17"


def run(args: argparse.Namespace, lang: Lang) -> int:
    """Restore; see the head of cli.py for the exit code."""
    from gpen_zoo.batch import run as run_batch
    from gpen_zoo.detection_cache import DetectionCache
    from gpen_zoo.inputs import find_inputs
    from gpen_zoo.journal import Journal
    from gpen_zoo.outputs import Names, sweep
    from gpen_zoo.restore import load
    from gpen_zoo.timeline import Timeline

    settings = settings_of(args)
    names = Names(args.name)
    target = Path(args.output)
    one_file = args.output == STDOUT or is_file_name(target)
    words = sys.stderr if STDOUT in (args.output, args.json) else sys.stdout
    for replaced in getattr(args, "replaced", ()):
        complain(replaced, lang)
    if args.sr_scale is not None and not args.use_sr:
        complain(note("U22", flag="--sr_scale"), lang)
    if args.auto_resize and not args.aligned:
        complain(note("U29"), lang)
    journal = None if one_file else Journal(target)
    without = {target.resolve(), *journal.outputs} if journal else set()
    inputs = find_inputs(args.input, recursive=args.recursive, without=without)
    if one_file:
        check_one(len(inputs.photos), args.output)
    check_report_places(args)
    zoo = open_zoo()
    restorer = load(
        args.model,
        zoo=zoo,
        device=device_of(args, lang),
        precision=args.precision,
        background_tile=args.bg_tile,
        accelerate=args.accelerate,
    )
    totals = Totals()
    for label, problem in inputs.problems:
        complain(problem, lang, label)
        totals.failed += 1
    if inputs.passed_over and not args.quiet:
        print(say("cli.passed_over", lang, count=inputs.passed_over), file=words)
    if journal is not None and target.is_dir():
        sweep(target)
    jobs, totals.skipped = plan(inputs.photos, target, one_file, names, journal if args.skip_existing else None)
    timeline = Timeline()
    reports: list[dict[str, Any]] = []
    told: set[str] = set()
    stopped: Note | None = None
    code = OK
    try:
        with ExitStack() as stack:
            stack.enter_context(interruptible())
            cache = DetectionCache(None if args.no_cache else zoo.home / "faces")
            watch = None if args.quiet else stack.enter_context(closing(BackgroundWatch(lang)))
            answers = stack.enter_context(
                closing(run_batch(jobs, restorer, settings, cache=cache, timeline=timeline, watch=watch))
            )
            for done in shown(answers, len(jobs), args.quiet, lang, stack):
                totals.add(done)
                if in_vain(done):
                    code = FAILED
                if args.output == STDOUT and done.error is None:
                    done = sent(done, settings.format, settings.quality)
                if args.json is not None:
                    reports.append(report_of(done))
                log_photo(done)
                keep(done, target, journal, lang)
                if done.error is not None:
                    complain(done.error, lang, done.job.label)
                elif not args.quiet:
                    tell_result(done, lang, told, words)
                if done.error is not None and done.error.code == DISK_FULL:
                    stopped = note("U30", count=len(jobs) - done.number)
                    break
    except KeyboardInterrupt:
        print(say("cli.interrupted", lang), file=sys.stderr)
        code = INTERRUPTED
    if stopped is not None:
        complain(stopped, lang)
    if args.json is not None:
        write_json(args.json, {"version": REPORT_VERSION, "results": reports, "totals": totals.as_dict()})
    if args.profile is not None:
        laps_table(timeline, lang, words)
        if args.profile != STDOUT:
            write_json(args.profile, timeline.as_dict())
    if args.trace is not None:
        write_json(args.trace, timeline.chrome_trace())
    if args.quiet or totals.count != 1 or code == INTERRUPTED:
        print(say("cli.statistics", lang, **totals.as_words()), file=words)
    return code or (FAILED if totals.failed or stopped else OK)


def check_one(count: int, output: str) -> None:
    """OptionsInvalid (U40, U08) where several pictures are to go to standard output or into one file."""
    if count > 1:
        raise (
            OptionsInvalid("U40", count=count) if output == STDOUT else OptionsInvalid("U08", count=count, path=output)
        )


def check_report_places(args: argparse.Namespace) -> None:
    """Reports are written last; that their files can be written is found out first, not after a night's work."""
    for path in (args.json, args.profile, args.trace):
        if path not in (None, STDOUT):
            try:
                Path(path).open("ab").close()
            except OSError as error:
                raise PathInaccessible("I22", path=path, reason=error.strerror or error) from error


def plan(
    photos: Sequence[Input], target: Path, one_file: bool, names: Names, journal: Journal | None
) -> tuple[list[Job], int]:
    """Jobs for the photos that want work, and how many do not. journal: of the run that is to be continued."""
    from gpen_zoo.batch_types import Job

    jobs: list[Job] = []
    skipped = 0
    for number, photo in enumerate(photos, 1):
        if photo.path is None:
            label, stem = "stdin", "stdin"
        else:
            label, stem = str(photo.path), photo.path.stem
        source = photo.path or sys.stdin.buffer.read()
        if one_file:
            place = None if str(target) == STDOUT else target
            jobs.append(Job(label=label, source=source, target=place, exact=True))
            continue
        # Named even when it is skipped: the others then get the names that they got the first time.
        place = target / photo.below / names.stem(target / photo.below, stem, number)
        if journal is not None and photo.path is not None and journal.finished(photo.path, place):
            skipped += 1
            continue
        jobs.append(Job(label=label, source=source, target=place))
    return jobs, skipped


def is_file_name(target: Path) -> bool:
    """Whether -o names a file: it ends like a picture and is not a folder already there."""
    from gpen_zoo.image_names import format_of_suffix

    return format_of_suffix(target.suffix) is not None and not target.is_dir()


def shown(answers: Iterator[Done], total: int, quiet: bool, lang: Lang, stack: ExitStack) -> Iterator[Done]:
    """The answers, with a bar on standard error where that is a terminal and there is something to wait for."""
    from tqdm import tqdm

    bar = tqdm(
        answers,
        total=total,
        disable=True if quiet or total < 2 else None,
        unit=say("cli.photo_unit", lang),
        smoothing=0,
    )
    stack.callback(bar.close)
    for done in bar:
        bar.clear()
        yield done


class BackgroundWatch:
    """Tells on standard error how long a background will take, and counts its tiles where that is a terminal."""

    def __init__(self, lang: Lang) -> None:
        self._lang = lang
        self._bar: Any = None

    def note(self, job: Job, what: Note) -> None:
        """The estimate, before the first tile."""
        complain(what, self._lang, job.label)

    def tile(self, job: Job, done: int, total: int) -> None:
        """`done` of `total` tiles of a photo are finished."""
        from tqdm import tqdm

        if self._bar is None:
            unit = say("cli.tile_unit", self._lang)
            self._bar = tqdm(total=total, unit=unit, disable=None if total > 1 else True, leave=False)
        self._bar.update(done - self._bar.n)
        if done == total:
            self.close()

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def in_vain(done: Done) -> bool:
    """Whether faces were wanted by number, none has such a number, and the photo came back as it was."""
    if done.result is None or all(what.code != "F09" for what in done.result.notes):
        return False
    return all(face.verdict is not Verdict.RESTORED for face in done.result.faces)


def keep(done: Done, target: Path, journal: Journal | None, lang: Lang) -> None:
    """The photo's line in the journal, and a failure's in the error log, of an output folder."""
    from gpen_zoo.journal import log_error

    if journal is None:
        return
    if isinstance(done.job.source, Path):
        journal.record(done.job.source, done.written, done.error)
    if done.error is not None:
        log_error(target, done.job.label, done.error, lang)


def sent(done: Done, format: str | None, quality: int | None) -> Done:
    """Write the restored photo to standard output; the same photo, with a notice where its format had to change."""
    from gpen_zoo.image_io import encode, output_format

    assert done.result is not None
    _, why = output_format(done.result.image, format)
    sys.stdout.buffer.write(encode(done.result.image, format=format, quality=quality))
    sys.stdout.buffer.flush()
    return done if why is None else replace(done, result=replace(done.result, notes=(*done.result.notes, why)))


def report_of(done: Done) -> dict[str, Any]:
    """A photo's part of the JSON report."""
    own = {} if done.result is None else done.result.as_dict()
    return {
        "input": done.job.label,
        "output": str(done.written[0]) if done.written else None,
        "files": [str(path) for path in done.written],
        "error": done.error.as_dict() if done.error else None,
        "seconds": round(done.seconds, 3),
        **own,
    }


def log_photo(done: Done) -> None:
    log.info(
        "photo",
        extra={
            "fields": {
                "photo": done.job.label,
                "number": done.number,
                "error": done.error.code if done.error else None,
                "seconds": round(done.seconds, 3),
                "faces": len(done.result.faces) if done.result else 0,
                "files": [str(path) for path in done.written],
            }
        },
    )


@contextmanager
def interruptible() -> Iterator[None]:
    """A polite request to end (SIGTERM) is met like Ctrl-C: results are whole, statistics are told."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
