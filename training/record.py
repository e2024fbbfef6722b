"""What a run leaves to look at: a CSV of its figures, a curve, a sheet of pictures."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

import numpy as np

from gpen_zoo.image_io import write
from gpen_zoo.types import U8, Image
from training.validation import Figures

FIELDS = ("step", "seconds", "lr", "loss", "samples_per_s", *(f.name for f in fields(Figures)))


def append(folder: Path, row: Mapping[str, float]) -> None:
    """One line of `log.csv`; the heading comes with the first."""
    path = folder / "log.csv"
    new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS)
        if new:
            writer.writeheader()
        writer.writerow({k: row.get(k, "") for k in FIELDS})


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "log.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def plot(folder: Path) -> None:
    """`curve.png`: loss, and the validation figures, over steps."""
    from matplotlib.figure import Figure

    lines = rows(folder)
    figure = Figure(figsize=(9, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot([int(r["step"]) for r in lines], [float(r["loss"]) for r in lines])
    left.set(xlabel="step", ylabel="loss, mean since the line before")
    measured = [r for r in lines if r["psnr"]]
    for name, label in (("psnr", "PSNR"), ("face", "PSNR, face")):
        right.plot([int(r["step"]) for r in measured], [float(r[name]) for r in measured], label=label)
    right.set(xlabel="step", ylabel="dB")
    right.legend()
    figure.savefig(folder / "curve.png", dpi=100)


def save_sheet(folder: Path, pixels: U8) -> None:
    write(Image(pixels=np.ascontiguousarray(pixels)), folder / "sheet.jpg", quality=92)
