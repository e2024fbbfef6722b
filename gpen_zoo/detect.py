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
from typing import Protocol

import cv2
import numpy as np

from gpen_zoo.candidates import (
    Candidates,
    joined,
    longer_side,
    merged,
    plausible,
    reading_order,
    roll_of,
)
from gpen_zoo.centerface import embedded_detector
from gpen_zoo.hints import Note, note
from gpen_zoo.retinaface import retinaface_detector
from gpen_zoo.types import F64, U8, Face, Image, RawFaces

__all__ = ["Detector", "Found", "embedded_detector", "find_faces", "retinaface_detector"]

TOP = 6000  # longest side at which a photo is looked at: a 24 px face in 48 megapixels is still 18 px, 100 MP cost 5 s
TILE = 1024  # CenterFace then takes some 250 MB; twice the side takes four times as much
LAP = 192  # tiles share this; a face of more than that is seen whole on the next level, at 48 px and more
STEP = 4  # from level to level
LAST = 512  # no further level once the longest side is below this
LADDER = 2048  # longest side on the ladder, so that a photo without faces is not paid for ten times

DARK = 60  # median of all values below which contrast is lifted

LOOK = 256  # window of the second look; the face's longer side is brought to LOOK_FACE in it
LOOK_FACE = 104
LOOKS = 4  # a face upside down needs up to three until its roll is known
SETTLED = 12.0  # degrees of roll left after which the points no longer improve
SURE = 0.5  # score of the second look


