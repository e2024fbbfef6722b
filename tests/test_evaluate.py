"""Pictures worn the same way every time, figures that are the literature's, and the command around them."""

from __future__ import annotations

import importlib.util
import json
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import cv2
import numpy as np
import pytest
from skimage import data
from skimage.metrics import peak_signal_noise_ratio, structural_similarity

import gpen_zoo as gz
from gpen_zoo import measures
from gpen_zoo.cli import main
from gpen_zoo.degrade import PRESETS, Degradation, degradation, degrade, random_for
from gpen_zoo.errors import OptionsInvalid
from gpen_zoo.evaluate import Pair, Variant, evaluate, given_pairs, load_variants, worn_pairs
from gpen_zoo.measures import Measures, load_measures
from gpen_zoo.types import Image
from gpen_zoo.zoo import Zoo
from tests.test_restore import restorer

FACE = np.ascontiguousarray(data.astronaut()[0:256, 96:352])


def test_wear_is_the_same_for_the_same_seed_and_name() -> None:
    def worn(name: str, seed: int = 1, how: str = "standard") -> np.ndarray:
        return degrade(FACE, PRESETS[how], random_for(name, seed))

    assert worn("a").shape == FACE.shape
    assert np.array_equal(worn("a"), worn("a"))
    assert not np.array_equal(worn("a"), worn("b"))
    assert not np.array_equal(worn("a"), worn("a", seed=2))
    assert np.array_equal(worn("a", how="none"), FACE)
    losses = [
        np.mean([measures.psnr(worn(name, how=how), FACE) for name in "abcdef"])
        for how in ("light", "standard", "heavy")
    ]
    assert losses == sorted(losses, reverse=True)


def test_each_step_does_its_own() -> None:
    blurred = degrade(FACE, degradation("blur=3"), random_for("x"))
    assert np.array_equal(blurred, cv2.GaussianBlur(FACE, (0, 0), 3.0, sigmaY=3.0))
    noisy = degrade(np.full_like(FACE, 128), degradation("noise=9"), random_for("x"))
    assert float(noisy.std()) == pytest.approx(9, rel=0.03)
    small = cv2.resize(FACE, (64, 64), interpolation=cv2.INTER_AREA)
    grown = cv2.resize(small, (256, 256), interpolation=cv2.INTER_LINEAR)
    assert np.array_equal(degrade(FACE, degradation("shrink=4"), random_for("x")), grown)
    packed = gz.decode(gz.encode(Image(pixels=FACE), format="JPEG", quality=30)).pixels
    assert np.array_equal(degrade(FACE, degradation("jpeg=30"), random_for("x")), packed)


def test_motion_blurs_along_a_line_and_a_second_jpeg_comes_last() -> None:
    """A point becomes a line of the length asked for, in whatever direction was drawn; it loses no light."""
    point = np.zeros((65, 65, 3), np.uint8)
    point[32, 32] = 255
    spread = degrade(point, degradation("motion=9"), random_for("x"))[..., 0].astype(float)
    y, x = np.nonzero(spread)
    assert np.hypot(y - 32, x - 32).max() == pytest.approx(4.5, abs=1.2)
    assert spread.sum() == pytest.approx(255, rel=0.05)
    covariance = np.cov(np.stack([y, x]), aweights=spread[y, x])
    across, along = np.linalg.eigvalsh(covariance)
    assert across < 0.1 * along
    packed = gz.decode(gz.encode(Image(pixels=FACE), format="JPEG", quality=40)).pixels
    assert np.array_equal(degrade(FACE, degradation("again=40"), random_for("x")), packed)


def test_a_kind_of_wear_that_is_off_leaves_the_others_as_they_were() -> None:
    """Figures of earlier versions can be had again: what was added later draws numbers of its own."""
    spec = "blur=0.2-4,shrink=1-5,noise=0-14,jpeg=45-97"
    before = degrade(FACE, degradation(spec), random_for("x"))
    again = degrade(FACE, degradation(spec + ",again=40"), random_for("x"))
    repacked = gz.decode(gz.encode(Image(pixels=before), format="JPEG", quality=40)).pixels
    assert np.array_equal(again, repacked)


def test_what_can_be_asked_for() -> None:
    assert degradation("heavy") is PRESETS["heavy"]
    assert degradation("blur=0.5-2, noise=3") == Degradation(
        blur=(0.5, 2.0), shrink=(1.0, 1.0), noise=(3.0, 3.0), jpeg=(100.0, 100.0)
    )
    assert degradation(str(PRESETS["standard"])) == PRESETS["standard"]
    for wrong in ("", "dust", "blur", "blur=x", "blur=2-1", "jpeg=0", "shrink=0.5", "blur=1-2-3"):
        with pytest.raises(OptionsInvalid) as refused:
            degradation(wrong)
        assert refused.value.code == "U32"


