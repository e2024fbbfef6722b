"""The photo around the faces enlarged: by Lanczos, by weights in tiles, with faces pasted at the size of the result."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import cv2
import jsonschema
import numpy as np
import pytest
import torch
from skimage import data
from torch.nn import Module

import gpen_zoo as gz
from benchmarks.picture import Planted as SyntheticFace
from benchmarks.picture import hue_shift, scene, seam_score
from gpen_zoo.align import Window, enlarged_frame
from gpen_zoo.background import LANCZOS, bled, check_size, enlarge
from gpen_zoo.batch import run
from gpen_zoo.batch_types import Job, Settings
from gpen_zoo.branches import Upscalers
from gpen_zoo.budget import GB, Facts, Plan, Upscaling, upscaler_bytes, upscaler_ladder
from gpen_zoo.detect import embedded_detector
from gpen_zoo.engine import Outcome
from gpen_zoo.errors import (
    GpenError,
    ImageTooLarge,
    OptionsInvalid,
    OutOfMemory,
    WeightCorrupt,
    WeightMissing,
    WeightWrongKind,
)
from gpen_zoo.manifest import Entry
from gpen_zoo.manifest import load as load_manifest
from gpen_zoo.masks import Place, drawn, head_weight
from gpen_zoo.restore import Branch, Restorer, blend
from gpen_zoo.types import U8, Image, Options, Scale
from gpen_zoo.upscaler import Upscaler
from gpen_zoo.upscaler_networks import network_with, shape_of
from gpen_zoo.weightfile import sha256_of
from gpen_zoo.zoo import Zoo
from tests.test_align import TEMPLATE
from tests.test_budget import allocated_peak
from tests.test_restore import FULL, Planted, found, tiny_engine
from tests.test_synthetic import SEAM

__all__ = ["found"]  # a fixture

PHOTO = Image(pixels=data.astronaut())
FACE_AT = (222.0, 120.0, 150.0)
SCHEMA: dict[str, Any] = json.loads((resources.files("gpen_zoo") / "assets" / "report.schema.json").read_text("utf-8"))


def lanczos(pixels: U8, scale: int) -> U8:
    size = pixels.shape[1] * scale, pixels.shape[0] * scale
    return np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_LANCZOS4), np.uint8)


class Through:
    """An engine that gives back what it is given: an identity network in place of GPEN."""

    def __init__(self, size: int) -> None:
        self.size = size

    def restore(self, crops: U8, *, on_crop: Callable[[int, int], None] | None = None) -> tuple[Any, ...]:
        return tuple(
            Outcome(pixels=c.copy(), plan=Plan(device="cpu", dtype="float32"), attempts=(), ms=0) for c in crops
        )


class LanczosNet(Module):
    """An "identity" upscaler: Lanczos' picture of whatever tile it gets."""

    def __init__(self, factor: int) -> None:
        super().__init__()
        self.factor = factor
        self.seen: list[tuple[int, ...]] = []

    def __deepcopy__(self, memo: Any) -> LanczosNet:
        return self  # so that `seen` can be looked at

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen.append(tuple(x.shape[2:]))
        pixels = x[0].permute(1, 2, 0).mul(255).round().to(torch.uint8).numpy()
        return (
            torch.from_numpy(lanczos(np.ascontiguousarray(pixels), self.factor)).permute(2, 0, 1)[None].to(x.dtype)
            / 255
        )


def upscaler(net: Module, factor: int = 2, *, tile: int = 0, name: str = "net", precision: str = "float32") -> Upscaler:
    shape = Upscaling(family="SRVGGNetCompact", factor=factor, features=4, depth=1)
    return Upscaler(name, lambda: net, shape, device="cpu", precision=precision, tile=tile)


class Given(Upscalers):
    """As if these weights were installed."""

    def __init__(self, upscaler: Upscaler) -> None:
        super().__init__()
        self.upscaler = upscaler

    def pick(self, choice: str, scale: Scale) -> Upscaler | None:
        return None if choice == LANCZOS else self.upscaler


def restorer(
    *faces: tuple[float, float, float],
    net: Upscaler | None = None,
    sizes: tuple[int, ...] = (128, 256),
    through: bool = True,
) -> Restorer:
    def branch(size: int) -> Branch:
        build: Any = (lambda: Through(size)) if through else (lambda: tiny_engine(size))
        return Branch(name=f"same-{size}", size=size, template=TEMPLATE, build=build)

    upscalers = Upscalers() if net is None else Given(net)
    return Restorer(branches=tuple(map(branch, sizes)), detector=Planted(*faces), upscalers=upscalers)


