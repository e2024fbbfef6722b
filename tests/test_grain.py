"""Grain: measured beside the face, made up on it, and nothing added where nothing is missing."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from skimage import data

from gpen_zoo.align import Window, cut_crop
from gpen_zoo.grain import grain, grain_of
from gpen_zoo.masks import Place, drawn, head_weight
from gpen_zoo.paste import paste
from gpen_zoo.types import RestoredCrop
from tests.test_align import frame_at

CLEAN = cv2.GaussianBlur(data.astronaut(), (0, 0), 1.5)
FACE = Place(index=1, frame=frame_at(190, (222, 125)))
INNER, BESIDE = np.s_[90:160, 190:255], np.s_[60:200, 130:155]


def grainy(sigma: float, coarse: float = 0.0) -> np.ndarray:
    noise = np.random.default_rng(3).normal(0, 1, CLEAN.shape[:2]).astype(np.float32)
    if coarse:
        noise = cv2.GaussianBlur(noise, (0, 0), coarse)
    return np.clip(CLEAN + (noise / noise.std() * sigma)[:, :, None], 0, 255).round().astype(np.uint8)


def restored(photo: np.ndarray, *, with_grain: bool) -> np.ndarray:
    """By a network that removes all grain."""
    crop = RestoredCrop(
        index=1, frame=FACE.frame, before=cut_crop(photo, FACE.frame, 256), after=cut_crop(CLEAN, FACE.frame, 256)
    )
    return paste(photo, [crop], {1: 1.0}, [FACE], grainy=with_grain)


def level(x: np.ndarray, where: tuple[slice, slice]) -> float:
    difference = (x.astype(float) - CLEAN)[where].mean(2)
    return float((difference - cv2.GaussianBlur(difference, (0, 0), 3)).std())


@pytest.mark.parametrize(("sigma", "coarse"), [(4, 0.0), (9, 0.0), (7, 1.0)])
def test_a_smooth_face_gets_the_grain_of_its_photo(sigma: float, coarse: float) -> None:
    photo = grainy(sigma, coarse)
    smooth, matched = (restored(photo, with_grain=g) for g in (False, True))
    print(f"beside {level(photo, BESIDE):.1f}, without {level(smooth, INNER):.1f}, with {level(matched, INNER):.1f}")
    assert level(smooth, INNER) < 0.55 * level(photo, BESIDE)
    assert level(matched, INNER) == pytest.approx(level(photo, BESIDE), rel=0.3)
    added = matched.astype(int) - smooth
    chroma = np.abs(added[:, :, 0] - added[:, :, 2])[INNER]  # clipped pixels apart
    assert np.quantile(chroma, 0.9) <= 1, "grain is light, not colour"
    again = restored(photo, with_grain=True)
    assert np.array_equal(matched, again)


def test_a_clean_photo_gets_none_and_an_untouched_face_no_more() -> None:
    assert np.array_equal(restored(CLEAN, with_grain=True), restored(CLEAN, with_grain=False))
    photo = grainy(8)
    crop = cut_crop(photo, FACE.frame, 256)
    same = RestoredCrop(index=1, frame=FACE.frame, before=crop, after=crop)
    assert level(paste(photo, [same], {1: 1.0}, [FACE], grainy=True), INNER) < 1.15 * level(photo, INNER)


def test_what_is_made_measures_as_asked() -> None:
    noise = grain((400, 300), (3.0, 2.0, 1.0, 0.5), seed=5)
    everywhere = np.ones(noise.shape, bool)
    # The flattest quarter of the cells has a little less than all.
    assert grain_of(noise, everywhere) == pytest.approx((3.0, 2.0, 1.0, 0.5), rel=0.3)
    assert grain_of(noise[:5, :5], everywhere[:5, :5]) == (0, 0, 0, 0)


@pytest.mark.parametrize("side", [76, 130])
def test_texture_around_a_small_face_is_no_grain(side: int) -> None:
    """Clothes and masonry beside faces of 76 px once came back as blotches on them."""
    size = round(512 * side / 190)
    small = cv2.resize(CLEAN, (size, size), interpolation=cv2.INTER_AREA)
    texture = cv2.GaussianBlur(np.random.default_rng(8).normal(0, 1, small.shape[:2]).astype(np.float32), (0, 0), 2.5)
    place = Place(index=1, frame=frame_at(side, (222 * side / 190, 125 * side / 190)))
    face = head_weight(place, Window(0, 0, size, size), [], drawn("face"))
    rough = small + ((1 - face) * texture / texture.std() * 40)[:, :, None]
    photo = np.clip(rough + np.random.default_rng(9).normal(0, 3, small.shape), 0, 255).round().astype(np.uint8)
    after = cut_crop(small, place.frame, 256)
    crop = RestoredCrop(index=1, frame=place.frame, before=cut_crop(photo, place.frame, 256), after=after)
    without, with_grain = (paste(photo, [crop], {1: 1.0}, [place], grainy=g).astype(float) for g in (False, True))
    added = (with_grain - without)[face > 0.9].std()
    print(f"{added:.1f}")
    assert added < 3, "about the grain itself: 2 in luma, among texture of 40"
