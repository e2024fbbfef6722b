"""Pasting changes faces and nothing else, divides crowded pixels fairly, and keeps tone, light and detail."""

from __future__ import annotations

import tracemalloc

import cv2
import numpy as np
import pytest
from skimage import data

from gpen_zoo.align import cut_crop, invert, window_of
from gpen_zoo.masks import Place
from gpen_zoo.paste import BAND, paste
from gpen_zoo.types import Mask, RestoredCrop, Tone
from tests.test_align import frame_at

PHOTO = data.astronaut()
MASKS: tuple[Mask, ...] = ("face", "face+hair", "crop")


def place(index: int, side: float, centre: tuple[float, float], roll: float = 0.0, *, whole: bool = False) -> Place:
    return Place(index=index, frame=frame_at(side, centre, roll), whole=whole)


def pattern(size: int, cells: int = 16) -> np.ndarray:
    """A chequered change of ±1, too fine to pass for a change of light."""
    fine = np.indices((cells, cells)).sum(0) % 2 * 2 - 1
    return cv2.resize(fine.astype(np.float32), (size, size), interpolation=cv2.INTER_NEAREST)


def painted(where: Place, colour: tuple[int, int, int], size: int = 192, photo: np.ndarray = PHOTO) -> RestoredCrop:
    """A crop whose 'restoration' adds a chequered pattern, up and down by `colour`."""
    before = cut_crop(photo, where.frame, size)
    after = np.clip(before + pattern(size)[:, :, None] * colour, 0, 255).astype(np.uint8)
    return RestoredCrop(index=where.index, frame=where.frame, before=before, after=after)


@pytest.mark.parametrize("mask", MASKS)
def test_pixels_outside_the_windows_are_byte_identical(mask: Mask) -> None:
    faces = [place(1, 120, (150, 140), 20), place(2, 90, (500, 500), -10)]
    out = paste(PHOTO, [painted(f, (60, 0, 0)) for f in faces], {1: 1.0, 2: 1.0}, faces, mask=mask)
    outside = np.ones(PHOTO.shape[:2], bool)
    for face in faces:
        window = window_of(face.frame, 512, 512)
        outside[window.y0 : window.y1, window.x0 : window.x1] = False
    assert np.array_equal(out[outside], PHOTO[outside])
    assert not np.array_equal(out, PHOTO)


def test_strength_zero_is_the_photo_bit_for_bit_and_half_lies_between() -> None:
    face = place(1, 120, (222, 120))
    crop = painted(face, (50, 40, 10))
    none, half, full = (paste(PHOTO, [crop], {1: s}, [face]).astype(int) for s in (0.0, 0.5, 1.0))
    assert np.array_equal(none, PHOTO)
    inside = (full > 0) & (full < 255)  # clipping is not linear
    assert np.abs(half - (PHOTO.astype(int) + full) / 2)[inside].max() <= 1


def test_the_photo_given_in_is_not_written_to() -> None:
    face, before = place(1, 120, (222, 120)), PHOTO.copy()
    paste(PHOTO, [painted(face, (90, 90, 90))], {1: 1.0}, [face])
    assert np.array_equal(PHOTO, before)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("side", [64, 100, 180, 256, 300, 480, 1200])
def test_a_network_that_changes_nothing_returns_the_photo(side: float, mask: Mask) -> None:
    photo = PHOTO if side < 500 else cv2.resize(PHOTO, (1500, 1500), interpolation=cv2.INTER_CUBIC)
    face = place(1, side, (photo.shape[1] * 0.43, photo.shape[0] * 0.23), 33)  # partly outside when large
    crop = cut_crop(photo, face.frame, 256)
    same = RestoredCrop(index=1, frame=face.frame, before=crop, after=crop)
    for strength in (1.0, 0.5):
        out = paste(photo, [same], {1: strength}, [face], mask=mask)
        assert np.abs(out.astype(int) - photo).max() <= 1
    # A single changed crop pixel more, and the mechanism shows: nothing above is skipped as "no change".
    spot = crop.copy()
    spot[120:136, 120:136] ^= 64
    changed = RestoredCrop(index=1, frame=face.frame, before=crop, after=spot)
    assert np.abs(paste(photo, [changed], {1: 1.0}, [face], mask=mask).astype(int) - photo).max() > 20


