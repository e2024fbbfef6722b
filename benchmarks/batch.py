"""Folders through the pipeline, as ratios measured in one run: `python -m benchmarks.batch PHOTOS [--solvay FILE]`.

    pipeline   the stages overlapped, against the same stages one after another; share of time the network is busy;
               milliseconds of each stage; the detectors
    growth     photos a second as the folder grows: flat when nothing piles up
    solvay     a crowd, end to end, against a straightforward script: network.py as it is, one face at a time, the whole
               picture warped and masked for every face, as the author's code does; same weights, same faces
    memory     resident memory over a thousand photos of 2 kB to 40 megapixels, some of them broken

PHOTOS: folder of photos with faces. Everything runs on the bundled weights, or on random ones of `--branch` 512 or 1024
(speed does not depend on values). `--write` adds the table to RESULTS_BATCH.md.
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from itertools import cycle, islice
from pathlib import Path

import cv2
import numpy as np
import psutil
import torch

import gpen_zoo as gz
from benchmarks.measure import random_net
from gpen_zoo.batch import run
from gpen_zoo.batch_types import Job, Settings
from gpen_zoo.branches import Branch
from gpen_zoo.detection_cache import DetectionCache
from gpen_zoo.engine import Engine
from gpen_zoo.image_io import encode
from gpen_zoo.inputs import find_inputs
from gpen_zoo.manifest import load as load_manifest
from gpen_zoo.network import GPEN, Config
from gpen_zoo.outputs import put_file
from gpen_zoo.restore import Restorer
from gpen_zoo.retinaface import retinaface_detector
from gpen_zoo.timeline import Timeline
from gpen_zoo.types import F64, U8, Image, Options, RawFaces
from gpen_zoo.weightfile import read_state_dict
from gpen_zoo.zoo import Zoo

RESULTS = Path(__file__).with_name("RESULTS_BATCH.md")
FULL = Options(strength=1.0)


def main() -> None:
    asked = arguments().parse_args()
    torch.set_num_threads(asked.threads)
    cv2.setNumThreads(asked.threads)
    files = [p.path for p in find_inputs([str(asked.photos)]).photos if p.path is not None]
    restorer, net = loaded(asked.branch)
    lines = [
        f"### Batch, {date.today()}: {platform.machine()}, {asked.threads} threads, torch {torch.__version__}, "
        f"branch {net.config.size} px"
    ]
    print(lines[0])
    sections: dict[str, Callable[[], Iterator[str]]] = {
        "pipeline": lambda: pipeline(restorer, files, asked.rounds, asked.jobs),
        "growth": lambda: growth(restorer, files, asked.sizes, asked.jobs),
        "solvay": lambda: crowd(restorer, net, asked.solvay, asked.rounds),
        "memory": lambda: memory(asked.count, asked.jobs),
    }
    for name in asked.only or sections:
        for line in sections[name]():
            print(line, flush=True)
            lines.append(line)
    if asked.write:
        with RESULTS.open("a", encoding="utf-8") as stream:
            stream.write("\n".join(["", *lines, ""]))


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=Path)
    parser.add_argument("--solvay", type=Path, help="photo of a crowd")
    parser.add_argument("--branch", type=int, choices=(256, 512, 1024), default=256)
    parser.add_argument("--only", nargs="+", choices=("pipeline", "growth", "solvay", "memory"))
    parser.add_argument("--rounds", type=int, default=2, help="best of so many, interleaved")
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 100, 1000], help="folders for growth")
    parser.add_argument("--count", type=int, default=1000, help="photos for memory")
    parser.add_argument("--threads", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--write", action="store_true")
    return parser


def loaded(size: int) -> tuple[Restorer, GPEN]:
    """A restorer with one branch, and its network as network.py has it."""
    demo = gz.load("gpen-demo-256", device="cpu")
    if size == 256:
        with torch.device("meta"):
            state = read_state_dict(Zoo().locate("gpen-demo-256"))
            net = GPEN.from_config(Config.from_state_dict(state))
        net.load_state_dict(state, strict=True, assign=True)
        return demo, net.eval().requires_grad_(False).float()  # the file holds float16
    net = random_net(size)
    template = next(np.array(e.alignment) for e in load_manifest() if e.branch == size and e.alignment)
    branch = Branch(name=f"random-{size}", size=size, template=template, build=lambda: Engine(net, device="cpu"))
    return replace(demo, branches=(branch,)), net


def jobs_of(files: list[Path], folder: Path) -> list[Job]:
    return [Job(label=f.name, source=f, target=folder / f"{n:05d}") for n, f in enumerate(files)]


def in_pipeline(restorer: Restorer, files: list[Path], folder: Path, jobs: int) -> tuple[float, Timeline]:
    timeline = Timeline()
    settings = Settings(options=FULL, workers=jobs)
    start = time.perf_counter()
    for done in run(jobs_of(files, folder), restorer, settings, cache=DetectionCache(limit=0), timeline=timeline):
        assert done.error is None, done.error
    return time.perf_counter() - start, timeline


def one_after_another(restorer: Restorer, files: list[Path], folder: Path) -> float:
    start = time.perf_counter()
    for job in jobs_of(files, folder):
        assert isinstance(job.source, Path)
        assert job.target is not None
        result = restorer(gz.read(job.source), FULL)
        put_file(encode(result.image), job.target.with_suffix(job.source.suffix))
    return time.perf_counter() - start


def pipeline(restorer: Restorer, files: list[Path], rounds: int, jobs: int) -> Iterator[str]:
    files = list(islice(cycle(files), max(12, len(files))))
    restorer(gz.read(files[0]), FULL)  # the network is built on first use
    piped: list[tuple[float, Timeline]] = []
    serial: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            serial.append(one_after_another(restorer, files, Path(folder, "a")))
            piped.append(in_pipeline(restorer, files, Path(folder, "b"), jobs))
    wall, timeline = min(piped, key=lambda p: p[0])
    laps = {lap.stage: lap for lap in timeline.laps()}
    work = sum(lap.work_ms for lap in laps.values())
    ratio = min(serial) / wall
    yield f"- {len(files)} photos: pipeline {wall:.2f} s, one after another {min(serial):.2f} s: {ratio:.2f}×"
    yield f"- network busy {laps['network'].work_ms / 1000 / wall:.0%} of the run"
    outside = (work - laps["network"].work_ms) / len(files)
    yield f"- outside the network {outside:.0f} ms of work a photo; the run adds {1000 * wall / len(files):.0f} ms each"
    yield "- ms a photo: " + ", ".join(f"{lap.stage} {lap.ms:.1f}" for lap in laps.values())
    yield detectors(restorer, files)


def detectors(restorer: Restorer, files: list[Path]) -> str:
    """The embedded detector against RetinaFace's network (random weights: the network's own time only)."""
    from facexlib.detection.retinaface import RetinaFace

    theirs = retinaface_detector(RetinaFace(network_name="resnet50").state_dict())
    pictures = [gz.read(f).pixels for f in files[:4]]
    times = {}
    for name, detector in (("embedded", restorer.detector), ("RetinaFace", theirs)):
        detector(pictures[0])
        start = time.perf_counter()
        for pixels in pictures:
            detector(pixels)
        times[name] = (time.perf_counter() - start) / len(pictures)
    ratio = times["RetinaFace"] / times["embedded"]
    told = ", ".join(f"{name} {1000 * seconds:.0f} ms" for name, seconds in times.items())
    return f"- one look of a detector: {told} ({ratio:.1f}×)"


def growth(restorer: Restorer, files: list[Path], sizes: list[int], jobs: int) -> Iterator[str]:
    restorer(gz.read(files[0]), FULL)
    rates = []
    for size in (-(-wanted // len(files)) * len(files) for wanted in sizes):  # whole rounds: the same mix in each
        with tempfile.TemporaryDirectory() as folder:
            wall, _ = in_pipeline(restorer, list(islice(cycle(files), size)), Path(folder), jobs)
        rates.append(size / wall)
        yield f"- folder of {size}: {rates[-1]:.2f} photos/s"
    yield f"- slowest to fastest: {min(rates) / max(rates):.2f}"


def crowd(restorer: Restorer, net: GPEN, photo: Path | None, rounds: int) -> Iterator[str]:
    if photo is None:
        yield "- solvay: no --solvay FILE"
        return
    restorer(Image(pixels=np.zeros((64, 64, 3), np.uint8)), Options(aligned=True))
    ours, script, faces = [], [], 0
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            start = time.perf_counter()
            result = restorer(gz.read(photo), FULL)
            put_file(encode(result.image), Path(folder, "a.png"))
            ours.append((time.perf_counter() - start, dict(result.timings)))
            faces = len(result.faces)
            start = time.perf_counter()
            image = gz.read(photo)
            found = restorer.prepare(image, FULL)
            found_ms = 1000 * (time.perf_counter() - start)
            pixels = straightforward(image.pixels, [r.frame for r in found.todo], net)
            put_file(encode(Image(pixels=pixels)), Path(folder, "b.png"))
            script.append((time.perf_counter() - start, found_ms))
    (total, laps), (slow, found_ms) = min(ours, key=lambda o: o[0]), min(script)
    rest, slow_rest = total - laps["faces"] / 1000, slow - found_ms / 1000
    yield f"- {photo.name}, {faces} faces, end to end: {total:.2f} s, script {slow:.2f} s: {slow / total:.1f}×"
    yield f"- the same after finding the faces: {rest:.2f} s, script {slow_rest:.2f} s: {slow_rest / rest:.1f}×"


@torch.inference_mode()
def straightforward(pixels: U8, frames: list[F64], net: GPEN) -> U8:
    """The author's way: every face warped back into a picture of full size, and a mask of full size kept with it."""
    height, width = pixels.shape[:2]
    size = net.config.size
    border = max(1, size // 20)
    mask = np.zeros((size, size), np.float32)
    mask[border:-border, border:-border] = 1
    mask = cv2.GaussianBlur(cv2.GaussianBlur(mask, (101, 101), 11), (101, 101), 11)
    whole, painted = np.zeros((height, width), np.float32), np.zeros(pixels.shape, np.uint8)
    for frame in frames:
        matrix = frame * size
        crop = cv2.warpAffine(pixels, matrix, (size, size), flags=cv2.INTER_LINEAR)
        x = torch.from_numpy(crop).permute(2, 0, 1)[None].float() / 127.5 - 1
        y = ((net(x)[0].permute(1, 2, 0) + 1) * 127.5).clamp(0, 255).to(torch.uint8).numpy()
        back = cv2.invertAffineTransform(matrix)
        place = cv2.warpAffine(mask, back, (width, height), flags=cv2.INTER_LINEAR)
        face = cv2.warpAffine(y, back, (width, height), flags=cv2.INTER_LINEAR)
        new = (place > whole)[:, :, None]
        painted = np.where(new, face, painted)
        whole = np.maximum(whole, place)
    blended = pixels * (1 - whole[:, :, None]) + painted * whole[:, :, None]
    return np.asarray(np.clip(blended, 0, 255), dtype=np.uint8)


class InTheMiddle:
    """A detector that sees one face in the middle of everything: memory is measured, not detection."""

    name = "middle"

    def __init__(self, template: F64) -> None:
        self._template = template

    def __call__(self, pixels: U8) -> RawFaces:
        height, width = pixels.shape[:2]
        side = min(height, width) / 2
        points = ((self._template - 0.5) * side + (width / 2, height / 2))[None]
        box = np.array([[width / 2 - side / 4, height / 2 - side / 4, width / 2 + side / 4, height / 2 + side / 4]])
        return box, points, np.array([0.95])


def memory(count: int, jobs: int) -> Iterator[str]:
    """One photo in 100 has 40 megapixels, one in 20 is broken; the others have 40 to 1600 px a side."""
    demo = gz.load("gpen-demo-256", device="cpu")
    restorer = replace(demo, detector=InTheMiddle(demo.branches[0].template))
    random = np.random.default_rng(5)
    kinds = [mixed(random, large=True), *(mixed(random, large=False) for _ in range(40))]
    broken = (b"", b"<html></html>", kinds[1][: len(kinds[1]) // 2][:200], b"\xff\xd8\xff\xe0 and nothing more")

    def jobs_to_do() -> Iterator[Job]:
        for number in range(count):
            if number % 20 == 7:
                yield Job(label=f"broken {number}", source=broken[number // 20 % len(broken)])
            else:
                yield Job(label=f"photo {number}", source=kinds[0 if number % 100 == 50 else 1 + number % 40])

    process, resident, seen, failed = psutil.Process(), [], [], []
    for done in run(jobs_to_do(), restorer, Settings(options=FULL, workers=jobs)):
        seen.append(done.job.label)
        failed += [done.job.label] if done.error is not None else []
        del done
        resident.append(process.memory_info().rss)
    gc.collect()
    wrong = [label for label in failed if not label.startswith("broken")]
    tenth = max(1, count // 10)
    # The median of each tenth: a photo of 40 megapixels comes and goes.
    levels = [float(np.median(resident[i : i + tenth])) / 1e6 for i in range(0, count, tenth)]
    drift = levels[-1] / levels[min(3, len(levels) - 1)] - 1
    yield f"- {count} photos: {len(seen)} answers, {len(set(seen))} of them different"
    yield f"- failed: {len(failed)}, of which not broken: {len(wrong)}; broken: {len(range(7, count, 20))}"
    told = ", ".join(f"{level:.0f}" for level in levels)
    yield f"- resident MB, median of each tenth: {told}; peak {max(resident) / 1e6:.0f}; last to fourth {drift:+.1%}"


def mixed(random: np.random.Generator, *, large: bool) -> bytes:
    """A soft picture with some noise, in one of the usual formats."""
    height, width = (5164, 7746) if large else (int(v) for v in random.integers(40, 1600, 2))
    base = random.integers(0, 256, (5, 5, 3), dtype=np.uint8)
    pixels = cv2.resize(base, (width, height), interpolation=cv2.INTER_CUBIC)
    kind = "JPEG" if large else str(random.choice(["JPEG", "PNG", "WEBP"]))
    return encode(Image(pixels=pixels), format=kind)


if __name__ == "__main__":
    main()