def test_the_figures_are_the_literatures() -> None:
    worn = degrade(FACE, PRESETS["standard"], random_for("a"))
    assert measures.psnr(worn, FACE) == pytest.approx(peak_signal_noise_ratio(FACE, worn))
    assert measures.psnr(FACE, FACE) == math.inf
    assert measures.ssim(FACE, FACE) == pytest.approx(1)
    near = structural_similarity(
        FACE, worn, channel_axis=2, gaussian_weights=True, sigma=1.5, use_sample_covariance=False
    )
    assert measures.ssim(worn, FACE) == pytest.approx(near, abs=2e-3)


@pytest.mark.skipif(importlib.util.find_spec("basicsr") is None, reason="basicsr is not installed")
def test_basicsr_agrees_with_what_stands_in_for_it() -> None:
    theirs = load_measures()
    assert theirs.source == "basicsr"
    worn = degrade(FACE, PRESETS["heavy"], random_for("a"))
    assert theirs.psnr(worn, FACE) == pytest.approx(measures.psnr(worn, FACE), abs=1e-6)
    assert theirs.ssim(worn, FACE) == pytest.approx(measures.ssim(worn, FACE), abs=1e-6)


def test_without_basicsr_the_same_can_be_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(module: str) -> None:
        raise ImportError(module)

    monkeypatch.setattr(measures, "import_basicsr", absent)
    assert load_measures().source == "own"


# The names, order and defaults of lpips 0.1.4. Its answer is a tensor (N, 1, 1, 1).
LPIPS_MODULE = """
import torch

class LPIPS(torch.nn.Module):
    def __init__(self, pretrained=True, net="alex", version="0.1", lpips=True, spatial=False, pnet_rand=False,
                 pnet_tune=False, use_dropout=True, model_path=None, eval_mode=True, verbose=True):
        super().__init__()
        {fails}
        assert (pretrained, net, version, pnet_rand, verbose) == (True, "alex", "0.1", False, False)

    def forward(self, in0, in1, retPerLayer=False, normalize=False):
        assert in0.shape == in1.shape and in0.shape[:2] == (1, 3) and in0.dtype == torch.float32
        assert -1 <= min(in0.min(), in1.min()) < 0 and max(in0.max(), in1.max()) <= 1
        weight = torch.tensor([1.0, 2.0, 4.0]).view(1, 3, 1, 1)  # tells red from blue
        return ((in0 - in1) * weight).square().mean((1, 2, 3), keepdim=True)
"""


@pytest.fixture
def lpips_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Installs the package above; what it is given runs when the network is made."""

    def install(fails: str) -> None:
        (tmp_path / "lpips").mkdir()
        (tmp_path / "lpips" / "__init__.py").write_text(LPIPS_MODULE.replace("{fails}", fails), encoding="utf-8")
        monkeypatch.syspath_prepend(str(tmp_path))

    sys.modules.pop("lpips", None)
    yield install
    sys.modules.pop("lpips", None)


def test_lpips_gets_what_its_package_wants(lpips_package: Callable[[str], None]) -> None:
    lpips_package("")
    found = load_measures()
    assert found.lpips is not None
    assert found.lpips(FACE, FACE) == 0
    redder = FACE.copy()
    redder[:, :, 0] //= 2
    expected = np.square((FACE[:, :, 0].astype(float) - redder[:, :, 0]) / 127.5).mean() / 3
    assert found.lpips(redder, FACE) == pytest.approx(expected, rel=1e-4)


def test_without_a_network_lpips_is_left_out_and_that_is_told(
    lpips_package: Callable[[str], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lpips_package("import urllib.error; raise urllib.error.URLError('no route')")
    found = load_measures()
    assert found.lpips is None
    assert found.without_lpips is not None and found.without_lpips.code == "E06"
    gz.write(Image(pixels=FACE), tmp_path / "gt" / "a.png")
    words = ["--degrade", "light", "--size", "64", "--weights", "gpen-demo-256", "--lang", "en", "-q"]
    assert main(["eval", "--gt", str(tmp_path / "gt"), *words]) == 0
    out, err = capsys.readouterr()
    assert "[E06]" in err
    assert "PSNR dB" in out and "LPIPS  " not in out
    for column in ("better", "vs 1st"):
        assert f"{column}: " in out and out.count(column) > 1, "a heading, and what it means"


def test_the_real_lpips(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package itself, where it is installed; below its own weights an AlexNet of random ones."""
    pytest.importorskip("lpips")
    import torch
    import torchvision

    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    place = tmp_path / "hub" / "checkpoints"
    place.mkdir(parents=True)
    address = torchvision.models.AlexNet_Weights.IMAGENET1K_V1.url
    torch.manual_seed(1)
    torch.save(torchvision.models.alexnet(weights=None).state_dict(), place / address.rpartition("/")[2])
    found = load_measures()
    assert found.lpips is not None
    light, heavy = (degrade(FACE, PRESETS[name], random_for("a")) for name in ("light", "heavy"))
    assert found.lpips(FACE, FACE) == 0
    assert 0 < found.lpips(light, FACE) < found.lpips(heavy, FACE)


