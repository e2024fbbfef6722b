"""What a picture file says about its pixels: EXIF, colour profile, JPEG quality.

Colour: pixels are brought to sRGB and the result is tagged sRGB, instead of being converted back. The network knows
sRGB only, two conversions would round twice, and every viewer shows an sRGB file right. Colours outside sRGB are
clipped to it; colours inside keep their look. A profile that *is* sRGB, by what it does to a lattice of colours, is
kept byte for byte and the pixels are left alone. XMP and IPTC blocks are not carried over: they repeat orientation,
place and thumbnail, which must not survive.
"""

from __future__ import annotations

import io
import re
import struct
from functools import lru_cache
from typing import Any

import numpy as np
from PIL import ExifTags, ImageCms, JpegImagePlugin
from PIL import Image as pil

from gpen_zoo.hints import Note, note

# IFD0 tags that speak about the photo. The rest of IFD0 describes how the old file stored its pixels.
_KEPT = frozenset(
    {
        ExifTags.Base.DocumentName,
        ExifTags.Base.ImageDescription,
        ExifTags.Base.Make,
        ExifTags.Base.Model,
        ExifTags.Base.XResolution,
        ExifTags.Base.YResolution,
        ExifTags.Base.ResolutionUnit,
        ExifTags.Base.Software,
        ExifTags.Base.DateTime,
        ExifTags.Base.Artist,
        ExifTags.Base.HostComputer,
        ExifTags.Base.Copyright,
        ExifTags.Base.Rating,
        ExifTags.Base.RatingPercent,
        ExifTags.Base.XPTitle,
        ExifTags.Base.XPComment,
        ExifTags.Base.XPAuthor,
        ExifTags.Base.XPKeywords,
        ExifTags.Base.XPSubject,
    }
)
_MAKER_NOTE, _INTEROP, _USER_COMMENT = 0x927C, 0xA005, 0x9286
_COLOUR_SPACE, _PIXEL_WIDTH, _PIXEL_HEIGHT = 0xA001, 0xA002, 0xA003
_XMP_ORIENTATION = re.compile(rb'tiff:Orientation(?:="|>)([1-8])')
# A JPEG segment holds 65,533 bytes.
_EXIF_ROOM = 65_000
_INTENT = ImageCms.Intent.RELATIVE_COLORIMETRIC
_FLAGS = ImageCms.Flags.BLACKPOINTCOMPENSATION


class _Text(str):
    """Text that keeps its bytes: Pillow reads EXIF text as Latin-1, whatever it is, and writes `?` for non-ASCII."""

    def encode(self, encoding: str = "latin-1", errors: str = "strict") -> bytes:
        return super().encode("latin-1", "replace")


def _faithful(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _faithful(v) for k, v in value.items()}
    return _Text(value) if isinstance(value, str) else value


def orientation_of(im: pil.Image) -> int:
    """Orientation 1-8 from EXIF, else from XMP (which older Pillow reads for some formats only), else 1."""
    value = im.getexif().get(ExifTags.Base.Orientation)
    if value is None:
        packet = im.info.get("xmp") or im.info.get("XML:com.adobe.xmp") or b""
        found = _XMP_ORIENTATION.search(packet.encode() if isinstance(packet, str) else packet)
        value = int(found[1]) if found else 1
    return value if isinstance(value, int) and 1 <= value <= 8 else 1


def clean_exif(exif: pil.Exif, *, now_srgb: bool = False) -> bytes | None:
    """EXIF with orientation 1, without GPS, thumbnail and storage facts; None when nothing else was there.

    now_srgb: the pixels were converted, so a colour space that it names is no longer true.
    """
    kept = pil.Exif()
    for tag in _KEPT & set(exif):
        kept[tag] = _faithful(exif[tag])
    detail = _faithful(exif.get_ifd(ExifTags.IFD.Exif))
    if _INTEROP in detail:
        detail[_INTEROP] = _faithful(exif.get_ifd(ExifTags.IFD.Interop))
    if now_srgb:
        detail.pop(_INTEROP, None)  # says "Adobe RGB" (R03) where it says anything
        if _COLOUR_SPACE in detail:
            detail[_COLOUR_SPACE] = 1
    if detail:
        kept[ExifTags.IFD.Exif] = detail
    if not len(kept):
        return None
    kept[ExifTags.Base.Orientation] = 1
    data = kept.tobytes()
    for bulky in (_MAKER_NOTE, _USER_COMMENT):
        if len(data) > _EXIF_ROOM and bulky in detail:
            del detail[bulky]
            data = kept.tobytes()
    return data if len(data) <= _EXIF_ROOM else None


