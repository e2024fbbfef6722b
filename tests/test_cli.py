"""The command line as a user's shell sees it: files, words, exit codes."""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as Pil
from skimage import data

import gpen_zoo as gz
from gpen_zoo import doctor, restore
from gpen_zoo.cli import language_of, main, parser
from gpen_zoo.cli_flags import face_numbers
from gpen_zoo.cli_parser import problem
from gpen_zoo.errors import OptionsInvalid
from gpen_zoo.hints import say
from gpen_zoo.types import Image
from gpen_zoo.zoo import Zoo
from tests.test_restore import restorer as tiny_restorer

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
    assert written == [
        *(".gpen_zoo_run.jsonl", "error_log.txt", "wall_restored.png", "奶奶_restored.jpg", "奶奶_restored_2.jpg")
    ]
    assert len(err.splitlines()) == 2
    log = (tmp_path / "out" / "error_log.txt").read_text(encoding="utf-8").splitlines()
    assert [line.split("\t")[2] for line in log] == ["I01", "I19"]
    assert say("kind.html", "zh") in log[0]
    assert say("kind.html", "zh") in err
    assert "I19" in err
    assert "完成 3，失败 2，跳过 0" in out
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
    assert main(["restore", "-i", photo, "-o", str(tmp_path), "--faces", "2，3", "--lang", "en"]) == 1
    assert say("F09", "en", numbers="2, 3", count=1) in capsys.readouterr().out
    assert main(["restore", "-i", photo, "-o", str(tmp_path), "--faces", "1,3", "-q"]) == 0, "one of them was there"
    capsys.readouterr()
    assert main(["restore", "-i", photo, "-o", str(tmp_path), "--aligned", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["results"][0]["detector"] == "none"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--strength", "2"], "U01"),
        (["--faces", "1,x"], "U04"),
        (["--faces", "0"], "U04"),
        (["--strength", "strong"], "U01"),
        (["--box", "1,2,3"], "F60"),
        (["--min-face", "-1"], "F62"),
        (["--size", "3"], "U28"),
        (["--jobs", "0"], "U28"),
        (["--timeout", "0"], "U28"),
        (["--bg-tile", "8"], "U41"),
        (["--bg-tile", "-5"], "U41"),
        (["--scale", "3"], "F63"),
        (["--background", "nobody"], "F63"),
        (["--quality", "101"], "I18"),
        (["--ext", "gif"], "I16"),
        (["--name", "{what}"], "U18"),
        (["--task", "FaceColorization"], "U26"),
    ],
)
def test_wrong_options_are_usage_errors(
    photos: Path, words: list[str], code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["restore", "-i", str(photos / "奶奶.jpg"), *words]) == 2
    assert f"[{code}]" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code", "named"),
    [
        (["restore", "-i", "a.jpg", "--strenght", "1"], "U34", "--strenght"),
        (["restore"], "U35", "-i"),
        ([], "U35", "COMMAND"),
        (["weights"], "U35", "ACTION"),
        (["restore", "-i", "a.jpg", "--mask", "hat"], "U36", "hat"),
        (["restaur"], "U36", "restaur"),
        (["weights", "lst"], "U36", "lst"),
        (["restore", "-i", "a.jpg", "--size", "big"], "U37", "big"),
        (["serve", "--max-requests", "0"], "U37", "--max-requests"),
        (["restore", "-i", "a.jpg", "--mask"], "U38", "--mask"),
    ],
)
@pytest.mark.parametrize("lang", ["zh", "en"])
def test_what_argparse_finds_wrong_is_told_with_a_code(
    words: list[str], code: str, named: str, lang: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["--lang", lang, *words])
    assert stopped.value.code == 2
    err = capsys.readouterr().err
    usage, told = err.splitlines()[0], err.splitlines()[-1]
    assert usage.startswith("usage: gpen-zoo" if lang == "en" else "用法：gpen-zoo")
    assert f"[{code}]" in told and named in told
    own = told.replace(named, "")
    assert ("required" in own or "invalid choice" in own or "expected" in own) is False, "none of argparse's words"


