"""Are grouped convolutions worth having in a light student? Time of 3×3 convolutions at equal arithmetic.

    python -m benchmarks.grouped

A student has half of its teacher's width, and so a quarter of the arithmetic. Groups of four save as much at full
width. Both are timed here for the shapes of each branch's decoder, in the same run, interleaved; what is printed is how
long the grouped form takes for one of the narrow one, and the GFLOP/s of each.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

SHAPES = ((512, 32), (256, 64), (128, 128), (64, 256), (32, 512))  # channels, side: a 512 px branch at full width
GROUPS = 4


def seconds(run: Callable[[], Tensor], rounds: int) -> float:
    """Best of so many."""
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


@torch.inference_mode()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    print("| dtype | channels | side | narrow, ms | grouped, ms | grouped / narrow | narrow, GFLOP/s | grouped |")
    print("|---|---|---|---|---|---|---|---|")
    for dtype in (torch.float32, torch.bfloat16):
        for channels, side in SHAPES:
            half = channels // 2
            x = torch.randn(1, channels, side, side, dtype=dtype).contiguous(memory_format=torch.channels_last)
            narrow_x = x[:, :half].contiguous(memory_format=torch.channels_last)
            narrow_w = torch.randn(half, half, 3, 3, dtype=dtype)
            grouped_w = torch.randn(channels, channels // GROUPS, 3, 3, dtype=dtype)

            def narrow(x: Tensor = narrow_x, w: Tensor = narrow_w) -> Tensor:
                return F.conv2d(x, w, padding=1)

            def grouped(x: Tensor = x, w: Tensor = grouped_w) -> Tensor:
                return F.conv2d(x, w, padding=1, groups=GROUPS)

            narrow(), grouped()
            pairs = [(seconds(narrow, 1), seconds(grouped, 1)) for _ in range(args.rounds)]
            a, b = (min(times) for times in zip(*pairs, strict=True))
            flop = 2 * 9 * half * half * side * side / 1e9
            name = str(dtype).removeprefix("torch.")
            row = f"{1000 * a:.2f} | {1000 * b:.2f} | {b / a:.2f} | {flop / a:.0f} | {flop / b:.0f}"
            print(f"| {name} | {channels} | {side} | {row} |")


if __name__ == "__main__":
    main()