# --- the whole flow ---


@pytest.mark.usefixtures("found")
@pytest.mark.parametrize("scale", [2, 4])
@pytest.mark.parametrize("faces", [(FACE_AT,), (FACE_AT, (250.0, 150.0, 60.0)), ((30.0, 480.0, 90.0),)])
def test_networks_that_change_nothing_give_the_lanczos_picture(scale: Scale, faces: Any) -> None:
    result = restorer(*faces)(PHOTO, Options(scale=scale, strength=1.0))
    assert [f.verdict.value for f in result.faces] == ["restored"] * len(faces)
    assert np.abs(result.image.pixels.astype(int) - lanczos(PHOTO.pixels, scale)).max() <= 1


@pytest.mark.usefixtures("found")
def test_an_upscaler_that_is_lanczos_gives_the_lanczos_picture_outside_seams() -> None:
    net = LanczosNet(2)
    result = restorer(FACE_AT, net=upscaler(net, tile=160))(PHOTO, Options(scale=2, strength=1.0))
    off = np.abs(result.image.pixels.astype(int) - lanczos(PHOTO.pixels, 2)).max(2)
    assert len(net.seen) > 9, "it worked in tiles"
    seams = np.zeros(off.shape, bool)
    for start in [*range(0, 512 - 160, 160 - 32), 512 - 160]:
        for edge in (start, start + 160):  # Lanczos' filter looks 4 px beyond a tile's border
            near = np.abs(np.arange(1024) - 2 * edge) < 10
            seams |= near[:, None] | near
    assert off[~seams].max() <= 1
    assert off.max() <= 40


@pytest.mark.usefixtures("found")
def test_scale_one_leaves_the_photo_bit_for_bit() -> None:
    for background in ("auto", "lanczos"):
        result = restorer()(PHOTO, Options(background=background))
        assert np.array_equal(result.image.pixels, PHOTO.pixels)
        assert result.enlarged is None
        assert result.before is PHOTO


@pytest.mark.usefixtures("found")
@pytest.mark.parametrize("side", [60.0, 150.0])
def test_a_face_gets_the_branch_of_its_size_in_the_result(side: float) -> None:
    sizes = (64, 128, 256, 512)
    for scale, wanted in ((1, side), (2, 2 * side), (4, 4 * side)):
        (face,) = restorer((222.0, 120.0, side), sizes=sizes)(PHOTO, Options(scale=scale, strength=1.0)).faces  # type: ignore[arg-type]
        fitting = [s for s in sizes if s >= wanted]
        assert face.branch == f"same-{min(fitting) if fitting else 512}"
        assert round(face.side) == round(side), "the report speaks of the photo as it was read"
        assert (face.note.code == "F06") is (wanted > 512)


@pytest.mark.usefixtures("found")
@pytest.mark.parametrize("remade", [False, True])
def test_what_the_network_draws_is_in_the_enlarged_picture_where_it_belongs(remade: bool) -> None:
    """A dot drawn into the crop, found again at twice its place in the photo, and as sharp as it was drawn."""

    class Dots(Through):
        def restore(self, crops: U8, **more: Any) -> tuple[Any, ...]:
            outcomes = super().restore(crops, **more)
            for outcome in outcomes:
                outcome.pixels[150:153, 120:123] = 255
            return outcomes

    grey = Image(pixels=np.full((300, 400, 3), 90, np.uint8))
    net = upscaler(LanczosNet(2)) if remade else None
    dots = replace(restorer((200, 150, 128), net=net, sizes=(256,)))
    dots.branches[0]._build = lambda: Dots(256)  # type: ignore[assignment, return-value]
    result = dots(grey, Options(scale=2, strength=1.0))
    (face,) = result.faces
    change = result.image.pixels[:, :, 0].astype(int) - 90
    ys, xs = np.nonzero(change > 40)
    # The dot's middle in crop fractions, through the frame to the photo, and from there to the result.
    linear, shift = face.frame[:, :2], face.frame[:, 2]
    x, y = np.linalg.solve(linear, np.array([121, 151]) / 256 - shift)
    assert np.hypot(xs.mean() - (2 * x + 0.5), ys.mean() - (2 * y + 0.5)) < 0.6
    assert len(xs) <= 16, "not smeared"