@pytest.mark.parametrize("side", [64, 150, 256, 600])
@pytest.mark.parametrize("roll", [0, 33, 140])
def test_what_the_network_draws_arrives_where_it_belongs_in_its_colour(side: float, roll: float) -> None:
    """Differences cancel wrong matrices for an identity network, so a mark is followed from crop to photo."""
    photo = np.full((1000, 1000, 3), (90, 110, 130), np.uint8)
    face = place(1, side, (520, 480), roll)
    before = cut_crop(photo, face.frame, 256)
    after = before.copy()
    row, column = 110, 150
    after[row - 8 : row + 9, column - 8 : column + 9] += np.array([60, 20, 0], np.uint8)
    out = paste(photo, [RestoredCrop(index=1, frame=face.frame, before=before, after=after)], {1: 1.0}, [face])
    rise = np.clip(out.astype(float) - photo, 0, None)
    mark = rise[:, :, 0] > 25
    ys, xs = np.nonzero(mark)
    expected = invert(face.frame * 256) @ (column, row, 1)
    assert np.hypot(xs.mean() - expected[0], ys.mean() - expected[1]) < max(0.5, side / 256)
    mean = rise[mark].mean(0)
    assert mean[0] > 2.2 * mean[1] > 4 * mean[2]


def test_noise_that_the_network_removed_is_not_brought_back() -> None:
    noisy = np.clip(PHOTO + np.random.default_rng(1).normal(0, 12, PHOTO.shape), 0, 255).round().astype(np.uint8)
    for side in (64, 180, 240):
        face = place(1, side, (222, 120), 7)
        crops = [cut_crop(x, face.frame, 256) for x in (noisy, PHOTO)]
        perfect = RestoredCrop(index=1, frame=face.frame, before=crops[0], after=crops[1])
        out = paste(noisy, [perfect], {1: 1.0}, [face])
        reach = round(side / 5)
        inner = np.s_[120 - reach : 120 + reach, 222 - reach : 222 + reach]
        error = [float(np.sqrt(np.square(x[inner].astype(float) - PHOTO[inner]).mean())) for x in (noisy, out)]
        print(f"side {side}: {error[0]:.1f} -> {error[1]:.1f}")
        assert error[1] < 0.36 * error[0]


def test_a_face_larger_than_the_crop_keeps_its_fine_detail() -> None:
    face = place(1, 480, (256, 256))
    crop = cut_crop(PHOTO, face.frame, 64)
    blurred = cv2.GaussianBlur(crop, (0, 0), 1.0)  # a model softer than its input
    out = paste(PHOTO, [RestoredCrop(index=1, frame=face.frame, before=crop, after=blurred)], {1: 1.0}, [face])

    def detail(x: np.ndarray) -> float:
        return float(cv2.Laplacian(cv2.cvtColor(x[180:330, 180:330], cv2.COLOR_RGB2GRAY), cv2.CV_64F).std())

    assert detail(out) > 0.95 * detail(PHOTO)
    assert not np.array_equal(out, PHOTO)


@pytest.mark.parametrize("mask", MASKS)
def test_a_cast_and_a_change_of_light_are_taken_out(mask: Mask) -> None:
    face = place(1, 200, (222, 120))
    before = cut_crop(PHOTO, face.frame, 256)
    ramp = np.linspace(-10, 14, 256)[:, None, None] + np.array([12, 0, -9])  # lit from below, and redder
    after = np.clip(before + ramp, 0, 255).round().astype(np.uint8)
    out = paste(
        PHOTO, [RestoredCrop(index=1, frame=face.frame, before=before, after=after)], {1: 1.0}, [face], mask=mask
    )
    left = cv2.GaussianBlur(out.astype(np.float32) - PHOTO, (0, 0), 8)[70:170, 175:270]
    print(mask, np.abs(left).mean(), np.abs(left).max())
    assert np.abs(left).mean() < 1.2


