"""PSNR and SSIM of worn faces before and after some weights, and a sheet to look at.

    python -m benchmarks.validation FACES LIST SHEET.jpg [--weights NAME] [--wear WEAR …]

FACES: folder of aligned faces (GPEN's template). LIST: text file with a name a line. Every face is worn once per WEAR,
a preset of gpen_zoo/degrade.py or something like `blur=4`, with a fixed seed. It then goes through the same aligned
mode that users call. The sheet shows the first WEAR.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import gpen_zoo as gz
from gpen_zoo.degrade import SEED
from gpen_zoo.types import Image
from training.validation import scores, sheet, worn_faces


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("faces", type=Path)
    arguments.add_argument("list", type=Path)
    arguments.add_argument("sheet", type=Path)
    arguments.add_argument("--weights", default="gpen-demo-256")
    arguments.add_argument("--wear", nargs="+", default=["standard"])
    args = arguments.parse_args()
    restorer = gz.load(args.weights)
    size, names = restorer.branches[0].size, args.list.read_text().split()
    print(f"{len(names)} faces at {size} px, {args.weights}, seed {SEED}; in brackets: how many are better")
    print(f"{'wear':<14} {'PSNR, dB':<20} {'PSNR of the face':<20} {'SSIM':<21} detail of the truth's")
    for wear in args.wear:
        rows, columns = [], []
        for before, truth in worn_faces(args.faces, names, size, wear):
            after = restorer(Image(pixels=before), gz.Options(aligned=True, strength=1.0)).image.pixels
            rows.append([scores(before, truth), scores(after, truth)])
            columns.append((before, after, truth))
        worn, made = np.array(rows).transpose(1, 2, 0)  # each (4, faces)
        cells = [
            f"{a.mean():.{digits}f} -> {b.mean():.{digits}f} ({(b > a).sum()})"
            for a, b, digits in zip(worn[:3], made[:3], (2, 2, 3), strict=True)
        ]
        print(f"{wear:<14} {cells[0]:<20} {cells[1]:<20} {cells[2]:<21} {worn[3].mean():.0%} -> {made[3].mean():.0%}")
        if wear == args.wear[0]:
            pixels = sheet(list(zip(*columns, strict=True)), rows=len(columns))
            gz.write(Image(pixels=pixels), args.sheet, quality=92)


if __name__ == "__main__":
    main()
