"""The pipeline: branch per face, verdicts, strength, threads, and the real thing on packaged photos."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from skimage import data

import gpen_zoo as gz
from gpen_zoo.align import window_of
from gpen_zoo.engine import Engine
from gpen_zoo.errors import OptionsInvalid, WeightCorrupt, WeightMissing, WeightWrongKind
from gpen_zoo.examples import HOPPER, packaged
from gpen_zoo.manifest import load as load_manifest
from gpen_zoo.network import GPEN
from gpen_zoo.restore import MOSTLY_INVENTED, TOO_SMALL, Branch, Restorer, blend, pick_branch
from gpen_zoo.types import Image, Options, RawFaces, Verdict
from tests.test_align import TEMPLATE


class Planted:
    """A detector that knows where it put faces: (centre x, centre y, side of the crop) each."""

    name = "planted"

    def __init__(self, *faces: tuple[float, float, float]) -> None:
        self.faces = faces

    def __call__(self, pixels: np.ndarray) -> RawFaces:
        points = np.array([(TEMPLATE - 0.5) * side + (x, y) for x, y, side in self.faces]).reshape(-1, 5, 2)
        boxes = np.array([(x - side / 4, y - side / 4, x + side / 4, y + side / 3) for x, y, side in self.faces])
        return boxes.reshape(-1, 4), points, np.full(len(self.faces), 0.9)


def tiny_engine(size: int, *, broken: bool = False) -> Engine:
    torch.manual_seed(size)
    net = GPEN(size, style_dim=16, n_mlp=1, narrow=0.03125).eval()
    if broken:
        with torch.no_grad():
            net.ecd0[0][0].weight.fill_(float("nan"))
    return Engine(net, device="cpu")


def branch(size: int, name: str = "", build: Callable[[], Engine] | None = None) -> Branch:
    return Branch(name=name or f"tiny-{size}", size=size, template=TEMPLATE, build=build or (lambda: tiny_engine(size)))


def restorer(*faces: tuple[float, float, float], sizes: tuple[int, ...] = (32, 64, 128)) -> Restorer:
    return Restorer(branches=tuple(branch(s) for s in sizes), detector=Planted(*faces))


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Detection passes the planted faces through: what detect.py does with real ones is tested there."""
    from gpen_zoo import restore
    from gpen_zoo.detect import Found
    from gpen_zoo.types import Face

    def find(image: Image, detector: Planted) -> Found:
        raw = detector(image.pixels)
        faces = tuple(
            Face(index=i, box=tuple(map(float, box)), points=points, score=0.9)
            for i, (box, points) in enumerate(zip(raw[0], raw[1], strict=True), 1)
        )
        return Found(faces=faces, detector=detector.name)

    monkeypatch.setattr(restore, "find_faces", find)


PHOTO = Image(pixels=data.astronaut())
THREE = ((100, 100, 60), (250, 250, 100), (400, 380, 200))
FULL = Options(strength=1.0)  # the tiny nets draw mush, which would lower the default


def test_the_smallest_branch_that_holds_the_face_else_the_largest() -> None:
    branches = [branch(s) for s in (2048, 256, 512, 1024)]
    picked = [pick_branch(side, branches).size for side in (10, 256, 256.1, 512, 1500, 5000)]
    assert picked == [256, 256, 512, 512, 2048, 2048]


@pytest.mark.usefixtures("found")
def test_every_face_gets_its_branch_a_verdict_and_a_reason() -> None:
    result = restorer(*THREE)(PHOTO, FULL)
    assert [f.branch for f in result.faces] == ["tiny-64", "tiny-128", "tiny-128"]
    assert [f.branch_note.code for f in result.faces if f.branch_note] == ["B02", "B02", "B03"]
    assert [f.note.code for f in result.faces] == ["F04", "F04", "F06"]
    assert all(f.verdict is Verdict.RESTORED and f.plan and f.strength == 1 for f in result.faces)
    assert [round(f.side) for f in result.faces] == [60, 100, 200]
    assert result.weights == ("tiny-64", "tiny-128")
    assert not np.array_equal(result.image.pixels, PHOTO.pixels)
    assert result.original is PHOTO


