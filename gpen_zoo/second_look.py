"""Each candidate face alone, upright and at the size a detector is best at: is it a face, and where are its points?

The first pass sees a face at whatever size, roll and place in the network's grid it happens to have. Points of a turned
face come out bent towards upright (off by 0.3 of the eye distance at 90°, 0.4 at 180°), those of a face of 600 px by
0.2, and even at its best size a single look is off by 0.04, for the grid's sake. So the roll is taken out until nothing
is left of it, and three looks that fall differently into the grid are averaged (0.02, measured on 18 faces against the
mean of 60 looks each).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import cv2
import numpy as np

from gpen_zoo.candidates import Candidates, joined, longer_side, merged, plausible, roll_of
from gpen_zoo.types import F64, U8, Detector, RawFaces

WINDOW = 256  # side of what the detector is shown
# What lies beyond the photo. A mirrored edge doubles eyes and mouths: of 8 faces cropped to within 10 % of their boxes
# none was found with it, all with grey (scores 0.87…0.93, against 0.78…0.92 with black or white).
BEYOND = (128, 128, 128)
FACE = 104  # to which the face's longer side is brought in it
TURNS = 4  # a face upside down needs up to three until its roll is known
SETTLED = 12.0  # degrees of roll left after which turning no longer improves the points
FURTHER = ((120, True), (88, False))  # the other looks: the face's side, flipped or not
SURE = 0.5  # score that makes it a face
WEAK = 0.75  # below, the other three quarter turns are tried too: small faces upside down pass for upright ones at 0.6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scene:
    """What looks are taken at: the photo (H, W, 3) RGB, by whom, and whether its edge is a mirror or grey beyond."""

    pixels: U8
    detector: Detector
    mirror: bool = False


def confirmed(pixels: U8, found: Candidates, detector: Detector) -> Candidates:
    """Those of `found` that are faces, with points and boxes of the second look, one per face, best first.

    pixels: uint8 (H, W, 3) RGB, which `found` refers to. Boxes of turned faces are upright around the turned head.
    """
    centres = (found.boxes[:, :2] + found.boxes[:, 2:]) / 2
    within = np.nonzero(((centres >= 0) & (centres < pixels.shape[1::-1])).all(axis=1))[0]
    scene = Scene(pixels=pixels, detector=detector)
    looks = [_settled(scene, found.boxes[i], found.points[i]) for i in within]
    return merged(joined([look for look in looks if look is not None]))


def resized(pixels: U8, scale: float) -> U8:
    """Scaled by `scale`; an area filter when it shrinks keeps small faces free of aliasing."""
    if scale == 1.0:
        return pixels
    size = (max(1, round(pixels.shape[1] * scale)), max(1, round(pixels.shape[0] * scale)))
    return cv2.resize(pixels, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC)  # type: ignore[return-value]


def _settled(scene: Scene, box: F64, points: F64) -> Candidates | None:
    """One candidate as the best of its upright views, or None when none of them is a face."""
    roll = roll_of(points)
    best = _upright(scene, box, roll)
    if best is None or best.scores[0] < WEAK:
        others = [_upright(scene, box, roll + turn) for turn in (180, 90, -90)]
        if (box[:2] < 0).any() or (box[2:] > scene.pixels.shape[1::-1]).any():
            # Half a face at the edge is a face when mirrored there (0.86), and none beside grey.
            others.append(_upright(replace(scene, mirror=True), box, roll))
        best = max((c for c in (best, *others) if c is not None), key=lambda c: float(c.scores[0]), default=None)
    return best


def _upright(scene: Scene, box: F64, roll: float) -> Candidates | None:
    """One candidate, turned by -`roll` degrees and on until upright, or None when it is no face then."""
    centre, side = (box[:2] + box[2:]) / 2, float(longer_side(box[None])[0])
    for _ in range(TURNS):
        look = _look(scene, centre, FACE, side, roll, False)
        if look is None:
            return None
        centre, size, points, score, left_over = look
        side = float(size.max())
        if abs(left_over) < SETTLED:
            break
        roll += left_over
    looks = [(points, score)]
    for face, flipped in FURTHER:
        further = _look(scene, centre, face, side, roll, flipped)
        if further is not None:
            looks.append(further[2:4])
    # A head fills its box like an ellipse; turned, it needs the box of the turned ellipse.
    angle = math.radians(roll)
    reach = (
        np.sqrt(np.array([[math.cos(angle), math.sin(angle)], [math.sin(angle), math.cos(angle)]]) ** 2 @ size**2) / 2
    )
    return Candidates(
        boxes=np.concatenate([centre - reach, centre + reach])[None],
        points=np.mean([p for p, _ in looks], axis=0)[None],
        scores=np.array([np.mean([s for _, s in looks])]),
        seen=np.array([float(FACE)]),
    )


def _look(
    scene: Scene, centre: F64, face: int, side: float, roll: float, flipped: bool
) -> tuple[F64, F64, F64, float, float] | None:
    """What the detector sees of the face of `side` photo pixels at `centre`, brought to `face` pixels and upright.

    Centre (2,), width and height (2,) along the head's own axes, points (5, 2), all in photo pixels; score; degrees of
    roll still left. None when it sees no face of about that size there, or an impossible one.
    """
    window, matrix = _window(scene, centre, face / side, roll)
    boxes, points, scores = _flipped(scene.detector(window[:, ::-1])) if flipped else scene.detector(window)
    gap = np.abs((boxes[:, :2] + boxes[:, 2:]) / 2 - WINDOW / 2).max(axis=1) / face
    alike = np.abs(np.log2(longer_side(boxes) / face)) < 1
    near = np.nonzero((gap < 0.4) & alike & (scores >= SURE))[0]
    if not len(near):
        return None
    best = int(near[np.argmax(scores[near] - gap[near])])
    if not plausible(points[best], boxes[best]):
        return None
    inverse = cv2.invertAffineTransform(matrix)
    size = (boxes[best, 2:] - boxes[best, :2]) * side / face
    middle = inverse[:, :2] @ (boxes[best, :2] + boxes[best, 2:]) / 2 + inverse[:, 2]
    placed = points[best] @ inverse[:, :2].T + inverse[:, 2]
    return middle, size, placed, float(scores[best]), roll_of(points[best])


def _flipped(found: RawFaces) -> RawFaces:
    """Faces seen in the flipped window, as they lie in the window itself: left and right change their roles."""
    boxes, points, scores = found
    boxes, points = boxes[:, [2, 1, 0, 3]], points[:, [1, 0, 2, 4, 3]]
    boxes[:, [0, 2]] = WINDOW - 1 - boxes[:, [0, 2]]
    points[:, :, 0] = WINDOW - 1 - points[:, :, 0]
    return boxes, points, scores


def _window(scene: Scene, centre: F64, scale: float, roll: float) -> tuple[U8, F64]:
    """WINDOW×WINDOW pixels around `centre`, scaled and upright; and photo → window (2, 3)."""
    pixels = scene.pixels
    reach = math.ceil(WINDOW / scale * 0.72) + 2  # half the window's diagonal
    x0, y0 = (max(0, int(v) - reach) for v in centre)
    x1, y1 = (min(n, int(v) + reach + 1) for v, n in zip(centre, pixels.shape[1::-1], strict=True))
    part = resized(pixels[y0:y1, x0:x1], min(1.0, scale))
    shrunk = np.array([part.shape[1] / (x1 - x0), part.shape[0] / (y1 - y0)])
    # Counted from pixel centres, an area filter takes x to (x + 0.5) * s - 0.5.
    to_part = np.array([[shrunk[0], 0, 0], [0, shrunk[1], 0]])
    to_part[:, 2] = (0.5 - np.array([x0, y0])) * shrunk - 0.5
    middle = to_part[:, :2] @ centre + to_part[:, 2]
    angle, rest = math.radians(-roll), scale / float(shrunk.mean())
    turn = rest * np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    to_window = np.concatenate([turn, (WINDOW / 2 - turn @ middle)[:, None]], axis=1)
    border = cv2.BORDER_REFLECT if scene.mirror else cv2.BORDER_CONSTANT
    window = cv2.warpAffine(part, to_window, (WINDOW, WINDOW), borderMode=border, borderValue=BEYOND)
    matrix: F64 = to_window[:, :2] @ to_part
    matrix[:, 2] += to_window[:, 2]
    return window, matrix  # type: ignore[return-value]
