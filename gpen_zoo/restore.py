"""The pipeline: Image → faces → crops → engine → paste → RestoreResult; `load` ties zoo and engine together."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from gpen_zoo.align import cut_crop, enlarged_frame
from gpen_zoo.background import LANCZOS, check_size, enlarge, notes_of, pixels_in_tone
from gpen_zoo.branches import Branch, Upscalers, load_branches, load_detector, load_parser, pick_branch
from gpen_zoo.choice import left_out
from gpen_zoo.detect import Detector, Found, find_faces
from gpen_zoo.drawn import drawn_faces
from gpen_zoo.engine import Outcome
from gpen_zoo.face_plans import plan_face, plan_picture
from gpen_zoo.hints import Note, note
from gpen_zoo.options import check_options
from gpen_zoo.paste import Place, paste
from gpen_zoo.types import (
    U8,
    Enlarged,
    FaceReport,
    Image,
    Options,
    Parser,
    RestoredCrop,
    RestoreResult,
    Scale,
    Verdict,
)
from gpen_zoo.upscaler import OnNote, Upscaler
from gpen_zoo.verdicts import MOSTLY_INVENTED, TOO_SMALL, blended, left_alone, with_outcome
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

# Called with a stage (`faces`, `restore`, `background`, `paste`), steps done and steps in all. What it raises ends the
# work.
Progress: TypeAlias = Callable[[str, int, int], None]

LEAST_PARSED = (
    128  # side in photo pixels; parsing takes 2 s on two cores, and a smaller mask's edge is 3 px soft anyway
)
WATCHED = 0.7  # seconds between two looks at faces that are shown as they are done
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
    from the landmarks. notes: what every result has to mention. upscalers: weights that can enlarge the background.
    """

    branches: tuple[Branch, ...]
    detector: Detector
    notes: tuple[Note, ...] = ()
    parser: Parser | None = None
    upscalers: Upscalers = field(default_factory=Upscalers)

    def __call__(
        self,
        image: Image,
        options: Options | None = None,
        *,
        progress: Progress | None = None,
        found: Found | None = None,
        on_crop: Callable[[RestoredCrop], None] | None = None,
        keep_all: bool = False,
        on_note: OnNote | None = None,
    ) -> RestoreResult:
        """Restore the chosen faces of a photo.

        found: its faces, when they were looked for before. keep_all: faces not chosen go through the network too, so
        that `blend` can take them in later. on_crop: given each face as soon as the network is done with it; crops then
        go through it in batches short enough to watch, the first alone. What it raises ends the work. on_note: told how
        long the background will take, before it is enlarged by weights.

        Raises OptionsInvalid for options outside their range, WeightMissing/WeightCorrupt when a branch or an upscaler
        cannot be read, ImageTooLarge and OutOfMemory for a background too large, and whatever `progress` raises. A
        face that cannot be served gets a verdict instead.
        """
        tell = progress or _silent
        tell("faces", 0, 1)
        prepared = self.prepare(image, options, found=found, keep_all=keep_all)
        tell("faces", 1, 1)
        start = time.perf_counter()
        outcomes = self._run(prepared, tell, on_crop)
        network_ms = 1000 * (time.perf_counter() - start)
        enlarged = self.enlarge(prepared, tell, on_note=on_note)
        tell("paste", 0, 1)
        result = self.finish(prepared, outcomes, enlarged, network_ms=network_ms)
        tell("paste", 1, 1)
        return result

    def complete(
        self,
        result: RestoreResult,
        options: Options,
        *,
        found: Found,
        progress: Progress | None = None,
        on_crop: Callable[[RestoredCrop], None] | None = None,
    ) -> RestoreResult:
        """`blend`, after the network ran for the faces that only now are asked for.

        found: all faces of the photo, of which the result may lack some. The rest is as in a call, and like `blend` it
        leaves the background as it was made.
        """
        options = replace(options, scale=result.options.scale, background=result.options.background)
        prepared = self.prepare(result.original, options, found=found)
        known = {r.index: r for r in result.faces if r.plan is not None}
        fresh = replace(prepared, reports=tuple(r for r in prepared.reports if r.index not in known))
        start = time.perf_counter()
        outcomes = self._run(fresh, progress or _silent, on_crop) if fresh.todo else {}
        network_ms = 1000 * (time.perf_counter() - start)
        crops = [*result.crops, *self._crops(fresh, outcomes)]
        known |= {r.index: r for r in self._seen(fresh, outcomes, crops)}
        reports = [known[r.index] for r in prepared.reports]
        kept = [n for n in result.notes if n.code != "F01"]
        more = [n for n in self._summary(reports) if n not in kept]
        names = [b.name for b in self.branches if any(c.branch == b.name for c in reports)]
        return blend(
            replace(
                result,
                faces=tuple(reports),
                crops=tuple(c for c in crops if c.index in {r.index for r in reports}),
                notes=(*kept, *more),
                weights=tuple(dict.fromkeys((*names, *result.weights))),
                timings=tuple((k, ms + network_ms if k == "network" else ms) for k, ms in result.timings),
            ),
            options,
        )

    def prepare(
        self, image: Image, options: Options | None = None, *, found: Found | None = None, keep_all: bool = False
    ) -> Prepared:
        """Everything before the network: faces found (or taken from `found`), a branch or a verdict for each.

        Raises OptionsInvalid, ImageTooLarge (I30) and WeightMissing for a background that cannot be had, and what the
        detector raises.
        """
        options = options or Options()
        check_options(options)
        check_size(image.width, image.height, options.scale)
        self._upscaler(options)
        start = time.perf_counter()
        if options.aligned:
            found = Found(faces=(), detector="none")
            planned = [plan_picture(image, self.branches, options.scale)]
        else:
            found = found or find_faces(image, self.detector)
            drawn = drawn_faces(image, self.detector, self.branches[0].template, options.boxes, found.faces)
            planned = [plan_face(face, self.branches, options.scale) for face in (*found.faces, *drawn)]
        left = {} if keep_all or options.aligned else left_out(planned, options)
        return Prepared(
            image=image,
            options=options,
            found=found,
            reports=tuple(left_alone(r, left[r.index]) if r.index in left else r for r in planned),
            ms=1000 * (time.perf_counter() - start),
        )

    def enlarge(
        self, prepared: Prepared, progress: Progress | None = None, *, on_note: OnNote | None = None
    ) -> Enlarged | None:
        """The photo's background as its options want it, None for the photo as it is.

        Raises what `background.enlarge` raises, and what `progress` does, between tiles.
        """
        image, options = prepared.image, prepared.options
        if options.leaves_background:
            return None
        tell = progress or _silent
        tell("background", 0, 1)
        return enlarge(
            image,
            options.scale,
            self._upscaler(options),
            tone=image.tone if options.tone == "auto" else options.tone,
            on_tile=lambda done, total: tell("background", done, total),
            on_note=on_note,
        )

    def _upscaler(self, options: Options) -> Upscaler | None:
        if options.leaves_background or options.background == LANCZOS:
            return None
        return self.upscalers.pick(options.background, options.scale)

    def finish(
        self,
        prepared: Prepared,
        outcomes: Mapping[int, tuple[U8, Outcome]],
        enlarged: Enlarged | None = None,
        *,
        network_ms: float,
    ) -> RestoreResult:
        """Everything after the network. outcomes: crop and outcome of every face of `prepared.todo` by its number.
        enlarged: what `enlarge` made."""
        start = time.perf_counter()
        image, options, found = prepared.image, prepared.options, prepared.found
        crops = self._crops(prepared, outcomes)
        reports = self._seen(prepared, outcomes, crops)
        told = notes_of(enlarged, options, self.upscalers.best(options.scale))
        result = RestoreResult(
            image=image,
            original=image,
            faces=tuple(reports),
            notes=(*image.notes, *self.notes, *found.notes, *self._summary(reports), *told),
            timings=(),
            weights=(
                *(b.name for b in self.branches if any(c.branch == b.name for c in reports)),
                *([enlarged.method] if enlarged is not None and enlarged.method != LANCZOS else []),
            ),
            detector=found.detector,
            crops=tuple(crops),
            aligned=options.aligned,
            options=options,
            enlarged=enlarged,
        )
        result = blend(result, options)
        laps = [("faces", prepared.ms), ("network", network_ms), ("paste", 1000 * (time.perf_counter() - start))]
        if enlarged is not None:
            laps.insert(2, ("background", 1000 * enlarged.seconds))
        return replace(result, timings=tuple(laps))

    def _crops(self, prepared: Prepared, outcomes: Mapping[int, tuple[U8, Outcome]]) -> list[RestoredCrop]:
        """What the network made, with the parser's classes."""
        return [
            RestoredCrop(
                index=r.index,
                frame=r.frame,
                before=outcomes[r.index][0],
                after=after,
                regions=self._parse(r, after, prepared.options.scale),
            )
            for r in prepared.reports
            if r.index in outcomes and (after := outcomes[r.index][1].pixels) is not None
        ]

    def _seen(
        self, prepared: Prepared, outcomes: Mapping[int, tuple[U8, Outcome]], crops: Sequence[RestoredCrop]
    ) -> list[FaceReport]:
        """Reports of all faces, with what the network had to say of those it has seen."""
        made = {c.index: c for c in crops}
        return [
            with_outcome(r, outcomes[r.index][1], made.get(r.index)) if r.index in outcomes else r
            for r in prepared.reports
        ]

    def _parse(self, report: FaceReport, crop: U8, scale: Scale) -> U8 | None:
        """Classes of a restored crop, where a mask made of them is worth the time."""
        worth = report.origin != "picture" and report.side * scale >= LEAST_PARSED
        return self.parser(crop) if self.parser is not None and worth else None

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
            while mine:
                some, mine = mine[:at_once], mine[at_once:]
                start = time.perf_counter()
                before = np.stack([cut_crop(prepared.image.pixels, r.frame, branch.size) for r in some])

                def count(n: int, _total: int, before_these: int = len(outcomes)) -> None:
                    tell("restore", before_these + n, total)

                restored = branch.engine.restore(before, on_crop=count)
                for report, crop, outcome in zip(some, before, restored, strict=True):
                    outcomes[report.index] = crop, outcome
                    if on_crop is not None and (after := outcome.pixels) is not None:
                        on_crop(RestoredCrop(index=report.index, frame=report.frame, before=crop, after=after))
                if on_crop is not None:
                    fitting = WATCHED * len(some) / max(time.perf_counter() - start, 1e-6)
                    at_once = min(max(int(fitting), 1), CROPS_AT_ONCE)
        return outcomes

    def _summary(self, reports: Sequence[FaceReport]) -> list[Note]:
        """What the result as a whole has to say: nothing found, downgrades, the demo."""
        notes = []
        if not reports:
            notes.append(note("F01"))
        for attempt in (a for r in reports for a in r.attempts):
            if attempt not in notes:
                notes.append(attempt)
        used = {r.branch for r in reports if r.plan is not None}
        notes += [note("D01", name=b.name) for b in self.branches if b.demo and b.name in used]
        return notes


