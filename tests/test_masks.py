"""Masks: in proportion to the face, gone before the crop ends, never more than one in sum, and led by a parser."""

from __future__ import annotations

import numpy as np
import pytest

from gpen_zoo.align import Window, window_of
from gpen_zoo.masks import GRID, Place, drawn, head_weight, parsed
from gpen_zoo.types import Mask
from tests.test_align import frame_at

MASKS: tuple[Mask, ...] = ("face", "face+hair", "crop")


@pytest.mark.parametrize("mask", MASKS)
def test_the_feather_is_in_proportion_to_the_face_and_ends_inside_the_crop(mask: Mask) -> None:
    def feather(side: float) -> float:
        frame = frame_at(side, (500, 500))
        window = window_of(frame, 1000, 1000)
        weight = head_weight(Place(index=1, frame=frame), window, [], drawn(mask))
        assert weight.max() > 0.99
        assert max(weight[0].max(), weight[-1].max(), weight[:, 0].max(), weight[:, -1].max()) < 1e-6
        row = weight[(window.y1 - window.y0) // 2]
        steepest = float(np.abs(np.diff(row)).max())
        assert steepest < 25 / side, "no edge anyone could see"
        return float(((row > 0.02) & (row < 0.98)).sum())

    assert feather(800) / feather(200) == pytest.approx(4, rel=0.12)


def test_each_mask_takes_in_the_one_before() -> None:
    face, hair, crop = (drawn(mask) for mask in MASKS)
    assert (face <= hair + 1e-6).all()
    assert (hair <= crop + 1e-6).all()
    assert 0.3 < face.mean() < hair.mean() < crop.mean() < 0.9
    brow_to_chin = np.s_[77:220, 96:160]
    assert face[brow_to_chin].min() > 0.9


@pytest.mark.parametrize("mask", MASKS)
def test_weights_of_overlapping_heads_never_exceed_one(mask: Mask) -> None:
    window = window_of(frame_at(400, (256, 256)), 512, 512)
    faces = [Place(index=i, frame=frame_at(150, (200 + 40 * i, 250))) for i in range(1, 5)]
    total = sum(head_weight(f, window, [g for g in faces if g is not f], drawn(mask)) for f in faces)
    assert np.max(total) <= 1 + 1e-5


def half_face(hair: bool) -> np.ndarray:
    """ParseNet's classes of a crop whose left half of the face is hidden: skin on the right, hair on top."""
    regions = np.zeros((512, 512), np.uint8)
    regions[150:430, 256:380] = 1
    regions[40:150, 140:380] = 13 if hair else 0
    return regions


def test_a_parsed_mask_follows_the_parts() -> None:
    face, both = parsed(half_face(True), "face"), parsed(half_face(True), "face+hair")
    assert face.shape == (GRID, GRID)
    assert face[145, 160] > 0.95
    assert face[145, 100] < 0.05
    assert face[50, 128] < 0.05
    assert both[50, 128] > 0.9
    assert both[145, 100] < 0.05
    assert parsed(np.ones((512, 512), np.uint8), "face")[[0, -1]].max() == 0, "it fades before the crop ends"
    assert parsed(np.zeros((512, 512), np.uint8), "face+hair").max() == 0


def test_a_parsed_mask_is_laid_over_the_photo_where_the_face_is() -> None:
    frame = frame_at(200, (300, 260), 90)  # the crop's right is the photo's bottom
    weight = head_weight(Place(index=1, frame=frame), Window(0, 0, 600, 520), [], parsed(half_face(False), "face"))
    assert weight[285, 290] > 0.9
    assert weight[230, 290] < 0.05
    assert weight[:, :180].max() < 1e-6
