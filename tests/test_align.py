"""Alignment equals the author's matrices, and there and back again is the photo."""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np
import pytest
from skimage import data

from gpen_zoo.align import (
    Window,
    cut_crop,
    frame_of_box,
    frame_of_face,
    frame_of_picture,
    invert,
    patch_of,
    side_of,
    similarity,
    window_of,
    yaw_of,
)

CASES = json.loads((Path(__file__).parent / "golden" / "alignment.json").read_text())
TEMPLATE = np.array(CASES[0]["reference"]) / CASES[0]["size"]


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c['image']}-{c['size']}")
def test_matrices_equal_the_authors_code(case: dict) -> None:
    points = np.array(case["landmarks"])
    assert np.allclose(similarity(points, np.array(case["reference"])), case["matrix"], atol=1e-8)
    assert np.allclose(frame_of_face(points, TEMPLATE) * case["size"], case["matrix"], atol=1e-4)


@pytest.mark.parametrize("roll", [0, 30, 90, 135, 180, -60])
def test_any_roll_is_undone(roll: float) -> None:
    angle = np.radians(roll)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    points = (TEMPLATE - 0.5) @ turn.T * 300 + (400, 250)
    frame = frame_of_face(points, TEMPLATE)
    assert np.allclose(points @ frame[:, :2].T + frame[:, 2], TEMPLATE, atol=1e-9)
    assert side_of(frame) == pytest.approx(300)


def test_a_mirrored_face_is_rotated_not_reflected() -> None:
    mirrored = TEMPLATE * (-1, 1) * 100
    linear = similarity(mirrored, TEMPLATE)[:, :2]
    assert np.linalg.det(linear) > 0


def test_points_in_one_place_have_no_alignment() -> None:
    with pytest.raises(ValueError, match="coincide"):
        similarity(np.ones((5, 2)), TEMPLATE)


def test_inverse() -> None:
    matrix = np.array([[1.3, 0.07, -187.9], [-0.07, 1.3, -2.3]])
    both = np.vstack((matrix, (0, 0, 1))) @ np.vstack((invert(matrix), (0, 0, 1)))
    assert np.allclose(both, np.eye(3))


def frame_at(side: float, centre: tuple[float, float], roll: float = 0.0) -> np.ndarray:
    angle = np.radians(roll)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]) / side
    return np.column_stack((turn, 0.5 - turn @ centre))


@pytest.mark.parametrize(("side", "roll", "bound"), [(60, 0, 2.0), (120, 25, 2.0), (200, 90, 2.0), (256, 0, 0.01)])
def test_round_trip_of_a_face_no_larger_than_the_crop(side: float, roll: float, bound: float) -> None:
    photo = cv2.GaussianBlur(data.astronaut(), (0, 0), 1.5)
    frame = frame_at(side, (222, 120), roll)
    window = window_of(frame, 512, 512)
    back = patch_of(cut_crop(photo, frame, 256), frame).over(window)
    # inside the crop only: the window's corners lie outside a turned crop
    ys, xs = np.mgrid[window.y0 : window.y1, window.x0 : window.x1]
    u, v = (frame[:, :2] @ np.stack((xs.ravel(), ys.ravel())) + frame[:, 2:]).reshape(2, *xs.shape)
    inside = (np.abs(u - 0.5) < 0.45) & (np.abs(v - 0.5) < 0.45)
    error = np.abs(back.astype(float) - window.cut(photo))[inside]
    print(f"side {side}: mean {error.mean():.3f}, 99 % {np.percentile(error, 99):.2f}")
    assert error.mean() < bound / 2
    assert np.percentile(error, 99) <= bound * 3


def test_a_large_face_is_shrunk_by_area_not_sampled_with_gaps() -> None:
    stripes = np.zeros((1024, 1024, 3), np.uint8)
    stripes[:, ::2] = 255  # finest possible pattern: a warp that skips pixels shows moiré
    crop = cut_crop(stripes, frame_at(1000, (512, 512)), 128)
    centre = crop[16:-16, 16:-16].astype(float)
    assert abs(centre.mean() - 127.5) < 2
    assert centre.std() < 12