@pytest.mark.usefixtures("found")
def test_pixels_outside_the_windows_are_the_photos_own() -> None:
    result = restorer(*THREE)(PHOTO)
    outside = np.ones((512, 512), bool)
    for face in result.faces:
        window = window_of(face.frame, 512, 512)
        outside[window.y0 : window.y1, window.x0 : window.x1] = False
    assert np.array_equal(result.image.pixels[outside], PHOTO.pixels[outside])


@pytest.mark.usefixtures("found")
def test_faces_too_small_or_not_chosen_are_left_alone_and_spare_the_network() -> None:
    small, tiny = TOO_SMALL * 1.6, MOSTLY_INVENTED * 1.6
    steps: list[tuple[str, int, int]] = []
    result = restorer((50, 50, small), (200, 200, tiny), (400, 380, 120))(
        PHOTO, replace(FULL, faces=(1, 2, 9)), progress=lambda *step: steps.append(step)
    )
    assert [(f.verdict.value, f.note.code) for f in result.faces] == [
        ("skipped", "F03"),
        ("restored", "F02"),
        ("skipped", "F05"),
    ]
    assert result.faces[2].plan is None
    assert steps[0] == ("faces", 0, 1)
    assert ("restore", 1, 1) in steps
    assert steps[-1] == ("paste", 1, 1)
    assert [n.code for n in result.notes] == ["F09"]


@pytest.mark.usefixtures("found")
def test_no_face_gives_the_photo_back_unchanged_with_what_to_try() -> None:
    result = restorer()(PHOTO)
    assert np.array_equal(result.image.pixels, PHOTO.pixels)
    assert [n.code for n in result.notes] == ["F01"]
    assert result.faces == ()


@pytest.mark.usefixtures("found")
def test_a_broken_network_fails_the_face_not_the_photo() -> None:
    bad = branch(64, build=lambda: tiny_engine(64, broken=True))
    result = Restorer(branches=(bad, branch(128)), detector=Planted(*THREE[:2]))(PHOTO)
    assert [f.verdict for f in result.faces] == [Verdict.FAILED, Verdict.RESTORED]
    assert result.faces[0].note.code == "F07"
    assert result.faces[0].attempts
    assert all(a in result.notes for a in result.faces[0].attempts), "the photo's own notices tell of it too"


@pytest.mark.usefixtures("found")
def test_reblending_equals_running_again_and_needs_no_network() -> None:
    restore = restorer(*THREE)
    full = restore(PHOTO, FULL)
    for branch_ in restore.branches:
        branch_._engine = None
        branch_._build = lambda: pytest.fail("the network was asked for")
    options = Options(strength=0.4, faces=(1, 3), strengths=((3, 0.9),))
    again = blend(full, options)
    fresh = restorer(*THREE)(PHOTO, options)
    assert np.array_equal(again.image.pixels, fresh.image.pixels)
    assert [f.strength for f in again.faces] == [0.4, 0.0, 0.9]
    assert [f.note.code for f in again.faces] == ["F04", "F05", "F06"]
    assert np.array_equal(blend(again, FULL).image.pixels, full.image.pixels)
    absent = blend(full, replace(FULL, faces=(1, 9)))
    fresh = restorer(*THREE)(PHOTO, replace(FULL, faces=(1, 9)))
    assert absent.notes == fresh.notes and [n.code for n in absent.notes] == ["F09"]
    assert [n.code for n in blend(absent, replace(FULL, faces=(2, 8))).notes] == ["F09"], "told once, of the latest"
    assert blend(absent, FULL).notes == ()
    nothing = blend(full, Options(strength=0.0))
    assert np.array_equal(nothing.image.pixels, PHOTO.pixels)
    assert {f.note.code for f in nothing.faces} == {"F08"}


