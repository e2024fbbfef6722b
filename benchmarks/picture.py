"""What is done to a photo around the network, in figures: seams, hue, identity, noise, time and memory.

    python -m benchmarks.picture [--weights NAME]

The photos are made here with known truth: heads from two pictures that ship inside packages (skimage's astronaut,
matplotlib's Grace Hopper), pasted into a scene by a known map. tests/test_synthetic.py holds bounds on these figures.
"""

from __future__ import annotations

import argparse
import os
import time
import tracemalloc
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

import cv2
import numpy as np

import gpen_zoo as gz
from gpen_zoo.align import Window, frame_of_face, invert, side_of
from gpen_zoo.budget import Plan
from gpen_zoo.detect import Found
from gpen_zoo.engine import Outcome
from gpen_zoo.examples import ASTRONAUT, HOPPER, packaged
from gpen_zoo.masks import Place, drawn, head_weight
from gpen_zoo.restore import Branch, Restorer
from gpen_zoo.types import F32, F64, U8, Face, Image, Mask, RestoredCrop, RestoreResult

# Left and right eye, nose, mouth corners in the two pictures, by the package's own detector.
POINTS = {
    ASTRONAUT: ((202.7, 100.4), (246.7, 102.6), (222.3, 123.8), (203.4, 142.9), (240.5, 144.8)),
    HOPPER: ((220.6, 192.4), (308.3, 188.9), (267.4, 235.3), (231.6, 274.8), (304.4, 271.9)),
}
SKY = (150, 165, 180)
MASKS: tuple[Mask, ...] = ("face", "face+hair", "crop")


class Planted(NamedTuple):
    """A face to put into a scene: centre and side of its crop in pixels, roll in degrees, which of the two people."""

    x: float
    y: float
    side: float
    roll: float = 0.0
    who: int = 0


class Scene(NamedTuple):
    """A photo with known faces."""

    image: Image
    faces: tuple[Face, ...]

    @property
    def found(self) -> Found:
        """The truth in the form of a search's answer."""
        return Found(faces=self.faces, detector="truth")


@cache
def people(template_key: tuple[tuple[float, float], ...]) -> tuple[tuple[U8, F64, F64], ...]:
    """Picture, landmarks (5, 2) and frame (2, 3) of each person."""
    template = np.array(template_key)
    out = []
    for source, points in POINTS.items():
        path = packaged(*source)
        if path is None:
            raise FileNotFoundError(source)
        where = np.array(points)
        out.append((gz.read(path).pixels, where, frame_of_face(where, template)))
    return tuple(out)


def scene(
    faces: Sequence[Planted], width: int, height: int, template: F64, *, clutter: float = 6.0, seed: int = 7
) -> Scene:
    """Faces pasted into a softly cluttered background; may lie partly outside."""
    random = np.random.default_rng(seed)
    soft = cv2.GaussianBlur(random.normal(0, 1, (height, width, 3)).astype(np.float32), (0, 0), 9)
    photo = np.array(SKY, np.float32) + soft / soft.std() * clutter
    known = []
    for index, face in enumerate(faces, 1):
        pixels, points, frame = people(tuple(map(tuple, template.tolist())))[face.who]
        angle = np.radians(face.roll)
        turn = face.side * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        # From the person's picture over fractions of the crop into the scene.
        there = np.column_stack((turn, np.array([face.x, face.y]) - turn @ (0.5, 0.5)))
        move = np.column_stack((there[:, :2] @ frame[:, :2], there[:, :2] @ frame[:, 2] + there[:, 2]))
        scale = face.side / side_of(frame)
        source = cv2.GaussianBlur(pixels, (0, 0), 0.45 / scale) if scale < 0.9 else pixels
        head = cv2.warpAffine(source, move, (width, height), flags=cv2.INTER_CUBIC).astype(np.float32)
        place = Place(index=index, frame=invert(there))
        weight = head_weight(place, Window(0, 0, width, height), [], drawn("crop"))
        inside = cv2.warpAffine(np.ones(pixels.shape[:2], np.float32), move, (width, height))
        photo += (weight * inside)[:, :, None] * (head - photo)
        moved = points @ move[:, :2].T + move[:, 2]
        box = (
            face.x - face.side * 0.24,
            face.y - face.side * 0.27,
            face.x + face.side * 0.24,
            face.y + face.side * 0.38,
        )
        known.append(Face(index=index, box=box, points=moved, score=1.0))
    image = Image(pixels=np.clip(np.rint(photo), 0, 255).astype(np.uint8))
    return Scene(image, tuple(known))


