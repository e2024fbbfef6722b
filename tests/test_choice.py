"""Which faces are meant, and how strongly each is restored when nobody said."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest
from skimage import data

import gpen_zoo as gz
from gpen_zoo.align import cut_crop
from gpen_zoo.detect import Found
from gpen_zoo.errors import OptionsInvalid
from gpen_zoo.strength import AT_PROFILE, FRONTAL, PROFILE, default_strength
from gpen_zoo.types import Image, Options, RawFaces, RestoredCrop, Verdict
from tests.test_align import frame_at
from tests.test_restore import FULL, PHOTO, THREE, found, restorer

__all__ = ["found"]  # a fixture


@pytest.mark.usefixtures("found")
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (FULL, ["+", "+", "+"]),
        (replace(FULL, largest=True), ["F42", "F42", "+"]),
        (replace(FULL, largest=True, faces=(1, 2)), ["F42", "+", "F05"]),
        (replace(FULL, min_size=50), ["F41", "+", "+"]),
        (replace(FULL, min_size=500), ["F41", "F41", "F41"]),
        (replace(FULL, boxes=((200, 200, 100, 100),)), ["F05", "+", "F05"]),
        (replace(FULL, boxes=((200, 200, 100, 100),), faces=(1,)), ["+", "+", "F05"]),
        (replace(FULL, boxes=((0, 0, 512, 512),)), ["+", "+", "+"]),
        (replace(FULL, faces=()), ["F05", "F05", "F05"]),
    ],
)
def test_who_is_meant(options: Options, expected: list[str]) -> None:
    result = restorer(*THREE)(PHOTO, options)
    assert [f.note.code if f.verdict is Verdict.SKIPPED else "+" for f in result.faces] == expected
    assert len(result.crops) == expected.count("+"), "who is not meant spares the network"
    everyone = restorer(*THREE)(PHOTO, options, keep_all=True)
    assert len(everyone.crops) == 3
    assert np.array_equal(everyone.image.pixels, result.image.pixels)
    assert [f.verdict for f in everyone.faces] == [f.verdict for f in result.faces]
    all_three = gz.blend(everyone, FULL)
    assert np.array_equal(all_three.image.pixels, restorer(*THREE)(PHOTO, FULL).image.pixels)


class Nobody:
    name = "nobody"

    def __call__(self, pixels: np.ndarray) -> RawFaces:
        return np.zeros((0, 4)), np.zeros((0, 5, 2)), np.zeros(0)


def test_a_box_without_a_face_is_restored_as_it_was_drawn_and_says_so() -> None:
    blind = replace(restorer(), detector=Nobody())
    box = (180.0, 60.0, 90.0, 120.0)
    result = blind(PHOTO, replace(FULL, boxes=(box,)))
    (face,) = result.faces
    assert (face.verdict, face.note.code, face.origin, face.score) == (Verdict.RESTORED, "F40", "drawn", 0)
    assert face.box == (180, 60, 270, 180)
    changed = np.abs(result.image.pixels.astype(int) - PHOTO.pixels).max(2) > 2
    ys, xs = np.nonzero(changed)
    assert 120 < xs.min() < 200
    assert 250 < xs.max() < 330
    assert changed[80:160, 195:255].mean() > 0.5
    with pytest.raises(OptionsInvalid, match="outside the photo"):
        blind(PHOTO, Options(boxes=((600, 10, 50, 50),)))


def test_a_face_the_detector_missed_is_found_inside_the_box() -> None:
    """A real detector on a face of 24 px whose photo was searched by one that sees nothing."""
    tiny = cv2.resize(data.astronaut(), (140, 140), interpolation=cv2.INTER_AREA)
    photo = np.full((300, 400, 3), 120, np.uint8)
    photo[80:220, 130:270] = tiny
    restore = gz.load()
    nobody_found = Found(faces=(), detector="nobody")
    result = restore(Image(pixels=photo), Options(boxes=((172, 88, 40, 42),)), found=nobody_found)
    (face,) = result.faces
    assert face.origin == "box"
    assert face.score > 0.5
    centre = np.array([face.box[0] + face.box[2], face.box[1] + face.box[3]]) / 2
    truth = np.array([130 + 222 * 140 / 512, 80 + 118 * 140 / 512])
    assert np.hypot(*(centre - truth)) < 5
    twice = restore(Image(pixels=photo), Options(boxes=((172, 88, 40, 42), (170, 85, 45, 50))), found=nobody_found)
    assert len(twice.faces) == 1, "two boxes around one face are one face"


def crop_of(before: np.ndarray, after: np.ndarray) -> RestoredCrop:
    return RestoredCrop(index=1, frame=frame_at(256, (128, 128)), before=before, after=after)


SHARP = cut_crop(data.astronaut(), frame_at(190, (222, 125)), 256)
SOFT = cv2.GaussianBlur(SHARP, (0, 0), 2.0)


def test_a_frontal_face_that_gains_detail_gets_full_strength() -> None:
    assert default_strength(crop_of(SOFT, SHARP), 10) == (1.0, None)


def test_a_face_that_would_lose_detail_gets_less_and_the_reason() -> None:
    strength, why = default_strength(crop_of(SHARP, cv2.GaussianBlur(SHARP, (0, 0), 1.0)), 0)
    assert strength == 0.5
    assert why is not None
    assert why.code == "F44"


def test_a_sharp_face_that_is_merely_drawn_a_little_sharper_gets_less() -> None:
    sharper = cv2.addWeighted(SHARP, 1.2, cv2.GaussianBlur(SHARP, (0, 0), 1.0), -0.2, 0)
    strength, why = default_strength(crop_of(SHARP, sharper), 0)
    assert strength == 0.5
    assert why is not None
    assert why.code == "F44"


def test_the_more_a_face_needs_it_the_more_it_gets() -> None:
    blurred = [cv2.GaussianBlur(SHARP, (0, 0), sigma) for sigma in (0.3, 0.6, 0.8, 1.2)]
    strengths = [default_strength(crop_of(worn, SHARP), 0)[0] for worn in blurred]
    assert strengths == sorted(strengths)
    assert strengths[0] < 0.7
    assert strengths[-1] == 1.0


def test_a_face_without_any_detail_gets_full_strength() -> None:
    grey = np.full_like(SHARP, 128)
    assert default_strength(crop_of(grey, SHARP), 0) == (1.0, None)
    assert default_strength(crop_of(grey, grey), 0) == (1.0, None)


def test_noise_is_no_detail() -> None:
    noisy = np.clip(SOFT + np.random.default_rng(2).normal(0, 12, SOFT.shape), 0, 255).astype(np.uint8)
    assert default_strength(crop_of(noisy, SOFT), 0) == (1.0, None)


@pytest.mark.parametrize(("yaw", "expected"), [(FRONTAL, 1.0), ((FRONTAL + PROFILE) / 2, 0.75), (90, AT_PROFILE)])
def test_the_further_turned_the_less(yaw: float, expected: float) -> None:
    for sign in (1, -1):
        strength, why = default_strength(crop_of(SOFT, SHARP), sign * yaw)
        assert strength == pytest.approx(expected)
        assert (why is None) == (expected == 1)
        if why is not None:
            assert (why.code, why.params["percent"]) == ("F43", round(100 * expected))


def test_the_default_is_told_and_what_the_user_says_counts() -> None:
    """The astronaut is sharp already."""
    restore = gz.load()
    result = restore(PHOTO)
    face = result.faces[0]
    assert face.note.code == "F44"
    assert face.strength == face.default_strength < 1
    assert face.as_dict()["strength_note"]["code"] == "F44"
    told = gz.blend(result, Options(strength=1.0))
    assert (told.faces[0].strength, told.faces[0].note.code) == (1.0, "F04")
    assert np.array_equal(gz.blend(told, Options()).image.pixels, result.image.pixels)
    own = gz.blend(result, Options(strengths=((1, 0.9),)))
    assert own.faces[0].strength == 0.9


def test_the_tone_can_be_overruled() -> None:
    restore = gz.load()
    result = restore(PHOTO, FULL)
    chroma = [gz.blend(result, replace(FULL, tone=t)).image.pixels.astype(int) for t in ("colour", "grey")]
    cast = [
        np.abs((x[:, :, 0] - x[:, :, 2]) - (PHOTO.pixels[:, :, 0].astype(int) - PHOTO.pixels[:, :, 2])) for x in chroma
    ]
    assert cast[0].max() > 5
    assert cast[1].max() == 0
    assert gz.blend(result, replace(FULL, tone="grey")).as_dict()["tone"] == "grey"