@pytest.mark.usefixtures("found")
def test_more_faces_than_go_through_at_once() -> None:
    many = [(40 + 55 * (i % 8), 40 + 55 * (i // 8), 50) for i in range(20)]
    result = restorer(*many, sizes=(64,))(PHOTO)
    assert [f.index for f in result.faces] == list(range(1, 21))
    assert [c.index for c in result.crops] == list(range(1, 21))
    assert all(f.verdict is Verdict.RESTORED for f in result.faces)


@pytest.mark.usefixtures("found")
def test_what_progress_raises_ends_the_work_and_leaves_the_restorer_usable() -> None:
    restore = restorer(*THREE)

    def stop(stage: str, done: int, total: int) -> None:
        if stage == "restore" and done == 1:
            raise gz.Cancelled("S01")

    with pytest.raises(gz.Cancelled):
        restore(PHOTO, progress=stop)
    assert len(restore(PHOTO).crops) == 3


@pytest.mark.usefixtures("found")
def test_faces_are_handed_over_as_soon_as_each_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpen_zoo.restore.WATCHED", 0.0)
    told: list[tuple[str, int]] = []
    result = restorer(*THREE, sizes=(64,))(
        PHOTO,
        progress=lambda stage, done, total: told.append((stage, done)),
        on_crop=lambda crop: told.append(("crop", crop.index)),
    )
    assert [t for t in told if t[0] == "crop" or (t[0] == "restore" and t[1])] == [
        step for n in (1, 2, 3) for step in (("restore", n), ("crop", n))
    ]
    assert [c.index for c in result.crops] == [1, 2, 3]


@pytest.mark.usefixtures("found")
def test_faces_that_are_quick_share_a_batch_after_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpen_zoo.restore.WATCHED", 1e9)
    restore = restorer(*THREE, (50, 400, 60), sizes=(64,))
    calls = counted(restore, monkeypatch)
    handed: list[int] = []
    plain = restore(PHOTO)
    watched = restore(PHOTO, on_crop=lambda crop: handed.append(crop.index))
    assert calls == [4, 1, 3]
    assert handed == [1, 2, 3, 4]
    assert np.array_equal(plain.image.pixels, watched.image.pixels)


def counted(restore: Restorer, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by the number of crops in each call of the only engine."""
    engine = restore.branches[0].engine
    genuine, calls = engine.restore, []

    def counting(crops: np.ndarray, **more: object) -> object:
        calls.append(len(crops))
        return genuine(crops, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(engine, "restore", counting)
    return calls


@pytest.mark.usefixtures("found")
def test_faces_asked_for_later_run_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    restore = restorer(*THREE, sizes=(64,))
    found = restore.prepare(PHOTO).found
    calls = counted(restore, monkeypatch)
    first = restore(PHOTO, Options(faces=(1,), strength=1.0), found=found)
    assert (calls, [c.index for c in first.crops]) == ([1], [1])
    both = restore.complete(first, Options(faces=(1, 3), strength=1.0), found=found)
    assert (calls, [c.index for c in both.crops]) == ([1, 1], [1, 3])
    assert [f.verdict.value for f in both.faces] == ["restored", "skipped", "restored"]
    assert both.as_dict()["weights"] == ["tiny-64"]
    assert np.array_equal(both.image.pixels, restore(PHOTO, Options(faces=(1, 3), strength=1.0)).image.pixels)
    calls.clear()
    one = restore.complete(both, Options(faces=(3,), largest=True, strength=0.5), found=found)
    assert calls == []
    assert [f.verdict.value for f in one.faces] == ["skipped", "skipped", "restored"]
    least = (one.faces[0].longest + one.faces[1].longest) / 2
    larger = restore.complete(one, Options(min_size=least, strength=1.0), found=found)
    assert calls == [1]
    assert [f.note.code for f in larger.faces] == ["F41", "F06", "F06"]


def test_aligned_mode_takes_the_whole_picture_as_one_crop() -> None:
    square = Image(pixels=data.astronaut()[:64, 100:164])
    result = restorer()(square, Options(aligned=True))
    assert len(result.faces) == 1
    assert result.faces[0].box == (0, 0, 64, 64)
    assert result.faces[0].branch == "tiny-64"
    engine = result.crops[0].after
    assert np.abs(result.image.pixels.astype(int) - engine).max() <= 1
    wide = restorer()(Image(pixels=data.astronaut()[:40, :128]), Options(aligned=True))
    assert wide.image.pixels.shape == (40, 128, 3)


@pytest.mark.usefixtures("found")
def test_grey_stays_grey() -> None:
    grey = np.repeat(cv2.cvtColor(data.astronaut(), cv2.COLOR_RGB2GRAY)[:, :, None], 3, axis=2)
    result = restorer(*THREE)(Image(pixels=grey, tone="grey"))
    assert not np.array_equal(result.image.pixels, grey)
    assert np.ptp(result.image.pixels, axis=2).max() == 0


@pytest.mark.parametrize("wrong", [Options(strength=1.2), Options(faces=(0,)), Options(strengths=((1, float("nan")),))])
def test_options_out_of_range_are_refused(wrong: Options) -> None:
    with pytest.raises(OptionsInvalid):
        restorer()(PHOTO, wrong)


@pytest.mark.parametrize(
    "given",
    [{"strength": "1"}, {"strength": True}, {"faces": 3}, {"faces": ["a"]}, {"strengths": {"x": 1}}, {"sharp": 1}, [1]],
)
def test_options_from_json_refuses_what_it_does_not_know(given: object) -> None:
    with pytest.raises(OptionsInvalid):
        gz.options_from_json(given)  # type: ignore[arg-type]


def test_options_from_json() -> None:
    assert gz.options_from_json(None) == gz.options_from_json({}) == Options()
    given = {"strength": 0.5, "faces": [2, 1], "strengths": {"2": 0.25}, "aligned": True}
    assert gz.options_from_json(given) == Options(strength=0.5, aligned=True, faces=(2, 1), strengths=((2, 0.25),))


def test_the_report_is_plain_json() -> None:
    import json

    result = gz.load()(PHOTO)
    report = json.loads(json.dumps(result.as_dict(), ensure_ascii=False))
    assert report["version"] == 1
    assert report["weights"] == ["gpen-demo-256"]
    assert report["faces"][0]["verdict"] == "restored"
    assert report["faces"][0]["note"]["zh"]
    assert set(report["timings_ms"]) == {"faces", "network", "paste"}


def worn(pixels: np.ndarray) -> np.ndarray:
    small = cv2.resize(pixels, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA).astype(float)
    noisy = small + np.random.default_rng(5).normal(0, 12, small.shape)
    return np.clip(np.rint(noisy), 0, 255).astype(np.uint8)


def test_the_bundled_weights_bring_a_worn_face_closer_to_the_truth() -> None:
    truth = data.astronaut()
    given = worn(truth)
    result = gz.load()(Image(pixels=given))
    assert [n.code for n in result.notes] == ["D01"], "the demo model says what it is"
    small_truth = cv2.resize(truth, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA).astype(float)
    face = np.s_[35:80, 90:135]

    def psnr(x: np.ndarray) -> float:
        return float(10 * np.log10(255**2 / np.square(x[face] - small_truth[face]).mean()))

    before, after = psnr(given.astype(float)), psnr(result.image.pixels.astype(float))
    print(f"face region {before:.2f} → {after:.2f} dB")
    assert after > before + 1


def test_two_threads_get_their_own_faces() -> None:
    restore = gz.load()
    hopper = gz.read(packaged(*HOPPER) or pytest.fail("matplotlib lacks its sample photo"))
    photos = [Image(pixels=worn(data.astronaut())), Image(pixels=worn(hopper.pixels))]
    alone = [restore(p) for p in photos]
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(restore, photos * 3))
    for i, result in enumerate(together):
        assert np.array_equal(result.image.pixels, alone[i % 2].image.pixels)
        assert [f.box for f in result.faces] == [f.box for f in alone[i % 2].faces]


def test_load_by_name_and_its_refusals(zoo_home: Path) -> None:
    assert [b.name for b in gz.load("gpen-demo-256").branches] == ["gpen-demo-256"]
    with pytest.raises(WeightMissing, match="GPEN-BFR-512"):
        gz.load("GPEN-BFR-512.pth")
    with pytest.raises(WeightWrongKind):
        gz.load("ParseNet")
    zoo_home.mkdir(parents=True)
    (zoo_home / "GPEN-BFR-512.safetensors").write_bytes(b"<html>no</html>")
    with pytest.raises(WeightCorrupt):
        gz.load("GPEN-BFR-512")
    loaded = gz.load()
    assert [b.name for b in loaded.branches] == ["gpen-demo-256"], "a bad file does not stop the demo"
    assert loaded.notes, "but it is told"


def test_a_damaged_retinaface_is_passed_over_and_told(zoo_home: Path) -> None:
    zoo_home.mkdir(parents=True)
    entry = next(e for e in load_manifest() if e.architecture.family == "RetinaFace")
    (zoo_home / entry.stored_as).write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    loaded = gz.load()
    assert loaded.detector.name == "CenterFace"
    assert [n.code for n in loaded.notes] == ["W03"]
