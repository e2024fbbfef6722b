"""The enlarged background in figures: time and memory of whole pictures and of tiles, and what tiles leave behind.

    python -m benchmarks.background [--seconds 15] [--threads 2]

Networks have the official sizes and random weights, since their authors' files are not at hand: time and memory are
those of the real ones, seams are not, for what a trained network sees from afar is another thing. A picture that would
take longer than `--seconds` of CPU time is measured on a strip of it, as many rows as fit, and the table says how many.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from skimage import data
from torch.nn import Module

from benchmarks.measure import forget_peak, resident
from gpen_zoo.basicsr_shim import import_basicsr
from gpen_zoo.budget import Plan, upscaler_bytes
from gpen_zoo.device import bfloat16_pays
from gpen_zoo.tiling import Tiling, auto_tiling, run_tiled
from gpen_zoo.types import U8
from gpen_zoo.upscaler import Upscaler
from gpen_zoo.upscaler_networks import shape_of

SIZES = {"2 MP": (1632, 1224), "12 MP": (4000, 3000)}
NETWORKS = {"RealESRGAN-x2plus": "RRDBNet 64×23, ×2", "realesr-general-x4v3": "SRVGG 64×32, ×4"}
OVERLAPS = (0, 16, 32, 64)
SEAM_TILE, SEAM_SIDE = 96, 160
PROBE = 64
LEAST_ROWS = 64


def network(name: str) -> Module:
    """The official shape, random, with an answer of a photo's contrast."""
    torch.manual_seed(1)
    if name == "RealESRGAN-x2plus":
        net: Module = import_basicsr("basicsr.archs.rrdbnet_arch").RRDBNet(3, 3, 2, 64, 23, 32)
    else:
        net = import_basicsr("basicsr.archs.srvgg_arch").SRVGGNetCompact(3, 3, 64, 32, 4, "prelu")
    net = net.eval().requires_grad_(False)
    if name == "RealESRGAN-x2plus":
        x = torch.from_numpy(photo(PROBE, PROBE)).permute(2, 0, 1)[None].float() / 255
        last = net.conv_last
        spread = net(x).std()
        last.weight.mul_(0.2 / spread)  # type: ignore[operator, union-attr]
        last.bias.add_(0.5 - net(x).mean())  # type: ignore[operator, union-attr, arg-type]
    return net


def photo(width: int, height: int) -> U8:
    """A photo of that size."""
    return np.asarray(cv2.resize(data.astronaut(), (width, height), interpolation=cv2.INTER_CUBIC), np.uint8)


def upscaler_of(name: str) -> Upscaler:
    net = network(name)
    return Upscaler(name, lambda: net, shape_of(name, net.state_dict()), device="cpu")


def one(name: str, size: str, tiled: bool, seconds: float, threads: int) -> dict[str, Any]:
    """Time and memory of one way, in this process. Its first answer is thrown away."""
    torch.set_num_threads(threads)
    upscaler, (width, height) = upscaler_of(name), SIZES[size]
    dtype = "bfloat16" if bfloat16_pays() else "float32"
    usual = auto_tiling(height, width)
    plan = Plan(device="cpu", dtype=dtype, tile=usual.tile if tiled else 0)
    shrink = upscaler.shape.factor // 2
    tile = photo(PROBE, PROBE)
    upscaler.attempt(tile, plan, shrink)
    start = time.process_time()
    upscaler.attempt(tile, plan, shrink)
    rows = seconds / (time.process_time() - start) * PROBE**2 / width
    rows = min(height, max(LEAST_ROWS, int(rows) // 16 * 16))
    strip = np.ascontiguousarray(photo(width, height)[:rows])
    forget_peak()
    before, _ = resident()
    start, worked = time.perf_counter(), time.process_time()

    def enlarged(part: U8) -> U8:
        pixels, failure = upscaler.attempt(part, plan, shrink)
        if failure is not None or pixels is None:
            raise RuntimeError(f"{plan}: {failure or 'not finite'}")
        return pixels

    run_tiled(strip, enlarged, Tiling(tile=plan.tile, overlap=usual.overlap if tiled else 0))
    took, worked = time.perf_counter() - start, time.process_time() - worked
    side = min(plan.tile or height, height), min(plan.tile or width, width)
    return {
        "rows": rows,
        "height": height,
        "seconds": took,
        "cpu_seconds": worked,
        "megapixels": rows * width / 1e6,
        "peak": resident()[1] - before,
        "reckoned": upscaler_bytes(upscaler.shape, dtype, *side),  # of the whole photo or a whole tile
        "dtype": dtype,
    }


def child(*arguments: Any) -> dict[str, Any]:
    """`one` in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.background", "--one", json.dumps(arguments)]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def costs(networks: Sequence[str], seconds: float, threads: int) -> None:
    head = "network", "photo", "way", "measured on", "s", "CPU s", "CPU s/MP", "peak MB", "MB by arithmetic"
    print("|", " | ".join(head), "|")
    print("|---" * len(head) + "|")
    for name in networks:
        label = NETWORKS[name]
        for size in SIZES:
            for tiled in (False, True):
                a = child(name, size, tiled, seconds, threads)
                part = "all of it" if a["rows"] == a["height"] else f"{a['rows']} of {a['height']} rows"
                figures = (
                    *(f"{label} {a['dtype']}", size, "tiles" if tiled else "whole", part),
                    *(f"{a['seconds']:.1f}", f"{a['cpu_seconds']:.1f}", f"{a['cpu_seconds'] / a['megapixels']:.1f}"),
                    *(f"{a['peak'] / 1e6:.0f}", f"{a['reckoned'] / 1e6:.0f}"),
                )
                print("|", " | ".join(figures), "|", flush=True)


def seams(networks: Sequence[str]) -> None:
    print(f"\nA photo of {SEAM_SIDE} px, tiles of {SEAM_TILE} px, float32, random: tiled minus whole in 8-bit levels\n")
    print("| network | overlap px | max | mean |")
    print("|---|---|---|---|")
    pixels = photo(SEAM_SIDE, SEAM_SIDE)
    for name in networks:
        label = NETWORKS[name]
        upscaler, plan = upscaler_of(name), Plan(device="cpu", dtype="float32")

        def enlarged(part: U8, upscaler: Upscaler = upscaler, plan: Plan = plan) -> U8:
            made, failure = upscaler.attempt(part, plan, 1)
            if failure is not None or made is None:
                raise RuntimeError(f"{plan}: {failure or 'not finite'}")
            return made

        whole = enlarged(pixels).astype(int)
        for overlap in OVERLAPS:
            tiling = Tiling(tile=SEAM_TILE, overlap=overlap)
            off = np.abs(run_tiled(pixels, enlarged, tiling).astype(int) - whole).max(2)
            print(f"| {label} | {overlap} | {off.max()} | {off.mean():.3f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=15.0, help="CPU time for one way of one photo")
    parser.add_argument("--threads", type=int, default=2, help="one makes CPU time comparable on a busy machine")
    parser.add_argument("--network", action="append", choices=list(NETWORKS))
    parser.add_argument("--parts", nargs="+", choices=("costs", "seams"), default=("costs", "seams"))
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    if args.one:
        print(json.dumps(one(*json.loads(args.one))))
        return
    print(f"torch {torch.__version__}, {args.threads} threads, load average {os.getloadavg()[0]:.1f} at the start\n")
    networks = args.network or list(NETWORKS)
    if "costs" in args.parts:
        costs(networks, args.seconds, args.threads)
    if "seams" in args.parts:
        seams(networks)


if __name__ == "__main__":
    main()
