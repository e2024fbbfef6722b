"""Bytes → Image → bytes: what a photo file holds goes in, and comes out in the same form with other pixels.

Decoding looks at the header first (format, size, frames) and refuses there; only then are pixels decoded. Whatever
the file held, pixels come out as uint8 RGB, sRGB, upright, with alpha beside them; `Source` keeps what the way back
needs. Every change that somebody might notice is a note on the image.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import logging
import os
import unicodedata
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image as pil
from PIL import JpegImagePlugin, features
from PIL.ImageFile import ImageFile

from gpen_zoo import image_meta, image_rescue
from gpen_zoo.errors import GpenError, ImageTooLarge, ImageUnreadable, OptionsInvalid, PathInaccessible
from gpen_zoo.hints import Note, note
from gpen_zoo.image_sniff import SUFFIXES, format_of, kind_of, webp_canvas, webp_is_lossless
from gpen_zoo.tone import tone_of
from gpen_zoo.types import U8, Image, Source, Tone

log = logging.getLogger(__name__)

DEFAULT_LIMIT_MP = 200.0
MAX_SIDE = 65_535
MAX_FILE_BYTES = 1 << 30
# A blank page packs to 8,000 pixels a byte, a photo to less than 100. Small pictures do no harm either way.
_MAX_PIXELS_PER_BYTE = 5_000
_HARMLESS_PIXELS = 16_000_000
_DEFAULT_QUALITY = 92
_WEBP_QUALITY = 95

# Plugins are named here instead of asking `PIL.Image.open`: it would try every format Pillow has (some start other
# programs) and applies a process-wide size limit.
_PLUGINS: dict[str, tuple[str, str]] = {
    "JPEG": ("PIL.JpegImagePlugin", "JpegImageFile"),
    "PNG": ("PIL.PngImagePlugin", "PngImageFile"),
    "WEBP": ("PIL.WebPImagePlugin", "WebPImageFile"),
    "TIFF": ("PIL.TiffImagePlugin", "TiffImageFile"),
    "BMP": ("PIL.BmpImagePlugin", "BmpImageFile"),
    "GIF": ("PIL.GifImagePlugin", "GifImageFile"),
    "PPM": ("PIL.PpmImagePlugin", "PpmImageFile"),
    "JPEG2000": ("PIL.Jpeg2KImagePlugin", "Jpeg2KImageFile"),
    "AVIF": ("PIL.AvifImagePlugin", "AvifImageFile"),
    "HEIF": ("pillow_heif", "HeifImageFile"),
}
# Parts of Pillow that a build may lack, and what brings them.
_OPTIONAL = {"WEBP": ("webp", "pillow"), "AVIF": ("avif", "pillow-heif"), "JPEG2000": ("jpg_2000", "pillow")}
_WRITABLE = ("JPEG", "PNG", "WEBP", "TIFF", "BMP", "AVIF")
_NO_ALPHA = ("JPEG", "BMP")
# EXIF orientation → counter-clockwise quarter turns, then mirrored left to right.
_TURNS = {
    1: (0, False),
    2: (0, True),
    3: (2, False),
    4: (2, True),
    5: (3, True),
    6: (3, False),
    7: (1, True),
    8: (1, False),
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Pixels:
    """Decoded and in sRGB, not yet upright. grey: the file itself is greyscale."""

    rgb: U8
    alpha: U8 | None
    grey: bool
    icc: bytes | None
    note: Note | None


def decode(
    data: bytes,
    *,
    name: str = "",
    truncated: Literal["open", "refuse"] = "open",
    limit_mp: float = DEFAULT_LIMIT_MP,
) -> Image:
    """The picture in `data`.

    name: file name to remember. truncated: `open` keeps what a file that ends early still holds and adds note I02
    (or I24) with the usable share, `refuse` raises instead. limit_mp: most megapixels, read from the header.

    Raises ImageUnreadable (I01 no picture and what it is instead, I04 a reader is missing, I05 damaged, I14 cut
    short) and ImageTooLarge (I03 megapixels, I06 side, I07 bomb, I23 memory). Thread-safe.
    """
    kind = format_of(data[:64])
    if kind is None:
        raise ImageUnreadable("I01", kind=note(kind_of(data)))
    plugin = _plugin(kind)
    canvas = webp_canvas(data) if kind == "WEBP" else None
    if canvas:
        _check_size(*canvas, len(data), limit_mp)

    def opened(content: bytes) -> ImageFile:
        return plugin(io.BytesIO(content))  # type: ignore[no-any-return]

    size = (0, 0)
    try:
        im = opened(data)
        size = im.size
        _check_size(*size, len(data), limit_mp)
        if kind == "TIFF" and 50706 in im.tag_v2:  # type: ignore[attr-defined]  # DNGVersion
            raise ImageUnreadable("I01", kind=note("kind.raw"))
        if im.info.get("progressive") and len(image_rescue.scan_starts(data)) > image_rescue.MAX_SCANS:
            raise ImageUnreadable("I05", format=kind, reason="too many scans")
        depth = _depth(im, data)
        mode = "LA" if kind == "PNG" and image_meta.png_header(data) == (16, 4) else im.mode
        frames = _frames(im)
        loaded = image_rescue.load(data, opened)
        notes = [*_damage(loaded, truncated), *_frame_notes(kind, frames)]
        image = loaded.image
        quality, subsampling = _jpeg_facts(image)
        exif, turn, damaged = _exif(image)
        icc, dpi = image.info.get("icc_profile"), _dpi(image)
        pixels = _split(image, depth, mode, icc)
    except GpenError:
        raise
    except MemoryError as error:
        raise ImageTooLarge("I23", mp=_mp(*size)) from error
    except Exception as error:
        # Pillow's plugins raise whatever their parsing runs into (struct.error, SyntaxError, KeyError, OverflowError…).
        log.info("%s: %s decoder failed", name, kind, exc_info=True)
        raise ImageUnreadable("I05", format=kind, reason=str(error)[:120] or type(error).__name__) from error

    if depth > 8:
        notes.append(note("I08", depth=depth))
    notes += [n for n in (pixels.note, note("I13") if damaged else None) if n]
    rgb, alpha = _upright(pixels.rgb, turn), None if pixels.alpha is None else _upright(pixels.alpha, turn)
    rgb, tone = _toned(rgb, alpha, pixels.grey)
    return Image(
        pixels=rgb,
        alpha=alpha,
        tone=tone,
        source=Source(
            name=name,
            format=kind,
            mode=mode,
            depth=depth,
            exif=exif,
            icc=pixels.icc,
            dpi=dpi[::-1] if dpi and turn >= 5 else dpi,
            quality=quality,
            subsampling=subsampling,
            lossless=kind == "WEBP" and webp_is_lossless(data),
        ),
        notes=tuple(notes),
    )


def read(
    path: str | os.PathLike[str],
    *,
    truncated: Literal["open", "refuse"] = "open",
    limit_mp: float = DEFAULT_LIMIT_MP,
) -> Image:
    """The picture in a file; keywords and errors as in `decode`, and PathInaccessible (I19-I21) for the path itself."""
    file = Path(path)
    try:
        if not file.exists():
            raise PathInaccessible("I19", path=str(file))
        if not file.is_file():
            raise PathInaccessible("I20", path=str(file))
        size = file.stat().st_size
        with file.open("rb") as stream:
            data = stream.read(65_536)
            # Before the rest is fetched: a folder of films would otherwise be read whole to be refused.
            if size > len(data) and format_of(data[:64]) is None:
                raise ImageUnreadable("I01", kind=note(kind_of(data)))
            if size > MAX_FILE_BYTES:
                raise ImageTooLarge("I25", mb=size >> 20, limit=MAX_FILE_BYTES >> 20)
            data += stream.read(MAX_FILE_BYTES)
    except GpenError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        raise PathInaccessible("I21", path=str(file), reason=_reason(error)) from error
    return decode(data, name=file.name, truncated=truncated, limit_mp=limit_mp)


def output_format(image: Image, format: str | None = None) -> tuple[str, Note | None]:
    """Pillow's name of the format that `encode` will write, and a note when that is not quite what was asked.

    format: a Pillow name or file suffix (`JPEG`, `jpg`, `.tif`), None for the input's own. Without a format, what
    cannot be written (GIF, HEIC, alpha in a BMP…) becomes PNG; a format that was asked for is written or refused
    with OptionsInvalid (I16, I27).
    """
    wanted = _named_format(format) if format else image.source.format or "PNG"
    limit = {"WEBP": 16_383, "JPEG": 65_500, "AVIF": 65_536}.get(wanted, 1 << 31)
    if wanted not in _WRITABLE or (wanted == "AVIF" and not features.check("avif")):
        if format:
            raise OptionsInvalid("I16", format=format, known=", ".join(_WRITABLE))
        return "PNG", note("I15", format=wanted)
    if max(image.width, image.height) > limit:
        if format:
            raise OptionsInvalid("I27", format=wanted, limit=limit, width=image.width, height=image.height)
        return "PNG", note("I15", format=wanted)
    if wanted in _NO_ALPHA and image.alpha is not None and not (image.alpha == 255).all():
        return (wanted, note("I17", format=wanted)) if format else ("PNG", note("I28", format=wanted))
    return wanted, None


def encode(image: Image, *, format: str | None = None, quality: int | None = None) -> bytes:
    """A picture file as `output_format` says.

    Grey files stay one channel, alpha keeps the colours that it hides, EXIF has orientation 1, colours are sRGB.
    quality: 1-100 for JPEG, WebP and AVIF. None: a JPEG at least as fine as the input was and never below 92, with
    the input's chroma subsampling; WebP lossless where the input was, else 95.
    """
    if quality is not None and not (isinstance(quality, int) and 1 <= quality <= 100):
        raise OptionsInvalid("I18", quality=quality)
    chosen, _ = output_format(image, format)
    im = _assembled(image, chosen)
    options: dict[str, Any] = _writer_options(image.source, chosen, quality)
    icc, exif = image.source.icc, image.source.exif
    # An RGB profile in a greyscale file (or the reverse) is invalid, and sRGB grey needs none.
    if icc and icc[16:20] == (b"GRAY" if im.mode in ("L", "LA") else b"RGB "):
        options["icc_profile"] = icc
    if exif and chosen != "BMP":
        options["exif"] = image_meta.sized_exif(exif, image.width, image.height)
    if image.source.dpi and chosen in ("JPEG", "PNG", "TIFF", "BMP"):
        options["dpi"] = image.source.dpi
    buffer = io.BytesIO()
    im.save(buffer, chosen, **options)
    return buffer.getvalue()


def write(image: Image, path: str | os.PathLike[str], *, format: str | None = None, quality: int | None = None) -> Path:
    """Write a picture file and return its path. The format comes from `format`, else a known suffix, else the input.

    Folders are made. The bytes go to a temporary name beside the target and are renamed, so that the target is
    whole or absent. Raises PathInaccessible (I22) and what `encode` raises.
    """
    file = Path(path)
    data = encode(image, format=format or _format_of_suffix(file.suffix), quality=quality)
    part = file.with_name(f".{uuid.uuid4().hex}.part")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            part.write_bytes(data)
            os.replace(part, file)
        finally:
            with contextlib.suppress(FileNotFoundError):
                part.unlink()
    except (OSError, ValueError) as error:
        raise PathInaccessible("I22", path=str(file), reason=_reason(error)) from error
    return file


def output_name(image: Image, suffix: str = "_restored", *, format: str | None = None) -> str:
    """File name for the result: the original stem + `suffix` + an extension that tells the truth.

    The original extension stays as it was written when it fits the format (`.JPG`, `.jpeg`). Folders, control and
    direction characters and those that Windows forbids are taken out; letters of every script stay.
    """
    chosen, _ = output_format(image, format)
    stem, extension = os.path.splitext(_safe(image.source.name))
    own = _format_of_suffix(extension)
    if own is None:
        stem += extension
    if own != chosen:
        extension = SUFFIXES[chosen][0]
    stem = stem.strip(". ") or "photo"
    # 255 bytes is the limit of most file systems; a Chinese character takes three. The rest is for a caller's " (2)".
    room = max(1, 230 - len((suffix + extension).encode()))
    return stem.encode()[:room].decode(errors="ignore") + suffix + extension


def _safe(name: str) -> str:
    name = name.replace("\\", "/").rsplit("/", 1)[-1]
    # Cc control, Cf direction marks that disguise a name, Cs bytes that were no UTF-8 in the file system
    kept = "".join("_" if c in '<>:"|?*' or unicodedata.category(c) == "Cs" else c for c in name)
    return "".join(c for c in kept if unicodedata.category(c) not in ("Cc", "Cf"))


def _format_of_suffix(suffix: str) -> str | None:
    lower = suffix.lower()
    return next((fmt for fmt, known in SUFFIXES.items() if lower in known), None)


def _named_format(format: str) -> str:
    upper = format.upper()
    return upper if upper in SUFFIXES else _format_of_suffix(f".{format.lstrip('.')}") or upper


def _plugin(kind: str) -> Any:
    """Pillow's class for a format; ImageUnreadable (I04) where this installation cannot read it."""
    module, cls = _PLUGINS[kind]
    if kind == "HEIF" and importlib.util.find_spec("pillow_heif") is None:
        raise ImageUnreadable("I04", format="HEIC", package="pillow-heif")
    if kind in _OPTIONAL and not features.check(_OPTIONAL[kind][0]):
        raise ImageUnreadable("I04", format=kind, package=_OPTIONAL[kind][1])
    return getattr(importlib.import_module(module), cls)


