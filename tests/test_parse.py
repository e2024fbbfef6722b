"""ParseNet on random tensors (the official ones are out of reach here): the mechanics, not the quality of its masks."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from skimage import data

import gpen_zoo as gz
from gpen_zoo import manifest, weightfile
from gpen_zoo.errors import WeightWrongKind
from gpen_zoo.masks import FACE_PARTS
from gpen_zoo.parse import SIDE, ParseNet, parsenet_parser
from gpen_zoo.restore import LEAST_PARSED
from gpen_zoo.types import Options
from gpen_zoo.zoo import Zoo
from tests.test_restore import PHOTO, found, restorer

__all__ = ["found"]  # a fixture


@pytest.fixture(scope="module")
def state() -> dict[str, torch.Tensor]:
    from facexlib.parsing.parsenet import ParseNet as Network

    torch.manual_seed(4)
    return Network(in_size=SIDE, out_size=SIDE, parsing_ch=19).eval().state_dict()


def test_the_network_sees_what_facexlib_would_show_it() -> None:
    """facexlib: RGB, 512 px, (x / 255 − 0.5) / 0.5; the class is the channel with the highest score."""
    shown: list[torch.Tensor] = []

    def network(batch: torch.Tensor) -> tuple[torch.Tensor, None]:
        shown.append(batch)
        scores = torch.zeros(1, 19, SIDE, SIDE)
        scores[:, 7] = batch[:, 0]  # class 7 where red is above grey
        return scores, None

    crop = data.astronaut()[:SIDE, :SIDE]
    classes = ParseNet(network, "cpu")(crop)
    expected = (torch.from_numpy(crop.copy()).permute(2, 0, 1)[None] / 255 - 0.5) / 0.5
    assert torch.allclose(shown[0], expected, atol=1e-6)
    assert (classes.shape, classes.dtype) == ((SIDE, SIDE), np.uint8)
    assert np.array_equal(classes == 7, crop[:, :, 0] > 127)
    assert ParseNet(network, "cpu")(crop[:128, :128]).shape == (SIDE, SIDE)


def test_other_networks_are_refused(state: dict[str, torch.Tensor]) -> None:
    with pytest.raises(WeightWrongKind, match="ParseNet"):
        parsenet_parser({k: v for k, v in state.items() if "body" not in k})


def test_a_verified_file_in_the_zoo_is_used_without_the_network(
    state: dict[str, torch.Tensor], zoo_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_network(*_: object) -> None:
        pytest.fail("somebody wants to download")

    monkeypatch.setattr(socket.socket, "connect", no_network)
    zoo_home.mkdir(parents=True)
    entries = manifest.load()
    official = next(e for e in entries if e.architecture.family == "ParseNet")
    path = zoo_home / official.stored_as
    save_file(state, path)
    pinned = replace(official, file=path.name, bytes=path.stat().st_size, sha256=weightfile.sha256_of(path))
    zoo = Zoo(entries=(*(e for e in entries if e.bundled), pinned))
    loaded = gz.load(zoo=zoo)
    assert isinstance(loaded.parser, ParseNet)
    scores = loaded.parser._network(torch.zeros(1, 3, 64, 64))[0]  # all of 512 px would take seconds
    assert scores.shape == (1, 19, 64, 64)


def test_a_damaged_file_is_passed_over_and_told(zoo_home: Path) -> None:
    zoo_home.mkdir(parents=True)
    entry = next(e for e in manifest.load() if e.architecture.family == "ParseNet")
    (zoo_home / entry.stored_as).write_bytes(b"<html>not found</html>")
    loaded = gz.load()
    assert loaded.parser is None
    assert [n.code for n in loaded.notes] == ["W02"]
    assert [f.mask for f in loaded(PHOTO).faces] == ["landmarks"]


class LeftHalf:
    """Sees skin in the left half of every crop."""

    def __call__(self, crop: np.ndarray) -> np.ndarray:
        classes = np.zeros((SIDE, SIDE), np.uint8)
        classes[:, : SIDE // 2] = FACE_PARTS[0]
        return classes


@pytest.mark.usefixtures("found")
def test_only_what_the_parser_calls_face_changes() -> None:
    face = (250.0, 250.0, 150.0)
    whole = restorer(face)(PHOTO, Options(strength=1.0))
    half = replace(restorer(face), parser=LeftHalf())(PHOTO, Options(strength=1.0))

    def changed(result: gz.RestoreResult, columns: slice) -> float:
        return float((result.image.pixels != PHOTO.pixels).any(2)[210:290, columns].mean())

    left, right = slice(220, 240), slice(264, 285)
    assert changed(whole, left) > 0.9
    assert changed(whole, right) > 0.9
    assert changed(half, left) > 0.9
    assert changed(half, right) == 0
    assert half.faces[0].mask == "parsing"
    assert gz.blend(half, Options(strength=1.0, mask="crop")).faces[0].mask == "crop"
    small = replace(restorer((250, 250, LEAST_PARSED - 8)), parser=LeftHalf())(PHOTO, Options(strength=1.0))
    assert small.faces[0].mask == "landmarks", "not worth its seconds"
    aligned = replace(restorer(), parser=LeftHalf())(PHOTO, Options(aligned=True))
    assert (aligned.faces[0].mask, aligned.crops[0].regions) == ("whole", None)
