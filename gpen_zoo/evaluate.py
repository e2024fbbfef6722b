"""Restorations against the truth: several ways to run, the same worn pictures, one table.

For every picture the worn input and each variant's result are measured against the truth. All variants see the same
input; at strength 1, because a milder one hides what a network does.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import cv2
import numpy as np
import torch

from gpen_zoo.branches import Branch
from gpen_zoo.budget import Plan
from gpen_zoo.degrade import SEED, Degradation, degrade, random_for
from gpen_zoo.engine import Engine, Outcome
from gpen_zoo.errors import OptionsInvalid
from gpen_zoo.image_io import read
from gpen_zoo.measures import Measures
from gpen_zoo.restore import Restorer, load
from gpen_zoo.sizing import resized_image, with_long_side
from gpen_zoo.types import U8, Image, Options
from gpen_zoo.zoo import Zoo

SHEET_ROWS, SHEET_SIDE = 12, 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One way to run. tile: side of the engine's tiles in pixels, 0 for none, None for its own choice."""

    weights: str = "auto"
    precision: str = "auto"
    tile: int | None = None

    def __str__(self) -> str:
        tile = "" if self.tile is None else f" tile {self.tile}" if self.tile else " untiled"
        return f"{self.weights} {self.precision}{tile}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pair:
    """truth and worn have one size."""

    name: str
    truth: Image
    worn: Image


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One picture's figures; lpips None where it is not installed. seconds: of the restoration, 0 for the input."""

    psnr: float
    ssim: float
    lpips: float | None
    seconds: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        finite = None if math.isinf(self.psnr) else round(self.psnr, 4)
        own = {"psnr": finite, "ssim": round(self.ssim, 5), "seconds": round(self.seconds, 4)}
        return own if self.lpips is None else {**own, "lpips": round(self.lpips, 5)}


