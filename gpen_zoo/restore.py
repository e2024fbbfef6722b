"""The pipeline: Image → faces → crops → engine → paste → RestoreResult; `load` ties zoo and engine together."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from gpen_zoo.align import cut_crop, frame_of_face, frame_of_picture, side_of, yaw_of
from gpen_zoo.branches import Branch, load_branches, load_detector, load_parser, pick_branch
from gpen_zoo.choice import left_out
from gpen_zoo.detect import Detector, Found, find_faces
from gpen_zoo.drawn import drawn_faces
from gpen_zoo.engine import Outcome
from gpen_zoo.hints import Note, note
from gpen_zoo.options import check_options
from gpen_zoo.paste import Place, paste
from gpen_zoo.types import U8, Face, FaceReport, Image, Options, Origin, Parser, RestoredCrop, RestoreResult, Verdict
from gpen_zoo.verdicts import MOSTLY_INVENTED, TOO_SMALL, blended, left_alone, too_small, with_outcome
from gpen_zoo.zoo import Zoo

__all__ = [
    "CROPS_AT_ONCE",
    "LEAST_PARSED",
    "MOSTLY_INVENTED",
    "TOO_SMALL",
    "Branch",
    "Prepared",
    "Progress",
    "Restorer",
    "blend",
    "load",
    "pick_branch",
]

# Called with a stage (`faces`, `restore`, `paste`), steps done and steps in all. What it raises ends the work.
Progress: TypeAlias = Callable[[str, int, int], None]

LEAST_PARSED = (
    128  # side in photo pixels; parsing takes 2 s on two cores, and a smaller mask's edge is 3 px soft anyway
)
CROPS_AT_ONCE = 8  # bounds memory for crowds: 8 crops of 2048 px are 100 MB


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

    branches: at least one, sorted by size. detector: see detect.py. parser: see parse.py; without it masks are drawn
    from the landmarks. notes: what every result has to mention.
    """

    branches: tuple[Branch, ...]
    detector: Detector
    notes: tuple[Note, ...] = ()
    parser: Parser | None = None

    def __call__(
        self,
        image: Image,
        options: Options | None = None,
        *,
        progress: Progress | None = None,
        found: Found | None = None,
        on_crop: Callable[[RestoredCrop], None] | None = None,
        keep_all: bool = False,
    ) -> RestoreResult:
        """Restore the chosen faces of a photo.

        found: its faces, when they were looked for before. keep_all: faces not chosen go through the network too, so
        that `blend` can take them in later. on_crop: given each face as soon as the network is done
        with it; crops then go through the network one by one. What it raises ends the work.

        Raises OptionsInvalid for options outside their range, WeightMissing/WeightCorrupt when a branch cannot be
        read, and whatever `progress` raises. A face that cannot be served gets a verdict instead.
        """
        tell = progress or _silent
        tell("faces", 0, 1)
        prepared = self.prepare(image, options, found=found, keep_all=keep_all)
        tell("faces", 1, 1)
        start = time.perf_counter()
        outcomes = self._run(prepared, tell, on_crop)
        network_ms = 1000 * (time.perf_counter() - start)
        tell("paste", 0, 1)
        result = self.finish(prepared, outcomes, network_ms=network_ms)
        tell("paste", 1, 1)
        return result

    def prepare(
        self, image: Image, options: Options | None = None, *, found: Found | None = None, keep_all: bool = False
    ) -> Prepared:
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
            drawn = drawn_faces(image, self.detector, self.branches[0].template, options.boxes, found.faces)
            planned = [self._plan_face(f) for f in found.faces] + [self._plan_face(*d) for d in drawn]
        left = {} if keep_all or options.aligned else left_out(planned, options)
        return Prepared(
            image=image,
            options=options,
            found=found,
            reports=tuple(left_alone(r, left[r.index]) if r.index in left else r for r in planned),
            ms=1000 * (time.perf_counter() - start),
        )

    def finish(
        self, prepared: Prepared, outcomes: Mapping[int, tuple[U8, Outcome]], *, network_ms: float
    ) -> RestoreResult:
        """Everything after the network. outcomes: crop and outcome of every face of `prepared.todo` by its number."""
        start = time.perf_counter()
        image, options, found = prepared.image, prepared.options, prepared.found
        crops = {
            r.index: RestoredCrop(
                index=r.index,
                frame=r.frame,
                before=outcomes[r.index][0],
                after=after,
                regions=self._parse(r, after),
            )
            for r in prepared.reports
            if r.index in outcomes and (after := outcomes[r.index][1].pixels) is not None
        }
        reports = [
            with_outcome(r, outcomes[r.index][1], crops.get(r.index)) if r.index in outcomes else r
            for r in prepared.reports
        ]
        result = RestoreResult(
            image=image,
            original=image,
            faces=tuple(reports),
            notes=(*image.notes, *self.notes, *found.notes, *self._summary(reports, options)),
            timings=(),
            weights=tuple(b.name for b in self.branches if any(c.branch == b.name for c in reports)),
            detector=found.detector,
            crops=tuple(crops.values()),
            aligned=options.aligned,
        )
        result = blend(result, options)
        laps = ("faces", prepared.ms), ("network", network_ms), ("paste", 1000 * (time.perf_counter() - start))
        return replace(result, timings=laps)

    def _parse(self, report: FaceReport, crop: U8) -> U8 | None:
        """Classes of a restored crop, where a mask made of them is worth the time."""
        worth = report.origin != "picture" and report.side >= LEAST_PARSED
        return self.parser(crop) if self.parser is not None and worth else None

    def _plan_face(self, face: Face, origin: Origin = "found") -> FaceReport:
        """The report of a face before any network ran: its place and branch, or why it is left alone."""
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
            yaw=yaw_of(face.points),
            origin=origin,
            frame=frame,
            branch=branch.name,
            branch_note=why,
        )
        return too_small(report) or report

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
            origin="picture",
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


def blend(result: RestoreResult, options: Options) -> RestoreResult:
    """The same restoration with another strength, mask or tone, or other faces ticked: no network, only the kept crops.

    A face whose crop was not kept (skipped or failed earlier) stays as it was.
    """
    check_options(options)
    result = replace(result, options=options)
    left = left_out(result.faces, options)
    kept = {c.index: c for c in result.crops}
    reports = tuple(
        blended(r, kept[r.index], options, left.get(r.index), whole=result.aligned) if r.index in kept else r
        for r in result.faces
    )
    pixels = paste(
        result.original.pixels,
        result.crops,
        {r.index: r.strength for r in reports},
        [Place(index=r.index, frame=r.frame, whole=result.aligned) for r in reports],
        tone=result.tone,
        mask=options.mask,
        grainy=options.grain and not result.aligned,
    )
    return replace(result, image=result.original.with_pixels(pixels), faces=reports)


def load(name: str = "auto", *, zoo: Zoo | None = None, device: str = "auto", precision: str = "auto") -> Restorer:
    """A restorer on weights of the zoo.

    name: a restorer's name or alias in the manifest, or `auto`: every installed branch, and per face the one that fits;
    the bundled demo weights when none is installed. device: `auto`, or a torch device. precision: as the engine's.
    Raises WeightMissing, WeightCorrupt or WeightWrongKind. Files are verified now, tensors read when a face needs them.
    """
    zoo = zoo or Zoo()
    return Restorer(
        branches=load_branches(zoo, name, device, precision),
        detector=load_detector(zoo),
        parser=load_parser(zoo),
        notes=zoo.problems(),
    )


def _silent(stage: str, done: int, total: int) -> None:
    """Progress nobody watches."""
