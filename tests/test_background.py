"""The photo around the faces enlarged: by Lanczos, by weights in tiles, with faces pasted at the size of the result."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import resources
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from skimage import data
from torch.nn import Module

from gpen_zoo.background import LANCZOS
from gpen_zoo.branches import Upscalers
from gpen_zoo.budget import Upscaling
from gpen_zoo.restore import Branch, Restorer
from gpen_zoo.types import U8, Image, Options, Scale
from gpen_zoo.upscaler import Upscaler
from tests.test_align import TEMPLATE
from tests.test_restore import Planted, found, tiny_engine

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
        from gpen_zoo.budget import Plan
        from gpen_zoo.engine import Outcome

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
