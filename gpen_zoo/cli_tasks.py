"""`gpen-zoo colorize`, `inpaint` and `seg2face`: GPEN's other tasks, for files, folders and pipes."""
# ruff: noqa: T201

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpen_zoo.cli_flags import STDOUT
from gpen_zoo.cli_restore import check_one, interruptible, is_file_name, plan
from gpen_zoo.console import FAILED, INTERRUPTED, OK, complain, open_zoo, write_json
from gpen_zoo.errors import GpenError, OptionsInvalid, PathInaccessible, guarded
from gpen_zoo.hints import Lang, Note, say
from gpen_zoo.types import REPORT_VERSION

if TYPE_CHECKING:
    from gpen_zoo.batch_types import Job
    from gpen_zoo.branches import Branch
    from gpen_zoo.task_networks import Task
    from gpen_zoo.tasks import TaskResult
    from gpen_zoo.types import Detector, Image

AREAS = ("whole", "faces", "both")
ENDINGS: dict[Task, str] = {"colorize": "colorized", "inpaint": "filled", "seg2face": "face"}


def add_commands(to: Any, command: Callable[..., argparse.ArgumentParser], lang: Lang) -> None:
    """The commands with all their flags. command: as in cli.py."""
    for task in WORK:
        made = command(to, task, f"cli.{task}", partial(run, task))

        def add(*flags: str, words: str, made: argparse.ArgumentParser = made, **more: Any) -> None:
            made.add_argument(*flags, help=say(f"cli.{words}", lang), **more)

        add("-i", "--input", nargs="+", action="extend", required=True, metavar="FILE|DIR|-", words="input")
        add("-o", "--output", default="output", metavar="DIR|FILE|-", words="output")
        add("-r", "--recursive", action="store_true", words="recursive")
        add("--name", default=f"{{stem}}_{ENDINGS[task]}", metavar="PATTERN", words="name")
        add("--ext", "--format", metavar="jpg|png|…", words="ext")
        add("--quality", type=int, metavar="1-100", words="quality")
        if task == "colorize":
            add("--strength", type=float, default=1.0, metavar="0-1", words="colour_strength")
        if task == "inpaint":
            add("--mask", type=Path, required=True, metavar="FILE|DIR", words="fill_mask")
        if task != "seg2face":
            add("--area", choices=AREAS, default="whole", words="area")
        add("--model", default="auto", metavar="NAME", words="weights_name")
        add("--device", default="auto", words="device")
        add("--precision", choices=("auto", "float32", "float16", "bfloat16"), default="auto", words="precision")
        add("-q", "--quiet", action="store_true", words="quiet")
        add("--json", metavar="REPORT", words="json")


def run(task: Task, args: argparse.Namespace, lang: Lang) -> int:
    """One task on every input; see the head of cli.py for the exit code."""
    from gpen_zoo.branches import load_detector
    from gpen_zoo.inputs import find_inputs
    from gpen_zoo.outputs import Names
    from gpen_zoo.task_networks import load_network

    check(args)
    names, target = Names(args.name), Path(args.output)
    one_file = args.output == STDOUT or is_file_name(target)
    words = sys.stderr if STDOUT in (args.output, args.json) else sys.stdout
    inputs = find_inputs(args.input, recursive=args.recursive, without=set() if one_file else {target.resolve()})
    if one_file:
        check_one(len(inputs.photos), args.output)
    zoo = open_zoo()
    network = load_network(zoo, task, args.model, device=args.device, precision=args.precision)
    detector = load_detector(zoo) if getattr(args, "area", "whole") != "whole" else None
    for label, problem in inputs.problems:
        complain(problem, lang, label)
    jobs, _ = plan(inputs.photos, target, one_file, names, None)
    reports: list[dict[str, Any]] = []
    failed, start, code = len(inputs.problems), time.perf_counter(), OK
    try:
        with interruptible():
            for job in jobs:
                began = time.perf_counter()
                answer = guarded(partial(finish, task, job, args, network, detector))
                seconds = time.perf_counter() - began
                reports.append({"input": job.label, "seconds": round(seconds, 3), **report_of(answer)})
                if isinstance(answer, Note):
                    failed += 1
                    complain(answer, lang, job.label)
                elif not args.quiet:
                    result, path = answer
                    print(say("cli.done", lang, input=job.label, output=path or STDOUT), file=words)
                    for notice in result.notes:
                        print(f"  {say(notice, lang)} [{notice.code}]", file=words)
    except KeyboardInterrupt:
        print(say("cli.interrupted", lang), file=sys.stderr)
        code = INTERRUPTED
    totals = {"count": len(jobs) + len(inputs.problems), "done": len(reports) + len(inputs.problems) - failed}
    totals["failed"] = failed
    spent = time.perf_counter() - start
    if args.json is not None:
        report = {"version": REPORT_VERSION, "task": task, "results": reports}
        write_json(args.json, {**report, "totals": {**totals, "seconds": round(spent, 3)}})
    if args.quiet or totals["count"] != 1 or code == INTERRUPTED:
        print(say("cli.task_totals", lang, **totals, seconds=f"{spent:.1f}"), file=words)
    return code or (FAILED if failed else OK)


