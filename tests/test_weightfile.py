"""What a file is, decided from its bytes; safetensors headers taken apart and broken in every way."""

from __future__ import annotations

import hashlib
import io
import json
import struct
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from gpen_zoo import architecture, weightfile
from gpen_zoo.architecture import Network
from gpen_zoo.errors import GpenError, WeightCorrupt, WeightWrongKind
from gpen_zoo.network import GPEN, Config

DEMO = Path(weightfile.__file__).parent / "assets" / "gpen-demo-256.safetensors"
SMALL = {"size": 64, "style_dim": 16, "n_mlp": 2, "channel_multiplier": 1, "narrow": 0.0625}


def safetensors(header: Any, data: bytes = b"") -> bytes:
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(raw)) + raw + data


def tensor(dtype: str = "F32", shape: Any = (2,), offsets: Any = (0, 8)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


def code_of(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    with pytest.raises(WeightCorrupt) as caught:
        weightfile.read_header(path)
    return caught.value.code


def test_digest_is_sha256_and_reports_progress(tmp_path: Path) -> None:
    content = bytes(range(256)) * 10000
    (tmp_path / "f").write_bytes(content)
    seen: list[int] = []
    assert weightfile.sha256_of(tmp_path / "f", seen.append) == hashlib.sha256(content).hexdigest()
    assert seen == [1 << 20, 2 << 20, len(content)]


def test_demo_header_and_state() -> None:
    header = weightfile.check_file(DEMO, architecture.network_of(weightfile.read_header(DEMO).tensors), "demo")
    assert len(header.tensors) == 132 and header.metadata["license"] == "CC0-1.0"
    state = weightfile.read_state_dict(DEMO)
    assert state["ecd0.0.0.weight"].dtype is torch.float16  # as in the file; callers widen
    assert str(architecture.network_of(state)).startswith("GPEN 256 ")


@pytest.mark.parametrize(
    ("content", "kind", "code"),
    [
        (b"", "empty", "W01"),
        (b"\xef\xbb\xbf\n<!DOCTYPE html><html>captive portal</html>", "html", "W02"),
        (b"<html><head><title>404</title>", "html", "W02"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "lfs-pointer", "W03"),
        (b'{"error":"Entry not found"}', "message", "W14"),
        (b"<?xml version='1.0'?><Error><Code>NoSuchKey</Code></Error>", "message", "W14"),
        (b"PK\x03\x04" + bytes(200), "zip-cut", "W28"),
        (b"\x80\x02}q\x00.", "pickle", "W18"),
        (b"\x08\x07\x12\x07pytorch\x1a\x051.13.", "onnx", "W20"),
        (b"GIF89a" + bytes(100), "unknown", "W15"),
        (b"\x00", "unknown", "W15"),
    ],
)
def test_containers(tmp_path: Path, content: bytes, kind: str, code: str) -> None:
    path = tmp_path / "weights.safetensors"
    path.write_bytes(content)
    assert weightfile.container(path) == kind
    with pytest.raises(GpenError) as caught:
        weightfile.read_header(path)
    assert caught.value.code == code and "weights.safetensors" in str(caught.value)


def test_pickles_and_other_zips(tmp_path: Path) -> None:
    torch.save({"a": torch.zeros(2)}, tmp_path / "new.pth")
    torch.save({"a": torch.zeros(2)}, tmp_path / "old.pth", _use_new_zipfile_serialization=False)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("GPEN-BFR-512.pth", b"x")
    (tmp_path / "packed.zip").write_bytes(buffer.getvalue())
    assert weightfile.container(tmp_path / "new.pth") == "pickle-zip"
    assert weightfile.container(tmp_path / "old.pth") == "pickle"
    assert weightfile.container(tmp_path / "packed.zip") == "unknown"
    whole = (tmp_path / "new.pth").read_bytes()
    (tmp_path / "new.pth").write_bytes(whole[: len(whole) // 2])
    assert weightfile.container(tmp_path / "new.pth") == "zip-cut"


def test_broken_headers(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    good = safetensors({"a": tensor(), "b": tensor(offsets=(8, 16))}, bytes(16))
    path.write_bytes(good)
    assert weightfile.read_header(path).tensors["b"].shape == (2,)
    assert code_of(path, good[:-1]) == "W06"
    assert code_of(path, good[:30]) == "W07"
    assert code_of(path, struct.pack("<Q", 1 << 39) + good[8:]) == "W07"
    assert code_of(path, safetensors(b'{"a":' + b"[" * 100_000)) == "W08"
    assert code_of(path, safetensors(b'{"a": nonsense}')) == "W08"
    assert code_of(path, safetensors(b'{"\xff": 1}')) == "W08"
    assert code_of(path, safetensors({"__metadata__": {"a": 1}})) == "W08"
    twice = json.dumps({"a": tensor()})[:-1] + ', "a": ' + json.dumps(tensor()) + "}"
    assert code_of(path, safetensors(twice.encode(), bytes(8))) == "W09"
    assert code_of(path, safetensors({"a": tensor(), "b": tensor(offsets=(4, 12))}, bytes(12))) == "W10"  # overlap
    assert code_of(path, safetensors({"a": tensor(offsets=(8, 16))}, bytes(16))) == "W10"  # gap before
    assert code_of(path, safetensors({"a": tensor()}, bytes(9))) == "W10"  # bytes nobody claims
    assert code_of(path, safetensors({"a": tensor(offsets=(-8, 0))}, bytes(8))) == "W10"
    assert code_of(path, safetensors({"a": tensor(offsets=(8, 0))}, bytes(8))) == "W11"
    assert code_of(path, safetensors({"a": tensor(shape=(3,))}, bytes(8))) == "W11"
    assert code_of(path, safetensors({"a": tensor(shape=(True, 2))}, bytes(8))) == "W11"
    assert code_of(path, safetensors({"a": tensor(dtype="F33")}, bytes(8))) == "W11"
    assert code_of(path, safetensors({"a": [1]}, bytes(8))) == "W11"
    assert code_of(path, safetensors({"a": tensor(shape=(1 << 62, 1 << 62))}, bytes(8))) == "W11"


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_no_damage_to_a_header_escapes_or_crashes(tmp_path: Path, data: st.DataObject) -> None:
    """Any change to header or length: either refused with a code, or the result is still a consistent file."""
    good = bytearray(safetensors({"a": tensor(), "b": tensor("F16", (2, 2), (8, 16))}, bytes(16)))
    header_end = 8 + struct.unpack("<Q", good[:8])[0]
    for _ in range(data.draw(st.integers(1, 6))):
        good[data.draw(st.integers(0, header_end - 1))] = data.draw(st.integers(0, 255))
    good = good[: data.draw(st.integers(0, len(good)))] if data.draw(st.booleans()) else good
    path = tmp_path / "w.safetensors"
    path.write_bytes(good)
    try:
        header = weightfile.read_header(path)
    except GpenError:
        return
    covered = sorted((t.start, t.end) for t in header.tensors.values())
    assert covered[-1][1] + 8 + struct.unpack("<Q", good[:8])[0] == len(good) if covered else True
    assert all(left[1] == right[0] for left, right in zip(covered, covered[1:], strict=False))


def test_check_file_tells_networks_apart(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    state = GPEN(**SMALL).state_dict()  # type: ignore[arg-type]
    wanted = Network("GPEN", SMALL)

    def code(tensors: dict[str, torch.Tensor]) -> str:
        save_file({name: value.contiguous() for name, value in tensors.items()}, path)
        with pytest.raises((WeightWrongKind, WeightCorrupt)) as caught:
            weightfile.check_file(path, wanted, "Mine-64")
        return caught.value.code

    save_file(state, path)
    weightfile.check_file(path, wanted, "Mine-64")
    assert code(GPEN(**{**SMALL, "size": 128}).state_dict()) == "W05"  # type: ignore[arg-type]
    assert code(GPEN(**{**SMALL, "narrow": 0.125}).state_dict()) == "W05"  # type: ignore[arg-type]
    assert code({**state, "more": torch.zeros(1)}) == "W12"
    assert code({k: v for k, v in state.items() if k != "generator.to_rgb1.bias"}) == "W12"
    assert code({**state, "generator.to_rgb1.bias": torch.zeros(1, 4, 1, 1)}) == "W12"
    assert code({**state, "ecd0.0.1.bias": state["ecd0.0.1.bias"].to(torch.int8)}) == "W11"
    assert code({"ClassHead.0.conv1x1.weight": torch.zeros(1), "body.conv1.weight": torch.zeros(1)}) == "W05"


@pytest.mark.parametrize("branch", ["GPEN-BFR-256", "GPEN-BFR-512", "GPEN-BFR-1024", "GPEN-BFR-2048"])
def test_official_shapes_are_recognised(branch: str) -> None:
    golden = json.loads((Path(__file__).parent / "golden" / "official-keys.json").read_text())[branch]
    shapes = {name: tuple(shape) for name, shape in golden.items()}
    narrow = branch == "GPEN-BFR-256"
    config = Config(int(branch.split("-")[-1]), 512, 8, 1 if narrow else 2, 0.5 if narrow else 1.0)
    assert architecture.gpen_shapes(config) == shapes
    found = architecture.network_of({n: weightfile.Tensor("F32", s, 0, 0) for n, s in shapes.items()})
    assert found.params["size"] == config.size and found.params["narrow"] == config.narrow


@pytest.mark.parametrize(
    "config", [Config(16, 8, 1, 1, 0.02), Config(64, 16, 2, 1, 0.0625), Config(256, 32, 3, 2, 0.03)]
)
def test_shapes_are_those_of_the_network(config: Config) -> None:
    assert architecture.gpen_shapes(config) == {
        k: tuple(v.shape) for k, v in GPEN.from_config(config).state_dict().items()
    }


def test_other_peoples_networks_are_named() -> None:
    """Built from the real modules where the environment has them, by their tell-tale names elsewhere."""
    from facexlib.detection.retinaface import RetinaFace
    from facexlib.parsing.bisenet import BiSeNet
    from facexlib.parsing.parsenet import ParseNet

    with torch.device("meta"):
        modules = {
            "RetinaFace (backbone mobile0.25)": RetinaFace("mobile0.25", device="meta"),
            "BiSeNet": BiSeNet(num_class=19),
            "ParseNet": ParseNet(in_size=64, out_size=64, parsing_ch=19),
        }
    for title, module in modules.items():
        assert str(architecture.network_of(module.state_dict())) == title
        wrapped = {f"module.{name}": value for name, value in module.state_dict().items()}
        assert str(architecture.network_of(wrapped)) == title
    one = torch.zeros(1)
    assert architecture.network_of({"stylegan_decoder.style_mlp.1.weight": one}).family == "GFPGAN"
    assert architecture.network_of({"position_emb": one, "quantize.embedding.weight": one}).family == "CodeFormer"
    assert architecture.network_of({"vqvae.quantize.embedding.weight": one}).family == "RestoreFormer"
    assert architecture.network_of({"ecd0.0.0.weight": one, "generator.input.input": one}).family == ""
    assert architecture.network_of({}).family == ""
