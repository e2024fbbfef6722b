"""Bytes → Image → bytes: what a photo file holds goes in, and comes out in the same form with other pixels.

Decoding looks at the header first (format, size, frames) and refuses there; only then are pixels decoded. Whatever
the file held, pixels come out as uint8 RGB, sRGB, upright, with alpha beside them; `Source` keeps what the way back
needs. Every change that somebody might notice is a note on the image.
"""

from __future__ import annotations

import importlib
import importlib.util
import io
import logging
import os
import struct
from pathlib import Path
from typing import Any, Literal

from PIL import Image as pil
from PIL import JpegImagePlugin, features
from PIL.ImageFile import ImageFile

from gpen_zoo import image_meta, image_pixels, image_rescue
from gpen_zoo.errors import GpenError, ImageTooLarge, ImageUnreadable, OptionsInvalid, PathInaccessible
from gpen_zoo.hints import Note, note
from gpen_zoo.image_names import format_of_suffix as format_of_suffix  # part of this module's door
from gpen_zoo.image_names import named_format, result_name
from gpen_zoo.image_sniff import format_of, kind_of, tiff_pages, webp_canvas, webp_is_lossless
from gpen_zoo.outputs import put_file
from gpen_zoo.types import Image, Source

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
        depth = _depth(im, data)
        mode = "LA" if kind == "PNG" and image_meta.png_header(data) == (16, 4) else im.mode
        frames = _frames(im, data)
        loaded = image_rescue.load(data, opened)
        notes = [*_damage(loaded, truncated), *_frame_notes(kind, frames)]
        image = loaded.image
        quality, subsampling = _jpeg_facts(image)
        icc, dpi = image.info.get("icc_profile"), _dpi(image)
        parts = image_pixels.channels(image, depth=depth, mode=mode, icc=icc)
        exif, turn, damaged = _exif(image, converted=parts.icc != icc)
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
    notes += [n for n in (parts.note, note("I13") if damaged else None) if n]
    alpha = None if parts.alpha is None else image_pixels.upright(parts.alpha, turn)
    rgb, tone = image_pixels.toned(image_pixels.upright(parts.rgb, turn), alpha, parts.grey)
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
            icc=parts.icc,
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
    wanted = named_format(format) if format else image.source.format or "PNG"
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
    im = image_pixels.assembled(image, with_alpha=chosen not in _NO_ALPHA)
    options: dict[str, Any] = _writer_options(image.source, chosen, quality)
    icc, exif = image.source.icc, image.source.exif
    # An RGB profile in a greyscale file (or the reverse) is invalid, and sRGB grey needs none.
    if icc and icc[16:20] == (b"GRAY" if im.mode in ("L", "LA") else b"RGB "):
        options["icc_profile"] = icc
    if exif and chosen != "BMP":
        options["exif"] = image_meta.exif_for(exif, image.width, image.height)
    if image.source.dpi and chosen in ("JPEG", "PNG", "TIFF", "BMP"):
        options["dpi"] = image.source.dpi
    buffer = io.BytesIO()
    im.save(buffer, chosen, **options)
    return buffer.getvalue()


def write(image: Image, path: str | os.PathLike[str], *, format: str | None = None, quality: int | None = None) -> Path:
    """Write a picture file and return its path. The format comes from `format`, else a known suffix, else the input.

    Folders are made; the target is whole or absent. Raises PathInaccessible (U17 disk full, I22) and what `encode`
    raises.
    """
    file = Path(path)
    put_file(encode(image, format=format or format_of_suffix(file.suffix), quality=quality), file)
    return file


def output_name(image: Image, suffix: str = "_restored", *, format: str | None = None) -> str:
    """File name for the result: the original stem + `suffix` + the extension of the real format.

    Safe to join to a folder; see `image_names.result_name`. Raises OptionsInvalid as `output_format` does.
    """
    return result_name(image.source.name, suffix, output_format(image, format)[0])


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
        return image_meta.png_header(data)[0]
    if im.format == "TIFF":
        bits = im.tag_v2.get(258, 8)  # type: ignore[attr-defined]  # BitsPerSample
        return max(int(b) for b in (bits if isinstance(bits, tuple) else (bits,)))
    return 16 if im.mode.startswith("I") else 1 if im.mode == "1" else 8


def _frames(im: pil.Image, data: bytes) -> int:
    """Frames or pages; 1 where the chain of them is damaged, for the first one may still be whole."""
    if im.format == "TIFF":
        return tiff_pages(data)
    try:
        return int(getattr(im, "n_frames", 1))
    except (OSError, SyntaxError, ValueError, EOFError, KeyError, TypeError, struct.error):
        log.info("frames cannot be counted", exc_info=True)
        return 1


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


def _exif(im: pil.Image, *, converted: bool) -> tuple[bytes | None, int, bool]:
    """(EXIF for the result, orientation 1-8, whether the block was damaged). converted: colours are sRGB now."""
    turn = 1
    try:
        turn = image_meta.orientation_of(im)
        return image_meta.clean_exif(im.getexif(), now_srgb=converted), turn, False
    except Exception:  # a damaged block raises anything, and must not cost the picture
        log.info("EXIF block left out", exc_info=True)
        return None, turn, True


def _dpi(im: pil.Image) -> tuple[float, float] | None:
    try:
        x, y = (float(v) for v in im.info.get("dpi", ()))
    except (TypeError, ValueError, ZeroDivisionError):
        return None
    return (x, y) if 0 < x < 1e5 and 0 < y < 1e5 else None


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