class Detector(Protocol):
    """uint8 (H, W, 3) RGB of any size → `RawFaces` in pixels of that array; several threads may call it at once."""

    @property
    def name(self) -> str:
        """As shown to people."""

    def __call__(self, pixels: U8) -> RawFaces: ...


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
    CenterFace: 0.1 s and more per megapixel up to 36, then no further increase.
    """
    detector = detector or _embedded()
    pixels = image.pixels
    found, notes = _confirmed(pixels, _scan(pixels, detector), detector), []
    if not len(found):
        for step, view, matrix in _ladder(pixels):
            # Brightness is the only change that the second look cannot undo by itself.
            shown = view if step.code == "F14" else pixels
            found = _confirmed(shown, _scan(view, detector).moved(matrix), detector)
            if len(found):
                notes.append(step)
                break
    return _numbered(found, notes, detector.name, smallest, most)


@cache
def _embedded() -> Detector:
    """One embedded detector for the process: reading and checking its file takes 60 ms."""
    return embedded_detector()


def _numbered(found: Candidates, notes: list[Note], name: str, smallest: float, most: int) -> Found:
    """The faces that are large enough, at most so many, in reading order."""
    found = found[np.nonzero(longer_side(found.boxes) >= smallest)[0]]
    if len(found) > most:
        notes = [*notes, note("F15", most=most, found=len(found))]
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
    return Found(faces=faces, detector=name, notes=tuple(notes))


def _resized(pixels: U8, scale: float) -> U8:
    """Scaled by `scale`, with an area filter when it shrinks, which is what keeps small faces clean of aliasing."""
    if scale == 1.0:
        return pixels
    size = (max(1, round(pixels.shape[1] * scale)), max(1, round(pixels.shape[0] * scale)))
    return cv2.resize(pixels, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC)  # type: ignore[return-value]


def _scan(pixels: U8, detector: Detector) -> Candidates:
    """Candidates of all levels and tiles, merged, in pixels of `pixels`."""
    longest = max(pixels.shape[:2])
    scale = min(1.0, TOP / longest) if longest >= LAST / 2 else min(4.0, LAST / longest)
    level = _resized(pixels, scale)
    parts: list[Candidates] = []
    while True:
        back = np.array([[pixels.shape[1] / level.shape[1], 0, 0], [0, pixels.shape[0] / level.shape[0], 0]])
        parts += [part.moved(back) for part in _tiles(level, detector)]
        if max(level.shape[:2]) < LAST:
            return merged(joined(parts))
        level = _resized(level, 1 / STEP)


def _starts(length: int) -> list[int]:
    """Where the tiles of a side begin: evenly spread, none smaller than the others, `LAP` or more in common."""
    if length <= TILE:
        return [0]
    count = math.ceil((length - LAP) / (TILE - LAP))
    return [round(i * (length - TILE) / (count - 1)) for i in range(count)]


def _tiles(level: U8, detector: Detector) -> Iterator[Candidates]:
    """What the detector sees in each tile, in pixels of `level`."""
    height, width = level.shape[:2]
    for top in _starts(height):
        for left in _starts(width):
            tile = level[top : top + TILE, left : left + TILE]
            boxes, points, scores = detector(tile)
            part = Candidates(boxes=boxes, points=points, scores=scores, seen=longer_side(boxes))
            # Cut by a border that is none of the photo's: the neighbour, or the next level, sees all of it.
            low = np.array([1.0 if left else -np.inf, 1.0 if top else -np.inf])
            high = np.array(
                [TILE - 1.0 if left + TILE < width else np.inf, TILE - 1.0 if top + TILE < height else np.inf]
            )
            whole = (boxes[:, :2] >= low).all(axis=1) & (boxes[:, 2:] <= high).all(axis=1)
            yield part[np.nonzero(whole)[0]].moved(np.array([[1.0, 0, left], [0, 1.0, top]]))


def _confirmed(pixels: U8, found: Candidates, detector: Detector) -> Candidates:
    """The candidates that a second look confirms, with the points of that look."""
    centres = (found.boxes[:, :2] + found.boxes[:, 2:]) / 2
    # A view with a border shows mirror images beyond the photo.
    found = found[np.nonzero(((centres >= 0) & (centres < pixels.shape[1::-1])).all(axis=1))[0]]
    looks = [_look(pixels, box, points, detector) for box, points in zip(found.boxes, found.points, strict=True)]
    return merged(joined([look for look in looks if look is not None]))


def _look(pixels: U8, box: F64, points: F64, detector: Detector) -> Candidates | None:
    """One candidate alone, upright and at the size the detector is best at; None when it is no face then.

    The points of a turned face come out roughly in place but bent towards upright (0.3 of the eye distance off at 90°,
    0.4 at 180°), so the roll is read from them, taken away, and the look repeated until nothing is left of it.
    """
    centre, side, roll = (box[:2] + box[2:]) / 2, float(longer_side(box[None])[0]), roll_of(points)
    seen: Candidates | None = None
    for _ in range(LOOKS):
        window, matrix = _window(pixels, centre, LOOK_FACE / side, roll)
        boxes, points, scores = detector(window)
        gap = np.abs((boxes[:, :2] + boxes[:, 2:]) / 2 - LOOK / 2).max(axis=1)
        ratio = np.abs(np.log2(longer_side(boxes) / LOOK_FACE))
        near = np.nonzero((gap < LOOK_FACE * 0.4) & (ratio < 1) & (scores >= SURE))[0]
        if not len(near):
            return None
        best = int(near[np.argmax(scores[near] - gap[near] / LOOK_FACE)])
        if not plausible(points[best], boxes[best]):
            return None
        inverse = cv2.invertAffineTransform(matrix)
        half = (boxes[best, 2:] - boxes[best, :2]) / 2
        centre = inverse[:, :2] @ (boxes[best, :2] + half) + inverse[:, 2]
        # A head fills its box like an ellipse; turned, it needs the box of the turned ellipse.
        reach = np.sqrt((inverse[:, :2] ** 2) @ half**2)
        side = 2 * float(half.max()) * side / LOOK_FACE
        seen = Candidates(
            boxes=np.concatenate([centre - reach, centre + reach])[None],
            points=(points[best] @ inverse[:, :2].T + inverse[:, 2])[None],
            scores=scores[best : best + 1],
            seen=np.array([float(LOOK_FACE)]),
        )
        left_over = roll_of(points[best])
        if abs(left_over) < SETTLED:
            break
        roll += left_over
    return seen


def _window(pixels: U8, centre: F64, scale: float, roll: float) -> tuple[U8, F64]:
    """LOOK×LOOK pixels around `centre`, scaled, turned upright, mirrored beyond the edge; and photo → window (2, 3)."""
    reach = math.ceil(LOOK / scale * 0.72) + 2  # half the window's diagonal
    x0, y0 = (max(0, int(v) - reach) for v in centre)
    x1, y1 = (min(n, int(v) + reach + 1) for v, n in zip(centre, pixels.shape[1::-1], strict=True))
    part = _resized(pixels[y0:y1, x0:x1], min(1.0, scale))
    shrunk = np.array([part.shape[1] / (x1 - x0), part.shape[0] / (y1 - y0)])
    # Pixel centres: an area filter maps x to (x + 0.5) * s - 0.5.
    to_part = np.array([[shrunk[0], 0, 0], [0, shrunk[1], 0]])
    to_part[:, 2] = (0.5 - np.array([x0, y0])) * shrunk - 0.5
    middle = to_part[:, :2] @ centre + to_part[:, 2]
    angle, rest = math.radians(-roll), scale / float(shrunk.mean())
    turn = rest * np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    to_window = np.concatenate([turn, (LOOK / 2 - turn @ middle)[:, None]], axis=1)
    window = cv2.warpAffine(part, to_window, (LOOK, LOOK), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT_101)
    matrix: F64 = to_window[:, :2] @ to_part
    matrix[:, 2] += to_window[:, 2]
    return window, matrix  # type: ignore[return-value]


def _ladder(pixels: U8) -> Iterator[tuple[Note, U8, F64]]:
    """Changed views for a photo in which nobody was found: the step's note, the view, and view → photo (2, 3)."""
    longest = max(pixels.shape[:2])
    base = _resized(pixels, min(1.0, LADDER / longest))
    scale = np.array([pixels.shape[1] / base.shape[1], pixels.shape[0] / base.shape[0]])

    def to_photo(view_to_base: F64) -> F64:
        return scale[:, None] * view_to_base

    height, width = base.shape[:2]
    pad = max(height, width) // 2
    bordered: U8 = cv2.copyMakeBorder(base, pad, pad, pad, pad, cv2.BORDER_REFLECT)  # type: ignore[assignment]
    yield note("F10"), bordered, to_photo(np.array([[1.0, 0, -pad], [0, 1.0, -pad]]))
    smaller = _resized(bordered, 0.5)
    yield note("F11"), smaller, to_photo(np.array([[2.0, 0, -pad], [0, 2.0, -pad]]))
    if longest * 2 <= TOP:
        yield note("F12"), _resized(pixels, 2.0), np.array([[0.5, 0, 0], [0, 0.5, 0]])
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
