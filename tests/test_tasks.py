"""Colouring, filling in, faces from label maps: tiny random networks, real files before and after them."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from PIL import Image as Pil
from safetensors.torch import save_file
from skimage import data

import gpen_zoo as gz
from gpen_zoo import manifest, weightfile
from gpen_zoo.architecture import Config
from gpen_zoo.cli import main
from gpen_zoo.desk import Desk, Stage
from gpen_zoo.engine import Outcome, load_engine
from gpen_zoo.errors import GpenError, OptionsInvalid, OutOfMemory, WeightMissing, WeightWrongKind
from gpen_zoo.fill_mask import inner_weight, mask_of
from gpen_zoo.hints import Note, note, say
from gpen_zoo.label_map import CLASSES, COLOURS, read_label_map
from gpen_zoo.manifest import Entry
from gpen_zoo.match import LUMA
from gpen_zoo.network import GPEN
from gpen_zoo.sessions import Sessions
from gpen_zoo.task_networks import TASKS, Task, entry_for, load_network, unnormalised
from gpen_zoo.tasks import colorize, inpaint, seg2face
from gpen_zoo.tasks_desk import Picture, TasksDesk
from gpen_zoo.types import Image
from gpen_zoo.zoo import Zoo
from tests.test_restore import Planted, branch
from tests.test_restore import restorer as tiny_restorer

SIZE = 64
SMALL = {"size": SIZE, "style_dim": 16, "n_mlp": 1, "channel_multiplier": 1, "narrow": 0.03125}
NAMES: dict[Task, str] = {"colorize": "tiny-colour", "inpaint": "tiny-fill", "seg2face": "tiny-seg"}
TEMPLATE = manifest.load()[2]
ASTRONAUT = cv2.resize(data.astronaut(), (256, 256), interpolation=cv2.INTER_AREA)
GREY = np.repeat(cv2.cvtColor(ASTRONAUT, cv2.COLOR_RGB2GRAY)[..., None], 3, axis=2)


def lively(seed: int) -> dict[str, torch.Tensor]:
    """Random weights whose pictures are not one colour."""
    torch.manual_seed(seed)
    state = GPEN(**SMALL).state_dict()  # type: ignore[arg-type]
    for name, value in state.items():
        if name.endswith("noise.weight"):
            value.fill_(1.0)
    return state


def install(home: Path, tasks: tuple[Task, ...] = TASKS) -> tuple[Entry, ...]:
    """Tiny networks of these tasks in the zoo folder, free for every use, and the whole manifest with their entries in
    front."""
    home.mkdir(parents=True, exist_ok=True)
    entries, free = [], manifest.load()[0].licence
    for seed, task in enumerate(tasks):
        path = home / f"{NAMES[task]}.safetensors"
        save_file(lively(seed), path)
        official = entry_for(Zoo(home), task)
        entries.append(
            replace(
                official,
                name=NAMES[task],
                licence=free,
                branch=SIZE,
                file=path.name,
                architecture=manifest.Architecture(family="GPEN", params=MappingProxyType(SMALL)),
                bytes=path.stat().st_size,
                sha256=weightfile.sha256_of(path),
                sources=(),
            )
        )
    return (*entries, *manifest.load())


@pytest.fixture
def zoo(zoo_home: Path) -> Zoo:
    return Zoo(zoo_home, install(zoo_home))


def luma(pixels: np.ndarray) -> np.ndarray:
    return pixels.astype(np.float64) @ LUMA


# --- networks ---


def test_weights_that_are_not_there_say_how_to_get_them() -> None:
    for task in TASKS:
        with pytest.raises(WeightMissing) as refused:
            load_network(Zoo(), task)
        assert refused.value.code == "W16"
        assert "GPEN-" in str(refused.value)
        name = refused.value.note.params["name"]
        assert f"weights download {name} --accept-unpinned" in str(refused.value), "nobody has recorded its digest"
        assert "SHA256: nobody has" in str(refused.value) and "没有登记过" in say(refused.value.note, "zh")
    with pytest.raises(WeightMissing) as refused:
        Zoo().locate("GPEN-BFR-512")
    assert "--accept-unpinned" not in str(refused.value) and "SHA256: f1002c41" in str(refused.value)
    with pytest.raises(WeightWrongKind) as wrong:
        load_network(Zoo(), "colorize", "GPEN-Inpainting-1024")
    assert "(filling in, not colouring)" in str(wrong.value)
    assert "“补全”，不是“上色”" in say(wrong.value.note, "zh")


def test_an_installed_network_is_preferred(zoo: Zoo) -> None:
    assert [entry_for(zoo, task).name for task in TASKS] == list(NAMES.values())
    assert entry_for(zoo, "inpaint", "gpen-inpainting-1024").name == "GPEN-Inpainting-1024"
    assert load_network(zoo, "colorize").engine.size == SIZE


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_network_without_normalisation_gives_what_the_authors_code_would(precision: str) -> None:
    state = lively(5)
    net = GPEN(**SMALL).eval()  # type: ignore[arg-type]
    net.load_state_dict(state)
    crop = cv2.resize(ASTRONAUT, (SIZE, SIZE), interpolation=cv2.INTER_AREA)
    with torch.inference_mode():
        given = torch.from_numpy(crop).permute(2, 0, 1)[None] / 255  # is_norm=False in the author's FaceGAN
        expected = (net(given)[0].permute(1, 2, 0).clip(0, 1) * 255).numpy()
    got = load_engine(unnormalised(state), device="cpu", precision=precision).restore(crop[None])[0].pixels
    assert got is not None
    assert np.ptp(expected) > 20
    apart = np.abs(got - expected).max()
    assert apart < (0.51 if precision == "float32" else 12), apart
    assert Config.from_state_dict(unnormalised(state)) == Config.from_state_dict(state)


def test_the_network_for_selfies_answers_to_that_name(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert Zoo().entry("selfie").branch == 2048
    photo = gz.write(Image(pixels=GREY), tmp_path / "a.png")
    assert main(["restore", "-i", str(photo), "-o", str(tmp_path), "--model", "selfie"]) == 1
    assert "GPEN-BFR-2048" in capsys.readouterr().err


# --- colouring ---


@pytest.mark.parametrize("area", ["whole", "faces", "both"])
@pytest.mark.parametrize("shape", [(256, 256), (150, 250), (40, 30)])
def test_lightness_stays_the_photos_own(zoo: Zoo, area: Any, shape: tuple[int, int]) -> None:
    photo = Image(pixels=np.ascontiguousarray(GREY[: shape[0], : shape[1]]), tone="grey")
    result = colorize(photo, load_network(zoo, "colorize"), area=area)
    assert np.abs(luma(result.image.pixels) - luma(photo.pixels)).max() <= 0.51
    if area != "faces":
        assert np.ptp(result.image.pixels.astype(int), axis=2).max() > 20
    assert result.weights == "tiny-colour"
    assert result.image.tone == "colour"


def test_the_network_sees_lightness_alone() -> None:
    given: list[np.ndarray] = []

    class Watching:
        size = 256

        def restore(self, crops: np.ndarray, *, on_crop: Any = None) -> tuple[Outcome]:
            given.append(crops)
            return (Outcome(pixels=crops[0], plan="cpu", attempts=(), ms=1.0),)  # type: ignore[arg-type]

    engine: Any = Watching()
    result = colorize(Image(pixels=ASTRONAUT), branch(256, build=lambda: engine))
    assert np.ptp(given[0], axis=3).max() == 0
    assert np.abs(given[0][0, ..., 0] - luma(ASTRONAUT)).max() <= 0.51
    assert np.ptp(result.image.pixels, axis=2).max() == 0  # this network knows no colour


def test_strength_goes_from_the_photo_to_the_network(zoo: Zoo) -> None:
    network = load_network(zoo, "colorize")
    photo = Image(pixels=ASTRONAUT)
    assert np.array_equal(colorize(photo, network, strength=0).image.pixels, ASTRONAUT)
    full, half = (colorize(Image(pixels=GREY, tone="grey"), network, strength=s).image.pixels for s in (1.0, 0.5))
    vivid = np.ptp(full.astype(int), axis=2).mean()
    assert 0.4 * vivid < np.ptp(half.astype(int), axis=2).mean() < 0.7 * vivid
    assert [n.code for n in colorize(photo, network).notes] == ["P01"]
    for wrong in (1.5, float("nan")):
        with pytest.raises(OptionsInvalid):
            colorize(photo, network, strength=wrong)
    with pytest.raises(OptionsInvalid):
        colorize(photo, network, area="eyes")  # type: ignore[arg-type]


@pytest.mark.parametrize("area", ["faces", "both"])
def test_faces_are_coloured_on_their_own(zoo: Zoo, area: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only about the face in a photo of which no more was asked for, everywhere when the whole was coloured before."""
    from gpen_zoo import tasks
    from gpen_zoo.detect import Found
    from gpen_zoo.types import Face

    def find(image: Image, detector: Planted) -> Found:
        boxes, points, _ = detector(image.pixels)
        return Found(faces=(Face(index=1, box=tuple(boxes[0]), points=points[0], score=1.0),), detector="planted")

    monkeypatch.setattr(tasks, "find_faces", find)
    result = colorize(
        Image(pixels=GREY, tone="grey"), load_network(zoo, "colorize"), area=area, detector=Planted((125, 125, 50))
    )
    change = np.ptp(result.image.pixels.astype(int), axis=2)
    assert result.faces == 1
    assert change[105:145, 105:145].mean() > 3
    assert (change[:75].max() > 3) == (area == "both")