def test_scores_and_means() -> None:
    own = Measures(psnr=measures.psnr, ssim=measures.ssim, lpips=lambda a, b: 0.25, source="own")
    truth = Image(pixels=FACE)
    pairs = [
        Pair(name="same", truth=truth, worn=truth),
        Pair(name="dark", truth=truth, worn=Image(pixels=(FACE * 0.5).astype(np.uint8))),
    ]
    seen: list[str] = []
    found = evaluate(pairs, {"tiny": restorer(sizes=(32,))}, own, tell=seen.append)
    assert seen == ["same", "dark"]
    assert found.inputs["same"].psnr == math.inf
    report = found.as_dict()
    assert report["pictures"][0]["input"]["psnr"] is None
    assert report["input"]["psnr"] == pytest.approx((100 + found.inputs["dark"].psnr) / 2, abs=1e-3)
    assert report["variants"][0]["lpips"] == 0.25
    assert found.variants["tiny"]["dark"].seconds > 0
    assert [row.shape for row in found.sheet] == [(256, 768, 3)] * 2
    json.dumps(report, allow_nan=False)


def test_pairs_by_stem(tmp_path: Path) -> None:
    truth, worn = tmp_path / "gt" / "a.png", tmp_path / "lq" / "a.jpg"
    gz.write(Image(pixels=FACE), truth)
    gz.write(Image(pixels=FACE[::4, ::4].copy()), worn)
    (pair,) = given_pairs([truth], [worn])
    assert pair.worn.pixels.shape == FACE.shape
    (pair,) = worn_pairs([truth], PRESETS["light"], size=128)
    assert pair.truth.pixels.shape == pair.worn.pixels.shape == (128, 128, 3)
    with pytest.raises(OptionsInvalid) as refused:
        list(given_pairs([truth], []))
    assert refused.value.code == "U33"


def test_tiles_change_nothing_worth_measuring() -> None:
    names = [Variant(weights="gpen-demo-256", precision="float32", tile=tile) for tile in (0, 128)]
    loaded = load_variants(names, Zoo(), "cpu")
    own = Measures(psnr=measures.psnr, ssim=measures.ssim, lpips=None, source="own")
    worn = Image(pixels=degrade(FACE, PRESETS["standard"], random_for("a")))
    found = evaluate([Pair(name="a", truth=Image(pixels=FACE), worn=worn)], loaded, own)
    whole, tiled = (scores["a"].psnr for scores in found.variants.values())
    assert tiled == pytest.approx(whole, abs=0.01)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gz.write(Image(pixels=FACE), tmp_path / "gt" / "a.png")
    sheet, report = tmp_path / "sheet.jpg", tmp_path / "report.json"
    words = ["--weights", "gpen-demo-256", "--json", str(report), "--sheet", str(sheet), "--lang", "en", "-q"]
    assert main(["eval", "--gt", str(tmp_path / "gt"), "--degrade", "standard", "--size", "128", *words]) == 0
    told = capsys.readouterr().out
    assert "gpen-demo-256 auto" in told
    assert json.loads(report.read_text())["count"] == 1
    assert gz.read(sheet).width == 3 * 256
    (tmp_path / "empty").mkdir()
    assert main(["eval", "--gt", str(tmp_path / "empty"), "--degrade", "none", "-q"]) == 1
    assert main(["eval", "--gt", str(tmp_path / "gt"), "--degrade", "dust", "-q"]) == 2
    assert main(["eval", "--gt", str(tmp_path / "gt"), "--lq", str(tmp_path / "empty"), "-q"]) == 2
    assert main(["eval", "--gt", str(tmp_path / "gt"), "--degrade", "none", "--limit", "0"]) == 2
