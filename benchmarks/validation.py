"""PSNR and SSIM of worn faces before and after the bundled weights, and a sheet to look at.

    python -m benchmarks.validation FACES LIST SHEET.jpg [--weights NAME]

FACES: folder of aligned faces (GPEN's template). LIST: text file with a name a line. Every face is worn once, with a
fixed seed, as gpen_zoo/degrade.py does by default. It then goes through the same aligned mode that users call.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import cv2
import numpy as np
from skimage.metrics import structural_similarity

import gpen_zoo as gz
from gpen_zoo.degrade import PRESETS, SEED, degrade
from gpen_zoo.measures import psnr
from gpen_zoo.types import U8, Image

FACE = np.s_[0.28:0.88, 0.26:0.74]  # of the crop: brow to chin, ear to ear


def ssim(a: U8, b: U8) -> float:
    return float(structural_similarity(a, b, channel_axis=2))


def face_of(x: U8) -> U8:
    size = x.shape[0]
    rows, columns = (slice(round(s.start * size), round(s.stop * size)) for s in FACE)
    return x[rows, columns]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("faces", type=Path)
    arguments.add_argument("list", type=Path)
    arguments.add_argument("sheet", type=Path)
    arguments.add_argument("--weights", default="gpen-demo-256")
    args = arguments.parse_args()
    restorer = gz.load(args.weights)
    size = restorer.branches[0].size
    random = np.random.default_rng(SEED)
    rows, tiles = [], []
    for name in args.list.read_text().split():
        truth = gz.read(args.faces / name).pixels
        truth = np.asarray(cv2.resize(truth, (size, size), interpolation=cv2.INTER_AREA), dtype=np.uint8)
        before = degrade(truth, PRESETS["standard"], random)
        after = restorer(Image(pixels=before), gz.Options(aligned=True, strength=1.0)).image.pixels
        pairs = [(before, truth), (after, truth)]
        rows.append([f(*p) for f in (psnr, lambda a, b: psnr(face_of(a), face_of(b)), ssim) for p in pairs])
        tiles.append(np.hstack((before, after, truth)))
    table = np.array(rows)
    mean = table.mean(0)
    print(f"{len(rows)} faces at {size} px, {args.weights}, seed {SEED}")
    print(f"PSNR        {mean[0]:.2f} -> {mean[1]:.2f} dB, better on {(table[:, 1] > table[:, 0]).sum()}")
    print(f"PSNR, face  {mean[2]:.2f} -> {mean[3]:.2f} dB, better on {(table[:, 3] > table[:, 2]).sum()}")
    print(f"SSIM        {mean[4]:.3f} -> {mean[5]:.3f}, better on {(table[:, 5] > table[:, 4]).sum()}")
    columns = 3
    tiles += [np.full_like(tiles[0], 255)] * (-len(tiles) % columns)
    sheet = np.vstack([np.hstack(tiles[i : i + columns]) for i in range(0, len(tiles), columns)])
    gz.write(Image(pixels=sheet), args.sheet, quality=92)


if __name__ == "__main__":
    main()