def check(args: argparse.Namespace) -> None:
    """OptionsInvalid for what would be wrong for every picture alike, before any work."""
    import numpy as np

    from gpen_zoo.image_io import output_format
    from gpen_zoo.types import Image

    output_format(Image(pixels=np.zeros((1, 1, 3), np.uint8)), args.ext)
    if args.quality is not None and not 1 <= args.quality <= 100:
        raise OptionsInvalid("I18", quality=args.quality)
    if not 0 <= getattr(args, "strength", 1.0) <= 1:
        raise OptionsInvalid("U01", value=args.strength)


def finish(
    task: Task, job: Job, args: argparse.Namespace, network: Branch, detector: Detector | None
) -> tuple[TaskResult, Path | None]:
    """One picture from reading to writing: the result and where it went, None for standard output."""
    from dataclasses import replace

    from gpen_zoo.image_io import encode, format_of_suffix, output_format
    from gpen_zoo.image_names import result_name
    from gpen_zoo.outputs import put_file

    result = WORK[task](job, args, network, detector)
    wanted = args.ext or (format_of_suffix(job.target.suffix) if job.exact and job.target else None)
    chosen, why = output_format(result.image, wanted)
    if why is not None:
        result = replace(result, notes=(*result.notes, why))
    data = encode(result.image, format=wanted, quality=args.quality)
    if job.target is None:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return result, None
    suffix = Path(result.image.source.name).suffix or "."
    path = job.target if job.exact else job.target.with_name(result_name(f"{job.target.name}{suffix}", "", chosen))
    if isinstance(job.source, Path) and path.exists() and path.samefile(job.source):
        raise OptionsInvalid("U07", path=path)
    put_file(data, path)
    return result, path


def report_of(answer: tuple[TaskResult, Path | None] | Note) -> dict[str, Any]:
    """A picture's part of the JSON report."""
    if isinstance(answer, Note):
        return {"output": None, "error": answer.as_dict()}
    result, path = answer
    return {"output": None if path is None else str(path), "error": None, **result.as_dict()}


def colorized(job: Job, args: argparse.Namespace, network: Branch, detector: Detector | None) -> TaskResult:
    """A photo in colour."""
    from gpen_zoo.tasks import colorize

    return colorize(photo_of(job), network, strength=args.strength, area=args.area, detector=detector)


def filled(job: Job, args: argparse.Namespace, network: Branch, detector: Detector | None) -> TaskResult:
    """A photo with what its mask marks filled in."""
    from gpen_zoo.fill_mask import mask_of
    from gpen_zoo.image_io import read
    from gpen_zoo.tasks import inpaint

    image = photo_of(job)
    mask = mask_of(read(mask_file(job, args.mask)), image.width, image.height)
    return inpaint(image, mask, network, area=args.area, detector=detector)


def mask_file(job: Job, given: Path) -> Path:
    """The mask of a photo: the file that was given, or from a folder the one of the photo's name, whatever its suffix.

    Raises GpenError (P14).
    """
    if not given.is_dir():
        return given
    stem = Path(job.label).stem
    masks = sorted(path for path in given.iterdir() if path.stem == stem and path.is_file())
    if not masks:
        raise GpenError("P14", stem=stem, folder=given)
    return masks[0]


def drawn_face(job: Job, args: argparse.Namespace, network: Branch, detector: Detector | None) -> TaskResult:
    """A face from a label map."""
    from gpen_zoo.label_map import read_label_map
    from gpen_zoo.tasks import seg2face

    data = job.source if isinstance(job.source, bytes) else read_bytes(job.source)
    return seg2face(read_label_map(data, name=Path(job.label).name), network)


def read_bytes(path: Path) -> bytes:
    """A file's content. Raises PathInaccessible (I19 absent, I21)."""
    if not path.exists():
        raise PathInaccessible("I19", path=str(path))
    try:
        return path.read_bytes()
    except OSError as error:
        raise PathInaccessible("I21", path=str(path), reason=error.strerror or str(error)) from error


def photo_of(job: Job) -> Image:
    """The picture of a job."""
    from gpen_zoo.image_io import decode, read

    return read(job.source) if isinstance(job.source, Path) else decode(job.source, name=job.label)


WORK: dict[Task, Callable[..., TaskResult]] = {"colorize": colorized, "inpaint": filled, "seg2face": drawn_face}
