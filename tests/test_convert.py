"""Pickles in, canonical safetensors out: nothing executed, nothing lost, the same bytes every time."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import torch
from safetensors import safe_open

from gpen_zoo import convert as module
from gpen_zoo import manifest, weightfile
from gpen_zoo.convert import convert, read_original
from gpen_zoo.errors import GpenError, WeightCorrupt, WeightWrongKind
from gpen_zoo.identify import ONNX_EXPORTS, identify
from gpen_zoo.manifest import Digest
from gpen_zoo.network import GPEN

SMALL = {"size": 64, "style_dim": 16, "n_mlp": 2, "channel_multiplier": 1, "narrow": 0.0625}
ENTRY = replace(
    manifest.load()[2],
    name="Mine-64",
    branch=64,
    file="mine.pth",
    architecture=manifest.Architecture(family="GPEN", params=MappingProxyType(SMALL)),
)


def state(seed: int = 0, **changes: Any) -> dict[str, torch.Tensor]:
    torch.manual_seed(seed)
    return GPEN(**{**SMALL, **changes}).state_dict()


def digest_of(path: Path) -> Digest:
    return Digest(bytes=path.stat().st_size, sha256=weightfile.sha256_of(path))


def converted(tmp_path: Path, data: Any, **options: Any) -> Path:
    original, target = tmp_path / "mine.pth", tmp_path / "mine.safetensors"
    torch.save(data, original, **({"_use_new_zipfile_serialization": False} if options.pop("old", False) else {}))
    assert convert(original, target, ENTRY, digest_of(original), **options) == digest_of(target)
    return target


@pytest.mark.parametrize("old", [False, True])
def test_every_bit_survives(tmp_path: Path, old: bool) -> None:
    weights = state()
    name = "generator.to_rgb1.bias"
    weights[name] = torch.tensor([float("nan"), -0.0, 1e-45]).reshape(1, 3, 1, 1)
    path = converted(tmp_path, weights, old=old)
    again = weightfile.read_state_dict(path)
    assert again.keys() == weights.keys()
    for key, value in weights.items():
        assert again[key].dtype is value.dtype and again[key].numpy().tobytes() == value.numpy().tobytes()
    with safe_open(path, "pt") as file:
        metadata = file.metadata()
    assert metadata["source_file"] == "mine.pth" and metadata["converter"] == module.VERSION
    assert metadata["source_sha256"] == weightfile.sha256_of(tmp_path / "mine.pth")
    assert json.loads(metadata["architecture"]) == {"family": "GPEN", **SMALL}


def test_same_input_gives_same_bytes_in_any_order_and_process(tmp_path: Path) -> None:
    weights = state()
    first = converted(tmp_path, weights).read_bytes()
    shuffled = list(weights.items())
    random.Random(1).shuffle(shuffled)
    torch.save(dict(shuffled), tmp_path / "other.pth")
    convert(tmp_path / "other.pth", tmp_path / "b", ENTRY, digest_of(tmp_path / "mine.pth"))
    assert (tmp_path / "b").read_bytes() == first
    script = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[3]);"
        "from tests.test_convert import ENTRY, digest_of; from gpen_zoo.convert import convert;"
        "o = Path(sys.argv[1]); convert(o, Path(sys.argv[2]), ENTRY, digest_of(o))"
    )
    arguments = [str(tmp_path / "mine.pth"), str(tmp_path / "c"), str(Path(__file__).parents[1])]
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    subprocess.run([sys.executable, "-c", script, *arguments], check=True, env=environment, timeout=60)
    assert (tmp_path / "c").read_bytes() == first


def test_bytes_change_only_with_the_converters_version(tmp_path: Path) -> None:
    """Digests of conversions are pinned in manifests: another layout is another converter, and must say so."""
    weights = {"b": torch.arange(6.0).reshape(2, 3), "n": torch.tensor(7), "a": torch.ones(3).half()}
    module.write(tmp_path / "w", weights, {"name": "权重", "format": "pt"})
    assert module.VERSION == "gpen_zoo 1"
    assert weightfile.sha256_of(tmp_path / "w") == "e8614b18be36b26a82eede8c9909446c2a9a5f814d8a854b6aa973143b603bba"
    assert weightfile.read_state_dict(tmp_path / "w")["n"].item() == 7


@pytest.mark.parametrize("wrapper", ["g_ema", "params_ema", "params", "state_dict", "g"])
def test_wrapped_and_data_parallel_states(tmp_path: Path, wrapper: str) -> None:
    weights = state()
    data = {wrapper: {f"module.{name}": value for name, value in weights.items()}, "iteration": 7}
    again = weightfile.read_state_dict(converted(tmp_path, data))
    assert all(torch.equal(again[name], value) for name, value in weights.items())


def test_averaged_weights_win_over_the_current_ones(tmp_path: Path) -> None:
    data = {"g": state(1), "d": {"x": torch.zeros(1)}, "g_ema": state(2), "g_optim": {"lr": 0.1}}
    again = weightfile.read_state_dict(converted(tmp_path, data))
    assert torch.equal(again["ecd0.0.0.weight"], state(2)["ecd0.0.0.weight"])


def test_half_size_copy_is_marked(tmp_path: Path) -> None:
    full = converted(tmp_path, state()).stat().st_size
    half = converted(tmp_path, state(), dtype="float16")
    assert half.stat().st_size < 0.6 * full
    with safe_open(half, "pt") as file:
        assert file.metadata()["dtype"] == "float16"
    assert weightfile.read_state_dict(half)["ecd0.0.0.weight"].dtype is torch.float16
    weights = state()
    weights["ecd0.0.1.bias"][0] = 1e6
    with pytest.raises(WeightWrongKind) as caught:
        converted(tmp_path, weights, dtype="float16")
    assert caught.value.code == "W32"


@pytest.mark.parametrize(
    ("data", "code"),
    [
        ({**state(), "one_more": torch.zeros(1)}, "W12"),
        ({k: v for k, v in state().items() if k != "ecd0.0.1.bias"}, "W12"),
        (state(size=128), "W05"),
        ({}, "W13"),
        ([1, 2], "W13"),
        ({"a": "text"}, "W13"),
        ({"a": torch.zeros(3).to_sparse()}, "W13"),
        (torch.zeros(3), "W13"),
        ({"final_conv.0.weight": torch.zeros(1)}, "W12"),
    ],
)
def test_anything_else_is_refused_and_leaves_nothing(tmp_path: Path, data: Any, code: str) -> None:
    with pytest.raises(WeightWrongKind) as caught:
        converted(tmp_path, data)
    assert caught.value.code == code and not (tmp_path / "mine.safetensors").exists()


class Bomb:
    """What a malicious pickle does: a call on opening."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.target,)