def test_neighbours_divide_the_pixels_and_a_face_left_alone_stays() -> None:
    left, right = place(1, 160, (200, 250)), place(2, 160, (270, 250))
    photo = np.full_like(PHOTO, 128)
    crops = [painted(left, (60, 0, 0), photo=photo), painted(right, (0, 0, 60), photo=photo)]
    for mask in MASKS:
        both = paste(photo, crops, {1: 1.0, 2: 1.0}, [left, right], mask=mask).astype(int) - 128
        of_left, of_right = both[230:270, 180:200], both[230:270, 270:290]
        assert np.abs(of_left[:, :, 0]).mean() > 45
        assert np.abs(of_left[:, :, 2]).max() < 8
        assert np.abs(of_right[:, :, 2]).mean() > 45
        assert np.abs(of_right[:, :, 0]).max() < 8
        alone = paste(photo, crops, {1: 1.0, 2: 0.0}, [left, right], mask=mask).astype(int) - 128
        assert np.abs(alone[230:270, 270:290]).max() < 8
        assert np.abs(alone[230:270, 180:200, 0]).mean() > 45


TONES: tuple[Tone, ...] = ("grey", "toned")


@pytest.mark.parametrize("tone", TONES)
@pytest.mark.parametrize("mask", MASKS)
def test_grey_stays_grey_and_sepia_keeps_its_colour(tone: Tone, mask: Mask) -> None:
    luma = cv2.cvtColor(PHOTO, cv2.COLOR_RGB2GRAY)[:, :, None].astype(float) * 0.6 + 50
    tint = np.zeros(3) if tone == "grey" else np.array([25, 0, -25])
    photo = np.rint(luma + tint).astype(np.uint8)
    face = place(1, 200, (222, 120))
    before = cut_crop(photo, face.frame, 64)
    reds = pattern(64)[:, :, None] * (30, -10, -20)  # the network invents red and green
    after = np.clip(before + reds, 0, 255).astype(np.uint8)
    crop = RestoredCrop(index=1, frame=face.frame, before=before, after=after)
    out = paste(photo, [crop], {1: 1.0}, [face], tone=tone, mask=mask).astype(int)
    assert np.abs((out[:, :, 0] - out[:, :, 2]) - (photo[:, :, 0].astype(int) - photo[:, :, 2])).max() <= 1
    as_colour = paste(photo, [crop], {1: 1.0}, [face], mask=mask).astype(int)
    assert np.abs(as_colour[:, :, 0] - as_colour[:, :, 2]).max() > 60


def test_aligned_mode_takes_the_whole_crop() -> None:
    whole = place(1, 512, (255.5, 255.5), whole=True)
    before = np.full((512, 512, 3), 100, np.uint8)
    after = np.full_like(before, 9)
    out = paste(before, [RestoredCrop(index=1, frame=whole.frame, before=before, after=after)], {1: 1.0}, [whole])
    assert out.min() == out.max() == 9


def test_bands_leave_no_trace_and_bound_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    photo = cv2.resize(PHOTO, (3000, 2000), interpolation=cv2.INTER_LINEAR)
    faces = [place(1, 1700, (1500, 1000), 20), place(2, 90, (700, 500), 0)]
    crops = [painted(f, (40, 20, 0), size=128, photo=photo) for f in faces]
    tracemalloc.start()
    at_once = paste(photo, crops, {1: 1.0, 2: 1.0}, faces)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    print(f"{peak / photo.nbytes:.1f} photos of 6 MP")
    assert peak < photo.nbytes + 110 * BAND
    monkeypatch.setattr("gpen_zoo.paste.BAND", 70_001)
    assert np.abs(paste(photo, crops, {1: 1.0, 2: 1.0}, faces).astype(int) - at_once).max() <= 1
