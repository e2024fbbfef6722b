"""From a face in the photo to an aligned square crop, and back.

A similarity (rotation, one scale, shift) takes five landmarks to the template of the weights; fitted by least squares
after Umeyama, "Least-squares estimation of transformation parameters between two point patterns", PAMI 1991.

Two forms of the same map are in use. The *frame* (2, 3) takes photo pixels to fractions of the crop's side and does
not depend on a branch; the *matrix* of a branch is `frame * size`. Both are float64. Coordinates follow OpenCV: the
centre of the first pixel is (0, 0).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import cv2
import numpy as np

from gpen_zoo.types import F64, U8


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


def frame_of_picture(width: int, height: int) -> F64:
    """Frame that makes the whole picture one centred crop; the shorter side is filled up by reflection."""
    side = max(width, height)
    # Whole pixels, so that a picture of the branch's own size passes through without being resampled.
    return np.array([[1.0, 0.0, (side - width) // 2], [0.0, 1.0, (side - height) // 2]]) / side


def side_of(frame: F64) -> float:
    """Side of the crop in photo pixels (for a frontal face: eye distance / 0.21)."""
    return 1.0 / math.hypot(frame[0, 0], frame[1, 0])


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
    source = window.cut(pixels)
    matrix = shifted(matrix, window)
    shrink = size / side_of(frame)
    if shrink < 1:
        source, matrix = _shrink(source, matrix, shrink)
    return np.asarray(
        cv2.warpAffine(source, matrix, (size, size), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REFLECT_101),
        dtype=np.uint8,
    )


def uncut_crop(crop: U8, frame: F64, window: Window) -> U8:
    """The crop uint8 (S, S, 3) brought back over the photo's pixels in `window`: uint8 (h, w, 3).

    Where the face is smaller than the crop the crop is first shrunk by area to the face's own scale. Beyond the crop
    its outermost pixels are repeated; the mask has ended long before.
    """
    size = crop.shape[0]
    back = invert(frame * size)  # crop pixels → photo pixels
    shrink = side_of(frame) / size
    if shrink < 1:
        crop, back = _shrink(crop, back, shrink)
    back = back - np.array([[0.0, 0.0, window.x0], [0.0, 0.0, window.y0]])
    return np.asarray(
        cv2.warpAffine(
            crop,
            back,
            (window.x1 - window.x0, window.y1 - window.y0),
            flags=cv2.INTER_CUBIC,
            borderMode=cv2.BORDER_REPLICATE,
        ),
        dtype=np.uint8,
    )


def shifted(matrix: F64, window: Window) -> F64:
    """The matrix for pixels counted from the window's corner instead of the photo's."""
    return np.column_stack((matrix[:, :2], matrix[:, 2] + matrix[:, :2] @ (window.x0, window.y0)))


def _shrink(pixels: U8, matrix: F64, factor: float) -> tuple[U8, F64]:
    """Area-shrink pixels by about `factor`, and the matrix that takes the *shrunk* pixels where `matrix` took them."""
    height, width = pixels.shape[:2]
    new_w, new_h = max(1, round(width * factor)), max(1, round(height * factor))
    shrunk = cv2.resize(pixels, (new_w, new_h), interpolation=cv2.INTER_AREA)
    sx, sy = width / new_w, height / new_h
    # Pixel centres: x_old = sx·(x_new + ½) − ½
    grow = np.array([[sx, 0.0, sx / 2 - 0.5], [0.0, sy, sy / 2 - 0.5], [0.0, 0.0, 1.0]])
    return np.asarray(shrunk, dtype=np.uint8), matrix @ grow