def test_beyond_the_border_comes_reflection_not_black() -> None:
    photo = np.full((200, 200, 3), 90, np.uint8)
    for centre in ((0.0, 100.0), (199.0, 199.0), (-300.0, 100.0)):
        crop = cut_crop(photo, frame_at(150, centre), 64)
        assert crop.min() == crop.max() == 90


def test_window_of_a_face_outside_the_photo_is_empty() -> None:
    assert window_of(frame_at(50, (-300, 20)), 200, 200).empty
    assert not Window(0, 0, 10, 10).meets(Window(10, 0, 20, 10))
    assert Window(0, 0, 10, 10).meets(Window(9, 9, 20, 20))


@pytest.mark.parametrize(("width", "height"), [(256, 256), (256, 180), (101, 256)])
def test_the_whole_picture_of_branch_size_is_not_resampled(width: int, height: int) -> None:
    photo = data.astronaut()[:height, :width]
    frame = frame_of_picture(width, height)
    crop = cut_crop(photo, frame, 256)
    assert np.array_equal(patch_of(crop, frame).over(Window(0, 0, width, height)), photo)


# Left and right eye, nose tip, mouth corners of a head in millimetres: right, down, towards the camera.
HEAD = np.array([[-32, 0, 0], [32, 0, 0], [0, 38, 26], [-26, 74, 2], [26, 74, 2]], float)


@pytest.mark.parametrize("yaw", [-70, -45, -20, 0, 10, 30, 60])
@pytest.mark.parametrize("pitch", [-15, 0, 15])
@pytest.mark.parametrize("roll", [0, 80, 180])
def test_yaw_is_told_from_five_points_at_any_roll_and_mild_pitch(yaw: float, pitch: float, roll: float) -> None:
    y, p, r = np.radians([yaw, pitch, roll])
    turn_y = np.array([[np.cos(y), 0, np.sin(y)], [0, 1, 0], [-np.sin(y), 0, np.cos(y)]])
    turn_p = np.array([[1, 0, 0], [0, np.cos(p), np.sin(p)], [0, -np.sin(p), np.cos(p)]])
    turn_r = np.array([[np.cos(r), -np.sin(r)], [np.sin(r), np.cos(r)]])
    points = (HEAD @ turn_y.T @ turn_p.T)[:, :2] @ turn_r.T * 1.7 + (300, 200)
    assert yaw_of(points) == pytest.approx(yaw, abs=10)


def test_points_on_one_line_are_a_full_profile_not_an_error() -> None:
    assert yaw_of(np.array([[0, 0], [0, 0], [9, 5], [0, 10], [0, 10]], float)) == pytest.approx(90)
    assert np.isfinite(yaw_of(np.zeros((5, 2))))


def test_a_drawn_box_becomes_the_crop_that_a_detected_face_of_that_box_gets() -> None:
    frame = frame_of_box(200, 100, 96, 130)
    assert side_of(frame) == pytest.approx(200, rel=0.01)
    eyes = (TEMPLATE[:2].mean(0) - frame[:, 2]) @ np.linalg.inv(frame[:, :2]).T
    assert 200 < eyes[0] < 296
    assert 100 < eyes[1] < 165, "in the upper half of the box"


@pytest.mark.parametrize("shape", [(1, 1), (1, 40), (40, 1), (2, 300), (300, 1)])
def test_a_picture_a_pixel_wide_is_cut_like_any(shape: tuple[int, int]) -> None:
    """OpenCV hung in the reflection of a single row."""
    ramp = np.linspace(0, 255, max(shape)).astype(np.uint8).reshape((1, -1) if shape[1] > shape[0] else (-1, 1))
    photo = np.repeat(np.broadcast_to(ramp, shape)[..., None], 3, axis=2)
    crop = cut_crop(photo, frame_of_picture(shape[1], shape[0]), 64)
    assert crop.shape == (64, 64, 3)
    along = crop[32] if shape[1] > shape[0] else crop[:, 32]
    if max(shape) >= 40:
        assert (np.diff(along[4:-4, 0].astype(int)) >= 0).all()
        assert along[-6:, 0].mean() > 200
    else:
        assert (crop == photo[0, 0]).all()
