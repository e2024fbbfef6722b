"""What are these bytes? Format and size from the first bytes alone, before any decoder sees them.

Content decides, never the file name: a photo named `.txt` is a photo, a web page named `.jpg` is a web page.
"""

from __future__ import annotations

import codecs
import struct

# Pillow's names; the first suffix is the one given to a file that has none of its own.
SUFFIXES: dict[str, tuple[str, ...]] = {
    "JPEG": (".jpg", ".jpeg", ".jpe", ".jfif"),
    "PNG": (".png", ".apng"),
    "WEBP": (".webp",),
    "TIFF": (".tif", ".tiff"),
    "BMP": (".bmp", ".dib"),
    "GIF": (".gif",),
    "AVIF": (".avif", ".avifs"),
    "HEIF": (".heic", ".heif", ".hif"),
    "JPEG2000": (".jp2", ".j2k", ".jpf", ".jpx"),
    "PPM": (".ppm", ".pgm", ".pbm", ".pnm"),
}

# ISO media brands (ISO/IEC 14496-12 `ftyp` box), which HEIC, AVIF, Canon raw and video share.
_BRANDS = {
    **dict.fromkeys((b"avif", b"avis"), "AVIF"),
    **dict.fromkeys((b"heic", b"heix", b"hevc", b"hevx", b"heim", b"heis", b"mif1", b"msf1"), "HEIF"),
}

_KINDS: tuple[tuple[bytes, str], ...] = (
    (b"version https://git-lfs", "kind.lfs"),
    (b"%PDF", "kind.pdf"),
    (b"PK\x03\x04", "kind.zip"),
    (b"PK\x05\x06", "kind.zip"),
    (b"7z\xbc\xaf\x27\x1c", "kind.archive"),
    (b"Rar!", "kind.archive"),
    (b"\x1f\x8b", "kind.archive"),
    (b"8BPS", "kind.psd"),
    (b"%!PS", "kind.postscript"),
    (b"\xff\x0a", "kind.jxl"),
    (b"\x00\x00\x00\x0cJXL ", "kind.jxl"),
    (b"FUJIFILMCCD-RAW", "kind.raw"),
    (b"IIRO", "kind.raw"),
    (b"IIU\x00", "kind.raw"),
    (b"\x1aE\xdf\xa3", "kind.video"),
    (b"MZ", "kind.program"),
    (b"\x7fELF", "kind.program"),
)


def format_of(head: bytes) -> str | None:
    """Key of `SUFFIXES` for the first ≥ 64 bytes of a picture file, None when they are no picture we know."""
    if head.startswith(b"\xff\xd8\xff"):
        return "JPEG"
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "PNG"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "GIF"
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "WEBP"
    if head[:4] in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"):
        return None if head[8:10] == b"CR" else "TIFF"
    if (
        head[:2] == b"BM"
        and len(head) >= 18
        and struct.unpack_from("<I", head, 14)[0] in (12, 16, 40, 52, 56, 64, 108, 124)
    ):
        return "BMP"
    if head[4:8] == b"ftyp":
        return _BRANDS.get(head[8:12])
    if head.startswith((b"\x00\x00\x00\x0cjP  \r\n\x87\n", b"\xff\x4f\xff\x51")):
        return "JPEG2000"
    if head[:1] == b"P" and head[1:2] in b"123456" and head[2:3].isspace():
        return "PPM"
    return None


def kind_of(data: bytes) -> str:
    """Catalogue code (`kind.*`) that says what bytes without a picture format are."""
    if not data:
        return "kind.empty"
    for magic, kind in _KINDS:
        if data.startswith(magic):
            return kind
    if data[4:8] == b"ftyp":
        return "kind.raw" if data[8:11] == b"crx" else "kind.video"
    if data[:4] in (b"II*\0", b"MM\0*"):
        return "kind.raw"
    if not data.strip(b"\0"):
        return "kind.zeros"
    text = data[:4096].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if b"<svg" in text:
        return "kind.svg"
    if text.startswith((b"<!doctype html", b"<html", b"<head", b"<body")) or b"<html" in text:
        return "kind.html"
    if text.startswith(b"<?xml"):
        return "kind.xml"
    if _is_text(data[:4096]):
        return "kind.text"
    return "kind.unknown"


def _is_text(head: bytes) -> bool:
    if any(b < 9 or 13 < b < 32 for b in head):
        return False
    for encoding in ("utf-8", "gb18030"):
        decoder = codecs.getincrementaldecoder(encoding)()
        try:
            decoder.decode(head)  # a character cut at the end is no fault
        except UnicodeDecodeError:
            continue
        return True
    return False


def webp_canvas(data: bytes) -> tuple[int, int] | None:
    """(width, height) from a WebP header, None when it is damaged.

    Read here because libwebp's animation decoder reserves the whole canvas when it is opened.
    Source: RFC 9649, sections 2.5-2.7.
    """
    chunk = data[12:16]
    if chunk == b"VP8X" and len(data) >= 30:
        return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
    if chunk == b"VP8L" and len(data) >= 25 and data[20] == 0x2F:
        bits = int.from_bytes(data[21:25], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if chunk == b"VP8 " and len(data) >= 30 and data[23:26] == b"\x9d\x01\x2a":
        width, height = struct.unpack_from("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF
    return None


def webp_is_lossless(data: bytes) -> bool:
    """Whether the first picture of a WebP file is a VP8L stream."""
    at = 12
    while at + 8 <= len(data):
        chunk, size = struct.unpack_from("<4sI", data, at)
        if chunk in (b"VP8L", b"VP8 "):
            return bool(chunk == b"VP8L")
        at += 8 + (16 if chunk == b"ANMF" else size + (size & 1))
    return False


def tiff_pages(data: bytes) -> int:
    """Pages of a TIFF or BigTIFF file: length of its chain of directories, as far as that is sound; at least 1.

    Counted here because Pillow's way back to the first page applies its process-wide size limit.
    """
    order = "<" if data[:2] == b"II" else ">"
    big = data[2:4] in (b"+\0", b"\0+")
    count_form, entry, link_form = (order + "Q", 20, order + "Q") if big else (order + "H", 12, order + "I")
    seen: set[int] = set()
    at = 8 if big else 4
    while at + struct.calcsize(link_form) <= len(data):
        (page,) = struct.unpack_from(link_form, data, at)
        if page in seen or not 8 <= page <= len(data) - struct.calcsize(count_form):
            break
        seen.add(page)
        at = page + struct.calcsize(count_form) + entry * struct.unpack_from(count_form, data, page)[0]
    return max(1, len(seen))
