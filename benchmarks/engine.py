"""The engine against the author's arithmetic, ONNX Runtime and itself, in one run: `python -m benchmarks.engine`.

Times are the best of interleaved rounds in this process; memory is the resident peak above the weights in a process
of its own. Weights are random with official shapes: speed does not depend on values. `--quick` leaves 1024 and
2048 px out, `--write` puts the table into RESULTS.md.
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
import time
from collections.abc import Iterator
from datetime import date
from functools import partial
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from benchmarks import profile
from benchmarks.measure import (
    CONFIGS,
    child,
    faces,
    interleaved,
    matrix_peak,
    multiplications,
    random_net,
    relative_error,
)
from benchmarks.plain import AuthorStyle
from gpen_zoo.budget import CACHE_TILE
from gpen_zoo.device import bfloat16_pays
from gpen_zoo.network import GPEN
from gpen_zoo.network_fast import prepare

CPU = torch.device("cpu")
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
AUTHOR = "author's arithmetic"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--threads", type=int, default=min(2, os.cpu_count() or 1))
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    os.environ["OMP_NUM_THREADS"] = str(asked.threads)  # for the child processes
    start = time.perf_counter()
    sizes = (512,) if asked.quick else (512, 1024, 2048)
    peaks = {dtype: matrix_peak(dtype) for dtype in DTYPES.values()}
    lines = list(machine(peaks))
    print("\n".join(lines), flush=True)
    sections = (
        speed(sizes, peaks),
        profile.by_stage(sizes, DTYPES, peaks),
        profile.by_kind(512, DTYPES),
        onnx_runtime(),
        tiles(sizes[-1]),
        batches(),
        loading(),
        drift(),
    )
    for section in sections:
        for line in section:
            print(line, flush=True)
            lines.append(line)
    lines.append(f"\nThe whole run took {time.perf_counter() - start:.0f} s.")
    print(lines[-1])
    if asked.write:
        (Path(__file__).parent / "RESULTS.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def machine(peaks: dict[torch.dtype, float]) -> Iterator[str]:
    yield f"# Engine, measured {date.today().isoformat()}\n"
    model = "unknown CPU"
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        model = next((x.split(":")[1].strip() for x in cpuinfo.read_text().splitlines() if "model name" in x), model)
    yield f"{model}, {torch.get_num_threads()} threads, torch {torch.__version__}, Python {platform.python_version()},"
    yield f"{platform.system()}. Matrix product of 2048²: float32 {2e-9 * peaks[torch.float32]:.0f} GFLOP/s,"
    yield f"bfloat16 {2e-9 * peaks[torch.bfloat16]:.0f} GFLOP/s; the probe says bfloat16"
    yield f"{'pays' if bfloat16_pays() else 'does not pay'} here. Load average {os.getloadavg()[0]:.1f} at the start."


def speed(sizes: tuple[int, ...], peaks: dict[torch.dtype, float]) -> Iterator[str]:
    yield "\n## The author's arithmetic, network.py, prepared\n"
    yield f"Prepared networks run in tiles of {CACHE_TILE} px, as the engine runs them on a CPU. Share: of the matrix"
    yield "peak. Error: relative, against the author's arithmetic in float32.\n"
    yield "| px | form | s | × author's | error | share |"
    yield "|---|---|---|---|---|---|"
    for size in sizes:
        net, x = random_net(size), faces(size)
        fast = {f"prepared {name}": prepare(net, device=CPU, dtype=dtype) for name, dtype in DTYPES.items()}
        prepared = {name: partial(run, x, tile=CACHE_TILE) for name, run in fast.items()}
        slow = {AUTHOR: partial(AuthorStyle(net.state_dict()), x), "network.py": partial(without_gradient, net, x)}
        seconds, results = interleaved({**slow, **prepared}, {1024: 2, 2048: 1}.get(size, 3), warm_up=size < 1024)
        again, _ = interleaved(prepared, 3)
        for name in seconds:
            best = min(seconds[name], again.get(name, seconds[name]))
            dtype = torch.bfloat16 if "bfloat16" in name else torch.float32
            share = sum(multiplications(CONFIGS[size]).values()) / best / peaks[dtype]
            error = relative_error(results[name], results[AUTHOR])
            yield f"| {size} | {name} | {best:.2f} | {seconds[AUTHOR] / best:.1f} | {error:.1e} | {share:.0%} |"


@torch.inference_mode()
def without_gradient(net: GPEN, x: Tensor) -> Tensor:
    result: Tensor = net(x)
    return result


def onnx_runtime() -> Iterator[str]:
    yield "\n## ONNX Runtime on the exported network.py, 512 px, float32\n"
    try:
        import onnxruntime
    except ImportError:
        yield "Not installed (`pip install onnx onnxruntime`); nothing measured."
        return
    net, x = random_net(512), faces(512)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "net.onnx")
        torch.onnx.export(net, (x,), path, input_names=["x"], output_names=["y"], dynamo=False)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        fast = prepare(net, device=CPU, dtype=torch.float32)
        runs = {
            "onnx": partial(session.run, None, {"x": x.numpy()}),
            "fast": partial(fast, x, tile=CACHE_TILE),
        }
        seconds, results = interleaved(runs, 4)
    error = relative_error(results["fast"], torch.from_numpy(results["onnx"][0]))
    yield f"ONNX Runtime {onnxruntime.__version__}: {seconds['onnx']:.2f} s, prepared float32: {seconds['fast']:.2f} s,"
    yield f"ratio {seconds['onnx'] / seconds['fast']:.2f}; the two differ by {error:.1e}."


def tiles(size: int) -> Iterator[str]:
    yield f"\n## Whole and tiled, {size} px\n"
    yield "MB: resident peak above the weights. Difference: relative, against the whole in the same dtype.\n"
    yield "| form | tile | s | MB | share of the author's MB | difference |"
    yield "|---|---|---|---|---|---|"
    plain = child("peak", size=size, form="plain")
    yield f"| {AUTHOR} | - | {plain['seconds']:.2f} | {plain['mb']:.0f} | 100% | - |"
    net, x = random_net(size), faces(size)
    for name, dtype in DTYPES.items():
        fast = prepare(net, device=CPU, dtype=dtype)
        seconds, results = interleaved({str(t): partial(fast, x, tile=t) for t in (0, 512, 256, 128, 64)}, 1)
        for tile, best in seconds.items():
            mb = child("peak", size=size, form="fast", dtype=name, tile=int(tile))["mb"]
            difference = relative_error(results[tile], results["0"])
            label = "whole" if tile == "0" else tile
            yield f"| prepared {name} | {label} | {best:.2f} | {mb:.0f} | {mb / plain['mb']:.0%} | {difference:.0e} |"


def batches() -> Iterator[str]:
    yield "\n## Seconds per face by batch, 512 px\n"
    yield "| | 1 | 2 | 4 | 8 |"
    yield "|---|---|---|---|---|"
    net = random_net(512)
    for name, dtype in DTYPES.items():
        fast = prepare(net, device=CPU, dtype=dtype)
        runs = {str(n): partial(fast, faces(512, n), tile=CACHE_TILE) for n in (1, 2, 4, 8)}
        seconds, _ = interleaved(runs, 2, warm_up=False)
        yield f"| {name} | " + " | ".join(f"{s / int(n):.2f}" for n, s in seconds.items()) + " |"


def loading() -> Iterator[str]:
    yield "\n## From file to first face, 512 px\n"
    with tempfile.TemporaryDirectory() as folder:
        net = random_net(512)
        pth, safe = str(Path(folder) / "net.pth"), str(Path(folder) / "net.safetensors")
        torch.save(net.state_dict(), pth)
        save_file(net.state_dict(), safe)
        seconds = {p: min(child("load", path=p)["seconds"] for _ in range(3)) for p in (pth, safe)}
        yield f"Into a network, files in the page cache: .pth {seconds[pth]:.2f} s,"
        yield f"safetensors, mapped: {seconds[safe]:.2f} s, {seconds[pth] / seconds[safe]:.1f} times as fast."
        yield ""
        yield "| precision | import gpen_zoo | import torch and engine | load | first face | next face |"
        yield "|---|---|---|---|---|---|"
        for precision in ("float32", "bfloat16"):
            step = child("first_result", path=safe, precision=precision)
            yield f"| {precision} | " + " | ".join(f"{s:.2f} s" for s in step.values()) + " |"


def drift() -> Iterator[str]:
    yield "\n## Memory over 200 crops (bundled weights, 256 px)\n"
    size = child("drift", crops=200)
    change = size["last"] / size["first"] - 1
    yield f"Resident after 10 crops {size['first']:.0f} MB, after 200 {size['last']:.0f} MB ({change:+.1%}),"
    yield f"largest in between {size['largest']:.0f} MB."


if __name__ == "__main__":
    main()
