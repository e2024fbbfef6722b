"""Arithmetic on proposed faces: which are the same one, which cannot be a face, in what order people count them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpen_zoo.types import F64

Indices = NDArray[np.intp]

SAME_OVERLAP = 0.4  # intersection over union: two views of one face; cheek to cheek stays well below
SAME_INSIDE = 0.7  # share of the smaller box inside the larger one: an eye or a shirt taken for a face


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidates:
    """N proposed faces: boxes (N, 4) as x0, y0, x1, y1, points (N, 5, 2), scores (N,), and seen (N,): the longer side
    in pixels of the array in which the detector saw the face, which tells how far its points can be trusted."""

    boxes: F64
    points: F64
    scores: F64
    seen: F64

    def __len__(self) -> int:
        return len(self.scores)

    def __getitem__(self, which: Indices) -> Candidates:
        return Candidates(
            boxes=self.boxes[which], points=self.points[which], scores=self.scores[which], seen=self.seen[which]
        )

    def moved(self, matrix: F64) -> Candidates:
        """In another frame: `matrix` (2, 3) is made of a scale, quarter turns and a shift, so that boxes stay boxes."""
        corners = self.boxes.reshape(-1, 2, 2) @ matrix[:, :2].T + matrix[:, 2]
        boxes = np.concatenate([corners.min(axis=1), corners.max(axis=1)], axis=1)
        points = self.points @ matrix[:, :2].T + matrix[:, 2]
        return Candidates(boxes=boxes, points=points, scores=self.scores, seen=self.seen)


def nobody() -> Candidates:
    """No candidate at all."""
    return Candidates(boxes=np.zeros((0, 4)), points=np.zeros((0, 5, 2)), scores=np.zeros(0), seen=np.zeros(0))


def joined(parts: list[Candidates]) -> Candidates:
    """All candidates of the parts, in their order."""
    parts = [p for p in parts if len(p)]
    if not parts:
        return nobody()
    return Candidates(
        boxes=np.concatenate([p.boxes for p in parts]),
        points=np.concatenate([p.points for p in parts]),
        scores=np.concatenate([p.scores for p in parts]),
        seen=np.concatenate([p.seen for p in parts]),
    )


def longer_side(boxes: F64) -> F64:
    """Longer side (N,) of boxes (N, 4)."""
    sides: F64 = np.maximum(boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1])
    return sides


def merged(found: Candidates) -> Candidates:
    """One candidate per face, best first.

    The better of two is the one seen at a size the detectors are at home with (40…200 px): beyond, the score can still
    be high while the points drift (0.1 of the eye distance at 400 px, 0.2 at 600, against 0.03 at 100).
    """
    octaves = np.maximum(np.log2(40.0 / found.seen), np.log2(found.seen / 200.0))
    order = np.argsort(-(found.scores - 0.2 * np.maximum(octaves, 0.0)), kind="stable")
    found = found[order]
    areas = (found.boxes[:, 2] - found.boxes[:, 0]) * (found.boxes[:, 3] - found.boxes[:, 1])
    keep: list[int] = []
    alive = np.ones(len(found), bool)
    for i in range(len(found)):
        if not alive[i]:
            continue
        keep.append(i)
        low = np.maximum(found.boxes[:, :2], found.boxes[i, :2])
        high = np.minimum(found.boxes[:, 2:], found.boxes[i, 2:])
        common = np.prod(np.clip(high - low, 0.0, None), axis=1)
        union = areas + areas[i] - common
        alive &= (common < SAME_OVERLAP * union) & (common < SAME_INSIDE * np.minimum(areas, areas[i]))
    return found[np.array(keep, np.intp)]


def roll_of(points: F64) -> float:
    """How far a face (5, 2) is turned in the picture, in degrees, clockwise as seen.

    Unlike the eye line alone this holds for a profile, whose eyes fall together: eyes, mouth and the line from the one
    to the other vote with their lengths.
    """
    down = points[3:].mean(axis=0) - points[:2].mean(axis=0)
    across = (points[1] - points[0]) + (points[4] - points[3]) + (down[1], -down[0])
    return math.degrees(math.atan2(float(across[1]), float(across[0])))


def plausible(points: F64, box: F64) -> bool:
    """Whether five points (5, 2) in a box (4,) can belong to a face, frontal or in profile, at any roll."""
    side = float(max(box[2] - box[0], box[3] - box[1]))
    if not (np.isfinite(points).all() and np.isfinite(box).all() and side > 0):
        return False
    angle = math.radians(-roll_of(points))
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    left_eye, right_eye, nose, left_mouth, right_mouth = (points - points.mean(axis=0)) @ turn.T / side
    eyes, mouth = (left_eye + right_eye) / 2, (left_mouth + right_mouth) / 2
    drop = float(mouth[1] - eyes[1])
    margin = 0.25 * side
    inside = (points > box[:2] - margin) & (points < box[2:] + margin)
    return bool(
        inside.all()
        and 0.5 < (box[2] - box[0]) / (box[3] - box[1]) < 2.0
        and 0.15 < drop < 0.8
        and -0.15 < right_eye[0] - left_eye[0] < 1.8 * drop
        and -0.15 < right_mouth[0] - left_mouth[0] < 1.6 * drop
        and -0.15 < (nose[1] - eyes[1]) / drop < 1.15
        and abs(right_eye[1] - left_eye[1]) < 0.6 * drop
        and abs(mouth[0] - eyes[0]) < 0.7 * drop
    )


def reading_order(boxes: F64) -> list[int]:
    """The order in which people count faces in a group photo: row by row from the top, each row from the left.

    A row is opened by the topmost face left and takes all whose centre lies less than 0.75 of a face's height (the
    middle one of the row so far) below the row's mean.
    """
    centres = (boxes[:, :2] + boxes[:, 2:]) / 2
    heights = boxes[:, 3] - boxes[:, 1]
    order: list[int] = []
    row: list[int] = []
    for i in np.argsort(centres[:, 1], kind="stable").tolist():
        if row and centres[i, 1] - centres[row, 1].mean() > 0.75 * np.median(heights[row]):
            order += sorted(row, key=lambda k: float(centres[k, 0]))
            row = []
        row.append(i)
    return order + sorted(row, key=lambda k: float(centres[k, 0]))