def blend(result: RestoreResult, options: Options) -> RestoreResult:
    """The same restoration with another strength, mask or tone, or other faces ticked: no network, only the kept crops.

    A face whose crop was not kept (skipped or failed earlier) stays as it was, and so does the background: scale and
    background of the options are those that the result was made with.
    """
    check_options(options)
    options = replace(options, scale=result.options.scale, background=result.options.background)
    result = replace(result, options=options)
    left = left_out(result.faces, options)
    kept = {c.index: c for c in result.crops}
    reports = tuple(
        blended(r, kept[r.index], options, left.get(r.index), whole=result.aligned) if r.index in kept else r
        for r in result.faces
    )
    enlarged, image, scale = result.enlarged, result.original, 1
    if enlarged is not None:
        scale = enlarged.scale
        image = enlarged.image.with_pixels(pixels_in_tone(enlarged, result.original, result.tone))
    pixels = paste(
        image.pixels,
        [replace(c, frame=enlarged_frame(c.frame, scale)) for c in result.crops],
        {r.index: r.strength for r in reports},
        [Place(index=r.index, frame=enlarged_frame(r.frame, scale), whole=result.aligned) for r in reports],
        tone=result.tone,
        mask=options.mask,
        grainy=options.grain and not result.aligned,
        remade=enlarged is not None and enlarged.method != LANCZOS,
    )
    notes = (*(n for n in result.notes if n.code != "F09"), *_absent(reports, options))
    return replace(result, image=image.with_pixels(pixels), faces=reports, notes=notes)


