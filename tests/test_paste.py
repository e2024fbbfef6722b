"""Pasting changes faces and nothing else, divides crowded pixels fairly, and keeps tone and detail."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from skimage import data

from gpen_zoo.align import cut_crop, window_of
from gpen_zoo.paste import Place, feather, head_distance, head_weight, paste
from gpen_zoo.types import RestoredCrop
from tests.test_align import frame_at

PHOTO = data.astronaut()


def place(index: int, side: float, centre: tuple[float, float], roll: float = 0.0, *, whole: bool = False) -> Place:
    return Place(index=index, frame=frame_at(side, centre, roll), whole=whole)


def painted(where: Place, colour: tuple[int, int, int], size: int = 192) -> RestoredCrop:
    """A crop whose 'restoration' is one flat colour."""
    before = cut_crop(PHOTO, where.frame, size)
    return RestoredCrop(index=where.index, frame=where.frame, before=before, after=np.full_like(before, colour))


def test_pixels_outside_the_windows_are_byte_identical() -> None:
    faces = [place(1, 120, (150, 140), 20), place(2, 90, (500, 500), -10)]
    out = paste(PHOTO, [painted(f, (255, 0, 0)) for f in faces], {1: 1.0, 2: 1.0}, faces)
    outside = np.ones(PHOTO.shape[:2], bool)
    for face in faces:
        window = window_of(face.frame, 512, 512)
        outside[window.y0 : window.y1, window.x0 : window.x1] = False
    assert np.array_equal(out[outside], PHOTO[outside])
    assert tuple(out[140, 150]) == (255, 0, 0)
    assert not np.array_equal(out, PHOTO)


def test_strength_zero_is_the_photo_bit_for_bit_and_half_lies_between() -> None:
    face = place(1, 120, (222, 120))
    crop = painted(face, (200, 40, 10))
    none, half, full = (paste(PHOTO, [crop], {1: s}, [face]).astype(int) for s in (0.0, 0.5, 1.0))
    assert np.array_equal(none, PHOTO)
    assert np.abs(half - (PHOTO.astype(int) + full) / 2).max() <= 1


def test_the_photo_given_in_is_not_written_to() -> None:
    face, before = place(1, 120, (222, 120)), PHOTO.copy()
    paste(PHOTO, [painted(face, (0, 0, 0))], {1: 1.0}, [face])
    assert np.array_equal(PHOTO, before)


@pytest.mark.parametrize("side", [24, 64, 100, 400])
def test_a_network_that_changes_nothing_leaves_no_trace(side: float) -> None:
    smooth = cv2.GaussianBlur(PHOTO, (0, 0), 1.2)
    face = place(1, side, (222, 120), 12)
    crop = cut_crop(smooth, face.frame, 128)
    out = paste(smooth, [RestoredCrop(index=1, frame=face.frame, before=crop, after=crop)], {1: 1.0}, [face])
    error = np.abs(out.astype(int) - smooth)
    print(side, error.max(), error.mean())
    assert np.percentile(error, 99.9) <= 1 if side <= 128 else error.max() == 0


def test_a_face_larger_than_the_crop_keeps_its_fine_detail() -> None:
    face = place(1, 480, (256, 256))
    crop = cut_crop(PHOTO, face.frame, 64)
    brighter = np.clip(crop.astype(int) + 10, 0, 255).astype(np.uint8)
    out = paste(PHOTO, [RestoredCrop(index=1, frame=face.frame, before=crop, after=brighter)], {1: 1.0}, [face])

    def detail(x: np.ndarray) -> float:
        return float(cv2.Laplacian(cv2.cvtColor(x[180:330, 180:330], cv2.COLOR_RGB2GRAY), cv2.CV_64F).std())

    assert detail(out) > 0.95 * detail(PHOTO)
    assert 5 < np.median(out[240:270, 240:270].astype(int) - PHOTO[240:270, 240:270]) < 12


def test_neighbours_divide_the_pixels_and_a_face_left_alone_stays() -> None:
    left, right = place(1, 160, (200, 250)), place(2, 160, (270, 250))
    crops = [painted(left, (255, 0, 0)), painted(right, (0, 0, 255))]
    both = paste(PHOTO, crops, {1: 1.0, 2: 1.0}, [left, right])
    assert both[250, 185, 0] > 240
    assert both[250, 185, 2] < 30
    assert both[250, 285, 2] > 240
    assert both[250, 285, 0] < 30
    alone = paste(PHOTO, crops, {1: 1.0, 2: 0.0}, [left, right])
    changed = np.abs(alone.astype(int) - PHOTO).max(2)
    assert changed[250, 285:320].max() < 12
    assert alone[250, 185, 0] > 240


def test_weights_of_overlapping_heads_never_exceed_one() -> None:
    window = window_of(frame_at(400, (256, 256)), 512, 512)
    faces = [place(i, 150, (200 + 40 * i, 250)) for i in range(1, 5)]
    total = sum(head_weight(f, window, [g for g in faces if g is not f]) for f in faces)
    assert total.max() <= 1 + 1e-5


@pytest.mark.parametrize("tone", ["grey", "toned"])
def test_grey_stays_grey_and_sepia_keeps_its_colour(tone: str) -> None:
    luma = cv2.cvtColor(PHOTO, cv2.COLOR_RGB2GRAY)[:, :, None].astype(float) * 0.6 + 30
    tint = np.zeros(3) if tone == "grey" else np.array([25, 0, -25])
    photo = np.rint(luma + tint).astype(np.uint8)
    face = place(1, 200, (222, 120))
    before = cut_crop(photo, face.frame, 64)
    after = np.clip(before.astype(int) + (40, -20, -30), 0, 255).astype(np.uint8)  # the network invents red
    crop = RestoredCrop(index=1, frame=face.frame, before=before, after=after)
    out = paste(photo, [crop], {1: 1.0}, [face], tone=tone).astype(int)
    assert np.abs((out[:, :, 0] - out[:, :, 2]) - (photo[:, :, 0].astype(int) - photo[:, :, 2])).max() <= 1


def test_the_feather_is_in_proportion_to_the_face() -> None:
    def width(side: float) -> float:
        window = window_of(frame_at(side, (256, 256)), 512, 512)
        row = feather(head_distance(frame_at(side, (256, 256)), window))[(window.y1 - window.y0) // 2]
        return float(((row > 0.02) & (row < 0.98)).sum())

    assert width(400) / width(100) == pytest.approx(4, rel=0.1)


def test_aligned_mode_takes_the_whole_crop() -> None:
    whole = place(1, 512, (256, 256), whole=True)
    out = paste(PHOTO, [painted(whole, (9, 9, 9), size=512)], {1: 1.0}, [whole])
    assert out.min() == out.max() == 9