def _mp(width: int, height: int) -> float:
    return round(width * height / 1e6, 1)


def _check_size(width: int, height: int, size: int, limit_mp: float) -> None:
    if width * height > limit_mp * 1e6:
        raise ImageTooLarge("I03", width=width, height=height, mp=_mp(width, height), limit=f"{limit_mp:g}")
    if max(width, height) > MAX_SIDE:
        raise ImageTooLarge("I06", width=width, height=height, limit=MAX_SIDE)
    if width * height > max(_HARMLESS_PIXELS, _MAX_PIXELS_PER_BYTE * size):
        raise ImageTooLarge("I07", kb=round(size / 1024, 1), mp=_mp(width, height))


def _depth(im: pil.Image, data: bytes) -> int:
    """Bits per channel in the file; Pillow hands 16-bit colour over as 8-bit without a word."""
    if im.format == "PNG":
        return max(8, image_meta.png_header(data)[0])
    if im.format == "TIFF":
        bits = im.tag_v2.get(258, (8,))  # type: ignore[attr-defined]  # BitsPerSample
        return max(8, *(int(b) for b in (bits if isinstance(bits, tuple) else (bits,))))
    return 16 if im.mode.startswith("I") else 8


def _frames(im: pil.Image) -> int:
    return int(getattr(im, "n_frames", 1))


