"""Mechanics of RetinaFace on random weights: no real ones are at hand, so nothing is said here about what it finds."""

from __future__ import annotations

import socket
from collections import OrderedDict
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import torch

from gpen_zoo.detect import retinaface_detector
from gpen_zoo.errors import WeightWrongKind
from gpen_zoo.retinaface import _anchors

torch.set_num_threads(2)
facexlib = pytest.importorskip("facexlib.detection.retinaface")


def random_network(kind: str) -> Any:
    """facexlib's own network, random; the small one's heads are made loud, since its random trunk is all but silent."""
    torch.manual_seed(3)
    network = facexlib.RetinaFace(network_name=kind, device="cpu")
    if kind == "mobile0.25":
        with torch.no_grad():
            for head in network.ClassHead:
                head.conv1x1.weight *= 6e4
                head.conv1x1.bias.zero_()
            for head in (*network.BboxHead, *network.LandmarkHead):
                head.conv1x1.weight *= 3e3
    return network.eval()


def picture(height: int, width: int) -> np.ndarray:
    rng = np.random.default_rng(height)
    small = rng.integers(0, 256, (height // 8 + 1, width // 8 + 1, 3), dtype=np.uint8)
    return cv2.resize(small, (width, height), interpolation=cv2.INTER_CUBIC)


@pytest.mark.parametrize("shape", [(160, 224), (131, 97)])
def test_same_boxes_and_points_as_facexlib(shape: tuple[int, int]) -> None:
    network, pixels = random_network("mobile0.25"), picture(*shape)
    with torch.no_grad():
        theirs = network.detect_faces(np.ascontiguousarray(pixels[:, :, ::-1]), 0.8)
    boxes, points, scores = retinaface_detector(network.state_dict())(pixels)
    assert len(scores) > 5
    assert (boxes.shape, points.shape) == ((len(scores), 4), (len(scores), 5, 2))
    assert {a.dtype for a in (boxes, points, scores)} == {np.dtype(np.float64)}
    assert (np.diff(scores) <= 0).all()
    assert len(theirs) == len(scores)
    np.testing.assert_allclose(boxes, theirs[:, :4], atol=2e-2)
    np.testing.assert_allclose(scores, theirs[:, 4], atol=1e-5)
    np.testing.assert_allclose(points.reshape(-1, 10), theirs[:, 5:], atol=2e-2)


def test_resnet50_from_published_names_without_network_or_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = OrderedDict(("module." + k, v) for k, v in random_network("resnet50").state_dict().items())
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("reached for the network"))
    package = Path(facexlib.__file__).parents[1]
    before = sorted(package.rglob("*"))
    detector = retinaface_detector(state)
    assert detector.name == "RetinaFace"
    boxes, points, scores = detector(picture(64, 96))
    assert boxes.shape[0] == points.shape[0] == scores.shape[0]
    assert sorted(package.rglob("*")) == before
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


def test_tensors_of_another_network() -> None:
    with pytest.raises(WeightWrongKind) as error:
        retinaface_detector({"conv1.weight": torch.zeros(3)})
    assert error.value.code == "W05"


def test_anchors_for_odd_sizes() -> None:
    anchors = _anchors(33, 20)
    assert len(anchors) == 2 * (5 * 3 + 3 * 2 + 2 * 1)
    assert anchors[0].tolist() == [4, 4, 16]
    assert anchors[1].tolist() == [4, 4, 32]
    assert anchors[2].tolist() == [12, 4, 16]