@pytest.mark.usefixtures("found")
@pytest.mark.parametrize("cast", [0, 12])
def test_faces_and_background_meet_without_a_rim(cast: int) -> None:
    """GPEN redraws fine detail; the upscaler shifts all colours by `cast`. Around the face no edge may show."""

    class Sharpened(Through):
        def restore(self, crops: U8, **more: Any) -> tuple[Any, ...]:
            outcomes = super().restore(crops, **more)
            rng = np.random.default_rng(0)
            return tuple(
                replace(o, pixels=np.clip(o.pixels + rng.normal(0, 6, o.pixels.shape), 0, 255).astype(np.uint8))
                for o in outcomes
            )

    class Shifted(LanczosNet):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x) + cast / 255

    photo = Image(pixels=np.clip(PHOTO.pixels.astype(int) // 2 + 50, 0, 255).astype(np.uint8))
    plan = restorer((222.0, 120.0, 128.0), net=upscaler(Shifted(2)), sizes=(256,))
    plan.branches[0]._build = lambda: Sharpened(256)  # type: ignore[assignment, return-value]
    result = plan(photo, Options(scale=2, strength=1.0))
    assert result.enlarged is not None
    change = result.image.pixels.astype(float) - result.enlarged.image.pixels
    assert np.abs(change).max() > 8, "the face was redrawn"
    smooth = cv2.GaussianBlur(change, (0, 0), 8)  # a rim is a shift that does not average out
    assert np.abs(smooth).max() < 2.0


@pytest.mark.parametrize("way", ["lanczos", "sharper", "a cast"])
def test_the_seam_score_of_restored_faces_in_an_enlarged_photo(way: str) -> None:
    """The bundled weights in a made scene, as tests/test_synthetic.py does at the photo's own size."""

    class Remade(LanczosNet):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = super().forward(x)
            soft = torch.nn.functional.avg_pool2d(y, 5, 1, 2, count_include_pad=False)
            return (
                y + 0.8 * (y - soft) if way == "sharper" else y * 0.93 + torch.tensor([8.0, 0, -8])[:, None, None] / 255
            )

    made = scene((SyntheticFace(90, 100, 130), SyntheticFace(330, 150, 250, 70, 1)), 640, 440, TEMPLATE)
    demo = gz.load()
    if way != "lanczos":
        demo = replace(demo, upscalers=Given(upscaler(Remade(2))))
    result = demo(made.image, Options(scale=2, strength=1.0), found=made.found)
    places = [Place(index=f.index, frame=enlarged_frame(f.frame, 2)) for f in result.faces]
    window = Window(0, 0, result.image.width, result.image.height)
    for place in places:
        weight = head_weight(place, window, [p for p in places if p is not place], drawn("face"))
        score = seam_score(result.before.pixels, result.image.pixels, weight)
        hue = hue_shift(result.before.pixels, result.image.pixels, weight)
        print(f"{way}: seam {score:.2f}, hue {hue:.2f}")
        assert score < SEAM
        assert hue < 0.5


@pytest.mark.usefixtures("found")
@pytest.mark.parametrize("net", [False, True])
def test_blend_equals_a_fresh_restore_and_runs_no_upscaler(net: bool) -> None:
    lanczos_net = LanczosNet(2)
    made = restorer(
        FACE_AT, (400.0, 380.0, 200.0), net=upscaler(lanczos_net) if net else None, sizes=(64, 128), through=False
    )
    first = made(PHOTO, replace(FULL, scale=2))
    calls = len(lanczos_net.seen)
    for change in (
        Options(strength=0.4),
        Options(strength=1.0, faces=(2,), mask="face+hair"),
        Options(strength=1.0, tone="toned"),
        Options(strength=1.0, tone="grey", grain=True),
    ):
        again = blend(first, change)
        assert len(lanczos_net.seen) == calls
        assert again.options.scale == 2, "a result keeps the size that it was made with"
        fresh = made(PHOTO, replace(change, scale=2))
        calls = len(lanczos_net.seen)
        assert np.array_equal(again.image.pixels, fresh.image.pixels)
        assert [f.as_dict()["note"] for f in again.faces] == [f.as_dict()["note"] for f in fresh.faces]


@pytest.mark.usefixtures("found")
def test_aligned_pictures_are_enlarged_too_and_the_networks_picture_is_not_resampled() -> None:
    class Stripes(Through):
        def restore(self, crops: U8, **more: Any) -> tuple[Any, ...]:
            outcomes = super().restore(crops, **more)
            for outcome in outcomes:
                outcome.pixels[:, ::2] = 200
                outcome.pixels[:, 1::2] = 40
            return outcomes

    crop = Image(pixels=np.ascontiguousarray(PHOTO.pixels[:128, :128]))
    plan = restorer(sizes=(128, 256))
    plan.branches[1]._build = lambda: Stripes(256)  # type: ignore[assignment, return-value]
    result = plan(crop, Options(scale=2, aligned=True, strength=1.0))
    assert result.image.pixels.shape == (256, 256, 3)
    assert result.faces[0].branch == "same-256"
    assert (result.image.pixels[:, ::2] == 200).mean() > 0.99
    assert (result.image.pixels[:, 1::2] == 40).mean() > 0.99


# --- pictures of every kind ---


def test_lanczos_is_always_there_and_keeps_the_files_facts(tmp_path: Path) -> None:
    from PIL import Image as pil

    exif = pil.Exif()
    exif[0x010F] = "Leica"
    exif.get_ifd(0x8769).update({0xA002: 60, 0xA003: 40})
    pil.fromarray(PHOTO.pixels[:40, :60]).save(tmp_path / "a.jpg", exif=exif, dpi=(300, 300))
    image = gz.read(tmp_path / "a.jpg")
    made = enlarge(image, 4).image
    assert made.pixels.shape == (160, 240, 3)
    assert made.source == image.source
    gz.write(made, tmp_path / "b.jpg")
    with pil.open(tmp_path / "b.jpg") as written:
        detail = written.getexif().get_ifd(0x8769)
        assert (detail[0xA002], detail[0xA003]) == (240, 160)
        assert written.getexif()[0x010F] == "Leica"
        assert written.info["dpi"] == (300, 300)


class Tinted(LanczosNet):
    """An upscaler that gives everything a hue and a little more contrast."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) * 1.1 + torch.tensor([0.1, 0.0, -0.05])[None, :, None, None]


@pytest.mark.parametrize("tone", ["grey", "toned"])
def test_grey_stays_grey_and_sepia_its_hue(tone: Any) -> None:
    luma = PHOTO.pixels.mean(2)[:100, :120, None].astype(np.uint8)
    grey = np.repeat(luma, 3, axis=2)
    pixels = grey if tone == "grey" else np.clip(grey * np.array([1.0, 0.85, 0.6]), 0, 255).astype(np.uint8)
    made = enlarge(Image(pixels=pixels, tone=tone), 2, upscaler(Tinted(2)), tone=tone)
    assert made.toned is not None
    plain = lanczos(pixels, 2).astype(int)
    out = made.toned.astype(int)
    chroma = [np.abs((x[:, :, c] - x[:, :, 1]) - (plain[:, :, c] - plain[:, :, 1])) for x in (out,) for c in (0, 2)]
    assert max(c.max() for c in chroma) <= 1
    assert np.abs(out - plain).max() > 3, "its luma is the network's"
    if tone == "grey":
        assert (out[:, :, 0] == out[:, :, 1]).all() and (out[:, :, 1] == out[:, :, 2]).all()


@pytest.mark.parametrize("net", [False, True])
def test_alpha_is_enlarged_and_hidden_colours_give_no_rim(net: bool) -> None:
    alpha = np.zeros((60, 80), np.uint8)
    alpha[20:40, 20:60] = 255
    pixels = np.zeros((60, 80, 3), np.uint8)  # black where nobody sees it
    pixels[alpha > 0] = (200, 180, 160)
    made = enlarge(Image(pixels=pixels, alpha=alpha), 2, upscaler(LanczosNet(2)) if net else None).image
    assert made.alpha is not None and made.alpha.shape == (120, 160)
    assert (made.pixels[made.alpha > 0] == (200, 180, 160)).all()
    rows, columns = np.nonzero(made.alpha)
    assert rows.min() >= 37 and rows.max() <= 82 and columns.min() >= 37 and columns.max() <= 122, "no ringing"
    assert (made.alpha[44:76, 44:116] == 255).all()


def test_hidden_colours_are_those_of_the_nearest_pixel_seen() -> None:
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (20, 30, 3), dtype=np.uint8)
    alpha = np.where(rng.random((20, 30)) < 0.1, 255, 0).astype(np.uint8)
    out = bled(pixels, alpha)
    seen = np.argwhere(alpha > 0)
    for y, x in np.argwhere(alpha == 0):
        far = np.hypot(*(seen - (y, x)).T)
        near = [tuple(pixels[tuple(s)]) for s in seen[far <= far.min() * 1.06 + 0.1]]  # the transform is approximate
        assert tuple(out[y, x]) in near
    assert np.array_equal(out[alpha > 0], pixels[alpha > 0])
    assert bled(pixels, np.zeros_like(alpha)) is pixels


def test_sixteen_bit_files(tmp_path: Path) -> None:
    path = tmp_path / "deep.png"
    cv2.imwrite(str(path), np.arange(48 * 64 * 3, dtype=np.uint16).reshape(48, 64, 3) * 7)
    image = gz.read(path)
    made = enlarge(image, 2)
    assert "I08" in [n.code for n in image.notes]
    assert gz.decode(gz.encode(made.image)).pixels.shape == (96, 128, 3)


def test_too_large_a_result_is_refused_before_any_work() -> None:
    check_size(7000, 7000, 2)
    for width, height, scale in ((7100, 7100, 2), (20_000, 100, 4), (40_000, 50, 2)):
        with pytest.raises(ImageTooLarge) as refused:
            check_size(width, height, scale)  # type: ignore[arg-type]
        assert refused.value.code == "I30"
    wide = Image(pixels=np.zeros((1, 20_000, 3), np.uint8))
    net = LanczosNet(4)
    with pytest.raises(ImageTooLarge):
        restorer(net=upscaler(net, 4))(wide, Options(scale=4))
    assert not net.seen


# --- tiles, plans, ends ---


def tiny(family: str, factor: int) -> dict[str, torch.Tensor]:
    """Tensors as Real-ESRGAN's authors name them, few and random."""
    from gpen_zoo.basicsr_shim import import_basicsr

    torch.manual_seed(factor)
    if family == "RRDBNet":
        module = import_basicsr("basicsr.archs.rrdbnet_arch").RRDBNet(3, 3, factor, 8, 2, 4)
    else:
        module = import_basicsr("basicsr.archs.srvgg_arch").SRVGGNetCompact(3, 3, 8, 3, factor, "prelu")
    state = dict(module.state_dict())
    # As they come, random RRDBNets give next to nothing: their pictures would all be black.
    last = "conv_last" if family == "RRDBNet" else f"body.{2 * 3 + 2}"
    state[f"{last}.weight"] *= 40 if family == "RRDBNet" else 3
    state[f"{last}.bias"] += 0.4 if family == "RRDBNet" else 0
    return state


KINDS = [("RRDBNet", 2), ("RRDBNet", 4), ("SRVGGNetCompact", 4)]


def of_tensors(state: dict[str, torch.Tensor], **more: Any) -> Upscaler:
    return Upscaler(
        "t", lambda: network_with("t", state), shape_of("t", state), device="cpu", precision="float32", **more
    )


@pytest.mark.parametrize(("family", "factor"), KINDS)
def test_tiles_agree_with_the_whole(family: str, factor: int) -> None:
    """The tiny networks look 6 (SRVGG) to 30 px around; inside the overlap's middle both agree."""
    state = tiny(family, factor)
    pixels = np.ascontiguousarray(PHOTO.pixels[:151, :203])  # odd sides, which ×2 has to pad
    whole, tiled = (of_tensors(state, tile=tile)(pixels, factor).pixels for tile in (0, 96))  # type: ignore[arg-type]
    assert whole.shape == tiled.shape == (151 * factor, 203 * factor, 3)
    off = np.abs(whole.astype(int) - tiled)
    print(family, factor, off.max(), off.mean(), whole.std())
    assert whole.std() > 5, "a picture"
    assert off.max() <= 8
    assert off.mean() < 0.1


@pytest.mark.parametrize(("family", "factor"), KINDS)
def test_the_networks_are_basicsrs(family: str, factor: int) -> None:
    state = tiny(family, factor)
    pixels = np.ascontiguousarray(PHOTO.pixels[:64, :64])
    made = of_tensors(state)(pixels, factor).pixels  # type: ignore[arg-type]
    x = torch.from_numpy(pixels).permute(2, 0, 1)[None].float() / 255
    with torch.inference_mode():
        y = network_with("t", state).eval()(x)
    assert np.abs(made - y[0].permute(1, 2, 0).mul(255).round().clamp(0, 255).numpy()).max() <= 1
    for scale in (1, 2, 4):
        assert of_tensors(state)(pixels, scale).pixels.shape == (64 * scale, 64 * scale, 3)  # type: ignore[arg-type]


@pytest.mark.parametrize(("family", "factor"), KINDS)
def test_the_arithmetic_of_memory_is_near_what_the_allocator_sees(family: str, factor: int) -> None:
    from gpen_zoo.basicsr_shim import import_basicsr

    if family == "RRDBNet":
        net = import_basicsr("basicsr.archs.rrdbnet_arch").RRDBNet(3, 3, factor, 32, 2, 16)
    else:
        net = import_basicsr("basicsr.archs.srvgg_arch").SRVGGNetCompact(3, 3, 64, 4, factor, "prelu")
    one = Upscaler("t", lambda: net, shape_of("t", net.state_dict()), device="cpu", precision="float32")
    tile = np.ascontiguousarray(PHOTO.pixels[:160, :160])
    plan = Plan(device="cpu", dtype="float32")
    one.attempt(tile[:32, :32], plan, 1)  # the weights are made ready
    peak = allocated_peak(lambda: one.attempt(tile, plan, 1))
    reckoned = upscaler_bytes(one.shape, "float32", 160, 160)
    print(f"{family} ×{factor}: {peak / 1e6:.1f} MB allocated, {reckoned / 1e6:.1f} MB reckoned")
    assert 0.8 * reckoned < peak < 1.1 * reckoned


def test_the_ladder_begins_with_what_fits_and_never_ends_without_a_plan() -> None:
    net = Upscaling(family="RRDBNet", factor=2, features=64, depth=23, grow=32)
    for gigabytes, tile in ((24, 640), (0.3, 384), (0.1, 128), (0.01, 0)):
        free = int(gigabytes * GB)
        card = Facts(device="cuda:0", half="float16", free=free, cpu_half=None, cpu_free=64 * GB)
        plans = upscaler_ladder(net, card, 3000, 4000, tile=640)
        assert (plans[0].device, plans[0].tile) == (("cuda:0", tile) if tile else ("cpu", 640))
        assert plans[0].dtype == ("float16" if tile else "float32")
        assert plans[-1] == Plan(device="cpu", dtype="bfloat16", tile=64)
    poor = Facts(device="cpu", half=None, free=1, cpu_half=None, cpu_free=1)
    assert upscaler_ladder(net, poor, 3000, 4000, tile=640) == (Plan(device="cpu", dtype="bfloat16", tile=64),)


class Failing(LanczosNet):
    """Fails as often as told, from the call numbered `after`."""

    def __init__(self, times: int, after: int = 0, message: str = "CUDA out of memory. Tried to allocate") -> None:
        super().__init__(2)
        self.times, self.after, self.message, self.calls = times, after, message, 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        if self.calls > self.after and self.times > 0:
            self.times -= 1
            raise RuntimeError(self.message)
        return super().forward(x)


@pytest.mark.parametrize("after", [0, 3])
@pytest.mark.parametrize("times", range(5))
def test_memory_short_at_each_step(times: int, after: int) -> None:
    pixels = np.ascontiguousarray(PHOTO.pixels[:170, :170])  # too small to be probed
    steps = ["tiles of 128 px", "tiles of 64 px", "bfloat16, batch 1, tiles of 64 px"]
    net = Failing(times, after)
    made = upscaler(net, tile=150)
    if times > len(steps):
        with pytest.raises(OutOfMemory) as refused:
            made(pixels, 2)
        assert refused.value.code == "B24"
        return
    answer = made(pixels, 2)
    assert [n.code for n in answer.attempts] == ["M01"] * times
    assert all(step in str(n.params["plan"]) for step, n in zip(steps, answer.attempts, strict=False))
    off = np.abs(answer.pixels.astype(int) - lanczos(pixels, 2))
    assert np.median(off) <= 1 and off.mean() < 1.5


def test_another_failure_changes_more_than_the_tile() -> None:
    answer = upscaler(Failing(1, message="no kernel for this"), tile=128)(PHOTO.pixels[:150, :150], 2)
    assert [(n.code, n.params["plan"].dtype) for n in answer.attempts] == [("M04", "bfloat16")]
    with pytest.raises(GpenError) as refused:
        upscaler(Failing(9, message="no kernel for this"), tile=128)(PHOTO.pixels[:150, :150], 2)
    assert refused.value.code == "B27"


class Overflowing(LanczosNet):
    def __init__(self, *, always: bool = False) -> None:
        super().__init__(2)
        self.always, self.exact = always, 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = super().forward(x)
        if self.always or (x.dtype == torch.bfloat16 and len(self.seen) == 2):
            y[0, 0, 3, 3] = float("nan")
        self.exact += x.dtype == torch.float32
        return y


def test_a_tile_that_is_not_finite_is_made_again_in_float32() -> None:
    net = Overflowing()
    pixels = np.ascontiguousarray(PHOTO.pixels[:150, :150])
    answer = upscaler(net, tile=100, precision="bfloat16")(pixels, 2)
    assert [n.code for n in answer.attempts] == ["B25"]
    assert net.exact == 1, "that tile only"
    assert np.abs(answer.pixels.astype(int) - lanczos(pixels, 2)).mean() < 1.5
    with pytest.raises(WeightCorrupt) as refused:
        upscaler(Overflowing(always=True), precision="bfloat16")(pixels, 2)
    assert refused.value.code == "B26"


@pytest.mark.usefixtures("found")
def test_progress_the_estimate_and_an_end_between_tiles() -> None:
    net = LanczosNet(2)
    told: list[tuple[str, int, int]] = []
    heard: list[Any] = []
    made = restorer(FACE_AT, net=upscaler(net, tile=256))
    result = made(PHOTO, Options(scale=2), progress=lambda *a: told.append(a), on_note=heard.append)
    tiles = [(done, total) for stage, done, total in told if stage == "background"][1:]
    assert tiles == [(n, 9) for n in range(10)]
    assert [n.code for n in heard] == ["B23"]
    assert heard[0].params["tiles"] == 9
    assert result.enlarged is not None and result.enlarged.estimate is not None
    stages = list(dict.fromkeys(stage for stage, _, _ in told))
    assert stages == ["faces", "restore", "background", "paste"]

    class Enough(Exception):
        pass

    def stop(stage: str, done: int, total: int) -> None:
        if stage == "background" and done == 2:
            raise Enough

    net.seen.clear()
    with pytest.raises(Enough):
        made(PHOTO, Options(scale=2), progress=stop)
    assert [s for s in net.seen if s != (64, 64)] == [(256, 256)] * 2, "nothing after the end; 64 px measured the time"
    net.seen.clear()
    parts = upscaler(Failing(1), tile=256)  # tiles that had to be divided end as quickly
    with pytest.raises(Enough):
        enlarge(PHOTO, 2, parts, on_tile=lambda done, total: stop("background", 2 if net.seen else done, total))


# --- which weights ---


def stored(home: Path, name: str, *, wrapper: str = "params_ema", spoil: bool = False) -> Entry:
    """Small weights under a name of the manifest, as their author's .pth in the zoo folder."""
    (known,) = [e for e in load_manifest() if e.name == name]
    factor = int(known.architecture.params["scale"])
    state = tiny(known.architecture.family, factor)
    path = home / known.file
    home.mkdir(parents=True, exist_ok=True)
    torch.save({wrapper: state, "iter": {"count": torch.zeros(1)}} if wrapper else state, path)
    params = {"scale": factor}
    entry = replace(
        known,
        bytes=path.stat().st_size,
        sha256=sha256_of(path),
        architecture=replace(known.architecture, params=params),
    )
    if spoil:
        path.write_bytes(path.read_bytes()[:-1] + b"!")
    return entry


@pytest.mark.usefixtures("found")
@pytest.mark.parametrize(
    ("name", "wrapper"),
    [
        ("RealESRGAN-x2plus", "params_ema"),
        ("realesrnet-x2", "params_ema"),
        ("realesr-general-x4v3", "params"),
        ("RealESRGAN-x4plus", "params_ema"),
    ],
)
def test_weights_of_the_zoo_by_their_name_and_as_the_best_there_is(zoo_home: Path, name: str, wrapper: str) -> None:
    zoo = Zoo(entries=(stored(zoo_home, name, wrapper=wrapper),))
    made = replace(restorer(FACE_AT), upscalers=Upscalers(zoo, "cpu", "float32"))
    small = Image(pixels=np.ascontiguousarray(PHOTO.pixels[50:200, 140:300]))
    for background in (name, name.upper(), "auto"):
        result = made(small, Options(scale=2, background=background))
        assert result.image.pixels.shape == (300, 320, 3)
        assert result.enlarged is not None and result.enlarged.method == name
        assert result.weights[-1] == name
        assert [n.code for n in result.notes if n.code.startswith("B2")] == ["B21"]
        jsonschema.validate(json.loads(json.dumps(result.as_dict())), SCHEMA)
    same_size = made(small, Options(background=name))
    assert same_size.image.pixels.shape == small.pixels.shape
    assert not np.array_equal(same_size.image.pixels, small.pixels)
    assert (zoo_home / f"{name}.safetensors").is_file()


def test_the_best_is_that_of_the_scale_then_a_larger_factor() -> None:
    ours = Upscalers(Zoo())
    assert (ours.best(2), ours.best(4)) == ("RealESRGAN-x2plus", "RealESRGAN-x4plus")
    assert {n for n, _ in ours.names()} == {
        "RealESRGAN-x2plus",
        "RealESRGAN-x4plus",
        "realesr-general-x4v3",
        "realesrnet-x2",
    }
    assert not any(there for _, there in ours.names())
    assert [e.name for e in ours._entries(4)][2:] == ["RealESRGAN-x2plus", "realesrnet-x2"]


@pytest.mark.usefixtures("found")
def test_weights_that_are_not_there_say_how_to_get_them_and_auto_says_what_it_did(zoo_home: Path) -> None:
    made = replace(restorer(FACE_AT), upscalers=Upscalers(Zoo()))
    with pytest.raises(WeightMissing, match="gpen-zoo weights download RealESRGAN-x2plus"):
        made(PHOTO, Options(scale=2, background="RealESRGAN-x2plus"))
    with pytest.raises(WeightMissing):
        made(PHOTO, Options(background="RealESRGAN-x2plus"))
    with pytest.raises(OptionsInvalid, match="lanczos, RealESRGAN-x2plus"):
        made(PHOTO, Options(scale=2, background="waifu2x"))
    for options, code in ((Options(scale=2), "B20"), (Options(scale=2, background="lanczos"), "B22")):
        result = made(PHOTO, options)
        assert [n.code for n in result.notes if n.code.startswith("B")] == [code]
        assert np.abs(result.image.pixels.astype(int) - lanczos(PHOTO.pixels, 2)).max() <= 1
        jsonschema.validate(json.loads(json.dumps(result.as_dict())), SCHEMA)
    spoilt = stored(zoo_home, "RealESRGAN-x2plus", spoil=True)
    broken = replace(made, upscalers=Upscalers(Zoo(entries=(spoilt,))))
    assert [n.code for n in broken(PHOTO, Options(scale=2)).notes if n.code.startswith("B")] == ["B20"]


def test_other_networks_are_refused() -> None:
    state = tiny("RRDBNet", 2)
    with pytest.raises(WeightWrongKind):
        network_with("x", {k: v for k, v in state.items() if "conv_hr" not in k})
    with pytest.raises(WeightWrongKind):
        shape_of("x", {"a": torch.zeros(1)})


@pytest.mark.parametrize(
    "given", [{"scale": 3}, {"scale": True}, {"scale": "2"}, {"scale": 2.0}, {"background": ""}, {"background": 3}]
)
def test_options_are_checked(given: dict[str, Any]) -> None:
    with pytest.raises(OptionsInvalid):
        gz.options_from_json(given)
    assert gz.options_from_json({"scale": 2, "background": "lanczos"}) == Options(scale=2, background="lanczos")


def test_a_batch_enlarges_and_tells_how_it_gets_on(tmp_path: Path) -> None:
    class Watching:
        def __init__(self) -> None:
            self.notes: list[str] = []
            self.tiles: list[tuple[int, int]] = []

        def note(self, job: Job, what: Any) -> None:
            self.notes.append(what.code)

        def tile(self, job: Job, done: int, total: int) -> None:
            self.tiles.append((done, total))

    source = tmp_path / "a.png"
    gz.write(Image(pixels=PHOTO.pixels[:300, :300]), source)
    watch = Watching()
    made = replace(restorer(net=upscaler(LanczosNet(2), tile=200)), detector=embedded_detector())
    jobs = [Job(label="a", source=source, target=tmp_path / "out.png", exact=True)]
    (done,) = run(jobs, made, Settings(options=Options(scale=2, strength=1.0), timeout=300), watch=watch)
    assert done.error is None and done.result is not None
    assert gz.read(tmp_path / "out.png").pixels.shape == (600, 600, 3)
    assert "background" in dict(done.result.timings)
    assert watch.notes == ["B23"]
    assert watch.tiles[-1] == (4, 4)
    quick = Settings(options=Options(scale=2), timeout=0.5)
    net = LanczosNet(2)

    class Slow(LanczosNet):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            time.sleep(0.3)
            return net(x)

    slow = replace(made, upscalers=Given(upscaler(Slow(2), tile=64)))
    (late,) = run(jobs, slow, replace(quick, options=replace(quick.options, faces=())))
    assert late.error is not None and late.error.code == "T01"
    with pytest.raises(WeightMissing):
        named = Settings(options=Options(scale=2, background="RealESRGAN-x2plus"))
        run(jobs, replace(made, upscalers=Upscalers(Zoo())), named)