@dataclass(slots=True, kw_only=True)
class Evaluation:
    """Scores by name of picture: of the input, and of each variant by its text. sheet: rows of a picture to look at,
    each uint8 (SHEET_SIDE, n · SHEET_SIDE, 3): input, variants, truth."""

    source: str
    inputs: dict[str, Score] = field(default_factory=dict)
    variants: dict[str, dict[str, Score]] = field(default_factory=dict)
    sheet: list[U8] = field(default_factory=list)

    def means(self, scores: dict[str, Score]) -> Score:
        """Means over the pictures; equal pictures count with 100 dB."""
        lpips = [s.lpips for s in scores.values() if s.lpips is not None]
        return Score(
            psnr=float(np.mean([min(s.psnr, 100.0) for s in scores.values()])),
            ssim=float(np.mean([s.ssim for s in scores.values()])),
            lpips=float(np.mean(lpips)) if lpips else None,
            seconds=float(np.mean([s.seconds for s in scores.values()])),
        )

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready: means, and every picture."""
        return {
            "metrics": self.source,
            "count": len(self.inputs),
            "input": self.means(self.inputs).as_dict(),
            "variants": [{"variant": v, **self.means(s).as_dict()} for v, s in self.variants.items()],
            "pictures": [
                {
                    "name": name,
                    "input": score.as_dict(),
                    "variants": {v: scores[name].as_dict() for v, scores in self.variants.items()},
                }
                for name, score in self.inputs.items()
            ],
        }


def worn_pairs(files: Sequence[Path], how: Degradation, *, seed: int = SEED, size: int | None = None) -> Iterator[Pair]:
    """Pictures and their worn copies, one at a time. size: long side to bring the truth to first."""
    for file in files:
        truth = read(file)
        truth = truth if size is None else with_long_side(truth, size)
        worn = degrade(truth.pixels, how, random_for(file.name, seed))
        yield Pair(name=file.name, truth=truth, worn=truth.with_pixels(worn))


def given_pairs(truths: Sequence[Path], worn: Sequence[Path], *, size: int | None = None) -> Iterator[Pair]:
    """Pictures of both kinds by their stems. Worn ones are brought to the size of the truth. OptionsInvalid (U33) when
    a truth has no counterpart."""
    by_stem = {file.stem: file for file in worn}
    if lonely := [file.name for file in truths if file.stem not in by_stem]:
        raise OptionsInvalid("U33", names=", ".join(lonely[:5]), count=len(lonely))
    for file in truths:
        truth = read(file)
        truth = truth if size is None else with_long_side(truth, size)
        yield Pair(name=file.name, truth=truth, worn=resized_image(read(by_stem[file.stem]), truth.width, truth.height))


def evaluate(
    pairs: Iterable[Pair],
    restorers: dict[str, Restorer],
    measures: Measures,
    *,
    aligned: bool = True,
    tell: Callable[[str], None] | None = None,
) -> Evaluation:
    """Measure every pair with every restorer. tell: given the name of each picture when it is done."""
    found = Evaluation(source=measures.source, variants={name: {} for name in restorers})
    options = Options(strength=1.0, aligned=aligned)

    def score(pixels: U8, pair: Pair, seconds: float = 0.0) -> Score:
        truth = pair.truth.pixels
        lpips = None if measures.lpips is None else measures.lpips(pixels, truth)
        return Score(psnr=measures.psnr(pixels, truth), ssim=measures.ssim(pixels, truth), lpips=lpips, seconds=seconds)

    for pair in pairs:
        found.inputs[pair.name] = score(pair.worn.pixels, pair)
        row = [pair.worn.pixels]
        for name, restorer in restorers.items():
            start = time.perf_counter()
            pixels = restorer(pair.worn, options).image.pixels
            found.variants[name][pair.name] = score(pixels, pair, time.perf_counter() - start)
            row.append(pixels)
        if len(found.sheet) < SHEET_ROWS:
            found.sheet.append(np.hstack([_thumb(p) for p in (*row, pair.truth.pixels)]))
        if tell is not None:
            tell(pair.name)
    return found


def load_variants(variants: Sequence[Variant], zoo: Zoo, device: str = "auto") -> dict[str, Restorer]:
    """A restorer for each variant by its text. Raises as `restore.load` does."""
    restorers = {}
    for variant in variants:
        restorer = load(variant.weights, zoo=zoo, device=device, precision=variant.precision)
        if variant.tile is not None:
            branches = tuple(_tiled(branch, variant) for branch in restorer.branches)
            restorer = replace(restorer, branches=branches)
        restorers[str(variant)] = restorer
    return restorers


class _Planned:
    """An engine that runs one plan whatever memory there is, for a comparison of plans."""

    def __init__(self, engine: Engine, precision: str, tile: int) -> None:
        first = engine.plans()[0]
        self._engine, self.size = engine, engine.size
        dtype = first.dtype if precision == "auto" else precision
        self._plan = Plan(device=first.device, dtype=dtype, tile=tile)

    def restore(self, crops: U8, *, on_crop: Callable[[int, int], None] | None = None) -> tuple[Outcome, ...]:
        """As `Engine.restore`; what torch raises passes through."""
        outcomes = []
        for number, crop in enumerate(crops, 1):
            start = time.perf_counter()
            x = torch.from_numpy(crop).permute(2, 0, 1)[None].float() / 127.5 - 1
            y = self._engine.forward(x, self._plan)[0].permute(1, 2, 0)
            pixels = (y * 127.5 + 127.5).clamp(0, 255).round().to(torch.uint8).numpy()
            ms = 1000 * (time.perf_counter() - start)
            outcomes.append(Outcome(pixels=pixels, plan=self._plan, attempts=(), ms=ms))
            if on_crop is not None:
                on_crop(number, len(crops))
        return tuple(outcomes)


def _tiled(branch: Branch, variant: Variant) -> Branch:
    return Branch(
        name=branch.name,
        size=branch.size,
        template=branch.template,
        build=lambda: cast(Engine, _Planned(branch.engine, variant.precision, variant.tile or 0)),
        demo=branch.demo,
    )


def _thumb(pixels: U8) -> U8:
    """Fitted into a square of SHEET_SIDE on white."""
    height, width = pixels.shape[:2]
    factor = SHEET_SIDE / max(height, width)
    small = cv2.resize(
        pixels, (max(1, round(width * factor)), max(1, round(height * factor))), interpolation=cv2.INTER_AREA
    )
    square = np.full((SHEET_SIDE, SHEET_SIDE, 3), 255, np.uint8)
    square[: small.shape[0], : small.shape[1]] = small
    return square
