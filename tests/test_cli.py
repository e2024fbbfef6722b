"""The command line as a user's shell sees it: files, words, exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from skimage import data

import gpen_zoo as gz
from gpen_zoo.cli import face_numbers, language_of, main
from gpen_zoo.errors import OptionsInvalid
from gpen_zoo.hints import say
from gpen_zoo.types import Image

ROOT = Path(__file__).parents[1]


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """A folder with a photo under a Chinese name, one of the same name elsewhere, one without faces, one broken."""
    folder = tmp_path / "照片"
    gz.write(Image(pixels=data.astronaut()), folder / "奶奶.jpg")
    gz.write(Image(pixels=data.astronaut()[:, ::-1].copy()), folder / "b" / "奶奶.jpg")
    gz.write(Image(pixels=np.full((80, 90, 3), 120, np.uint8)), folder / "wall.png")
    (folder / "broken.jpg").write_bytes(b"<html></html>")
    return folder


def test_restore_in_a_process_of_its_own(photos: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "gpen_zoo",
            "restore",
            "-i",
            photos / "奶奶.jpg",
            "-o",
            tmp_path / "out",
            "--lang",
            "zh",
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},  # a console that cannot show Chinese
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert gz.read(tmp_path / "out" / "奶奶_restored.jpg").pixels.shape == (512, 512, 3)


def test_one_bad_file_does_not_stop_the_rest(photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "report.json"
    files = [str(photos / n) for n in ("奶奶.jpg", "broken.jpg", "absent.jpg", "b/奶奶.jpg", "wall.png")]
    code = main(["--lang", "zh", "restore", "-i", *files, "-o", str(tmp_path / "out"), "--json", str(report)])
    out, err = capsys.readouterr()
    assert code == 1
    written = sorted(p.name for p in (tmp_path / "out").iterdir())
    assert written == ["wall_restored.png", "奶奶_restored.jpg", "奶奶_restored_2.jpg"]
    assert len(err.splitlines()) == 2
    assert say("kind.html", "zh") in err
    assert "I19" in err
    assert say("cli.total", "zh", done=3, failed=2) in out
    assert out.count("[D01]") == 1, "what holds for all is said once"
    assert say("F01", "zh") in out
    results = json.loads(report.read_text(encoding="utf-8"))["results"]
    assert [r["error"] and r["error"]["code"] for r in results] == [None, "I01", "I19", None, None]
    assert results[0]["faces"][0]["verdict"] == "restored"
    assert results[3]["output"].endswith("奶奶_restored_2.jpg")
    assert np.array_equal(gz.read(tmp_path / "out/wall_restored.png").pixels, gz.read(photos / "wall.png").pixels)


def test_output_as_a_file_and_its_format(photos: Path, tmp_path: Path) -> None:
    target = tmp_path / "new" / "奶奶.png"
    assert main(["restore", "-i", str(photos / "奶奶.jpg"), "-o", str(target)]) == 0
    assert target.read_bytes().startswith(b"\x89PNG")


def test_options_reach_the_pipeline(photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    photo = str(photos / "奶奶.jpg")
    assert main(["restore", "-i", photo, "-o", str(tmp_path / "o.png"), "--strength", "0", "--json", "-"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["results"][0]["faces"][0]["note"]["code"] == "F08"
    assert np.array_equal(gz.read(tmp_path / "o.png").pixels, gz.read(photo).pixels)
    assert main(["restore", "-i", photo, "-o", str(tmp_path), "--faces", "2，3", "--lang", "en"]) == 0
    assert say("F09", "en", numbers="2, 3", count=1) in capsys.readouterr().out
    assert main(["restore", "-i", photo, "-o", str(tmp_path), "--aligned", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["results"][0]["detector"] == "none"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--strength", "2"], "U01"),
        (["--faces", "1,x"], "U04"),
        (["--faces", "0"], "U04"),
    ],
)
def test_wrong_options_are_usage_errors(
    photos: Path, words: list[str], code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["restore", "-i", str(photos / "奶奶.jpg"), *words]) == 2
    assert f"[{code}]" in capsys.readouterr().err


def test_wrong_words_are_usage_errors(capsys: pytest.CaptureFixture[str]) -> None:
    for words in ([], ["restore"], ["weights"], ["fly"]):
        with pytest.raises(SystemExit) as stopped:
            main(words)
        assert stopped.value.code == 2


def test_the_input_is_never_overwritten(photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    photo = photos / "奶奶.jpg"
    before = photo.read_bytes()
    assert main(["restore", "-i", str(photo), "-o", str(photo)]) == 1
    assert "[U07]" in capsys.readouterr().err
    assert photo.read_bytes() == before
    assert main(["restore", "-i", str(photo), str(photos / "wall.png"), "-o", "all.jpg"]) == 2


def test_a_place_that_cannot_be_written(photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["restore", "-i", str(photos / "奶奶.jpg"), "-o", str(photos / "wall.png" / "under")]) == 1
    assert "[I22]" in capsys.readouterr().err


def test_weights(zoo_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["weights", "list", "--json"]) == 0
    rows = {r["name"]: r for r in json.loads(capsys.readouterr().out)["weights"]}
    assert rows["gpen-demo-256"]["status"] == "bundled"
    assert rows["GPEN-BFR-512"]["status"] == "missing"
    assert main(["weights", "list", "--lang", "zh"]) == 0
    assert say("cli.bundled", "zh") in capsys.readouterr().out
    assert main(["weights", "info", "GPEN-BFR-512.pth", "--lang", "zh"]) == 0
    assert "f1002c41" in capsys.readouterr().out
    assert main(["weights", "info", "nonsense"]) == 1
    assert main(["weights", "verify"]) == 0
    zoo_home.mkdir(parents=True)
    (zoo_home / "GPEN-BFR-512.safetensors").write_bytes(b"")
    capsys.readouterr()
    assert main(["weights", "verify"]) == 1
    assert "[W01]" in capsys.readouterr().err


def test_doctor(capsys: pytest.CaptureFixture[str], zoo_home: Path) -> None:
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["branches"] == ["gpen-demo-256"]
    assert found["versions"]["torch"]
    assert found["home"] == str(zoo_home)
    assert "E02" not in [p["code"] for p in found["problems"]]
    assert main(["--lang", "zh", "doctor"]) == 0
    assert "gpen-demo-256" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "environment", "expected"),
    [
        (["--lang", "zh"], {"LANG": "en_US.UTF-8"}, "zh"),
        (["doctor", "--lang=en"], {"LANG": "zh_CN.UTF-8"}, "en"),
        ([], {"LANG": "zh_TW.UTF-8"}, "zh"),
        ([], {"LC_ALL": "C", "LANG": "zh_CN.UTF-8"}, "en"),
    ],
)
def test_the_language_is_the_flags_else_the_systems(
    words: list[str], environment: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert language_of(words) == expected


def test_help_is_in_both_languages(capsys: pytest.CaptureFixture[str]) -> None:
    for lang in ("zh", "en"):
        with pytest.raises(SystemExit) as stopped:
            main(["restore", "--help", "--lang", lang])
        assert stopped.value.code == 0
        assert say("cli.strength", lang)[:8] in capsys.readouterr().out


def test_face_numbers() -> None:
    assert face_numbers(None) is None
    assert face_numbers("3, 1,") == (3, 1)
    with pytest.raises(OptionsInvalid):
        face_numbers("one")