def test_no_face_is_told(zoo: Zoo) -> None:
    wall = Image(pixels=np.full((64, 64, 3), 120, np.uint8), tone="grey")
    result = colorize(wall, load_network(zoo, "colorize"), area="faces")
    assert np.array_equal(result.image.pixels, wall.pixels)
    assert "F01" in [n.code for n in result.notes]


@pytest.mark.parametrize(("code", "kind"), [("M03", OutOfMemory), ("M05", GpenError)])
def test_a_network_that_gives_nothing_is_an_error(code: str, kind: type[GpenError]) -> None:
    class Failing:
        size = 32

        def restore(self, crops: np.ndarray, *, on_crop: Callable[[int, int], None] | None = None) -> tuple[Outcome]:
            why = note("M03", plan="cpu") if code == "M03" else note("M05")
            return (Outcome(pixels=None, plan="cpu", attempts=(why,), ms=1.0),)  # type: ignore[arg-type]

    engine: Any = Failing()
    with pytest.raises(kind) as refused:
        colorize(Image(pixels=GREY, tone="grey"), branch(32, build=lambda: engine))
    assert refused.value.code == code


# --- filling in ---


def spot(shape: tuple[int, int] = (256, 256)) -> np.ndarray:
    mask = np.zeros(shape, np.uint8)
    cv2.circle(mask, (shape[1] // 2, shape[0] // 3), min(shape) // 8, 255, -1)
    cv2.line(mask, (0, 0), (shape[1] - 1, shape[0] // 2), 255, 1)  # a scratch of one pixel
    return mask


@pytest.mark.parametrize("area", ["whole", "faces", "both"])
@pytest.mark.parametrize("shape", [(256, 256), (150, 250), (40, 30)])
def test_only_marked_pixels_change(zoo: Zoo, area: Any, shape: tuple[int, int]) -> None:
    photo = Image(pixels=np.ascontiguousarray(ASTRONAUT[: shape[0], : shape[1]]))
    mask = spot(shape) > 0
    result = inpaint(photo, mask, load_network(zoo, "inpaint"), area=area)
    assert np.array_equal(result.image.pixels[~mask], photo.pixels[~mask])
    if area != "faces":
        assert (result.image.pixels[mask] != photo.pixels[mask]).any(axis=1).mean() > 0.9
        assert "P13" not in [n.code for n in result.notes]
    elif not result.faces:
        assert [n.code for n in result.notes][-1] == "F01"
    else:
        assert "P13" in [n.code for n in result.notes]


def test_the_network_sees_white_where_it_is_to_fill_and_the_rest_as_it_is() -> None:
    given: list[np.ndarray] = []

    class Watching:
        size = 256

        def restore(self, crops: np.ndarray, *, on_crop: Any = None) -> tuple[Outcome]:
            given.append(crops)
            black = np.zeros_like(crops[0])
            return (Outcome(pixels=black, plan="cpu", attempts=(), ms=1.0),)  # type: ignore[arg-type]

    engine: Any = Watching()
    mask = spot() > 0
    result = inpaint(Image(pixels=ASTRONAUT), mask, branch(256, build=lambda: engine))
    assert (given[0][0][mask] == 255).all()
    assert np.array_equal(given[0][0][~mask], ASTRONAUT[~mask])
    inside = result.image.pixels[mask]
    assert (inside == 0).all(axis=1).mean() > 0.8  # what the network said, but for the soft edge
    assert (result.image.pixels[50:100, 150] == ASTRONAUT[50:100, 150]).any()


def test_a_grey_photo_is_filled_in_grey(zoo: Zoo) -> None:
    result = inpaint(Image(pixels=GREY, tone="grey"), spot() > 0, load_network(zoo, "inpaint"))
    assert np.ptp(result.image.pixels, axis=2).max() == 0
    with pytest.raises(TypeError):
        inpaint(Image(pixels=GREY), spot((10, 10)) > 0, load_network(zoo, "inpaint"))


def test_the_transition_lies_inside_and_leaves_scratches_whole() -> None:
    mask = spot((1024, 1024)) > 0
    weight = inner_weight(mask)
    assert (weight[~mask] == 0).all()
    assert (weight[mask] > 0).all()
    assert (weight == 1).sum() > 0.9 * mask.sum()
    assert (weight[mask] < 1).any()
    scratch = np.zeros((200, 4096), bool)  # where a large spot would be soft over 8 pixels
    scratch[40:42, 10:200] = True
    assert (inner_weight(scratch)[scratch] == 1).all()


def test_masks_of_every_kind_mark_the_same() -> None:
    small = spot((128, 128)) > 0
    grey = np.repeat(small[..., None], 3, axis=2).astype(np.uint8) * 255
    opaque = small.astype(np.uint8) * 255
    red = np.zeros_like(grey) + np.array([200, 30, 30], np.uint8)
    photo = cv2.resize(ASTRONAUT, (128, 128))
    seen = np.full((128, 128), 255, np.uint8)
    seen[120:] = 0  # black, white and see-through: only white is meant
    pictures = [
        Image(pixels=grey),
        Image(pixels=grey, alpha=np.full((128, 128), 255, np.uint8)),
        Image(pixels=red, alpha=opaque),  # painted on glass
        Image(pixels=np.zeros_like(grey), alpha=opaque),
        Image(pixels=photo, alpha=255 - opaque),  # holes in a picture
        Image(pixels=grey, alpha=seen),
    ]
    for picture in pictures:
        mask = mask_of(picture, 512, 256)
        assert mask.shape == (256, 512)
        assert np.array_equal(mask[1::2, 2::4], small)


@pytest.mark.parametrize(
    ("picture", "code"),
    [
        (ASTRONAUT, "P10"),
        (np.zeros((9, 9, 3), np.uint8), "P11"),
        (np.full((9, 9, 3), 255, np.uint8), "P12"),
    ],
)
def test_what_is_no_mask(picture: np.ndarray, code: str) -> None:
    with pytest.raises(GpenError) as refused:
        mask_of(Image(pixels=picture), 20, 20)
    assert refused.value.code == code


# --- faces from label maps ---


def classes(height: int = 96, width: int = 96) -> np.ndarray:
    """Every class once, in stripes and an oval."""
    made = np.tile(np.arange(19, dtype=np.uint8).repeat(height // 19 + 1)[:height, None], (1, width))
    cv2.ellipse(made, (width // 2, height // 2), (width // 4, height // 3), 0, 0, 360, 1, -1)
    return made


def as_file(labels: np.ndarray, kind: str) -> bytes:
    """The same map as files of different makers hold it."""
    out = io.BytesIO()
    if kind == "colours":
        Pil.fromarray(COLOURS[labels]).save(out, "PNG")
    elif kind == "jpeg":
        Pil.fromarray(COLOURS[labels]).save(out, "JPEG", quality=97, subsampling=0)
    elif kind == "numbers":
        Pil.fromarray(labels).save(out, "PNG")
    elif kind == "numbers of 16 bits":
        Pil.fromarray(labels.astype(np.uint16)).save(out, "PNG")
    elif kind == "numbers in three channels":
        Pil.fromarray(np.repeat(labels[..., None], 3, axis=2)).save(out, "BMP")
    elif kind == "palette in another order":
        with_palette = Pil.fromarray(18 - labels)
        with_palette.putpalette(COLOURS[::-1].tobytes())
        with_palette.save(out, "PNG")
    else:
        with_palette = Pil.fromarray(labels)
        with_palette.putpalette(COLOURS.tobytes() if kind == "palette" else np.arange(57, dtype=np.uint8).tobytes())
        with_palette.save(out, "PNG")
    return out.getvalue()


KINDS = (
    *("colours", "numbers", "numbers of 16 bits", "numbers in three channels", "palette", "palette of other colours"),
    "palette in another order",
)


@pytest.mark.parametrize("kind", [*KINDS, "jpeg"])
def test_label_maps_of_every_kind_feed_the_network_the_same(kind: str) -> None:
    labels = classes()
    read = read_label_map(as_file(labels, kind), name="脸.png")
    assert np.array_equal(read.image.pixels, COLOURS[read.classes])
    assert read.image.source.name == "脸.png"
    if kind == "jpeg":
        assert [n.code for n in read.notes] == ["P21"]
        assert (read.classes == labels).mean() > 0.97
    else:
        assert np.array_equal(read.classes, labels)
        assert read.notes == ()


def test_a_face_from_a_map(zoo: Zoo) -> None:
    network, given = load_network(zoo, "seg2face"), []
    restore = network.engine.restore

    def watched(crops: np.ndarray, **more: Any) -> Any:
        given.append(crops)
        return restore(crops, **more)

    network.engine.restore = watched  # type: ignore[method-assign]
    labels = classes(128, 64)
    result = seg2face(read_label_map(as_file(labels, "numbers"), name="map.png"), network)
    assert result.image.pixels.shape == (SIZE, SIZE // 2, 3)
    assert result.original.pixels.shape == result.image.pixels.shape
    assert np.ptp(result.image.pixels) > 20
    colours = {tuple(c) for c in given[0].reshape(-1, 3).tolist()}
    assert colours <= {tuple(c) for c in COLOURS.tolist()}  # no blend of two classes
    assert (given[0][0, :, : SIZE // 4] == 0).all()  # background beside a narrow map


@pytest.mark.parametrize(
    ("made", "code"),
    [
        (lambda: as_file(classes() * 13, "numbers"), "P20"),
        (lambda: gz.encode(Image(pixels=ASTRONAUT), format="PNG"), "P22"),
        (lambda: gz.encode(Image(pixels=GREY), format="JPEG"), "P22"),
        (lambda: as_file(np.full((9, 9), 13, np.uint8), "numbers"), "P23"),
        (lambda: b"<html>", "I01"),
    ],
)
def test_what_is_no_label_map(made: Callable[[], bytes], code: str) -> None:
    with pytest.raises(GpenError) as refused:
        read_label_map(made())
    assert refused.value.code == code
    if code == "P23":
        assert CLASSES[13] == "hair"


# --- behind the page ---


@pytest.fixture
def desk(zoo: Zoo, tmp_path: Path) -> TasksDesk:
    return TasksDesk(Desk(tiny_restorer(sizes=(32,)), Sessions(tmp_path / "files")), zoo)


def unheard(stage: Stage) -> None:
    """For who only wants the result."""


def test_two_visitors_have_two_pictures(desk: TasksDesk, tmp_path: Path) -> None:
    photos = [gz.write(Image(pixels=p), tmp_path / f"{n}.png") for n, p in enumerate((GREY, GREY[:, ::-1].copy()))]
    stages: list[str] = []

    def work(number: int) -> Picture | Note:
        return desk.colorize(str(number), str(photos[number]), 1.0, "whole", lambda stage: stages.append(stage.name))

    with ThreadPoolExecutor(2) as pool:
        pictures = list(pool.map(work, (0, 1)))
    for number, picture in enumerate(pictures):
        assert isinstance(picture, Picture) and picture.file is not None
        given = gz.read(photos[number]).pixels
        assert picture.file.name == f"{number}_colorized.png"
        assert np.abs(luma(gz.read(picture.file).pixels) - luma(given)).max() <= 0.51
    assert {"read", "paint", "paste"} <= set(stages)
    desk.leave("0")
    first, second = pictures
    assert isinstance(first, Picture) and isinstance(second, Picture)
    assert not first.folder.exists()
    assert second.folder.exists()
    assert desk.full_size("0", "colorize") == note("S02")
    full = desk.full_size("1", "colorize")
    assert isinstance(full, tuple) and gz.read(full[1]).width == 256


def test_a_stop_ends_the_work_and_keeps_what_was_there(desk: TasksDesk, tmp_path: Path) -> None:
    photo = str(gz.write(Image(pixels=GREY), tmp_path / "a.png"))
    kept = desk.colorize("me", photo, 1.0, "whole", unheard)
    assert isinstance(kept, Picture)

    stages: list[str] = []

    def stop(stage: Stage) -> None:
        stages.append(stage.name)
        if stage.name == "paint":
            desk.stop("me", "colorize")

    assert desk.colorize("me", photo, 0.5, "whole", stop) == note("S05")
    assert stages == ["read", "paint"]  # at once, not when all is done
    assert desk.sessions["colorize"].get("me") is kept
    assert desk.colorize("me", None, 1.0, "whole", unheard) == note("S01")
    assert desk.sessions["colorize"].get("me") is None


def test_a_network_is_loaded_anew_when_its_file_has_changed_and_refused_when_it_is_gone(
    desk: TasksDesk, tmp_path: Path, zoo: Zoo
) -> None:
    photo = str(gz.write(Image(pixels=COLOURS[classes()]), tmp_path / "a.png"))
    assert isinstance(desk.seg2face("me", photo, unheard), Picture)
    first = desk._load("seg2face")
    assert desk._load("seg2face") is first
    os.utime(zoo.path_of(desk.entry("seg2face")), (1, 1))
    assert desk._load("seg2face") is not first
    zoo.path_of(desk.entry("seg2face")).unlink()
    assert not desk.available("seg2face")
    answer = desk.seg2face("me", photo, unheard)
    assert isinstance(answer, Note)
    assert answer.code == "W16"


def test_what_was_painted_counts_whatever_its_colour(desk: TasksDesk, tmp_path: Path) -> None:
    photo = str(gz.write(Image(pixels=ASTRONAUT), tmp_path / "a.png"))
    alpha = cv2.resize(spot(), (128, 128), interpolation=cv2.INTER_NEAREST)
    red = np.zeros((128, 128, 3), np.uint8) + np.array([200, 0, 90], np.uint8)
    layer = str(gz.write(Image(pixels=red, alpha=alpha), tmp_path / "layer.png"))
    blank = str(gz.write(Image(pixels=red, alpha=np.zeros_like(alpha)), tmp_path / "blank.png"))
    for layers in ([], [blank]):
        refused = desk.inpaint("me", photo, layers, None, "whole", unheard)
        assert isinstance(refused, Note) and refused.code == "P11"
    done = desk.inpaint("me", photo, [blank, layer], None, "whole", unheard)
    assert isinstance(done, Picture) and done.result is not None
    changed = (done.result.image.pixels != ASTRONAUT).any(axis=2)
    mask = cv2.resize(alpha, (256, 256), interpolation=cv2.INTER_NEAREST_EXACT) > 0
    assert not changed[~mask].any()
    assert changed[mask].mean() > 0.9
    by_file = desk.inpaint(
        "me",
        photo,
        [],
        str(gz.write(Image(pixels=np.repeat(spot()[..., None], 3, 2)), tmp_path / "m.png")),
        "whole",
        unheard,
    )
    assert isinstance(by_file, Picture)


# --- the command line ---


@pytest.fixture
def cli_zoo(zoo: Zoo, monkeypatch: pytest.MonkeyPatch) -> Zoo:
    from gpen_zoo import cli_tasks

    monkeypatch.setattr(cli_tasks, "open_zoo", lambda: zoo)
    return zoo


@pytest.mark.usefixtures("cli_zoo")
def test_colorize_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "in"
    gz.write(gz.decode(gz.encode(Image(pixels=GREY), format="JPEG"), name="奶奶.jpg"), folder / "奶奶.jpg")
    cv2.imwrite(str(folder / "one.png"), GREY[..., 0])
    (folder / "broken.jpg").write_bytes(b"<html></html>")
    report = tmp_path / "r.json"
    words = ["colorize", "-i", str(folder), "-o", str(tmp_path / "out"), "--json", str(report), "--lang", "zh"]
    assert main(words) == 1
    out, err = capsys.readouterr()
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["one_colorized.png", "奶奶_colorized.jpg"]
    assert "I01" in err and "broken.jpg" in err
    coloured = gz.read(tmp_path / "out" / "one_colorized.png")
    assert coloured.source.mode == "RGB"  # the file had one channel
    assert np.abs(luma(coloured.pixels) - GREY[..., 0]).max() <= 0.51
    told = json.loads(report.read_text(encoding="utf-8"))
    assert told["totals"]["done"] == 2
    assert [r["error"] and r["error"]["code"] for r in told["results"]] == ["I01", None, None]
    assert told["results"][1]["weights"] == "tiny-colour"
    assert "共 3 张" in out


@pytest.mark.usefixtures("cli_zoo")
def test_wrong_usage_and_one_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    photo = gz.write(Image(pixels=GREY), tmp_path / "a.png")
    one = ["colorize", "-i", str(photo), "-o", str(tmp_path / "b.webp")]
    assert main([*one, "--strength", "3"]) == 2
    assert main([*one, "--model", "nothing"]) == 2
    assert main([*one, "--ext", "gif"]) == 2
    assert main([*one, "--model", "tiny-fill"]) == 1
    assert main(["colorize", "-i", str(photo), str(tmp_path / "c.png"), "-o", str(tmp_path / "b.webp")]) == 2
    assert main(["colorize", "-i", str(photo), "-o", str(photo)]) == 1  # never over the photo itself
    assert not (tmp_path / "b.webp").exists()
    capsys.readouterr()
    assert main([*one, "--quiet"]) == 0
    assert gz.read(tmp_path / "b.webp").source.format == "WEBP"
    assert np.array_equal(gz.read(photo).pixels, GREY)


def test_without_weights_the_command_says_how_to_get_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    photo = gz.write(Image(pixels=GREY), tmp_path / "a.png")
    assert main(["colorize", "-i", str(photo), "-o", str(tmp_path)]) == 1
    assert "GPEN-Colorization-1024" in capsys.readouterr().err


@pytest.mark.usefixtures("cli_zoo")
def test_inpaint_with_one_mask_and_with_a_folder_of_masks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b"):
        gz.write(Image(pixels=ASTRONAUT), tmp_path / "in" / f"{name}.png")
    masks, out = tmp_path / "masks", tmp_path / "out"
    masks.mkdir()
    cv2.imwrite(str(masks / "a.bmp"), spot((128, 128)))
    words = ["inpaint", "-i", str(tmp_path / "in"), "-o", str(out), "--mask"]
    assert main([*words, str(masks)]) == 1
    assert "P14" in capsys.readouterr().err
    assert [p.name for p in out.iterdir()] == ["a_filled.png"]
    assert main([*words, str(masks / "a.bmp")]) == 0
    mask = cv2.resize(spot((128, 128)), (256, 256), interpolation=cv2.INTER_NEAREST_EXACT) > 0
    for name in ("a", "b"):
        assert np.array_equal(gz.read(out / f"{name}_filled.png").pixels[~mask], ASTRONAUT[~mask])
    assert main([*words, str(tmp_path / "absent.png")]) == 1
    with pytest.raises(SystemExit):
        main(words[:-1])


@pytest.mark.usefixtures("cli_zoo")
def test_seg2face_from_a_pipe_and_from_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "map.png").write_bytes(as_file(classes(), "palette"))
    gz.write(Image(pixels=ASTRONAUT), tmp_path / "photo.jpg")
    names = [str(tmp_path / n) for n in ("map.png", "photo.jpg", "absent.png")]
    assert main(["seg2face", "-i", *names, "-o", str(tmp_path / "out"), "--quiet"]) == 1
    out, err = capsys.readouterr()
    assert "P22" in err
    assert "I19" in err
    assert len(out.splitlines()) == 1
    assert gz.read(tmp_path / "out" / "map_face.png").pixels.shape == (SIZE, SIZE, 3)