def _frame_notes(kind: str, frames: int) -> list[Note]:
    return [note("I10" if kind == "TIFF" else "I09", count=frames)] if frames > 1 else []


def _damage(loaded: image_rescue.Loaded, truncated: str) -> list[Note]:
    if loaded.intact:
        return []
    pct = min(99, int(loaded.usable * 100)) if loaded.usable < 1 else 100
    if truncated == "refuse" or pct == 0:
        raise ImageUnreadable("I14", pct=pct)
    if loaded.coarse:
        return [note("I24", pct=pct)]
    return [note("I02", pct=pct) if pct < 100 else note("I29")]


def _jpeg_facts(im: pil.Image) -> tuple[int | None, int | None]:
    """(quality, subsampling) of a JPEG file, (None, None) for others."""
    if not isinstance(im, JpegImagePlugin.JpegImageFile):
        return None, None
    # -1 stands for a sampling that the writer does not offer; full chroma then loses nothing.
    return image_meta.jpeg_quality(im.quantization), max(0, JpegImagePlugin.get_sampling(im))


def _exif(im: pil.Image) -> tuple[bytes | None, int, bool]:
    """(EXIF for the result, orientation 1-8, whether the block was damaged)."""
    turn = 1
    try:
        turn = image_meta.orientation_of(im)
        return image_meta.clean_exif(im.getexif()), turn, False
    except Exception:  # a damaged block raises anything, and must not cost the picture
        log.info("EXIF block left out", exc_info=True)
        return None, turn, True


