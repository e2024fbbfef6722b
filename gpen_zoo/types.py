"""The values that flow through the package: frozen, keyword-only, arrays never written to after construction."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gpen_zoo.hints import Note

U8: TypeAlias = NDArray[np.uint8]
F32: TypeAlias = NDArray[np.float32]
F64: TypeAlias = NDArray[np.float64]
# What a face detector gives, in pixels of the array it was called with: boxes (N, 4) as x0, y0, x1, y1,
# points (N, 5, 2) in the order of `Face.points`, scores (N,).
RawFaces: TypeAlias = tuple[F64, F64, F64]
Tone: TypeAlias = Literal["colour", "toned", "grey"]
ToneChoice: TypeAlias = Literal["auto", "colour", "toned", "grey"]
Mask: TypeAlias = Literal["face", "face+hair", "crop"]
# How a face came to be known: by the detector, by the detector inside a drawn box, by the box alone, or because the
# picture is one aligned crop.
Origin: TypeAlias = Literal["found", "box", "drawn", "picture"]

REPORT_VERSION = 1
Scale: TypeAlias = Literal[1, 2, 4]


class Detector(Protocol):
    """A face detector: uint8 (H, W, 3) RGB of any size → `RawFaces`; several threads may call it at once."""

    @property
    def name(self) -> str:
        """As shown to people."""

    def __call__(self, pixels: U8) -> RawFaces: ...


class Parser(Protocol):
    """A face parser: an aligned crop uint8 (S, S, 3) RGB → classes uint8 (P, P), see masks.py; for several threads."""

    def __call__(self, crop: U8) -> U8: ...


class Verdict(str, Enum):
    """What became of one face."""

    RESTORED = "restored"
    SKIPPED = "skipped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Facts about the file a picture came from, as far as the way back needs them.

    format: Pillow's name of the container (`JPEG`, `PNG`, `WEBP`, `TIFF`, `BMP`…), `""` for pixels without a file.
    mode: Pillow's mode in the file (`RGB`, `L`, `P`, `CMYK`, `I;16`…). depth: bits per channel in the file.
    exif: EXIF block with orientation 1 and without GPS and thumbnail, or None. icc: profile of the *written* file
    (the pixels are sRGB), or None. quality: JPEG quality 1-100 that is at least as fine as the file's, or None.
    subsampling: JPEG chroma subsampling, 0 = 4:4:4, 1 = 4:2:2, 2 = 4:2:0, or None. lossless: a lossless WebP.
    """

    name: str = ""
    format: str = ""
    mode: str = "RGB"
    depth: int = 8
    exif: bytes | None = None
    icc: bytes | None = None
    dpi: tuple[float, float] | None = None
    quality: int | None = None
    subsampling: int | None = None
    lossless: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Image:
    """A decoded picture, upright.

    pixels: uint8 (H, W, 3), RGB, sRGB. alpha: uint8 (H, W) or None. tone: `grey` has three equal channels,
    `toned` is one hue in varying depth (sepia, cyanotype), else `colour`. notes: what decoding changed or warns of.
    """

    pixels: U8
    alpha: U8 | None = None
    tone: Tone = "colour"
    source: Source = field(default_factory=Source)
    notes: tuple[Note, ...] = ()

    def __post_init__(self) -> None:
        if (
            self.pixels.dtype != np.uint8
            or self.pixels.ndim != 3
            or self.pixels.shape[2] != 3
            or 0 in self.pixels.shape
        ):
            raise TypeError(f"pixels must be non-empty uint8 (H, W, 3), not {self.pixels.dtype} {self.pixels.shape}")
        if self.alpha is not None and (self.alpha.dtype != np.uint8 or self.alpha.shape != self.pixels.shape[:2]):
            raise TypeError(f"alpha must be uint8 {self.pixels.shape[:2]}, not {self.alpha.dtype} {self.alpha.shape}")

    @property
    def height(self) -> int:
        return int(self.pixels.shape[0])

    @property
    def width(self) -> int:
        return int(self.pixels.shape[1])

    def with_pixels(self, pixels: U8) -> Image:
        """The same file with other pixels."""
        return replace(self, pixels=pixels)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Face:
    """A detected face. index: 1-based, as shown to people. box: (x0, y0, x1, y1) in image pixels.

    points: float64 (5, 2) in image pixels: left eye, right eye, nose, left and right mouth corner *as seen in the
    picture*. score: 0-1. origin: how it came to be known.
    """

    index: int
    box: tuple[float, float, float, float]
    points: F64
    score: float
    origin: Origin = "found"

    def __post_init__(self) -> None:
        if self.points.shape != (5, 2) or not np.isfinite(self.points).all():
            raise TypeError(f"points must be finite (5, 2), not {self.points.shape}")

    @property
    def roll(self) -> float:
        """Angle of the eye line in degrees; positive turns the right eye downwards."""
        dx, dy = self.points[1] - self.points[0]
        return math.degrees(math.atan2(float(dy), float(dx)))

    @property
    def longest(self) -> float:
        """Longer side of the box in pixels."""
        return max(self.box[2] - self.box[0], self.box[3] - self.box[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the user chose.

    strength: 0 (the photo, bit for bit) … 1 (all of the network), None for what suits each face (see strength.py).
    aligned: the whole picture is one aligned crop. faces: 1-based numbers of the faces to restore. boxes: drawn ones as
    x, y, width, height in photo pixels; a face inside is restored, or the box itself when none is found. Without faces
    and boxes (None and empty) all faces are meant. min_size: faces whose box's longer side has fewer pixels are left
    alone. largest: only the largest of the faces meant. strengths: a face's own strength by its number; faces not named
    use `strength`. mask: how much around the face may change. tone: how the photo is treated, `auto` as it was judged
    when read. grain: the photo's own grain is put over restored faces. scale: how many times as wide and as high the
    result is. background: what enlarges the photo around the faces: `lanczos`, weights by their name in the manifest,
    or `auto`, the best that is installed. At scale 1 only named weights touch it: they enlarge it, then it is shrunk.
    """

    strength: float | None = None
    aligned: bool = False
    faces: tuple[int, ...] | None = None
    strengths: tuple[tuple[int, float], ...] = ()
    boxes: tuple[tuple[float, float, float, float], ...] = ()
    min_size: float = 0.0
    largest: bool = False
    mask: Mask = "face"
    tone: ToneChoice = "auto"
    grain: bool = False
    scale: Scale = 1
    background: str = "auto"

    @property
    def leaves_background(self) -> bool:
        """Whether the photo around the faces stays bit for bit as it is."""
        return self.scale == 1 and self.background in ("auto", "lanczos")

    def strength_of(self, index: int) -> float | None:
        """Strength of the face with this number, None for the face's own default."""
        return dict(self.strengths).get(index, self.strength)

    def as_dict(self) -> dict[str, Any]:
        """The JSON form that `options_from_json` reads."""
        return {
            "strength": "auto" if self.strength is None else self.strength,
            "aligned": self.aligned,
            "faces": None if self.faces is None else list(self.faces),
            "strengths": {str(i): s for i, s in self.strengths},
            "boxes": [list(b) for b in self.boxes],
            "min_size": self.min_size,
            "largest": self.largest,
            "mask": self.mask,
            "tone": self.tone,
            "grain": self.grain,
            "scale": self.scale,
            "background": self.background,
        }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FaceReport:
    """What happened to one face and why.

    side: side of its aligned crop in photo pixels. frame: float64 (2, 3), photo pixels → fractions of that crop.
    yaw: degrees turned from the camera, estimated from the landmarks; positive: to the picture's right. origin: how it
    came to be known. default_strength, strength_note: what `strength=None` gives it, and why it is below 1.
    mask: what its weight was drawn from: `landmarks`, `parsing`, `crop` (all but its border), `whole`, or "" when
    it was not pasted.
    """

    index: int
    verdict: Verdict
    note: Note
    box: tuple[float, float, float, float]
    score: float
    side: float
    roll: float
    frame: F64
    yaw: float = 0.0
    origin: Origin = "found"
    branch: str | None = None
    branch_note: Note | None = None
    strength: float = 0.0
    default_strength: float = 1.0
    strength_note: Note | None = None
    mask: str = ""
    plan: str | None = None
    attempts: tuple[Note, ...] = ()
    ms: float = 0.0

    @property
    def longest(self) -> float:
        """Longer side of the box in pixels."""
        return max(self.box[2] - self.box[0], self.box[3] - self.box[1])

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready, numbers rounded to what they are worth."""
        return {
            "index": self.index,
            "verdict": self.verdict.value,
            "note": self.note.as_dict(),
            "box": [round(v, 1) for v in self.box],
            "score": round(self.score, 4),
            "side_px": round(self.side, 1),
            "roll_degrees": round(self.roll, 1),
            "yaw_degrees": round(self.yaw, 1),
            "origin": self.origin,
            "branch": self.branch,
            "branch_note": self.branch_note.as_dict() if self.branch_note else None,
            "strength": round(self.strength, 3),
            "default_strength": round(self.default_strength, 3),
            "strength_note": self.strength_note.as_dict() if self.strength_note else None,
            "mask": self.mask,
            "plan": self.plan,
            "attempts": [a.as_dict() for a in self.attempts],
            "ms": round(self.ms, 1),
        }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RestoredCrop:
    """What the network made of one face, kept so that another strength needs no network.

    index: the face's number. frame: float64 (2, 3), photo pixels → fractions of the crop's side (see align.py).
    before, after: uint8 (S, S, 3) RGB crops. regions: ParseNet's classes of `after`, uint8 (P, P), if it was asked.
    """

    index: int
    frame: F64
    before: U8
    after: U8
    regions: U8 | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Enlarged:
    """The photo at the size of the result, before its faces are pasted.

    image: as it was made. toned: its pixels with no more than the photo's own hues, where those matter and weights
    made it (see background.py), else None. method: `lanczos`, or the name of the weights. plan: how they ran last, or
    None. attempts: every change of plan with its cause, oldest first. estimate: seconds it was expected to take, or
    None. seconds: what it took.
    """

    image: Image
    method: str
    scale: Scale
    toned: U8 | None = None
    plan: str | None = None
    attempts: tuple[Note, ...] = ()
    estimate: float | None = None
    seconds: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "method": self.method,
            "scale": self.scale,
            "plan": self.plan,
            "attempts": [a.as_dict() for a in self.attempts],
            "estimate_seconds": None if self.estimate is None else round(self.estimate, 1),
            "seconds": round(self.seconds, 2),
        }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RestoreResult:
    """The finished photo and everything that can be told about it.

    original: the photo as it was read. crops: what the network made, for another blend without the network.
    options: those it was last blended with. enlarged: the photo that the faces are pasted into, None for `original`.
    """

    image: Image
    original: Image
    faces: tuple[FaceReport, ...]
    notes: tuple[Note, ...]
    timings: tuple[tuple[str, float], ...]  # stage, milliseconds
    weights: tuple[str, ...]
    detector: str
    crops: tuple[RestoredCrop, ...] = ()
    aligned: bool = False
    options: Options = Options()
    enlarged: Enlarged | None = None

    @property
    def before(self) -> Image:
        """The photo without restored faces at the size of the result, for comparison side by side."""
        if self.enlarged is None:
            return self.original
        image, toned = self.enlarged.image, self.enlarged.toned
        return image if toned is None or self.tone == "colour" else image.with_pixels(toned)

    @property
    def tone(self) -> Tone:
        """How the photo is treated: as the user said, else as it was judged when read."""
        return self.original.tone if self.options.tone == "auto" else self.options.tone

    def as_dict(self) -> dict[str, Any]:
        """The report: JSON-ready, described by assets/report.schema.json. `version` rises when a field goes or changes
        its meaning, not when one is added."""
        source = self.image.source
        return {
            "version": REPORT_VERSION,
            "file": source.name,
            "format": source.format,
            "width": self.image.width,
            "height": self.image.height,
            "tone": self.tone,
            "options": self.options.as_dict(),
            "background": None if self.enlarged is None else self.enlarged.as_dict(),
            "detector": self.detector,
            "weights": list(self.weights),
            "faces": [f.as_dict() for f in self.faces],
            "notes": [n.as_dict() for n in self.notes],
            "timings_ms": {k: round(v, 1) for k, v in self.timings},
        }
