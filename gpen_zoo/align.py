"""From a face in the photo to an aligned square crop, and back.

A similarity (rotation, one scale, shift) takes five landmarks to the template of the weights; fitted by least squares
after Umeyama, "Least-squares estimation of transformation parameters between two point patterns", PAMI 1991.

Two forms of the same map are in use. The *frame* (2, 3) takes photo pixels to fractions of the crop's side and does
not depend on a branch; the *matrix* of a branch is `frame * size`. Both are float64. Coordinates follow OpenCV: the
centre of the first pixel is (0, 0).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import cv2
import numpy as np

from gpen_zoo.types import F32, F64, U8

Pixels: TypeAlias = U8 | F32

# The face box of the detectors in the frame, measured on 16 faces of both: its width and height in crop sides, and
# where its centre lies.
BOX_SIZE = (0.48, 0.65)
BOX_CENTRE = (0.5, 0.55)
# Depth of the nose tip before the plane of eyes and mouth, and the distance of the eyes, in crop sides, of a face seen
# from the front. The ratio 0.4 is that of the usual three-dimensional landmark models of a head.
NOSE_DEPTH = 0.084
EYE_DISTANCE = 0.21


class Window(NamedTuple):
    """A rectangle of photo pixels: x0 ≤ x < x1, y0 ≤ y < y1."""

    x0: int
    y0: int
    x1: int
    y1: int

    @property
    def empty(self) -> bool:
        return self.x0 >= self.x1 or self.y0 >= self.y1

    def meets(self, other: Window) -> bool:
        """True when both share a pixel."""
        return self.x0 < other.x1 and other.x0 < self.x1 and self.y0 < other.y1 and other.y0 < self.y1

    def cut(self, pixels: U8) -> U8:
        """View of the pixels inside."""
        return pixels[self.y0 : self.y1, self.x0 : self.x1]

    def bands(self, most: int) -> Iterator[Window]:
        """The same rectangle as a stack of bands with about `most` pixels each, at least one row."""
        rows = max(1, most // max(1, self.x1 - self.x0))
        for top in range(self.y0, self.y1, rows):
            yield Window(self.x0, top, self.x1, min(top + rows, self.y1))


def similarity(points: F64, reference: F64) -> F64:
    """Least-squares similarity (2, 3) that takes `points` (N, 2) to `reference` (N, 2), without reflection.

    ValueError when the points coincide: no scale can be told from them.
    """
    mean_p, mean_r = points.mean(0), reference.mean(0)
    centred_p, centred_r = points - mean_p, reference - mean_r
    variance = np.square(centred_p).sum() / len(points)
    if not variance > 0:
        raise ValueError("the points coincide")
    u, singular, vt = np.linalg.svd(centred_r.T @ centred_p / len(points))
    sign = np.array([1.0, np.sign(np.linalg.det(u) * np.linalg.det(vt)) or 1.0])
    rotation = (u * sign) @ vt
    scale = float((singular * sign).sum() / variance)
    linear = scale * rotation
    return np.column_stack((linear, mean_r - linear @ mean_p))


def frame_of_face(points: F64, template: F64) -> F64:
    """Frame (2, 3) of a face: its five landmarks (5, 2) in photo pixels onto the template (5, 2) in crop sides."""
    return similarity(points, template)


def frame_of_picture(width: int, height: int, scale: int = 1) -> F64:
    """Frame that makes the whole picture one centred crop; the shorter side is filled up by reflection.

    scale: by how much the result is enlarged.
    """
    width, height = width * scale, height * scale
    side = max(width, height)
    # Whole pixels of the result, so that one of the branch's own size is pasted without being resampled.
    frame = np.array([[1.0, 0.0, (side - width) // 2], [0.0, 1.0, (side - height) // 2]]) / side
    return frame if scale == 1 else enlarged_frame(frame, 1 / scale)


def frame_of_box(x: float, y: float, width: float, height: float) -> F64:
    """Frame of an upright frontal face that would fill the box with corner (x, y), as detectors draw boxes."""
    side = max(width / BOX_SIZE[0], height / BOX_SIZE[1])
    left, top = x + width / 2 - BOX_CENTRE[0] * side, y + height / 2 - BOX_CENTRE[1] * side
    return np.array([[1.0, 0.0, -left], [0.0, 1.0, -top]]) / side


def yaw_of(points: F64) -> float:
    """How far a face (5, 2) is turned from the camera, in degrees; positive: its nose points to the picture's right.

    A head turned by θ moves its nose tip by depth × sin θ out of the middle between eyes and mouth, while the eyes
    draw together with cos θ. Pitch leaves both nearly alone, and roll is taken out first.
    """
    eyes, mouth = points[:2].mean(0), points[3:].mean(0)
    down = mouth - eyes
    across = np.array([down[1], -down[0]]) / max(float(np.hypot(*down)), 1e-9)
    gap = float((points[1] - points[0]) @ across)
    offset = float((points[2] - (eyes + mouth) / 2) @ across)
    return math.degrees(math.atan2(offset / NOSE_DEPTH, max(gap, 0.0) / EYE_DISTANCE))


def side_of(frame: F64) -> float:
    """Side of the crop in photo pixels (for a frontal face: eye distance / 0.21)."""
    return 1.0 / math.hypot(frame[0, 0], frame[1, 0])


def enlarged_frame(frame: F64, scale: float) -> F64:
    """The frame of the same face in the photo enlarged by `scale`, which puts pixel x at scale·(x + ½) − ½."""
    shift = (1 / scale - 1) / 2
    return np.column_stack((frame[:, :2] / scale, frame[:, 2] + frame[:, :2] @ (shift, shift)))


def invert(matrix: F64) -> F64:
    """Inverse of an affine matrix (2, 3)."""
    inverse = np.linalg.inv(matrix[:, :2])
    return np.column_stack((inverse, -inverse @ matrix[:, 2]))


def window_of(frame: F64, width: int, height: int, margin: int = 2) -> Window:
    """The photo pixels that a crop touches, clipped to the picture; may be empty."""
    back = invert(frame)
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]) @ back[:, :2].T + back[:, 2]
    low, high = np.floor(corners.min(0)) - margin, np.ceil(corners.max(0)) + margin + 1
    x0, y0 = int(max(low[0], 0)), int(max(low[1], 0))
    return Window(x0, y0, int(max(min(high[0], width), x0)), int(max(min(high[1], height), y0)))


def cut_crop(pixels: U8, frame: F64, size: int) -> U8:
    """The aligned crop uint8 (size, size, 3) of a photo uint8 (H, W, 3), same colour order.

    Where the face is larger than the crop the photo is first shrunk by area, since a warp alone would sample it with
    gaps. Outside the photo the crop continues by reflection: a network that sees black paints black.
    """
    height, width = pixels.shape[:2]
    window = window_of(frame, width, height, margin=4)
    matrix = frame * size
    if window.empty:
        # All of the crop lies beyond the border; reflection still needs the photo's own pixels.
        window = Window(0, 0, width, height)
    source: Pixels = window.cut(pixels)
    matrix = shifted(matrix, window)
    shrink = size / side_of(frame)
    if shrink < 1:
        source, matrix = _shrink(source, matrix, shrink)
    # A single row or column has nothing to be reflected in, and OpenCV 5.0 looks for it for ever.
    for axis in (0, 1):
        source = source.repeat(2, axis=axis) if source.shape[axis] == 1 else source
    return np.asarray(
        cv2.warpAffine(source, matrix, (size, size), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REFLECT_101),
        dtype=np.uint8,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Patch:
    """Something drawn over a crop, ready to be laid over the photo.

    values: (k, k) or (k, k, C), uint8 or float32, at most the face's own resolution. matrix: float64 (2, 3), patch
    pixels → photo pixels.
    """

    values: Pixels
    matrix: F64

    def over(self, window: Window, *, cubic: bool = True) -> F32:
        """Over the photo's pixels in `window`: float32 (h, w) or (h, w, C).

        cubic: for pictures; without it linear, for weights, which must not overshoot. Beyond the crop its outermost
        values are repeated; every mask has ended before.
        """
        laid = cv2.warpAffine(
            self.values,
            self.matrix - np.array([[0.0, 0.0, window.x0], [0.0, 0.0, window.y0]]),
            (window.x1 - window.x0, window.y1 - window.y0),
            flags=cv2.INTER_CUBIC if cubic else cv2.INTER_LINEAR,
            borderMode=cv2.BORDER_REPLICATE,
        )
        return np.asarray(laid, dtype=np.float32)


def patch_of(values: Pixels, frame: F64) -> Patch:
    """The patch of a crop-sized array (S, S) or (S, S, C) of the face at `frame`.

    Where the face is smaller than the crop the array is first shrunk by area to the face's own scale.
    """
    size = values.shape[0]
    back = invert(frame * size)  # crop pixels → photo pixels
    shrink = side_of(frame) / size
    if shrink < 1:
        values, back = _shrink(values, back, shrink)
    return Patch(values=values, matrix=back)


def shifted(matrix: F64, window: Window) -> F64:
    """The matrix for pixels counted from the window's corner instead of the photo's."""
    return np.column_stack((matrix[:, :2], matrix[:, 2] + matrix[:, :2] @ (window.x0, window.y0)))


def _shrink(pixels: Pixels, matrix: F64, factor: float) -> tuple[Pixels, F64]:
    """Area-shrink pixels by about `factor`, and the matrix that takes the *shrunk* pixels where `matrix` took them."""
    height, width = pixels.shape[:2]
    new_w, new_h = max(1, round(width * factor)), max(1, round(height * factor))
    shrunk = cv2.resize(pixels, (new_w, new_h), interpolation=cv2.INTER_AREA)
    sx, sy = width / new_w, height / new_h
    # Pixel centres: x_old = sx·(x_new + ½) − ½
    grow = np.array([[sx, 0.0, sx / 2 - 0.5], [0.0, sy, sy / 2 - 0.5], [0.0, 0.0, 1.0]])
    return shrunk, matrix @ grow  # type: ignore[return-value]