@pytest.mark.parametrize("form", ["zip", "old", "bare"])
def test_malicious_pickles_are_never_run(tmp_path: Path, form: str) -> None:
    trap, path = tmp_path / "ran", tmp_path / "GPEN-BFR-512.pth"
    data = {**state(), "x": Bomb(trap)}
    if form == "bare":
        path.write_bytes(pickle.dumps(data, protocol=2))
    else:
        torch.save(data, path, _use_new_zipfile_serialization=form == "zip")
    with pytest.raises(WeightCorrupt) as caught:
        read_original(path)
    assert caught.value.code == "W30" and not trap.exists()
    assert identify(path, ()).note.code == "W30" and not trap.exists()


def test_damaged_pickles_end_in_a_code(tmp_path: Path) -> None:
    """Bytes changed or cut anywhere: refused with a code, or tensors that the digest check will judge."""
    path, chance = tmp_path / "w.pth", random.Random(3)
    for old in (False, True):
        torch.save(state(), path, _use_new_zipfile_serialization=not old)
        good = path.read_bytes()
        for _ in range(40):
            bad = bytearray(good[: chance.randrange(1, len(good))] if chance.random() < 0.4 else good)
            for _ in range(chance.randrange(1, 9)):
                bad[chance.randrange(min(len(bad), 3000))] = chance.randrange(256)
            path.write_bytes(bad)
            try:
                read_original(path)
            except GpenError as error:
                assert error.code.startswith("W")


def test_wrong_read_back_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(target: Path, weights: Any, metadata: Any) -> None:
        kept = {**weights, "ecd0.0.1.bias": weights["ecd0.0.1.bias"] + 1}
        true_write(target, kept, metadata)

    true_write = module.write
    monkeypatch.setattr(module, "write", forgetful)
    with pytest.raises(WeightCorrupt, match="read-back"):
        converted(tmp_path, state())
    assert not (tmp_path / "mine.safetensors").exists()


def test_what_is_this_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "some.file"

    def look(data: Any) -> tuple[str, str]:
        path.write_bytes(data) if isinstance(data, bytes) else torch.save(data, path)
        found = identify(path, (ENTRY,))
        assert found.as_dict()["note"]["zh"] and found.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
        return found.note.code, str(found.network or "")

    assert look(b"") == ("W01", "")
    assert look(b"<html>") == ("W02", "")
    assert look(b"version https://git-lfs.github.com/spec/v1\n") == ("W03", "")
    assert look(b'{"error": "Repository not found"}') == ("W14", "")
    assert look(b"PK\x03\x04 cut off") == ("W28", "")
    assert look(b"\x08\x06\x12\x07pytorch") == ("W20", "")
    assert look(b"some text") == ("W15", "")
    assert look(state())[0] == "W41" and "GPEN 64 (style_dim 16, n_mlp 2" in look(state())[1]
    assert look({"g_ema": state(), "g": state(), "d": {}})[0] == "W42"
    one = torch.zeros(1)
    discriminator = {"convs.0.0.weight": one, "final_conv.0.weight": one, "final_linear.0.weight": one}
    assert look(discriminator) == ("W43", "Discriminator")
    assert look({"params_ema": {"stylegan_decoder.x": one}}) == ("W44", "GFPGAN")
    assert look({"params_ema": {"position_emb": one, "quantize.embedding.weight": one}}) == ("W44", "CodeFormer")
    assert look({"epoch": 3}) == ("W13", "")
    rrdb = {"conv_first.weight": torch.zeros(64, 12, 3, 3), "body.0.rdb1.conv1.weight": torch.zeros(32, 64, 3, 3)}
    assert look({"params_ema": rrdb})[0] == "W44"
    assert "Real-ESRGAN (RRDBNet (num_feat 64, num_block 1, num_grow_ch 32, scale 2))" in str(identify(path, ()).note)
    path.write_bytes(b"\x08\x07\x12\x07pytorch")
    monkeypatch.setitem(ONNX_EXPORTS, weightfile.sha256_of(path), "GPEN-BFR-512 (facefusion)")
    assert identify(path, ()).note.code == "W45"
    torch.save(state(), path)
    pinned = replace(ENTRY, bytes=path.stat().st_size, sha256=weightfile.sha256_of(path))
    assert identify(path, (pinned,)).entry == "Mine-64" and identify(path, (pinned,)).note.code == "W40"
