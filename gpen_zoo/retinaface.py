"""The stronger face detector, when its weights are in the zoo: RetinaFace with facexlib's own network.

Source: Deng, Guo, Zhou and others, "RetinaFace: Single-shot Multi-level Face Localisation in the Wild" (CVPR 2020), in
the form of biubug6/Pytorch_Retinaface, which facexlib carries. Only facexlib's *module* is used. Its loader would
download, its `detect_faces` keeps the picture's scale on the module (so two threads mix up their boxes) and builds the
anchors in a Python loop; loading, anchors and decoding are therefore done here.
"""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

from gpen_zoo.errors import WeightWrongKind
from gpen_zoo.types import F64, U8, RawFaces

if TYPE_CHECKING:
    import torch

THRESHOLD = 0.8  # facexlib's own
OVERLAP = 0.4
MEAN_BGR = (104.0, 117.0, 123.0)  # of the training set; the network sees BGR, 0…255, minus this
ANCHORS = ((8, (16, 32)), (16, (64, 128)), (32, (256, 512)))  # stride of a level, sides of its square anchors
VARIANCE = (0.1, 0.2)  # unit of a shift in anchor sides, unit of a logarithm


class RetinaFace:
    """A detector around facexlib's network; any number of threads may call one object.

    Calling it with uint8 (H, W, 3) RGB gives boxes float64 (N, 4) as x0, y0, x1, y1, points (N, 5, 2) and scores (N,)
    above 0.8, best first, in pixels of that array. Any size from 1×1; it finds faces of about 16…512 px.
    """

    name = "RetinaFace"

    def __init__(self, network: Any, device: str) -> None:
        self._network = network
        self._device = device

    def __call__(self, pixels: U8) -> RawFaces:
        import torch

        height, width = pixels.shape[:2]
        bgr = pixels[:, :, ::-1].astype(np.float32) - np.array(MEAN_BGR, np.float32)
        with torch.inference_mode():
            batch = torch.from_numpy(bgr.transpose(2, 0, 1)[None].copy()).to(self._device)
            shifts, chances, places = (out[0].float().cpu().numpy() for out in self._network(batch))
        return _decode(_anchors(height, width), shifts, chances[:, 1], places)


def _anchors(height: int, width: int) -> F64:
    """Centre x, centre y and side (A, 3) of every anchor, in pixels: level by level, row by row, sides innermost."""
    levels: list[F64] = []
    for stride, sides in ANCHORS:
        y, x, side = np.meshgrid(
            (np.arange(math.ceil(height / stride)) + 0.5) * stride,
            (np.arange(math.ceil(width / stride)) + 0.5) * stride,
            np.array(sides, np.float64),
            indexing="ij",
        )
        levels.append(np.stack([x, y, side], axis=-1).reshape(-1, 3))
    return np.concatenate(levels)


def _decode(anchors: F64, shifts: Any, chances: Any, places: Any) -> RawFaces:
    """Boxes from shifts (A, 4) and points from places (A, 10), both relative to anchors (A, 3); chances (A,) in 0…1."""
    likely = np.nonzero(chances > THRESHOLD)[0]
    scores: F64 = chances[likely].astype(np.float64)
    centre, side = anchors[likely, :2], anchors[likely, 2:]
    shift = shifts[likely].astype(np.float64)
    middle = centre + shift[:, :2] * VARIANCE[0] * side
    size = side * np.exp(shift[:, 2:] * VARIANCE[1])
    boxes: F64 = np.concatenate([middle - size / 2, middle + size / 2], axis=1)
    steps = places[likely].astype(np.float64).reshape(-1, 5, 2)
    points: F64 = centre[:, None] + steps * VARIANCE[0] * side[:, None]
    rectangles = np.concatenate([boxes[:, :2], size], axis=1).tolist()
    keep = np.array(cv2.dnn.NMSBoxes(rectangles, scores.tolist(), THRESHOLD, OVERLAP), dtype=np.intp).reshape(-1)
    return boxes[keep], points[keep], scores[keep]


def retinaface_detector(state: dict[str, torch.Tensor], device: str = "cpu") -> RetinaFace:
    """A RetinaFace with the tensors of `state`: facexlib's names for resnet50 or mobile0.25, with or without the
    `module.` that the published files put before each.

    Nothing is downloaded or written. Errors: WeightWrongKind W05 when names or shapes are those of another network.
    """
    # Importing facexlib takes about 3 s (torchvision, its tracker…), so it waits until the detector is wanted.
    from facexlib.detection.retinaface import RetinaFace as Network

    state = {key.removeprefix("module."): tensor for key, tensor in state.items()}
    kind = "mobile0.25" if "body.stage1.0.0.weight" in state else "resnet50"
    with warnings.catch_warnings():
        # facexlib still says pretrained=False, which torchvision comments on; it means: no weights, no download.
        warnings.filterwarnings("ignore", category=UserWarning, module="torchvision.models")
        network = Network(network_name=kind, device=device)
    try:
        network.load_state_dict(state, strict=True)
    except RuntimeError as error:
        raise WeightWrongKind(
            "W05", file="RetinaFace", found=f"{len(state)} tensors of another network", wanted=f"RetinaFace {kind}"
        ) from error
    return RetinaFace(network.eval().requires_grad_(False), device)
