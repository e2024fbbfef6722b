"""GPEN's other tasks: only what differs before and after the network. Networks come from task_networks.py.

The author's script feeds each of them the whole picture, brought to the network's size, and says that it ought to be
one well-aligned face. So `whole` is the default here too, and for photos that are not a portrait the faces can be cut
out and aligned as for restoring: `faces`, or `both` for the faces on top of the whole. Other than the script, a picture
that is not square is filled up by reflection instead of being squeezed: a squeezed face is no face to the network.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

import cv2
import numpy as np

from gpen_zoo.align import Patch, Pixels, Window, cut_crop, frame_of_face, frame_of_picture, patch_of, window_of
from gpen_zoo.branches import Branch
from gpen_zoo.detect import find_faces
from gpen_zoo.errors import GpenError, OptionsInvalid, OutOfMemory
from gpen_zoo.fill_mask import Bools, inner_weight
from gpen_zoo.hints import Note, note
from gpen_zoo.label_map import LabelMap
from gpen_zoo.masks import Place, drawn, head_weight
from gpen_zoo.match import luma_of
from gpen_zoo.restore import CROPS_AT_ONCE, Progress
from gpen_zoo.types import F32, F64, REPORT_VERSION, U8, Detector, Image, Source

Area: TypeAlias = Literal["whole", "faces", "both"]

AREAS: tuple[Area, ...] = get_args(Area)
TRACE = 8  # of 255; what a cubic warp rings beyond a border is less
BAND = 1 << 20  # pixels that are worked on at once: float32 copies of a large photo would take gigabytes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TaskResult:
    """A finished picture. original: what went in, of the same size. faces: how many were cut out.

    plans: how the network ran. timings: (stage, milliseconds). notes: what reading, faces and engine had to say.
    """

    image: Image
    original: Image
    weights: str
    notes: tuple[Note, ...]
    plans: tuple[str, ...]
    timings: tuple[tuple[str, float], ...]
    faces: int = 0

    def as_dict(self) -> dict[str, Any]:
        """The report, JSON-ready."""
        return {
            "version": REPORT_VERSION,
            "file": self.original.source.name,
            "width": self.image.width,
            "height": self.image.height,
            "weights": self.weights,
            "faces": self.faces,
            "plans": list(self.plans),
            "notes": [n.as_dict() for n in self.notes],
            "timings_ms": {stage: round(ms, 1) for stage, ms in self.timings},
        }


def colorize(
    image: Image,
    network: Branch,
    *,
    strength: float = 1.0,
    area: Area = "whole",
    detector: Detector | None = None,
    tell: Progress | None = None,
) -> TaskResult:
    """A grey (or faded) photo in colour: lightness stays the photo's own, at its full size, colour is the network's.

    strength: 0 (the photo, bit for bit) … 1 (all of the network's colour). As in the author's script the network gets
    the luma in all three channels, and of its answer, brought to the photo's size, luma is replaced by the photo's.
    Where colour and lightness together leave what a pixel can show, colour gives way. tell: see `restore.Progress`;
    stages `faces`, `paint`, `paste`.

    Raises OptionsInvalid (U01, F63), GpenError or OutOfMemory when the network gives nothing, and what `tell` raises.
    """
    if not 0 <= strength <= 1:
        raise OptionsInvalid("U01", value=strength)
    run = _Run(image, network, area, detector, tell)
    grey = np.empty_like(image.pixels)
    for band in _all_of(image).bands(BAND):
        band.cut(grey)[:] = np.rint(_luma(band.cut(image.pixels)))
    painted = run.paint(lambda frame: cut_crop(grey, frame, network.size), _colour_of)
    out = image.pixels.copy()
    for band in _all_of(image).bands(BAND):
        before = band.cut(image.pixels).astype(np.float32)
        luma = _luma(before)
        own: F32 = before - luma
        colour: F32 = own
        for place, patch in painted:
            weight = run.weight(place, band)
            if weight is not None:
                colour = np.asarray(colour + weight[..., None] * (patch.over(band) - colour), np.float32)
        # Both ends can be shown, and so can all that lies between.
        change = np.float32(strength) * (_within_gamut(luma, colour) - own)
        band.cut(out)[:] = np.rint(np.asarray(before + change, np.float32))
    notes = [note("P01")] if image.tone == "colour" else []
    return run.result(replace(image, pixels=out, tone="colour"), notes)


def inpaint(
    image: Image,
    mask: Bools,
    network: Branch,
    *,
    area: Area = "whole",
    detector: Detector | None = None,
    tell: Progress | None = None,
) -> TaskResult:
    """A photo with the marked pixels filled in. All others stay the photo's own, bit for bit.

    mask: bool (H, W) of the photo's size, see `fill_mask.mask_of`. What is marked is white in the network's input, as
    in the author's script, whose brush strokes are white; other than there the rest of the network's answer is not
    used. The transition lies inside the marked spots. A grey photo is filled in grey. tell: as for `colorize`.

    Raises as `colorize` does; TypeError for a mask of another size or type.
    """
    if mask.dtype != np.bool_ or mask.shape != image.pixels.shape[:2]:
        raise TypeError(f"mask must be bool {image.pixels.shape[:2]}, not {mask.dtype} {mask.shape}")
    run = _Run(image, network, area, detector, tell)
    marks = mask.astype(np.uint8) * np.uint8(255)

    def cut(frame: F64) -> U8:
        crop = cut_crop(image.pixels, frame, network.size)
        # White after the cut, so that no pixel is half white; and every pixel that holds a trace of a marked one.
        crop[cut_crop(marks, frame, network.size) > TRACE] = 255
        return crop

    painted = run.paint(cut, lambda crop: crop)
    amount, reached = inner_weight(mask), np.zeros(mask.shape, np.bool_)
    out = image.pixels.copy()
    for band in _all_of(image).bands(BAND):
        rows = slice(band.y0, band.y1)
        if not mask[rows].any():
            continue
        before = band.cut(image.pixels).astype(np.float32)
        filled: F32 = before
        for place, patch in painted:
            weight = run.weight(place, band)
            if weight is not None:
                filled = np.asarray(filled + weight[..., None] * (patch.over(band) - filled), np.float32)
                reached[rows][weight > 0.5] = True
        if image.tone == "grey":
            filled = np.repeat(_luma(filled), 3, axis=2)
        after = before + amount[rows, :, None] * (filled - before)
        band.cut(out)[:] = np.rint(np.clip(after, 0, 255))
    left = int((mask & ~reached).sum())
    notes = [note("P13", pct=max(1, round(100 * left / int(mask.sum()))))] if left else []
    return run.result(image.with_pixels(out), notes)


def seg2face(label_map: LabelMap, network: Branch, *, tell: Progress | None = None) -> TaskResult:
    """A face from a label map (see label_map.py), at the network's size; a map that is not square gives its own shape.

    The network is fed the map's colours as they come, x / 255 without normalisation, as in the author's script
    (`task_networks.unnormalised`). The map is brought to size by nearest neighbour: between two classes lies no third.
    tell: stage `paint`. The result is a new picture, so it is a PNG unless asked otherwise, and of the map's file only
    the name is kept. Raises GpenError or OutOfMemory when the network gives nothing, and what `tell` raises.
    """
    tell, start, size = tell or _silent, time.perf_counter(), network.size
    height, width = label_map.classes.shape
    side = max(height, width)
    top, left = (side - height) // 2, (side - width) // 2
    square = np.zeros((side, side, 3), np.uint8)  # black: background
    square[top : top + height, left : left + width] = label_map.image.pixels
    tell("paint", 0, 1)
    given = np.asarray(cv2.resize(square, (size, size), interpolation=cv2.INTER_NEAREST_EXACT), np.uint8)
    (outcome,) = network.engine.restore(given[None])
    if outcome.pixels is None:
        raise _refusal(outcome.attempts[-1])
    tell("paint", 1, 1)
    rows, columns = max(1, round(height * size / side)), max(1, round(width * size / side))
    top, left = (size - rows) // 2, (size - columns) // 2
    source = Source(name=label_map.image.source.name, format="PNG")
    face = np.ascontiguousarray(outcome.pixels[top : top + rows, left : left + columns])
    return TaskResult(
        image=Image(pixels=face, source=source),
        original=Image(pixels=np.ascontiguousarray(given[top : top + rows, left : left + columns]), source=source),
        weights=network.name,
        notes=(*label_map.notes, *outcome.attempts),
        plans=(str(outcome.plan),),
        timings=(("network", 1000 * (time.perf_counter() - start)),),
    )


def _refusal(why: Note) -> GpenError:
    """The error for a picture of which the network made nothing."""
    return (OutOfMemory if why.code == "M03" else GpenError)(why.code, **why.params)


def _luma(pixels: U8 | F32) -> F32:
    """(H, W, 3) → (H, W, 1) float32"""
    return luma_of(np.asarray(pixels, np.float32))[..., None]


def _colour_of(crop: U8) -> F32:
    """What is left of a crop without its luma: float32 (S, S, 3)."""
    pixels = crop.astype(np.float32)
    return pixels - _luma(pixels)


def _within_gamut(luma: F32, colour: F32) -> F32:
    """Colour made paler where luma + colour would leave 0-255, so that clipping changes no lightness."""
    red, green, blue = colour[..., 0], colour[..., 1], colour[..., 2]
    highest = np.maximum(np.maximum(red, green), blue)  # ≥ 0, since its luma is 0
    lowest = np.minimum(np.minimum(red, green), blue)
    above, below = np.maximum(255 - luma[..., 0], 0), luma[..., 0]
    nearly = np.float32(1e-6)  # no room and no colour
    share = np.minimum(
        above / np.maximum(np.maximum(highest, above), nearly), below / np.maximum(np.maximum(-lowest, below), nearly)
    )
    return np.asarray(colour * share[..., None], np.float32)


class _Run:
    """One picture on its way: the places to be painted, the network, and what there is to tell about it."""

    def __init__(
        self, image: Image, network: Branch, area: Area, detector: Detector | None, tell: Progress | None
    ) -> None:
        if area not in AREAS:
            raise OptionsInvalid("F63", field="area", known=", ".join(AREAS), value=area)
        self._image, self._network, self._tell = image, network, tell or _silent
        self._notes: list[Note] = []
        self._plans: list[str] = []
        self._laps: list[tuple[str, float]] = []
        self._clock = time.perf_counter()
        self._whole = [Place(index=0, frame=frame_of_picture(image.width, image.height), whole=True)]
        self._faces: list[Place] = []
        if area == "faces":
            self._whole = []
        if area != "whole":
            self._tell("faces", 0, 1)
            found = find_faces(image, detector)
            self._faces = [Place(index=f.index, frame=frame_of_face(f.points, network.template)) for f in found.faces]
            self._notes += [*found.notes, *([] if found.faces else [note("F01")])]
            self._tell("faces", 1, 1)
            self._lap("faces")

    def paint(self, cut: Callable[[F64], U8], keep: Callable[[U8], Pixels]) -> list[tuple[Place, Patch]]:
        """Send every place through the network. cut: frame → crop. keep: what of the network's crop is to be laid over
        the photo. A face that comes out broken is left out and told; GpenError or OutOfMemory when all are."""
        places = [*self._whole, *self._faces]
        painted, failed = [], []
        self._tell("paint", 0, len(places))
        for some in _some_of(places):
            outcomes = self._network.engine.restore(np.stack([cut(p.frame) for p in some]))
            for place, outcome in zip(some, outcomes, strict=True):
                self._notes += [n for n in outcome.attempts if n not in self._notes]
                self._plans += [str(outcome.plan)] if str(outcome.plan) not in self._plans else []
                if outcome.pixels is None:
                    failed.append(outcome.attempts[-1])
                else:
                    painted.append((place, patch_of(keep(outcome.pixels), place.frame)))
            self._tell("paint", len(painted) + len(failed), len(places))
        if failed and not painted:
            raise _refusal(failed[0])
        self._windows = {p.index: window_of(p.frame, self._image.width, self._image.height) for p in places}
        self._lap("network")
        self._tell("paste", 0, 1)
        return painted

    def weight(self, place: Place, band: Window) -> F32 | None:
        """How much of a place's patch each pixel of `band` gets, float32 (h, w); None where they do not meet."""
        if not self._windows[place.index].meets(band):
            return None
        near = [p for p in self._faces if p is not place and self._windows[p.index].meets(band)]
        return head_weight(place, band, near, drawn("crop"))

    def result(self, image: Image, notes: Sequence[Note] = ()) -> TaskResult:
        """The finished picture with everything that is to be told."""
        self._lap("paste")
        self._tell("paste", 1, 1)
        return TaskResult(
            image=image,
            original=self._image,
            weights=self._network.name,
            notes=(*self._image.notes, *notes, *self._notes),
            plans=tuple(self._plans),
            timings=tuple(self._laps),
            faces=len(self._faces),
        )

    def _lap(self, stage: str) -> None:
        now = time.perf_counter()
        self._laps.append((stage, 1000 * (now - self._clock)))
        self._clock = now


def _some_of(places: Sequence[Place]) -> Iterator[Sequence[Place]]:
    """A few at a time, which bounds memory."""
    for first in range(0, len(places), CROPS_AT_ONCE):
        yield places[first : first + CROPS_AT_ONCE]


def _all_of(image: Image) -> Window:
    return Window(0, 0, image.width, image.height)


def _silent(stage: str, done: int, total: int) -> None:
    """Progress nobody watches."""