class Same:
    """An identity network in place of an engine."""

    def __init__(self, size: int) -> None:
        self.size = size

    def restore(self, crops: U8, *, on_crop: object = None) -> tuple[Outcome, ...]:
        plan = Plan(device="cpu", dtype="float32")
        return tuple(Outcome(pixels=c.copy(), plan=plan, attempts=(), ms=0.0) for c in crops)


def identity(template: F64, sizes: Sequence[int] = (256,)) -> Restorer:
    """A restorer whose network changes nothing; its detector must not be needed."""
    branches = tuple(
        Branch(name=f"same-{s}", size=s, template=template, build=lambda s=s: Same(s))  # type: ignore[misc, arg-type]
        for s in sizes
    )
    return Restorer(branches=branches, detector=None)  # type: ignore[arg-type]


def weight_of(result: RestoreResult, index: int, mask: Mask = "face") -> F32:
    """Blend weight of one face over the whole photo."""
    height, width = result.original.pixels.shape[:2]
    places = [Place(index=f.index, frame=f.frame) for f in result.faces]
    mine = next(p for p in places if p.index == index)
    return head_weight(mine, Window(0, 0, width, height), [p for p in places if p is not mine], drawn(mask))


def seam_score(before: U8, after: U8, weight: F32, truth: U8 | None = None) -> float:
    """How strong a line along the mask's edge is that `before` lacks; 0 is none, 1 as strong as the photo's own edges.

    before, after: uint8 (H, W, 3). weight: (H, W), the mask, whose gradient tells what "across" is. truth: of a worn
    picture, whose own edges are no seam when they come back, such as a sharp cheek where the mask ends. The change of
    luma across the edge is averaged along it, for a seam runs there and texture does not, in rings of equal weight; the
    ring with the largest difference counts, against the mean change of `before` in all of them.
    """
    dy, dx = np.gradient(cv2.GaussianBlur(weight, (0, 0), 1.0))
    steep = np.hypot(dx, dy)
    nx, ny = dx / np.maximum(steep, 1e-6), dy / np.maximum(steep, 1e-6)

    def across(pixels: U8) -> F64:
        luma = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY).astype(np.float32)
        gy, gx = np.gradient(cv2.GaussianBlur(luma, (0, 0), 0.7))
        return np.asarray(gx * nx + gy * ny)

    given, made = across(before), across(after)
    edges = np.linspace(0.02, 0.98, 9)
    rings = [(weight > low) & (weight <= high) for low, high in zip(edges[:-1], edges[1:], strict=True)]
    known = [given] if truth is None else [given, across(truth)]
    line = max(
        min(abs(float(made[ring].mean() - own[ring].mean())) for own in known) for ring in rings if ring.sum() > 20
    )
    return line / (float(np.abs(given[np.any(rings, axis=0)]).mean()) + 0.5)


def hue_shift(before: U8, after: U8, weight: F32) -> float:
    """Difference of mean colour under the mask in the a-b plane of CIELAB; below 1 nobody sees it side by side."""

    def mean(pixels: U8) -> F64:
        lab = cv2.cvtColor(pixels.astype(np.float32) / 255, cv2.COLOR_RGB2LAB)
        return np.asarray((lab[:, :, 1:] * weight[:, :, None]).sum((0, 1)) / weight.sum())

    return float(np.hypot(*(mean(after) - mean(before))))


def worn(image: Image, *, noise: float = 8.0, blur: float = 0.8, seed: int = 3) -> Image:
    """Softer and noisier."""
    soft = cv2.GaussianBlur(image.pixels, (0, 0), blur)
    noisy = soft + np.random.default_rng(seed).normal(0, noise, soft.shape)
    return image.with_pixels(np.clip(np.rint(noisy), 0, 255).astype(np.uint8))


