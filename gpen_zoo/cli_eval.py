"""`gpen-zoo eval`: how near restorations come to the truth, and what precision or tiles cost."""
# ruff: noqa: T201

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpen_zoo.console import FAILED, OK, complain, open_zoo, write_json
from gpen_zoo.errors import OptionsInvalid
from gpen_zoo.hints import Lang, note, say

if TYPE_CHECKING:
    from gpen_zoo.evaluate import Evaluation, Pair


def add_arguments(to: argparse.ArgumentParser, lang: Lang) -> None:
    """Every flag of the command."""

    def add(*flags: str, words: str, **more: Any) -> None:
        to.add_argument(*flags, help=say(f"cli.{words}", lang), **more)

    add("--gt", type=Path, required=True, metavar="DIR", words="eval_gt")
    worn = to.add_mutually_exclusive_group(required=True)
    worn.add_argument("--lq", type=Path, metavar="DIR", help=say("cli.eval_lq", lang))
    worn.add_argument("--degrade", metavar="SPEC", help=say("cli.eval_degrade", lang))
    add("--seed", type=int, default=123, words="eval_seed")
    add("--limit", type=int, metavar="N", words="eval_limit")
    add("--size", type=int, metavar="PX", words="eval_size")
    add("--photos", action="store_true", words="eval_photos")
    add("--weights", "--model", nargs="+", default=["auto"], metavar="NAME", words="eval_weights")
    precisions = ("auto", "float32", "float16", "bfloat16")
    add("--precision", nargs="+", choices=precisions, default=["auto"], words="eval_precision")
    add("--tile", nargs="+", type=int, metavar="PX", words="eval_tile")
    add("--device", default="auto", words="device")
    add("--json", metavar="REPORT", words="json")
    add("--sheet", type=Path, metavar="JPG", words="eval_sheet")
    add("-q", "--quiet", action="store_true", words="no_bar")


def run(args: argparse.Namespace, lang: Lang) -> int:
    """Measure and tell. Exit code 1 when there is nothing to measure."""
    from tqdm import tqdm

    from gpen_zoo.evaluate import Variant, evaluate, load_variants
    from gpen_zoo.measures import load_measures

    count, pairs = chosen_pairs(args)
    if not count:
        complain(note("U19", path=args.gt), lang)
        return FAILED
    tiles = args.tile or [None]
    variants = [Variant(weights=w, precision=p, tile=t) for w, p, t in product(args.weights, args.precision, tiles)]
    restorers = load_variants(variants, open_zoo(), args.device)
    measures = load_measures()
    if measures.without_lpips is not None:
        complain(measures.without_lpips, lang)
    with tqdm(total=count, disable=True if args.quiet else None) as bar:
        found = evaluate(pairs, restorers, measures, aligned=not args.photos, tell=lambda _: bar.update() and None)
    if args.json != "-":
        table(found, lang)
    if args.json is not None:
        write_json(args.json, {"seed": args.seed, "degrade": args.degrade, **found.as_dict()})
    if args.sheet is not None:
        save_sheet(found, args.sheet)
    return OK


def chosen_pairs(args: argparse.Namespace) -> tuple[int, Iterator[Pair]]:
    """How many pictures there are, and the pairs to measure. Raises OptionsInvalid."""
    from gpen_zoo.degrade import degradation
    from gpen_zoo.evaluate import given_pairs, worn_pairs
    from gpen_zoo.inputs import find_inputs

    for flag, value in (("--limit", args.limit), ("--size", args.size), *(("--tile", t) for t in args.tile or ())):
        least = 0 if flag == "--tile" else 1
        if value is not None and value < least:
            raise OptionsInvalid("U28", flag=flag, value=value, least=least)

    def files(folder: Path) -> list[Path]:
        return [photo.path for photo in find_inputs([str(folder)]).photos if photo.path is not None]

    truths = files(args.gt)[: args.limit]
    if args.degrade is not None:
        return len(truths), worn_pairs(truths, degradation(args.degrade), seed=args.seed, size=args.size)
    return len(truths), given_pairs(truths, files(args.lq), size=args.size)


def table(found: Evaluation, lang: Lang) -> None:
    """Means of the input and of every variant, and what each gained over the first."""
    print(say("cli.eval_head", lang, count=len(found.inputs), source=found.source))
    print(say("cli.eval_columns", lang))
    before, first = found.means(found.inputs), None
    rows = [("input", before), *((name, found.means(scores)) for name, scores in found.variants.items())]
    width = max(len(name) for name, _ in rows)
    lpips = before.lpips is not None
    heads = (
        f"{'PSNR dB':>9} {'SSIM':>8}" + (f" {'LPIPS':>8}" if lpips else "") + f" {'better':>7} {'ms':>7} {'vs 1st':>10}"
    )
    print(f"{'':<{width}} {heads}")
    for name, mean in rows:
        scores = found.variants.get(name)
        line = f"{name:<{width}} {mean.psnr:>9.3f} {mean.ssim:>8.4f}" + (f" {mean.lpips:>8.4f}" if lpips else "")
        if scores is not None:
            first = first or mean
            better = sum(1 for picture, score in scores.items() if score.psnr > found.inputs[picture].psnr)
            line += f" {better:>7} {1000 * mean.seconds:>7.0f} {mean.psnr - first.psnr:>+10.4f}"
        print(line)


def save_sheet(found: Evaluation, path: Path) -> None:
    """Rows of input, results and truth as one picture. Raises PathInaccessible."""
    import numpy as np

    from gpen_zoo.image_io import write
    from gpen_zoo.types import Image

    write(Image(pixels=np.vstack(found.sheet)), path, quality=92)
