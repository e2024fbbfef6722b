"""Narrower students and exported weights: what was taken over, what the file says of itself, and that it runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

from gpen_zoo.architecture import Config
from gpen_zoo.cli import main as gpen_zoo
from gpen_zoo.engine import load_engine
from gpen_zoo.image_io import write
from gpen_zoo.network import GPEN
from gpen_zoo.types import Image
from gpen_zoo.weightfile import read_header
from training.checkpoint import NAME, load_checkpoint
from training.export import entry, export, mixed
from training.narrow import _layers, narrowed, strongest
from training.train import load_network

ROOT = Path(__file__).parents[1]
TEACHER = Config(64, 16, 2, 1, 1 / 32)


def teacher() -> GPEN:
    torch.manual_seed(0)
    net = GPEN.from_config(TEACHER).eval()
    with torch.no_grad():
        for layer, *_ in _layers(net):
            layer.noise.weight.fill_(0.5)  # 0 at the start of a training, and then the encoder's feature is unread
    return net


def silence(net: GPEN) -> dict[str, torch.Tensor]:
    """Nobody reads half of the channels of any space any more; returns the others."""
    torch.manual_seed(1)
    faces = torch.rand(2, 3, 64, 64)
    spaces = {space: len(kept) for space, kept in strongest(net, net.config.width, faces).items()}
    left = {space: torch.randperm(count)[: count // 2].sort().values for space, count in spaces.items()}

    def dead(space: str) -> torch.Tensor:
        return torch.tensor([i for i in range(spaces[space]) if i not in left[space]])

    with torch.no_grad():
        for stage in range(1, net.stages + 1):
            getattr(net, f"ecd{stage}")[0][1].weight[:, dead(f"encoder {64 >> (stage - 1)}")] = 0
        net.final_linear[0].weight.view(16, -1, 16)[:, dead("encoder 4")] = 0
        rgbs = zip([net.generator.to_rgb1, *net.generator.to_rgbs], [4, 8, 16, 32, 64], strict=True)
        readers = [(layer.conv, space, r) for layer, _, space, r in _layers(net)]
        for conv, space, r in readers + [(rgb.conv, f"conv {r}", r) for rgb, r in rgbs]:
            conv.weight[:, :, dead(space)] = 0
            if r:
                conv.weight[:, :, spaces[space] + dead(f"encoder {r}")] = 0
    return left


def test_channels_that_nobody_reads_are_the_ones_left_behind() -> None:
    net = teacher()
    left = silence(net)
    faces = torch.rand(2, 3, 64, 64) * 2 - 1
    kept = strongest(net, lambda r: net.config.width(r) // 2, faces)
    assert all(torch.equal(kept[space], left[space]) for space in left)
    student = narrowed(net, 0.5, faces).eval()
    assert student.config.narrow == net.config.narrow / 2
    with torch.inference_mode():
        torch.testing.assert_close(student(faces), net(faces), atol=1e-4, rtol=1e-4)


def test_a_student_without_channels_is_refused() -> None:
    with pytest.raises(ValueError, match="no channels"):
        narrowed(teacher(), 1 / 64, torch.zeros(1, 3, 64, 64))


def test_the_whole_width_is_the_teacher_itself() -> None:
    net, faces = teacher(), torch.rand(1, 3, 64, 64) * 2 - 1
    same = narrowed(net, 1.0, faces).state_dict()
    assert all(torch.equal(value, same[name]) for name, value in net.state_dict().items())


def test_the_strongest_half_comes_nearer_to_the_teacher_than_the_weakest(monkeypatch: pytest.MonkeyPatch) -> None:
    net, faces = teacher(), torch.rand(2, 3, 64, 64) * 2 - 1
    with torch.inference_mode():
        wanted = net(faces)
        strong = (narrowed(net, 0.5, faces)(faces) - wanted).square().mean()
        order = torch.argsort
        monkeypatch.setattr(torch, "argsort", lambda x, descending: order(x, descending=not descending))
        weak = (narrowed(net, 0.5, faces)(faces) - wanted).square().mean()
    assert strong < weak


def test_an_exported_file_runs_in_the_engine_and_says_where_it_comes_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    net, target = teacher(), tmp_path / "small.safetensors"
    export(net.state_dict(), target, name="small", licence="CC0-1.0", origin={"about": "a test", "runs": []})
    metadata = read_header(target).metadata
    assert metadata["license"] == "CC0-1.0"
    assert json.loads(metadata["origin"])["about"] == "a test"
    crop = np.random.default_rng(0).integers(0, 256, (1, 64, 64, 3), dtype=np.uint8)
    (outcome,) = load_engine(target, device="cpu", precision="float32").restore(crop)
    with torch.inference_mode():
        y = load_network(target)(torch.from_numpy(crop).permute(0, 3, 1, 2).float() / 127.5 - 1)[0]
    wanted = (y.permute(1, 2, 0) * 127.5 + 127.5).clamp(0, 255).round().numpy()
    assert outcome.pixels is not None
    assert np.abs(outcome.pixels.astype(float) - wanted).max() <= 1
    assert gpen_zoo(["weights", "inspect", str(target), "--json"]) == 0
    assert "GPEN" in capsys.readouterr().out
    (block,) = yaml.safe_load(entry(target, "small", "CC0-1.0"))["weights"]
    assert block["branch"] == 64
    assert block["bytes"] == target.stat().st_size
    assert Config(**{k: v for k, v in block["architecture"].items() if k != "family"}) == TEACHER


def test_the_printed_manifest_makes_the_file_a_weight_like_any(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target, photo = tmp_path / "small.safetensors", tmp_path / "photo.png"
    export(teacher().state_dict(), target, name="small-64", licence="CC0-1.0", origin={})
    (tmp_path / "mine.yaml").write_text(entry(target, "small-64", "CC0-1.0"))
    monkeypatch.setenv("GPEN_ZOO_MANIFEST", str(tmp_path / "mine.yaml"))
    assert gpen_zoo(["weights", "adopt", str(target)]) == 0
    write(Image(pixels=np.full((64, 64, 3), 90, np.uint8)), photo)
    words = ["-o", str(tmp_path / "out"), "--model", "small-64", "--aligned"]
    assert gpen_zoo(["restore", "-i", str(photo), *words]) == 0


def test_values_beyond_float16_are_refused(tmp_path: Path) -> None:
    state = teacher().state_dict()
    state["generator.conv1.activate.bias"] = state["generator.conv1.activate.bias"] + 1e6
    with pytest.raises(ValueError, match="activate.bias"):
        export(state, tmp_path / "x.safetensors", name="x", licence="", origin={})


def test_two_runs_mix_by_share() -> None:
    a, b = {"w": torch.zeros(3)}, {"w": torch.ones(3)}
    assert torch.allclose(mixed(a, b, 0.25)["w"], torch.full((3,), 0.25))
    with pytest.raises(ValueError, match="one network"):
        mixed(a, {"w": torch.ones(4)}, 0.5)


def test_from_teacher_to_card_on_the_command_line(tmp_path: Path) -> None:
    faces, run = tmp_path / "faces", tmp_path / "run"
    faces.mkdir()
    random = np.random.default_rng(0)
    for i in range(4):
        write(Image(pixels=random.integers(0, 256, (64, 64, 3), dtype=np.uint8)), faces / f"{i}.png")
    (tmp_path / "held.txt").write_text("3.png")
    source = tmp_path / "teacher.safetensors"
    export(teacher().state_dict(), source, name="teacher", licence="", origin={})
    data = ["--data", str(faces), "--validation", str(tmp_path / "held.txt")]
    flags = "--narrow 0.5 --steps 2 --batch 2 --every 2 --workers 0 --threads 1 --teaching 0.5"
    distill = ["-m", "training.distill", "--teacher", str(source), "--output", str(run), *data, *flags.split()]
    subprocess.run([sys.executable, *distill], check=True, cwd=ROOT)
    assert load_checkpoint(run / NAME).config["narrow"] == TEACHER.narrow / 2
    target = tmp_path / "student.safetensors"
    command = ["-m", "training.export", str(run / NAME), str(target), "--name", "student", *data, "--wear", "light"]
    subprocess.run([sys.executable, *command], check=True, cwd=ROOT)
    card = target.with_suffix(".md").read_text()
    assert "| light |" in card
    assert load_network(target).config.narrow == TEACHER.narrow / 2
