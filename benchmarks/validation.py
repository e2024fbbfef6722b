"""PSNR and SSIM of worn faces before and after the bundled weights, and a sheet to look at.

    python -m benchmarks.validation FACES LIST SHEET.jpg [--weights NAME]

FACES: folder of aligned faces (GPEN's template). LIST: text file with a name a line. Every face is worn once, with a
fixed seed, as gpen_zoo/degrade.py does by default. It then goes through the same aligned mode that users call.
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
    args = arguments.parse_args()
    restorer = gz.load(args.weights)
    size = restorer.branches[0].size
    rows, columns = [], []
    for before, truth in worn_faces(args.faces, args.list.read_text().split(), size):
        after = restorer(Image(pixels=before), gz.Options(aligned=True, strength=1.0)).image.pixels
        rows.append([scores(before, truth), scores(after, truth)])
        columns.append((before, after, truth))
    worn, made = np.array(rows).transpose(1, 2, 0)  # each (4, faces)
    print(f"{len(rows)} faces at {size} px, {args.weights}, seed {SEED}")
    for a, b, name, digits, unit in zip(
        worn[:3], made[:3], ("PSNR", "PSNR, face", "SSIM"), (2, 2, 3), (" dB", " dB", ""), strict=True
    ):
        print(f"{name:<11} {a.mean():.{digits}f} -> {b.mean():.{digits}f}{unit}, better on {(b > a).sum()}")
    print(f"detail      {worn[3].mean():.0%} -> {made[3].mean():.0%} of the truth's")
    pixels = sheet(list(zip(*columns, strict=True)), rows=len(columns))
    gz.write(Image(pixels=pixels), args.sheet, quality=92)


if __name__ == "__main__":
    main()
