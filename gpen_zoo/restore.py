"""The pipeline: Image → faces → crops → engine → paste → RestoreResult; `load` ties zoo and engine together."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from gpen_zoo.align import cut_crop, frame_of_face, frame_of_picture, side_of
from gpen_zoo.detect import Detector, Found, embedded_detector, find_faces, retinaface_detector
from gpen_zoo.engine import Engine, Outcome, load_engine
from gpen_zoo.errors import GpenError, WeightMissing, WeightWrongKind
from gpen_zoo.hints import Note, note
from gpen_zoo.manifest import Entry
from gpen_zoo.options import check_options
from gpen_zoo.paste import Place, paste
from gpen_zoo.types import F64, U8, Face, FaceReport, Image, Options, RestoredCrop, RestoreResult, Verdict
from gpen_zoo.weightfile import read_state_dict
from gpen_zoo.zoo import Zoo

log = logging.getLogger(__name__)

# Called with a stage (`faces`, `restore`, `paste`), steps done and steps in all. What it raises ends the work.
Progress: TypeAlias = Callable[[str, int, int], None]

TOO_SMALL = 16  # longest side of a face box in pixels below which nothing of the person is left to restore
MOSTLY_INVENTED = 24  # below this most detail comes from the network's memory, not from the photo
CROPS_AT_ONCE = 8  # bounds memory for crowds: 8 crops of 2048 px are 100 MB


class Branch:
    """One set of GPEN weights. name: the manifest's. size: side of its crops in pixels. template: float64 (5, 2).

    The engine is built by `build` on first use and kept; two threads asking at once build it once.
    """

    def __init__(self, *, name: str, size: int, template: F64, build: Callable[[], Engine], demo: bool = False) -> None:
        self.name, self.size, self.template, self.demo = name, size, template, demo
        self._build, self._lock = build, threading.Lock()
        self._engine: Engine | None = None

    @property
    def engine(self) -> Engine:
        with self._lock:
            if self._engine is None:
                self._engine = self._build()
            return self._engine


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prepared:
    """A photo that is ready for the network, so that faces of several photos can share a batch (see batch.py).

    reports: one a face, its verdict RESTORED where the network is still to run. ms: time it took to find the faces.
    """

    image: Image
    options: Options
    found: Found
    reports: tuple[FaceReport, ...]
    ms: float

    @property
    def todo(self) -> tuple[FaceReport, ...]:
        """The faces that want the network."""
        return tuple(r for r in self.reports if r.verdict is Verdict.RESTORED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Restorer:
    """Callable that restores photos; read-only and safe to share between threads.

    branches: at least one, sorted by size. detector: see detect.py. notes: what every result has to mention.
    """

    branches: tuple[Branch, ...]
    detector: Detector
    notes: tuple[Note, ...] = ()

    def __call__(
        self,
        image: Image,
        options: Options | None = None,
        *,
        progress: Progress | None = None,
        found: Found | None = None,
        on_crop: Callable[[RestoredCrop], None] | None = None,
    ) -> RestoreResult:
        """Restore the chosen faces of a photo.

        found: its faces, when they were looked for before. on_crop: given each face as soon as the network is done
        with it; crops then go through the network one by one. What it raises ends the work.

        Raises OptionsInvalid for options outside their range, WeightMissing/WeightCorrupt when a branch cannot be
        read, and whatever `progress` raises. A face that cannot be served gets a verdict instead.
        """
        tell = progress or _silent
        tell("faces", 0, 1)
        prepared = self.prepare(image, options, found=found)
        tell("faces", 1, 1)
        start = time.perf_counter()
        outcomes = self._run(prepared, tell, on_crop)
        network_ms = 1000 * (time.perf_counter() - start)
        tell("paste", 0, 1)
        result = self.finish(prepared, outcomes, network_ms=network_ms)
        tell("paste", 1, 1)
        return result

    def prepare(self, image: Image, options: Options | None = None, *, found: Found | None = None) -> Prepared:
        """Everything before the network: faces found (or taken from `found`), a branch or a verdict for each.

        Raises OptionsInvalid and what the detector raises.
        """
        options = options or Options()
        check_options(options)
        start = time.perf_counter()
        if options.aligned:
            found = Found(faces=(), detector="none")
            planned = [self._plan_picture(image)]
        else:
            found = found or find_faces(image, self.detector)
            planned = [self._plan_face(f) for f in found.faces]
        return Prepared(
            image=image,
            options=options,
            found=found,
            reports=tuple(_chosen(r, options) for r in planned),
            ms=1000 * (time.perf_counter() - start),
        )

    def finish(
        self, prepared: Prepared, outcomes: Mapping[int, tuple[U8, Outcome]], *, network_ms: float
    ) -> RestoreResult:
        """Everything after the network. outcomes: crop and outcome of every face of `prepared.todo` by its number."""
        start = time.perf_counter()
        image, options, found = prepared.image, prepared.options, prepared.found
        reports = [_with_outcome(r, outcomes[r.index][1]) if r.index in outcomes else r for r in prepared.reports]
        crops = [
            RestoredCrop(index=r.index, frame=r.frame, before=outcomes[r.index][0], after=after)
            for r in reports
            if r.index in outcomes and (after := outcomes[r.index][1].pixels) is not None
        ]
        result = RestoreResult(
            image=image,
            original=image,
            faces=tuple(reports),
            notes=(*image.notes, *self.notes, *found.notes, *self._summary(reports, options)),
            timings=(),
            weights=tuple(b.name for b in self.branches if any(c.branch == b.name for c in reports)),
            detector=found.detector,
            crops=tuple(crops),
            aligned=options.aligned,
        )
        result = blend(result, options)
        laps = ("faces", prepared.ms), ("network", network_ms), ("paste", 1000 * (time.perf_counter() - start))
        return replace(result, timings=laps)

    def _plan_face(self, face: Face) -> FaceReport:
        """The report of a face before any network ran: its place and branch, or why it is left alone."""
        longest = max(face.box[2] - face.box[0], face.box[3] - face.box[1])
        branch, why = self._pick_branch(side_of(frame_of_face(face.points, self.branches[0].template)))
        frame = frame_of_face(face.points, branch.template)
        report = FaceReport(
            index=face.index,
            verdict=Verdict.RESTORED,
            note=note("F04", branch=branch.name),
            box=face.box,
            score=face.score,
            side=side_of(frame),
            roll=face.roll,
            frame=frame,
            branch=branch.name,
            branch_note=why,
        )
        if longest < TOO_SMALL:
            return _left_alone(report, note("F03", px=round(longest), least=TOO_SMALL))
        return report

    def _plan_picture(self, image: Image) -> FaceReport:
        frame = frame_of_picture(image.width, image.height)
        branch, why = self._pick_branch(side_of(frame))
        return FaceReport(
            index=1,
            verdict=Verdict.RESTORED,
            note=note("F04", branch=branch.name),
            box=(0.0, 0.0, float(image.width), float(image.height)),
            score=1.0,
            side=side_of(frame),
            roll=0.0,
            frame=frame,
            branch=branch.name,
            branch_note=why,
        )

    def _pick_branch(self, side: float) -> tuple[Branch, Note]:
        branch = pick_branch(side, self.branches)
        if len(self.branches) == 1:
            return branch, note("B01", branch=branch.name)
        code = "B02" if branch.size >= side else "B03"
        return branch, note(code, branch=branch.name, size=branch.size, side=round(side))

    def _run(
        self, prepared: Prepared, tell: Progress, on_crop: Callable[[RestoredCrop], None] | None
    ) -> dict[int, tuple[U8, Outcome]]:
        """Crop and outcome of every face that wants the network, branch by branch."""
        at_once = CROPS_AT_ONCE if on_crop is None else 1
        outcomes: dict[int, tuple[U8, Outcome]] = {}
        total = len(prepared.todo)
        tell("restore", 0, total)
        for branch in self.branches:
            mine = [r for r in prepared.todo if r.branch == branch.name]
            for first in range(0, len(mine), at_once):
                some = mine[first : first + at_once]
                before = np.stack([cut_crop(prepared.image.pixels, r.frame, branch.size) for r in some])

                def count(n: int, _total: int, before_these: int = len(outcomes)) -> None:
                    tell("restore", before_these + n, total)

                restored = branch.engine.restore(before, on_crop=count)
                for report, crop, outcome in zip(some, before, restored, strict=True):
                    outcomes[report.index] = crop, outcome
                    if on_crop is not None and (after := outcome.pixels) is not None:
                        on_crop(RestoredCrop(index=report.index, frame=report.frame, before=crop, after=after))
        return outcomes

    def _summary(self, reports: Sequence[FaceReport], options: Options) -> list[Note]:
        """What the result as a whole has to say: nothing found, numbers that do not exist, downgrades, the demo."""
        notes = []
        if not reports:
            notes.append(note("F01"))
        unknown = sorted(set(options.faces or ()) - {r.index for r in reports})
        if unknown and reports:
            notes.append(note("F09", numbers=", ".join(map(str, unknown)), count=len(reports)))
        for attempt in (a for r in reports for a in r.attempts):
            if attempt not in notes:
                notes.append(attempt)
        used = {r.branch for r in reports if r.plan is not None}
        notes += [note("D01", name=b.name) for b in self.branches if b.demo and b.name in used]
        return notes


def pick_branch(side: float, branches: Sequence[Branch]) -> Branch:
    """The smallest branch whose crop is at least `side` photo pixels wide, else the largest."""
    fitting = [b for b in branches if b.size >= side]
    return min(fitting, key=lambda b: b.size) if fitting else max(branches, key=lambda b: b.size)


def blend(result: RestoreResult, options: Options) -> RestoreResult:
    """The same restoration with another strength or other faces ticked: no network, only the kept crops.

    A face whose crop was not kept (skipped or failed earlier) stays as it was.
    """
    check_options(options)
    kept = {c.index: c for c in result.crops}
    reports = tuple(_blended(r, kept[r.index], options) if r.index in kept else r for r in result.faces)
    pixels = paste(
        result.original.pixels,
        result.crops,
        {r.index: r.strength for r in reports},
        [Place(index=r.index, frame=r.frame, whole=result.aligned) for r in reports],
        tone=result.original.tone,
    )
    return replace(result, image=result.original.with_pixels(pixels), faces=reports)


def load(name: str = "auto", *, zoo: Zoo | None = None, device: str = "auto", precision: str = "auto") -> Restorer:
    """A restorer on weights of the zoo.

    name: a restorer's name or alias in the manifest, or `auto`: every installed branch, and per face the one that fits;
    the bundled demo weights when none is installed. device: `auto`, or a torch device. precision: as the engine's.
    Raises WeightMissing, WeightCorrupt or WeightWrongKind. Files are verified now, tensors read when a face needs them.
    """
    zoo = zoo or Zoo()
    entries = zoo.restorers() if name == "auto" else (_restorer(zoo, name),)
    branches = [_branch(entry, zoo.locate(entry.name), device, precision) for entry in entries]
    if not branches:
        raise WeightMissing("W19", name=name, known=", ".join(e.name for e in zoo.entries))
    return Restorer(branches=tuple(branches), detector=load_detector(zoo), notes=zoo.problems())


def load_detector(zoo: Zoo) -> Detector:
    """RetinaFace when its verified weights are in the zoo, else the detector that ships with the dependencies.

    A RetinaFace file that fails verification is passed over here and told by `zoo.problems()`.
    """
    for entry in zoo.entries:
        if entry.architecture.family == "RetinaFace" and zoo.path_of(entry).is_file():
            try:
                return retinaface_detector(read_state_dict(zoo.locate(entry.name)))
            except GpenError as error:
                log.warning("%s is not usable: %s", entry.name, error)
    return embedded_detector()


def _restorer(zoo: Zoo, name: str) -> Entry:
    entry = zoo.entry(name)
    if entry.role != "restorer":
        raise WeightWrongKind("W05", file=entry.name, found=entry.role, wanted="restorer")
    return entry


def _branch(entry: Entry, path: Path, device: str, precision: str) -> Branch:
    assert entry.branch is not None  # the manifest demands both of every restorer
    assert entry.alignment is not None
    return Branch(
        name=entry.name,
        size=entry.branch,
        template=np.array(entry.alignment),
        build=lambda: load_engine(path, device=device, precision=precision),
        demo=entry.bundled,
    )


def _silent(stage: str, done: int, total: int) -> None:
    """Progress nobody watches."""


def _left_alone(report: FaceReport, why: Note) -> FaceReport:
    return replace(report, verdict=Verdict.SKIPPED, note=why, branch=None, branch_note=None)


def _chosen(report: FaceReport, options: Options) -> FaceReport:
    """Skipped when the user did not ask for this face: then the network is spared too."""
    if report.verdict is Verdict.RESTORED and options.faces is not None and report.index not in options.faces:
        return _left_alone(report, note("F05"))
    return report


def _with_outcome(report: FaceReport, outcome: Outcome) -> FaceReport:
    told = replace(report, plan=str(outcome.plan), attempts=outcome.attempts, ms=outcome.ms)
    if outcome.pixels is None:
        return replace(told, verdict=Verdict.FAILED, note=note("F07"))
    return told


def _blended(report: FaceReport, crop: RestoredCrop, options: Options) -> FaceReport:
    """The report of a face with a kept crop under these options."""
    strength = options.strength_of(report.index)
    if options.faces is not None and report.index not in options.faces:
        return replace(report, verdict=Verdict.SKIPPED, note=note("F05"), strength=0.0)
    if strength == 0:
        return replace(report, verdict=Verdict.SKIPPED, note=note("F08"), strength=0.0)
    size = crop.after.shape[0]
    longest = max(report.box[2] - report.box[0], report.box[3] - report.box[1])
    if longest < MOSTLY_INVENTED:
        told = note("F02", px=round(longest))
    elif report.side > size:
        told = note("F06", side=round(report.side), size=size)
    else:
        told = note("F04", branch=report.branch)
    return replace(report, verdict=Verdict.RESTORED, note=told, strength=strength)