def exif_for(exif: bytes, width: int, height: int) -> pil.Exif:
    """The block for a writer; its pixel dimensions, where it has them, become those of the written picture."""
    old, block = pil.Exif(), pil.Exif()
    old.load(exif)
    for tag in set(old) - {ExifTags.IFD.Exif}:
        block[tag] = _faithful(old[tag])
    detail = _faithful(old.get_ifd(ExifTags.IFD.Exif))
    if _INTEROP in detail:
        detail[_INTEROP] = _faithful(old.get_ifd(ExifTags.IFD.Interop))
    if _PIXEL_WIDTH in detail or _PIXEL_HEIGHT in detail:
        detail[_PIXEL_WIDTH], detail[_PIXEL_HEIGHT] = width, height
    if detail:
        # Pillow's TIFF writer asks get_ifd, its other writers the item.
        block.get_ifd(ExifTags.IFD.Exif).update(detail)
        block[ExifTags.IFD.Exif] = detail
    return block


@lru_cache(maxsize=1)
def srgb_profile() -> bytes:
    """An sRGB ICC profile; the creation date is zeroed, so that equal pictures give equal files."""
    data = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    return data[:24] + bytes(12) + data[36:]


def to_srgb(im: pil.Image, icc: bytes | None) -> tuple[pil.Image, bytes | None, Note | None]:
    """Pixels of mode L, RGB, CMYK, YCbCr or LAB as sRGB (mode RGB, or L for L) → image, profile to write, note."""
    if im.mode == "YCbCr":
        im = im.convert("RGB")
    if icc:
        try:
            return _through_profile(im, icc)
        except (ImageCms.PyCMSError, OSError, ValueError) as error:
            reason = str(error) or type(error).__name__
            return _plain(im), None, note("I12", reason=reason)
    return _plain(im), None, note("I11") if im.mode == "CMYK" else None


def _plain(im: pil.Image) -> pil.Image:
    if im.mode == "LAB":
        lab, srgb = ImageCms.createProfile("LAB"), ImageCms.createProfile("sRGB")
        converted = ImageCms.profileToProfile(im, lab, srgb, outputMode="RGB")
        assert converted is not None  # only an in-place conversion returns None
        return converted
    return im if im.mode in ("L", "RGB") else im.convert("RGB")


def _through_profile(im: pil.Image, icc: bytes) -> tuple[pil.Image, bytes | None, Note | None]:
    profile = ImageCms.ImageCmsProfile(io.BytesIO(icc))
    space = profile.profile.xcolor_space.strip()
    if im.mode == "L" and space == "RGB":
        # Grey pixels in a file tagged with an RGB profile: the neutral axis of that profile applies.
        source = im.convert("RGB")
    elif {"L": "GRAY", "LAB": "Lab"}.get(im.mode, im.mode) != space:
        return _plain(im), None, note("I12", reason=f"{space or '?'} profile, {im.mode} pixels")
    else:
        source = im
    transform = ImageCms.buildTransform(
        profile, ImageCms.createProfile("sRGB"), source.mode, "RGB", renderingIntent=_INTENT, flags=_FLAGS
    )
    if source.mode in ("RGB", "L") and _changes_nothing(transform, source.mode):
        return im, icc, None
    done = ImageCms.applyTransform(source, transform)
    assert done is not None  # only an in-place conversion returns None
    name = ImageCms.getProfileDescription(profile).strip()[:80] or "ICC"
    said = note("I26", profile=name)
    return (done.getchannel("G"), None, said) if im.mode == "L" else (done, srgb_profile(), said)


def _changes_nothing(transform: Any, mode: str) -> bool:
    """Whether a transform moves no colour of a 17-step lattice (or grey ramp) by more than one level."""
    steps = np.linspace(0, 255, 17).round().astype(np.uint8)
    lattice = np.stack(np.meshgrid(steps, steps, steps, indexing="ij"), axis=-1).reshape(17, 289, 3)
    before = lattice if mode == "RGB" else np.arange(256, dtype=np.uint8)[None]
    moved = ImageCms.applyTransform(pil.fromarray(before), transform)
    after = np.asarray(moved).astype(np.int16)
    wanted = before if mode == "RGB" else before[..., None]
    return bool(np.abs(after - wanted).max() <= 1)


def jpeg_quality(tables: dict[int, list[int]]) -> int | None:
    """Smallest libjpeg quality 1-100 none of whose quantisation steps is coarser than the given ones.

    Found by asking the writer itself: its tables grow finer with quality in every entry, so bisection is enough.
    """
    if not tables:
        return None
    low, high = 1, 100
    while low < high:
        middle = (low + high) // 2
        if all(_finer(_tables_at(middle)[min(i, 1)], table) for i, table in tables.items()):
            high = middle
        else:
            low = middle + 1
    return low


def _finer(ours: tuple[int, ...], theirs: list[int]) -> bool:
    return all(a <= b for a, b in zip(ours, theirs, strict=False))


@lru_cache(maxsize=100)
def _tables_at(quality: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    buffer = io.BytesIO()
    pil.new("RGB", (8, 8)).save(buffer, "JPEG", quality=quality)
    tables = JpegImagePlugin.JpegImageFile(io.BytesIO(buffer.getvalue())).quantization
    return tuple(tables[0]), tuple(tables[1])


def png_header(data: bytes) -> tuple[int, int]:
    """(bits per sample, colour type) from the IHDR chunk of a PNG file that Pillow has opened."""
    depth, colour = struct.unpack_from("BB", data, 24)
    return depth, colour
