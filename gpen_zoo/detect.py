"""Where the faces of a photo are, whatever its size.

A detector is at home with faces of about 16 to 300 pixels. So a photo is looked at several times, each time at a
quarter of the size before, in tiles that overlap; what is found twice is merged; then every candidate gets a second
look, turned upright and brought to one size, which settles both whether it is a face and where exactly its points are.
If nobody is found, a ladder of changed views is tried, and a note says which one worked. No pixel of the photo changes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import cv2
import numpy as np

from gpen_zoo.candidates import (
    Candidates,
    joined,
    longer_side,
    merged,
    reading_order,
)
from gpen_zoo.centerface import embedded_detector
from gpen_zoo.hints import Note, note
from gpen_zoo.retinaface import retinaface_detector
from gpen_zoo.second_look import BEYOND, confirmed, resized
from gpen_zoo.types import F64, U8, Detector, Face, Image

__all__ = ["Detector", "Found", "embedded_detector", "find_faces", "retinaface_detector"]

TOP = 8000  # longest side looked at: 48 megapixels in full; at 0.75 of it one of 20 faces of 24 px was missed
SEEN = 16  # pixels of a face below which many are missed
TILE = 1024  # CenterFace then takes some 250 MB; twice the side takes four times as much
LAP = 192  # tiles share this; a face of more than that is seen whole on the next level, at 48 px and more
STEP = 4  # from level to level
LAST = 512  # no further level once the longest side is below this
CANDIDATES = 400  # that get a second look, 25 ms each: elsewhere a photo with 9764 "faces" has been reported
LADDER = 1024  # longest side on the ladder, one tile: so that a photo without faces is not paid for ten times

DARK = 60  # median of all values below which contrast is lifted


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Found:
    """The faces of a photo, numbered from 1 in reading order (rows from the top, each from the left).

    detector: name of the one used. notes: which step of the ladder was needed, a cap that was reached.
    """

    faces: tuple[Face, ...]
    detector: str
    notes: tuple[Note, ...] = ()


def find_faces(image: Image, detector: Detector | None = None, *, smallest: float = 12.0, most: int = 200) -> Found:
    """All faces of `image`.

    smallest: faces whose box's longer side has fewer pixels are left out. most: the largest so many are kept.
    Without a detector the embedded one is used (its errors: see `embedded_detector`). Time on two cores with
    CenterFace: 0.2 s per megapixel up to 48, then no further increase, and 25 ms a face.
    """
    detector = detector or _embedded()

    def seen(shown: U8, candidates: Candidates) -> Candidates:
        # They come best first.
        faces = confirmed(shown, candidates[np.arange(len(candidates))[: max(CANDIDATES, most)]], detector)
        return faces[np.nonzero(longer_side(faces.boxes) >= smallest)[0]]

    pixels = image.pixels
    found, notes = seen(pixels, _scan(pixels, detector)), []
    if not len(found):
        for step, view, matrix in _ladder(pixels):
            # Brightness is the only change that the second look cannot undo by itself.
            found = seen(view if step.code == "F14" else pixels, _scan(view, detector).moved(matrix))
            if len(found):
                notes.append(step)
                break
    if max(pixels.shape[:2]) > TOP:
        notes.append(note("F16", smallest=math.ceil(SEEN * max(pixels.shape[:2]) / TOP)))
    if len(found) > most:
        notes.append(note("F15", most=most, found=len(found)))
        found = found[np.argsort(-longer_side(found.boxes), kind="stable")[:most]]
    faces = tuple(
        Face(
            index=index,
            box=(float(x0), float(y0), float(x1), float(y1)),
            points=found.points[which],
            score=min(float(found.scores[which]), 1.0),
        )
        for index, which in enumerate(reading_order(found.boxes), 1)
        for x0, y0, x1, y1 in [found.boxes[which]]
    )
    return Found(faces=faces, detector=detector.name, notes=tuple(notes))


@cache
def _embedded() -> Detector:
    """One embedded detector for the process: reading and checking its file takes 60 ms."""
    return embedded_detector()


def _scan(pixels: U8, detector: Detector) -> Candidates:
    """Candidates of all levels and tiles, merged, in pixels of `pixels`."""
    longest = max(pixels.shape[:2])
    scale = min(1.0, TOP / longest) if longest >= LAST / 2 else min(4.0, LAST / longest)
    level = resized(pixels, scale)
    parts: list[Candidates] = []
    while True:
        back = np.array([[pixels.shape[1] / level.shape[1], 0, 0], [0, pixels.shape[0] / level.shape[0], 0]])
        parts += [part.moved(back) for part in _tiles(level, detector)]
        if max(level.shape[:2]) < LAST:
            return merged(joined(parts))
        level = resized(level, 1 / STEP)


def _tiling(length: int) -> tuple[int, list[int]]:
    """Size of the tiles along a side and where they begin: as few as `TILE` allows, then as small as `LAP` allows."""
    if length <= TILE:
        return length, [0]
    count = math.ceil((length - LAP) / (TILE - LAP))
    size = math.ceil((length + (count - 1) * LAP) / count / 32) * 32
    return size, [round(i * (length - size) / (count - 1)) for i in range(count)]


def _tiles(level: U8, detector: Detector) -> Iterator[Candidates]:
    """What the detector sees in each tile, in pixels of `level`."""
    height, width = level.shape[:2]
    (tall, tops), (wide, lefts) = _tiling(height), _tiling(width)
    for top in tops:
        for left in lefts:
            boxes, points, scores = detector(level[top : top + tall, left : left + wide])
            part = Candidates(boxes=boxes, points=points, scores=scores, seen=longer_side(boxes))
            # Cut by a border that is none of the photo's: the neighbour, or the next level, sees all of it.
            low = np.array([1.0 if left else -np.inf, 1.0 if top else -np.inf])
            high = np.array(
                [wide - 1.0 if left + wide < width else np.inf, tall - 1.0 if top + tall < height else np.inf]
            )
            whole = (boxes[:, :2] >= low).all(axis=1) & (boxes[:, 2:] <= high).all(axis=1)
            yield part[np.nonzero(whole)[0]].moved(np.array([[1.0, 0, left], [0, 1.0, top]]))


def _ladder(pixels: U8) -> Iterator[tuple[Note, U8, F64]]:
    """Changed views for a photo in which nobody was found: the step's note, the view, and view → photo (2, 3)."""
    longest = max(pixels.shape[:2])
    base = resized(pixels, min(1.0, LADDER / longest))
    scale = np.array([pixels.shape[1] / base.shape[1], pixels.shape[0] / base.shape[0]])

    def to_photo(view_to_base: F64) -> F64:
        return scale[:, None] * view_to_base

    height, width = base.shape[:2]
    pad = max(height, width) // 3
    bordered: U8 = cv2.copyMakeBorder(base, pad, pad, pad, pad, cv2.BORDER_CONSTANT, value=BEYOND)  # type: ignore[assignment]
    yield note("F10"), bordered, to_photo(np.array([[1.0, 0, -pad], [0, 1.0, -pad]]))
    smaller = resized(bordered, 0.5)
    yield note("F11"), smaller, to_photo(np.array([[2.0, 0, -pad], [0, 2.0, -pad]]))
    if longest <= LADDER:
        yield note("F12"), resized(pixels, 2.0), np.array([[0.5, 0, 0], [0, 0.5, 0]])
    turns = (
        (90, [[0, -1.0, width], [1.0, 0, 0]]),
        (180, [[-1.0, 0, width], [0, -1.0, height]]),
        (270, [[0, 1.0, 0], [-1.0, 0, height]]),
    )
    for degrees, matrix in turns:
        turned: U8 = np.ascontiguousarray(np.rot90(base, degrees // 90))
        yield note("F13", degrees=degrees), turned, to_photo(np.array(matrix))
    if float(np.median(base)) < DARK:
        yield note("F14"), _lifted(pixels), np.eye(2, 3)


def _lifted(pixels: U8) -> U8:
    """Shadows opened, then contrast equalised in places (CLAHE): what a dark photo can show, at the price of noise."""
    y, cr, cb = cv2.split(cv2.cvtColor(pixels, cv2.COLOR_RGB2YCrCb))
    curve = (np.sqrt(np.arange(256) / 255) * 255).astype(np.uint8)
    y = cv2.createCLAHE(clipLimit=4.0, tileGridSize=(8, 8)).apply(cv2.LUT(y, curve))
    return cv2.cvtColor(cv2.merge([y, cr, cb]), cv2.COLOR_YCrCb2RGB)  # type: ignore[return-value]