def _absent(reports: Sequence[FaceReport], options: Options) -> tuple[Note, ...]:
    """F09 where faces are wanted by numbers that none has. Without any face F01 says enough."""
    unknown = sorted(set(options.faces or ()) - {r.index for r in reports})
    if not unknown or not reports:
        return ()
    return (note("F09", numbers=", ".join(map(str, unknown)), count=len(reports)),)


def load(
    name: str = "auto",
    *,
    zoo: Zoo | None = None,
    device: str = "auto",
    precision: str = "auto",
    background_tile: int = 0,
    accelerate: bool = False,
) -> Restorer:
    """A restorer on weights of the zoo.

    name: a restorer's name or alias in the manifest, or `auto`: every installed branch, and per face the one that fits;
    the bundled demo weights when none is installed. device: `auto`, or a torch device. precision: as the engine's.
    background_tile: side in pixels of the tiles in which weights enlarge the background, 0 for what suits the machine.
    accelerate: as the engine's; GPEN_ZOO_ACCELERATE=1 in the environment means the same.
    Raises WeightMissing, WeightCorrupt or WeightWrongKind. Files are verified now, tensors read when a face needs them.
    """
    zoo = zoo or Zoo()
    return Restorer(
        branches=load_branches(zoo, name, device, precision, accelerate=accelerate),
        detector=load_detector(zoo),
        parser=load_parser(zoo),
        notes=zoo.problems(),
        upscalers=Upscalers(zoo, device, precision, tile=background_tile),
    )


def _silent(stage: str, done: int, total: int) -> None:
    """Progress nobody watches."""