def _dpi(im: pil.Image) -> tuple[float, float] | None:
    try:
        x, y = (float(v) for v in im.info.get("dpi", ()))
    except (TypeError, ValueError, ZeroDivisionError):
        return None
    return (x, y) if 0 < x < 1e5 and 0 < y < 1e5 else None


def _split(im: pil.Image, depth: int, mode: str, icc: bytes | None) -> _Pixels:
    """Colours and alpha of a loaded image, every Pillow mode."""
    alpha: U8 | None = None
    key = im.info.get("transparency")
    if im.mode.startswith(("I", "F")):
        values = np.asarray(im)
        if isinstance(key, int):
            alpha = np.where(values == key, 0, 255).astype(np.uint8)
        im = pil.fromarray(_to_8_bit(values, im, depth))
    elif depth == 16 and isinstance(key, tuple):
        # The key colour is given in 16 bits, the pixels have lost their low bytes.
        matches = (np.asarray(im) == np.array(key) >> 8).all(axis=-1)
        alpha = np.where(matches, 0, 255).astype(np.uint8)
    elif im.mode in ("RGBA", "LA", "PA", "La", "RGBa") or key is not None:
        im = im.convert("LA" if mode in ("L", "LA", "La", "1") else "RGBA")
        alpha = np.array(im.getchannel("A"))
        im = im.getchannel("L") if im.mode == "LA" else pil.merge("RGB", im.split()[:3])
    elif im.mode in ("1", "P"):
        im = im.convert("L" if im.mode == "1" else "RGB")
    im, icc, said = image_meta.to_srgb(im, icc)
    grey = im.mode == "L"
    rgb = np.array(im)
    return _Pixels(
        rgb=np.repeat(rgb[..., None], 3, axis=2) if grey else rgb, alpha=alpha, grey=grey, icc=icc, note=said
    )