def figures(restorer: Restorer) -> Iterator[tuple[str, str]]:
    """Name and value of every figure, one after another, as they come."""
    template = restorer.branches[0].template
    full = gz.Options(strength=1.0)
    for side in (64, 120, 250, 500, 1000):
        margin = round(side * 1.3)
        made = scene([Planted(margin / 2, margin / 2, side, 12, 1)], margin, margin, template)
        error = max(
            int(np.abs(r.image.pixels.astype(int) - made.image.pixels).max())
            for mask in MASKS
            for r in [identity(template)(made.image, gz.Options(strength=1.0, mask=mask), found=made.found)]
        )
        old = made._replace(image=worn(made.image))
        result = restorer(old.image, full, found=old.found)
        values = [f"identity {error}"]
        for mask in MASKS:
            after = gz.blend(result, gz.Options(strength=1.0, mask=mask)).image.pixels
            weight = weight_of(result, 1, mask)
            seam, hue = (f(old.image.pixels, after, weight) for f in (seam_score, hue_shift))
            values.append(f"{mask}: seam {seam:.2f} hue {hue:.2f}")
        inner = weight_of(result, 1) > 0.95

        def rms(pixels: U8, truth: U8 = made.image.pixels, inner: F32 = inner) -> float:  # type: ignore[assignment]
            return float(np.sqrt(np.square(pixels.astype(float) - truth)[inner].mean()))

        values.append(f"default strength {result.faces[0].default_strength:.2f}")
        values.append(
            f"error to the truth at full strength {rms(old.image.pixels):.1f} -> {rms(result.image.pixels):.1f}"
        )
        yield f"face of {side} px", "; ".join(values)
    yield from reblending(template)
    yield from large(template)


def reblending(template: F64) -> Iterator[tuple[str, str]]:
    """Time of one step of the strength slider at 2 megapixels."""
    cases = {
        "1 face of 1150 px, branch 1024": ([Planted(816, 612, 1150)], 1024),
        "5 faces of 350 px, branch 512": ([Planted(200 + 300 * i, 612, 350, 0, i % 2) for i in range(5)], 512),
        "60 faces of 150 px, branch 256": (
            [Planted(85 + 160 * (i % 10), 105 + 200 * (i // 10), 150, 0, i % 2) for i in range(60)],
            256,
        ),
    }
    for name, (faces, size) in cases.items():
        made = scene(faces, 1632, 1224, template)
        result = identity(template, (size,))(made.image, gz.Options(strength=1.0), found=made.found)
        result = different(result)
        took = []
        for strength in (0.2, 0.4, 0.6, 0.8, 1.0):
            start, cpu = time.perf_counter(), time.process_time()
            gz.blend(result, gz.Options(strength=strength))
            took.append((time.perf_counter() - start, time.process_time() - cpu))
        wall, busy = (round(1000 * min(t)) for t in zip(*took, strict=True))
        yield f"re-blend, {name}", f"{wall} ms, {busy} ms of processor time, load {os.getloadavg()[0]:.1f}"


def different(result: RestoreResult) -> RestoreResult:
    """The same with crops that differ, so that no step of pasting is idle."""
    random = np.random.default_rng(1)
    crops = tuple(
        RestoredCrop(
            index=c.index,
            frame=c.frame,
            before=c.before,
            after=np.clip(c.before + random.normal(0, 5, c.before.shape), 0, 255).astype(np.uint8),
        )
        for c in result.crops
    )
    return gz.RestoreResult(
        **{name: getattr(result, name) for name in result.__dataclass_fields__ if name != "crops"}, crops=crops
    )


def large(template: F64) -> Iterator[tuple[str, str]]:
    """Memory of pasting five faces of 2400 px into 100 megapixels, beyond the photo and its copy."""
    width, height = 12000, 8400
    small = scene([Planted(150 + 225 * i, 420, 240, 0, i % 2) for i in range(5)], 1200, 840, template)
    pixels = cv2.resize(small.image.pixels, (width, height), interpolation=cv2.INTER_LINEAR)
    faces = tuple(
        Face(index=f.index, box=tuple(10 * v for v in f.box), points=10 * f.points, score=1.0)  # type: ignore[arg-type]
        for f in small.faces
    )
    image = Image(pixels=np.asarray(pixels, np.uint8))
    del pixels, small
    restore = identity(template, (512,))
    result = different(restore(image, gz.Options(strength=0.0), found=Found(faces=faces, detector="truth")))
    tracemalloc.start()
    start = time.perf_counter()
    gz.blend(result, gz.Options(strength=1.0))
    took, peak = time.perf_counter() - start, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    sizes = f"{peak / 1e6:.0f} MB, {image.pixels.nbytes / 1e6:.0f} of them the result"
    yield "100 megapixels, 5 faces of 2400 px", f"{took:.1f} s, {sizes}"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--weights", default="gpen-demo-256")
    args = arguments.parse_args()
    for name, value in figures(gz.load(args.weights)):
        print(f"{name}: {value}", flush=True)


if __name__ == "__main__":
    main()