@pytest.mark.parametrize(
    ("words", "usage"),
    [
        (["restore", "-i", "a.jpg", "--wat"], "gpen-zoo restore"),
        (["seg2face", "-i", "a.png", "--strength", "2"], "gpen-zoo seg2face"),
        (["weights", "list", "--wat"], "gpen-zoo weights list"),
    ],
)
def test_an_unknown_flag_shows_the_usage_of_its_command(
    words: list[str], usage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["--lang", "en", *words])
    err = capsys.readouterr().err
    assert err.startswith(f"usage: {usage} [") and err.splitlines()[-1].startswith(usage)


def test_help_has_headings_in_the_language(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--help"], ["restore", "-h"], ["weights", "list", "-h"]):
        with pytest.raises(SystemExit) as stopped:
            main(["--lang", "zh", *words])
        assert stopped.value.code == 0
        out = capsys.readouterr().out
        assert out.startswith("用法：gpen-zoo")
        for english in ("usage:", "options:", "positional arguments", "show this help"):
            assert english not in out
        assert "--lang" in out


def test_every_argument_is_explained() -> None:
    def unexplained(of: argparse.ArgumentParser, path: str) -> Iterator[str]:
        for action in of._actions:
            if isinstance(action, argparse._SubParsersAction):
                for name, command in action.choices.items():
                    yield from unexplained(command, f"{path} {name}")
            elif not action.help:
                yield f"{path} {action.option_strings or action.dest}"

    assert list(unexplained(parser("zh"), "gpen-zoo")) == []


def test_a_sentence_of_argparse_that_we_do_not_know_is_passed_on() -> None:
    assert problem("argument --x: not allowed with argument --y").code == "U39"


def test_a_missing_weight_file_is_told_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "none.pth")
    for action in ("inspect", "adopt"):
        assert main(["weights", action, path, "--lang", "en"]) == 1
        err = capsys.readouterr().err
        assert "[I19]" in err
        assert err.count(path) == 1


