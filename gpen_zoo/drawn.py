"""Boxes drawn by hand: the face that lies inside, looked for once more with all attention, or else the box itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import cv2
import numpy as np

from gpen_zoo.align import frame_of_box, invert
from gpen_zoo.detect import find_faces
from gpen_zoo.errors import OptionsInvalid
from gpen_zoo.types import F64, U8, Detector, Face, Image

AROUND = (
    0.6  # of the box's longer side is added on each side before looking: a detector wants to see the head's outline
)
SIZE = 160.0  # pixels to which the box's longer side is enlarged before looking, at which detectors are best
MOST_ENLARGED = 8.0
ALIKE = 0.3  # a face whose longer side is a smaller share of the box's is not what was drawn around


def drawn_faces(
    image: Image,
    detector: Detector,
    template: F64,
    boxes: Sequence[tuple[float, float, float, float]],
    known: Sequence[Face],
) -> tuple[Face, ...]:
    """One face for every box (x, y, width, height in photo pixels) that holds none of the `known`; numbers go on.

    Where the detector finds no face inside, the landmarks (5, 2) are those an upright frontal face would have, from
    `template` in crop sides. OptionsInvalid F61 for a box that lies outside the photo.
    """
    faces: list[Face] = []
    for box in boxes:
        x, y, width, height = box
        if x >= image.width or y >= image.height or x + width <= 0 or y + height <= 0:
            raise OptionsInvalid("F61", box=", ".join(f"{v:g}" for v in box), width=image.width, height=image.height)
        if any(_holds(box, face) for face in (*known, *faces)):
            continue
        index = len(known) + len(faces) + 1
        found = _look(image, detector, box)
        if found is not None:
            faces.append(replace(found, index=index, origin="box"))
        else:
            back = invert(frame_of_box(*box))
            points = template @ back[:, :2].T + back[:, 2]
            around = x, y, x + width, y + height
            faces.append(Face(index=index, box=around, points=points, score=0.0, origin="drawn"))
    return tuple(faces)


def _look(image: Image, detector: Detector, box: tuple[float, float, float, float]) -> Face | None:
    """The best face inside the box, in photo pixels."""
    x, y, width, height = box
    longest = max(width, height)
    grown = AROUND * longest
    x0, y0 = max(0, int(x - grown)), max(0, int(y - grown))
    part = image.pixels[y0 : int(y + height + grown) + 1, x0 : int(x + width + grown) + 1]
    scale = min(max(SIZE / longest, 1.0), MOST_ENLARGED)
    size = max(1, round(part.shape[1] * scale)), max(1, round(part.shape[0] * scale))
    shown: U8 = np.asarray(cv2.resize(part, size, interpolation=cv2.INTER_CUBIC), np.uint8) if scale > 1 else part
    rate = np.array([part.shape[1] / shown.shape[1], part.shape[0] / shown.shape[0]])
    # From pixel centres of the enlarged part to those of the photo.
    shift = 0.5 * rate - 0.5 + (x0, y0)
    inside: list[Face] = []
    for face in find_faces(Image(pixels=shown), detector).faces:
        corners = (np.array(face.box).reshape(2, 2) * rate + shift).ravel().tolist()
        placed = Face(index=1, box=tuple(corners), points=face.points * rate + shift, score=face.score)
        if _holds(box, placed) and placed.longest > ALIKE * longest:
            inside.append(placed)
    return max(inside, key=lambda f: f.score, default=None)


def _holds(box: tuple[float, float, float, float], face: Face) -> bool:
    """Whether the face's centre lies in the box x, y, width, height."""
    x, y = (face.box[0] + face.box[2]) / 2, (face.box[1] + face.box[3]) / 2
    return box[0] <= x <= box[0] + box[2] and box[1] <= y <= box[1] + box[3]
