"""Overlapping tiles: exact for the identity, weights that add up to one, borders as bright as the middle."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from gpen_zoo.tiling import Tiling, auto_tiling, ramp_weights, run_tiled, starts

RAMPS = ("hann", "linear")
SHAPES = [(100, 100), (97, 131), (64, 300), (65, 64), (40, 40), (1, 200)]
TILINGS = [(64, 16), (64, 0), (64, 45), (33, 7), (1000, 64), (0, 0)]


@pytest.mark.parametrize(("ramp", "shape", "tiling"), list(product(RAMPS, SHAPES, TILINGS)))
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.uint16])
def test_identity_gives_the_picture_back_exactly(ramp, shape, tiling, dtype) -> None:
    rng = np.random.default_rng(1)
    picture = (rng.random((*shape, 3)) * 255).astype(dtype)
    result = run_tiled(picture, lambda tile: tile, Tiling(tile=tiling[0], overlap=tiling[1], ramp=ramp))
    assert result.dtype == dtype
    assert np.array_equal(result, picture)


@pytest.mark.parametrize(("ramp", "shape", "tiling"), list(product(RAMPS, SHAPES, TILINGS)))
def test_weights_are_a_partition_of_unity(ramp, shape, tiling) -> None:
    """A tile's weight is what it leaves when it alone is 1; over all tiles these add up to 1 at every pixel."""
    how = Tiling(tile=tiling[0], overlap=tiling[1], ramp=ramp)
    calls: list[int] = []
    run_tiled(np.zeros(shape), lambda tile: calls.append(1) or tile, how)
    total = np.zeros(shape)
    for chosen in range(len(calls)):
        number = iter(range(len(calls)))
        weight = run_tiled(
            np.zeros(shape), lambda tile, n=number, c=chosen: np.full(tile.shape, float(next(n) == c)), how
        )
        assert weight.min() >= 0 and weight.max() <= 1
        total += weight
    assert np.allclose(total, 1, atol=1e-6)


@pytest.mark.parametrize("ramp", RAMPS)
def test_no_dark_rim(ramp) -> None:
    result = run_tiled(np.full((150, 210, 3), 200, np.uint8), lambda t: t, Tiling(tile=64, overlap=32, ramp=ramp))
    assert result.min() == 200


@pytest.mark.parametrize("ramp", RAMPS)
def test_ramps_cross_in_the_middle(ramp) -> None:
    weights = ramp_weights(ramp, 64)
    assert np.all(np.diff(weights) > 0) and 0 < weights[0] < 0.01 and 0.99 < weights[-1] < 1
    assert np.allclose(weights + weights[::-1], 1, atol=1e-6)


def test_seams_fade_over_the_overlap() -> None:
    """Two tiles that disagree: the step between them is spread over the whole overlap."""
    values = iter((0.0, 1.0))
    row = run_tiled(np.zeros((8, 112)), lambda t: np.full(t.shape, next(values)), Tiling(tile=64, overlap=16))[0]
    assert np.all(row[:48] == 0) and np.all(row[64:] == 1)
    assert np.abs(np.diff(row)).max() < 0.12


@pytest.mark.parametrize("shape", SHAPES)
def test_tiles_have_the_size_asked_for(shape) -> None:
    sizes = set()
    run_tiled(np.zeros(shape), lambda t: sizes.add(t.shape) or t, Tiling(tile=48, overlap=8))
    assert sizes == {(min(48, shape[0]), min(48, shape[1]))}


def test_starts_cover_and_end_at_the_border() -> None:
    assert starts(100, 64, 16) == [0, 36]
    assert starts(200, 64, 16) == [0, 48, 96, 136]
    assert starts(112, 64, 16) == [0, 48]
    assert starts(64, 64, 16) == [0]


def test_larger_results_and_other_channels() -> None:
    picture = np.random.default_rng(0).integers(0, 256, (90, 140, 3), dtype=np.uint8)
    how = Tiling(tile=64, overlap=16)
    doubled = run_tiled(picture, lambda t: t.repeat(2, 0).repeat(2, 1), how)
    assert np.array_equal(doubled, picture.repeat(2, 0).repeat(2, 1))
    mean = run_tiled(picture, lambda t: t.mean(2, dtype=np.float32), how)
    assert mean.dtype == np.float32 and np.array_equal(mean, picture.mean(2, dtype=np.float32))


def test_local_filter_agrees_with_the_whole_picture() -> None:
    """A filter that looks 2 px around: tiles differ from the whole only at tile borders, where weight is near 0."""

    def smooth(t: np.ndarray) -> np.ndarray:
        padded, (height, width) = np.pad(t, 2, mode="edge"), t.shape
        shifts = [(dy, dx) for dy in (0, 2, 4) for dx in (0, 2, 4)]
        return sum(padded[dy : dy + height, dx : dx + width] for dy, dx in shifts) / 9

    picture = np.random.default_rng(0).random((200, 260))
    whole, tiled = smooth(picture), run_tiled(picture, smooth, Tiling(tile=96, overlap=64))
    assert np.abs(whole - tiled).max() < 0.01


def test_auto_rule() -> None:
    assert auto_tiling(799, 600).tile == 0
    assert (auto_tiling(800, 600).tile, auto_tiling(800, 600).overlap) == (640, 32)
    assert auto_tiling(1280, 100).overlap == 32
    assert auto_tiling(100, 1281).overlap == 64


def test_progress_passes_through_and_bad_results_are_refused() -> None:
    told = []
    run_tiled(np.zeros((100, 100)), lambda t: t, Tiling(tile=64, overlap=8), on_tile=lambda d, n: told.append((d, n)))
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]
    with pytest.raises(ValueError, match="came back"):
        run_tiled(np.zeros((100, 100)), lambda t: t[1:], Tiling(tile=64))
    with pytest.raises(ValueError, match="came back"):
        run_tiled(np.zeros((10, 10)), lambda t: t[::3, ::2], Tiling(tile=0))
    with pytest.raises(ValueError, match="overlap"):
        Tiling(tile=64, overlap=64)

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_tiled(np.zeros((100, 100)), lambda t: t, Tiling(tile=64), on_tile=stop)