def _to_8_bit(values: NDArray[Any], im: pil.Image, depth: int) -> U8:
    """Grey samples of 16 or 32 bits or floats as uint8; full scale is a matter of the type, never of the values."""
    if values.dtype.kind == "f":
        # Float TIFF: 0-1 is the convention of every program that writes photos into it.
        return np.asarray(np.rint(np.nan_to_num(values).clip(0, 1) * 255), dtype=np.uint8)
    if depth > 16:
        return (values.astype(np.uint32) >> 24).astype(np.uint8)
    whole = values.astype(np.int64).clip(0, 65_535)
    if getattr(im, "tag_v2", {}).get(262) == 0 and im.mode.startswith("I;16"):
        whole = 65_535 - whole  # WhiteIsZero, which Pillow honours for 8 bits only
    return ((whole + 128) // 257).astype(np.uint8)


def _upright(array: U8, turn: int) -> U8:
    quarter_turns, mirrored = _TURNS[turn]
    turned = np.rot90(array, quarter_turns)
    return np.ascontiguousarray(turned[:, ::-1] if mirrored else turned)


def _toned(rgb: U8, alpha: U8 | None, grey: bool) -> tuple[U8, Tone]:
    """Tone, and pixels that keep its promise: grey means three equal channels."""
    if grey:
        return rgb, "grey"
    tone = tone_of(rgb, alpha)
    if tone != "grey":
        return rgb, tone
    if alpha is not None and not (alpha == 255).all() and tone_of(rgb) != "grey":
        # Grey to the eye, but colours lie hidden under alpha. Toned pictures keep their chroma, so both survive.
        return rgb, "toned"
    luma = np.array(pil.fromarray(rgb).convert("L"))
    return np.repeat(luma[..., None], 3, axis=2), "grey"


def _assembled(image: Image, chosen: str) -> pil.Image:
    """Pillow image with the channels that the file gets."""
    pixels, alpha = image.pixels, image.alpha
    if alpha is not None and chosen in _NO_ALPHA:
        share = alpha[..., None].astype(np.float32) / 255
        pixels, alpha = np.rint(pixels * share + 255 * (1 - share)).astype(np.uint8), None
    was_grey = image.source.mode in ("L", "LA", "La", "1", "F") or image.source.mode.startswith("I")
    same = (pixels[..., 0] == pixels[..., 1]) & (pixels[..., 1] == pixels[..., 2]) if was_grey else None
    grey = same is not None and bool(same.all())
    im = pil.fromarray(np.ascontiguousarray(pixels[..., 0]) if grey else pixels)
    if alpha is not None:
        im.putalpha(pil.fromarray(alpha))
    return im


def _writer_options(source: Source, chosen: str, quality: int | None) -> dict[str, Any]:
    if chosen == "JPEG":
        return {
            "quality": quality or max(_DEFAULT_QUALITY, source.quality or 0),
            "subsampling": source.subsampling or 0,
        }
    if chosen == "WEBP":
        lossless = source.lossless and quality is None
        # exact: colours under alpha 0 are kept. A lossless file's quality is the effort spent on packing it.
        return {"quality": 75 if lossless else quality or _WEBP_QUALITY, "lossless": lossless, "exact": True}
    if chosen == "AVIF":
        return {"quality": quality or 90}
    # libtiff, which Pillow compresses with, cannot write an EXIF block; Pillow's own uncompressed writer can.
    return {"compression": "tiff_adobe_deflate"} if chosen == "TIFF" and not source.exif else {}


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