def test_nothing_left_to_do_has_no_rates(photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["restore", "-i", str(photos / "奶奶.jpg"), "-o", str(tmp_path / "out"), "-q", "--lang", "en"]
    assert main(words) == 0
    capsys.readouterr()
    assert main([*words, "--skip-existing"]) == 0
    assert "- s a photo, - photos/s, - faces/s" in capsys.readouterr().out


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


@pytest.mark.usefixtures("tiny")
def test_a_folder_a_pattern_and_a_second_run(photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    (photos / "notes.txt").write_text("no picture")
    # Without detection: what is tested is which files are taken.
    quick = ["--aligned", "--strength", "0", "-o", str(out), "--lang", "en", "--quiet"]
    assert main(["restore", "-i", str(photos), "-r", *quick]) == 1
    told, err = capsys.readouterr()
    assert told.startswith("4 photos: 3 done, 1 failed, 0 skipped;")
    assert len(told.splitlines()) == 1
    assert "broken.jpg" in err
    assert sorted(p.relative_to(out).as_posix() for p in out.rglob("*.[jp][pn]g")) == [
        *("b/奶奶_restored.jpg", "wall_restored.png", "奶奶_restored.jpg")
    ]
    assert main(["restore", "-i", str(photos), "-r", *quick, "--skip-existing"]) == 1
    assert "4 photos: 0 done, 1 failed, 3 skipped" in capsys.readouterr().out
    (photos / "broken.jpg").write_bytes((photos / "奶奶.jpg").read_bytes())
    assert main(["restore", "-i", str(photos / "*.jpg"), *quick, "--skip-existing"]) == 0
    assert "2 photos: 1 done, 0 failed, 1 skipped" in capsys.readouterr().out
    # The results lie where the photos are: they are not taken for photos.
    inside = ["restore", "-i", str(photos), "-o", str(photos), *quick[:3], "--quiet", "--lang", "en"]
    assert main(inside) == 0
    assert main(inside) == 0
    assert "3 photos: 3 done" in capsys.readouterr().out
    assert main(["restore", "-i", str(photos / "*.gif"), *quick]) == 1
    assert "[U20]" in capsys.readouterr().err


def test_names_formats_and_faces(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["-i", str(photos / "奶奶.jpg"), "-o", str(out), "--name", "{stem}_{n:02d}_{date}", "--ext", ".png"]
    assert main(["restore", *words, "--save_face", "--size", "300", "--quiet"]) == 0
    names = sorted(p.name for p in out.iterdir() if p.suffix)
    assert [n[:6] for n in names] == [".gpen_", "奶奶_01_", "奶奶_01_"][: len(names)]
    first, second = sorted(out.glob("*.png"), key=lambda p: len(p.name))
    assert second.name == f"{first.stem}_face01.png"
    assert max(gz.read(first).pixels.shape) == 300


def test_a_photo_through_a_pipe(photos: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gpen_zoo", "restore", "-i", "-", "-o", "-", "--ext", "png", "--strength", "0"],
        cwd=ROOT,
        input=(photos / "wall.png").read_bytes(),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert np.array_equal(gz.decode(done.stdout).pixels, gz.read(photos / "wall.png").pixels)
    assert b"[F01]" in done.stderr


def test_a_format_that_had_to_change_is_told_in_a_pipe_too(
    photos: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    Pil.open(photos / "wall.png").save(photos / "wall.gif")
    assert main(["restore", "-i", str(photos / "wall.gif"), "-o", "-", "--json", str(photos / "r.json")]) == 0
    out, err = capsysbinary.readouterr()
    assert out.startswith(b"\x89PNG")
    assert b"[I15]" in err
    notes = json.loads((photos / "r.json").read_text(encoding="utf-8"))["results"][0]["notes"]
    assert "I15" in [n["code"] for n in notes]


def test_profile_trace_and_log_are_for_machines_too(
    photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile, trace = tmp_path / "profile.json", tmp_path / "trace.json"
    words = ["restore", "-i", str(photos / "奶奶.jpg"), "-o", str(tmp_path / "out"), "--lang", "en", "--log-json"]
    assert main([*words, "--profile", str(profile), "--trace", str(trace), "--timeout", "300"]) == 0
    out, err = capsys.readouterr()
    assert [line.split()[0] for line in out.splitlines()[-7:]] == [
        *("read", "detect", "align", "network", "paste", "encode", "write")
    ]
    stages = {s["stage"]: s for s in json.loads(profile.read_text())["stages"]}
    assert stages["network"]["work_ms"] > 0
    assert json.loads(trace.read_text())["traceEvents"]
    lines = [json.loads(line) for line in err.splitlines()]
    (photo,) = [line for line in lines if line["message"] == "photo"]
    assert photo["faces"] == 1
    assert photo["error"] is None


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--in_size", "512"], "U21"),
        (["--out_size", "512"], "U21"),
        (["--channel_multiplier", "2"], "U21"),
        (["--narrow", "1"], "U21"),
        (["--key", "abc"], "U21"),
        (["--use_sr"], None),
        (["--use_sr", "--sr_scale", "4"], None),
        (["--sr_scale", "2"], "U22"),
        (["--sr_model", "realesrnet"], "U23"),
        (["--tile_size", "400"], None),
        (["-c", "3"], "U24"),
        (["--enhance_face"], "U25"),
        (["--auto-resize"], "U29"),
        (["--use_cuda"], "U27"),
        (["--task", "FaceEnhancement"], None),
        (["--alpha", "0.5"], None),
        (["--half"], None),
        (["--model", "gpen-demo-256"], None),
        (["--aligned", "--auto_resize", "--ext", ".jpg"], None),
    ],
)
def test_flags_of_the_authors_script_and_its_forks(
    photos: Path, tmp_path: Path, words: list[str], code: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    import torch

    quick = ["--quiet"] if "--aligned" in words else ["--quiet", "--aligned"]
    if code == "U29":
        quick = ["--quiet"]
    if code == "U27" and torch.cuda.is_available():
        code = None
    assert main(["restore", "--indir", str(photos / "wall.png"), "--outdir", str(tmp_path / "o"), *quick, *words]) == 0
    err = capsys.readouterr().err
    assert (f"[{code}]" in err) if code else not err
    assert len(list((tmp_path / "o").glob("wall_restored.*"))) == 1


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network that takes a millisecond, for what is not about pictures."""
    monkeypatch.setattr(restore, "load", lambda *_, **__: tiny_restorer(sizes=(32,)))


# The same in a process of its own.
QUICK = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of a shell are told to ignore it
from gpen_zoo import doctor, restore
from gpen_zoo.cli import main
from tests.test_restore import restorer
restore.load = lambda *_, **__: restorer(sizes=(32,))
sys.exit(main(sys.argv[1:]))
"""


def noisy(folder: Path, count: int, side: int = 160) -> Path:
    """Pictures that do not compress, each of its own."""
    random = np.random.default_rng(7)
    for number in range(count):
        pixels = random.integers(0, 256, (side, side, 3), dtype=np.uint8)
        gz.write(Image(pixels=pixels), folder / f"{number:03d}.png")
    return folder


def started(folder: Path, out: Path, *more: str) -> subprocess.Popen[str]:
    """A run in a process of its own, returned when its first result is there."""
    quick = ["--aligned", "--strength", "0", "-o", str(out), "--lang", "en", *more]
    process = subprocess.Popen(
        [sys.executable, "-c", QUICK, "restore", "-i", str(folder), *quick],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    before = len(list(out.glob("*.png"))) if out.is_dir() else 0
    while process.poll() is None and (not out.is_dir() or len(list(out.glob("*.png"))) == before):
        time.sleep(0.02)
    return process


def test_a_killed_run_continues_where_it_was(tmp_path: Path) -> None:
    count, out, random, kills = 120, tmp_path / "out", np.random.default_rng(11), 0
    folder = noisy(tmp_path / "in", count)
    for _ in range(2):
        process = started(folder, out, "--skip-existing")
        time.sleep(random.uniform(0, 0.3))
        kills += process.poll() is None
        process.kill()
        process.communicate()
        for path in out.glob("*.png"):
            gz.read(path, truncated="refuse")
    assert kills
    assert len(list(out.glob("*.png"))) < count
    process = started(folder, out, "--skip-existing", "--quiet")
    told, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert told.startswith(f"{count} photos:")
    results = sorted(out.glob("*.png"))
    assert [p.stem for p in results] == [f"{n:03d}_restored" for n in range(count)]
    for number, path in enumerate(results):
        assert np.array_equal(gz.read(path).pixels, gz.read(folder / f"{number:03d}.png").pixels)
    lines = [json.loads(line) for line in (out / ".gpen_zoo_run.jsonl").read_text().splitlines() if line.endswith("}")]
    done = [Path(line["input"]).name for line in lines]
    assert len(done) == len(set(done)), "nothing was done twice"


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_an_interrupted_run_ends_cleanly_with_statistics(tmp_path: Path) -> None:
    folder = noisy(tmp_path / "in", 150)

    def interrupted(which: signal.Signals) -> None:
        out = tmp_path / which.name
        process = started(folder, out)
        process.send_signal(which)
        told, err = process.communicate(timeout=60)
        assert process.returncode == 130, err
        assert "Traceback" not in err
        assert told.splitlines()[-1].endswith("faces/s.")
        assert say("cli.interrupted", "en") in err
        assert not list(out.glob(".*part"))
        assert 0 < len(list(out.glob("*.png"))) < 150
        for path in out.glob("*.png"):
            gz.read(path, truncated="refuse")

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(interrupted, (signal.SIGINT, signal.SIGTERM)))


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="mounting a small disk needs root")
@pytest.mark.usefixtures("tiny")
def test_a_full_disk_ends_the_run_and_loses_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, disk = noisy(tmp_path / "in", 12), tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=400k", "none", disk], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no disk can be mounted here: {mounted.stderr.decode().strip()}")
    try:
        quick = ["--aligned", "--strength", "0", "-o", str(disk), "--quiet", "--lang", "en", "--no-cache"]
        assert main(["restore", "-i", str(folder), *quick]) == 1
        out, err = capsys.readouterr()
        assert "[U17]" in err
        assert "[U30]" in err
        assert "done, 1 failed" in out
        assert not list(disk.glob(".*part"))
        assert 3 <= len(list(disk.glob("*.png"))) < 12
        for path in disk.glob("*.png"):
            gz.read(path, truncated="refuse")
        subprocess.run(["mount", "-o", "remount,size=9m", disk], check=True)
        assert main(["restore", "-i", str(folder), *quick, "--skip-existing"]) == 0
        assert len(list(disk.glob("*.png"))) == 12
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
def test_a_folder_that_cannot_be_read(tmp_path: Path) -> None:
    code = """
import json, os, sys
from gpen_zoo.inputs import find_inputs
if os.geteuid() == 0:  # whom no permission stops
    os.setgid(65534), os.setuid(65534)
found = find_inputs([sys.argv[1]], recursive=True)
print(json.dumps([[str(p.path) for p in found.photos], [n.code for _, n in found.problems]]))
"""
    with tempfile.TemporaryDirectory() as place:  # pytest's own folders are closed to others
        os.chmod(place, 0o755)
        locked = Path(place) / "locked"
        locked.mkdir()
        gz.write(Image(pixels=np.zeros((9, 9, 3), np.uint8)), locked / "a.png")
        gz.write(Image(pixels=np.zeros((9, 9, 3), np.uint8)), Path(place) / "b.png")
        os.chmod(Path(place) / "b.png", 0o644)
        os.chmod(locked, 0o000)
        done = subprocess.run(
            [sys.executable, "-c", code, place], cwd=ROOT, capture_output=True, text=True, check=False
        )
        os.chmod(locked, 0o755)
    assert json.loads(done.stdout) == [[f"{place}/b.png"], ["I21"]], done.stderr


def test_weights(zoo_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["weights", "list", "--json"]) == 0
    rows = {r["name"]: r for r in json.loads(capsys.readouterr().out)["weights"]}
    assert rows["gpen-demo-256"]["status"] == "bundled"
    assert rows["GPEN-BFR-512"]["status"] == "missing"
    assert main(["weights", "list", "--lang", "zh"]) == 0
    assert say("cli.bundled", "zh") in capsys.readouterr().out
    assert main(["weights", "info", "GPEN-BFR-512.pth", "--lang", "zh"]) == 0
    assert "f1002c41" in capsys.readouterr().out
    assert main(["weights", "info", "nonsense"]) == 2
    assert main(["weights", "verify"]) == 0
    assert "[U31]" not in capsys.readouterr().err
    assert main(["weights", "download"]) == 2
    zoo_home.mkdir(parents=True)
    (zoo_home / "GPEN-BFR-512.safetensors").write_bytes(b"")
    capsys.readouterr()
    assert main(["weights", "verify"]) == 1
    assert "[W01]" in capsys.readouterr().err


def test_weights_from_elsewhere(
    zoo_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    demo = ROOT / "gpen_zoo" / "assets" / "gpen-demo-256.safetensors"
    page = tmp_path / "w.pth"
    page.write_bytes(b"<html>")
    assert main(["weights", "inspect", str(demo), str(page), "--json"]) == 0
    kinds = [finding["container"] for finding in json.loads(capsys.readouterr().out)]
    assert kinds[0] == "safetensors"
    assert main(["weights", "inspect", str(tmp_path / "absent")]) == 1
    assert main(["weights", "adopt", str(page), "--lang", "en"]) == 1
    assert "[W37]" in capsys.readouterr().err
    assert main(["weights", "convert", str(page)]) == 1
    assert main(["weights", "remove", "gpen-demo-256"]) == 1
    assert "[W38]" in capsys.readouterr().err
    assert main(["weights", "remove", "GPEN-BFR-512"]) == 0
    assert main(["weights", "pin", "GPEN-BFR-512"]) == 1
    assert main(["weights", "export", "gpen-demo-256", "--to", str(tmp_path / "share")]) == 0
    assert (tmp_path / "share" / "README.md").is_file()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("GPEN_ZOO_PRELOAD", "gpen-demo-256, ")
    assert main(["weights", "warm", "--quiet"]) == 0
    assert main(["weights", "download", "GPEN-BFR-512", "--quiet"]) == 1
    assert main(["weights", "warm", "nonsense"]) == 1
    assert "[W19]" in capsys.readouterr().err


def test_doctor(capsys: pytest.CaptureFixture[str], zoo_home: Path) -> None:
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["branches"] == ["gpen-demo-256"]
    assert found["versions"]["torch"]
    assert found["home"] == str(zoo_home)
    assert "E02" not in [p["code"] for p in found["problems"]]
    assert main(["--lang", "zh", "doctor"]) == 0
    out = capsys.readouterr().out
    assert "gpen-demo-256" in out
    assert ": " not in out and " threads" not in out, "Chinese has its own colon and words"


def test_plans_are_told_once_for_all_sizes_of_memory_that_share_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--plans", "--lang", "en"]) == 0
    lines = capsys.readouterr().out.splitlines()
    demo = [line for line in lines if "gpen-demo-256" in line]
    assert len(demo) == 2 and all("2–24 GB" in line for line in demo)
    large = [line.split("GPEN-BFR-2048")[1] for line in lines if "GPEN-BFR-2048" in line]
    assert len(large) > 2 and len(set(large)) == len(large)
    assert not any(" 0 MB" in line for line in lines)
    assert main(["doctor", "--plans", "--json"]) == 0
    plans = json.loads(capsys.readouterr().out)["plans"]
    assert {row["gigabytes"] for row in plans["cpu"]} == {2, 4, 6, 8, 12, 24}
    assert isinstance(plans["cuda"][0]["plan"], str)


def test_plans_do_not_silence_the_accelerators(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[bool] = []
    examine = doctor.examine

    def quick(zoo: Zoo, *, accelerate: bool) -> doctor.Examination:
        asked.append(accelerate)
        return examine(zoo)

    monkeypatch.setattr(doctor, "examine", quick)
    assert main(["doctor", "--plans", "--accelerate", "--lang", "en"]) == 0
    out = capsys.readouterr().out
    assert asked == [True]
    assert say("cli.doctor_device", "en") in out and say("cli.plans_cpu", "en") in out


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


def test_a_busy_port_is_told_before_anything_is_loaded(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert main(["serve", "--port", str(taken.getsockname()[1])]) == 1
    assert "[T20]" in capsys.readouterr().err
    for lang, words in (("zh", "65535 之间"), ("en", "to 65535")):
        assert main(["--lang", lang, "serve", "--port", "99999"]) == 1
        err = capsys.readouterr().err
        assert "[T20]" in err and words in err and "bind()" not in err


def test_one_place_takes_one_photo(photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for output, code in (("-", "U40"), (str(tmp_path / "one.png"), "U08")):
        assert main(["restore", "-i", str(photos / "wall.png"), str(photos / "奶奶.jpg"), "-o", output]) == 2
        assert f"[{code}]" in capsys.readouterr().err


def test_what_holds_for_every_photo_is_told_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b"):
        Pil.new("RGB", (40, 30)).save(tmp_path / f"{name}.png")
    words = ["restore", "-i", str(tmp_path), "-o", str(tmp_path / "out"), "--scale", "2", "--lang", "en"]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert out.count("[B20]") == 1 and out.count("[F01]") == 2
    assert "unchanged" not in out, "it was enlarged"


@pytest.mark.parametrize("device", ["cuda:9", "foo"])
def test_a_device_that_is_not_there_is_wrong_usage(
    device: str, photos: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["restore", "-i", str(photos / "wall.png"), "-o", str(photos / "out"), "--device", device]) == 2
    assert "[M07]" in capsys.readouterr().err


def test_doctor_sees_a_folder_that_takes_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("GPEN_ZOO_HOME", str(tmp_path / "file" / "zoo"))
    assert main(["doctor", "--json"]) == 0
    assert "E04" in [p["code"] for p in json.loads(capsys.readouterr().out)["problems"]]


def test_a_report_that_cannot_be_written_is_refused_before_the_work(
    photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["restore", "-i", str(photos / "wall.png"), "-o", str(tmp_path / "out")]
    assert main([*words, "--json", str(tmp_path / "absent" / "r.json")]) == 1
    assert "[I22]" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
