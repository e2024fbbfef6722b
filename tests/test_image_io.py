"""The photo file: one row per input pitfall, the way back, damage, names, limits, threads. All files are made here."""

from __future__ import annotations

import errno
import io
import os
import random
import struct
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import ExifTags, ImageCms, ImageFile, features
from PIL import Image as pil

from gpen_zoo import image_io
from gpen_zoo.errors import GpenError, ImageTooLarge, ImageUnreadable, OptionsInvalid, PathInaccessible
from gpen_zoo.hints import CATALOGUE, say
from gpen_zoo.image_io import decode, encode, output_format, output_name, read, write
from gpen_zoo.tone import tone_of
from gpen_zoo.types import Image, Source


# --- pictures and files ------------------------------------------------------------------------------------------
def scene(height: int = 48, width: int = 64) -> np.ndarray:
    """A smooth coloured picture, uint8 (H, W, 3), no two corners alike."""
    y, x = np.mgrid[0:height, 0:width] / np.array([height, width]).reshape(2, 1, 1)
    rgb = [40 + 180 * x, 200 - 150 * y, 90 + 60 * np.sin(6 * x + 4 * y)]
    return np.rint(np.stack(rgb, axis=-1)).astype(np.uint8)


def texture(height: int, width: int, seed: int = 1) -> np.ndarray:
    """The scene with grain, so that every row of a compressed file takes bytes."""
    noise = np.random.default_rng(seed).normal(0, 25, (height, width, 3))
    return np.clip(scene(height, width) + noise, 0, 255).astype(np.uint8)


def luma(rgb: np.ndarray) -> np.ndarray:
    return np.array(pil.fromarray(rgb).convert("L"))


def three(grey: np.ndarray) -> np.ndarray:
    return np.repeat(grey[..., None], 3, axis=2)


def saved(im: pil.Image | np.ndarray, format: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    (pil.fromarray(im) if isinstance(im, np.ndarray) else im).save(buffer, format, **options)
    return buffer.getvalue()


def opened(data: bytes) -> pil.Image:
    im = pil.open(io.BytesIO(data))
    im.load()
    return im


def png(width: int, height: int, depth: int, colour: int, rows: bytes, *chunks: tuple[bytes, bytes]) -> bytes:
    """A PNG file by hand: Pillow cannot write every kind that it reads."""

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0))
    middle = b"".join(chunk(n, b) for n, b in chunks)
    return b"\x89PNG\r\n\x1a\n" + head + middle + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def png16(samples: np.ndarray, colour: int, *chunks: tuple[bytes, bytes]) -> bytes:
    """A 16-bit PNG of uint16 (H, W, C)."""
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in samples)
    return png(samples.shape[1], samples.shape[0], 16, colour, rows, *chunks)


def tiff(samples: np.ndarray, order: str, bits: int, photometric: int = 1, kind: int = 1) -> bytes:
    """An uncompressed one-strip TIFF of (H, W) or (H, W, C) samples, order `<` or `>`."""
    height, width = samples.shape[:2]
    count = samples.shape[2] if samples.ndim == 3 else 1
    pixels = samples.astype(samples.dtype.newbyteorder(order)).tobytes()
    tags = [
        (256, 4, [width]),
        (257, 4, [height]),
        (258, 3, [bits] * count),
        (259, 3, [1]),
        (262, 3, [photometric]),
        (273, 4, [8]),
        (277, 3, [count]),
        (278, 4, [height]),
        (279, 4, [len(pixels)]),
        (339, 3, [kind] * count),
    ]
    pixels += b"\0" * (len(pixels) % 2)
    extra = 8 + len(pixels) + 2 + 12 * len(tags) + 4
    entries, tail = b"", b""
    for tag, type_, values in tags:
        body = struct.pack(order + ("H" if type_ == 3 else "I") * len(values), *values)
        entries += struct.pack(order + "HHI", tag, type_, len(values))
        if len(body) > 4:
            entries += struct.pack(order + "I", extra + len(tail))
            tail += body
        else:
            entries += body.ljust(4, b"\0")
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "I", 8 + len(pixels))
    return head + pixels + struct.pack(order + "H", len(tags)) + entries + bytes(4) + tail


# --- colour profiles by hand -------------------------------------------------------------------------------------
def profile(space: bytes, pcs: bytes, kind: bytes, tags: dict[bytes, bytes], name: str) -> bytes:
    """An ICC version 2 profile (ICC.1:2001-04)."""
    text = name.encode() + b"\0"
    tags = {
        b"desc": b"desc" + bytes(4) + struct.pack(">I", len(text)) + text + bytes(78),
        b"cprt": b"text" + bytes(4) + b"none\0",
        b"wtpt": xyz(0.9642, 1.0, 0.8249),
        **tags,
    }
    table, body, at = struct.pack(">I", len(tags)), b"", 128 + 4 + 12 * len(tags)
    for tag, data in tags.items():
        table += tag + struct.pack(">II", at + len(body), len(data))
        body += data + bytes(-len(data) % 4)
    head = struct.pack(">I4sI4s4s4s", 128 + len(table) + len(body), b"none", 0x02400000, kind, space, pcs)
    head += bytes(12) + b"acsp" + bytes(28) + struct.pack(">iii", 63190, 65536, 54061)
    return head.ljust(128, b"\0") + table + body


def xyz(*values: float) -> bytes:
    return b"XYZ " + bytes(4) + struct.pack(">iii", *(round(v * 65536) for v in values))


def gamma_curve(gamma: float) -> bytes:
    return b"curv" + bytes(4) + struct.pack(">IH", 1, round(gamma * 256)) + bytes(2)


WIDE = np.array([[0.60974, 0.20528, 0.14919], [0.31111, 0.62567, 0.06322], [0.01947, 0.06087, 0.74457]])
SRGB = np.array([[0.43607, 0.38515, 0.14307], [0.22249, 0.71687, 0.06061], [0.01392, 0.09708, 0.71410]])
GAMMA = 563 / 256


def wide_gamut() -> bytes:
    """Primaries and gamma of Adobe RGB (1998), adapted to D50."""
    columns = {n: xyz(*WIDE[:, i]) for i, n in enumerate((b"rXYZ", b"gXYZ", b"bXYZ"))}
    curves = dict.fromkeys((b"rTRC", b"gTRC", b"bTRC"), gamma_curve(GAMMA))
    return profile(b"RGB ", b"XYZ ", b"mntr", {**columns, **curves}, "Wide test RGB")


def grey_gamma(gamma: float) -> bytes:
    return profile(b"GRAY", b"XYZ ", b"mntr", {b"kTRC": gamma_curve(gamma)}, f"Grey gamma {gamma}")


def encoded(linear: np.ndarray) -> np.ndarray:
    """sRGB transfer function (IEC 61966-2-1), 0-1 → 0-255."""
    linear = np.clip(linear, 0, 1)
    return 255 * np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)


def wide_to_srgb(rgb: np.ndarray) -> np.ndarray:
    return encoded((rgb / 255) ** GAMMA @ WIDE.T @ np.linalg.inv(SRGB).T)


# Linear sRGB that remains under a full layer of each ink: far from the naive 1 - ink.
INKS = np.array([[0.02, 0.35, 0.60], [0.55, 0.02, 0.22], [0.85, 0.70, 0.02], [0.0, 0.0, 0.0]])


def inked(cmyk: np.ndarray) -> np.ndarray:
    """(…, 4) ink 0-1 → linear sRGB (…, 3)."""
    return np.prod(1 - cmyk[..., None] * (1 - INKS), axis=-2)


def cmyk_profile(floor: float = 0.0) -> bytes:
    """A printer profile whose table holds `inked` on a grid of 9 steps per ink. floor: light that full ink reflects."""
    steps = np.linspace(0, 1, 9)
    grid = np.stack(np.meshgrid(steps, steps, steps, steps, indexing="ij"), axis=-1).reshape(-1, 4)
    ratio = (floor + (1 - floor) * inked(grid)) @ SRGB.T / np.array([0.9642, 1.0, 0.8249])
    f = np.where(ratio > (6 / 29) ** 3, np.cbrt(ratio), ratio / (3 * (6 / 29) ** 2) + 4 / 29)
    lab = np.stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], axis=-1)
    coded = np.clip(lab * [652.8, 256, 256] + [0, 32768, 32768], 0, 65535).round().astype(">u2")
    lut = b"mft2" + bytes(4) + struct.pack(">BBBx", 4, 3, 9) + struct.pack(">9i", *np.eye(3, dtype=int).ravel() * 65536)
    lut += (
        struct.pack(">HH", 2, 2) + struct.pack(">2H", 0, 65535) * 4 + coded.tobytes() + struct.pack(">2H", 0, 65535) * 3
    )
    # The way back, only good enough for a black point to be found: lightness alone, from all inks to none.
    back = b"mft2" + bytes(4) + struct.pack(">BBBx", 3, 4, 2)
    back += struct.pack(">9i", *np.eye(3, dtype=int).ravel() * 65536) + struct.pack(">HH", 2, 2)
    back += struct.pack(">2H", 0, 65535) * 3 + struct.pack(">32H", *[65535] * 16, *[0] * 16)
    back += struct.pack(">2H", 0, 65535) * 4
    return profile(b"CMYK", b"Lab ", b"prtr", {b"A2B0": lut, b"B2A0": back}, "Test inks")


def cmyk_jpeg(icc: bytes | None = None) -> tuple[bytes, np.ndarray]:
    """(file, ink 0-1 (H, W, 4)) of smooth ink ramps."""
    y, x = np.mgrid[0:64, 0:64] / 63
    ink = np.stack([x, y, 1 - x, 0.4 * y * x], axis=-1)
    im = pil.fromarray(np.rint(ink * 255).astype(np.uint8), mode="CMYK")
    return saved(im, "JPEG", quality=98, subsampling=0, **({"icc_profile": icc} if icc else {})), ink


# --- the table of pitfalls ---------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Row:
    """A file and what must come of it. pixels: expected, within `within` levels. notes: exact codes in order."""

    name: str
    data: bytes
    pixels: np.ndarray | None = None
    within: int = 0
    alpha: np.ndarray | None = None
    tone: str = "colour"
    notes: tuple[str, ...] = ()
    mode: str = "RGB"
    depth: int = 8
    output: str | None = None
    round_trip: bool = True


HOLE = np.full((48, 64), 255, dtype=np.uint8)
HOLE[10:30, 20:40], HOLE[30:40, 5:60] = 0, 128
GREY16 = (np.arange(48 * 64, dtype=np.uint32).reshape(48, 64) * 65535 // (48 * 64 - 1)).astype(np.uint16)
DARK16 = (np.arange(48 * 64, dtype=np.uint16).reshape(48, 64) % 219).astype(np.uint16)
COLOUR16 = scene().astype(np.uint16) * 257


def exact_8(samples: np.ndarray, full: int = 65535) -> np.ndarray:
    return np.floor(samples.astype(np.float64) * 255 / full + 0.5).astype(np.uint8)


def turned(orientation: int, format: str, **options: Any) -> bytes:
    """The scene stored the way a camera held that way would, tagged."""
    undo = {2: 2, 3: 3, 4: 4, 5: 5, 6: 8, 7: 7, 8: 6}
    ways = {2: 0, 3: 3, 4: 1, 5: 5, 6: 4, 7: 6, 8: 2}  # EXIF value → Pillow's Transpose that makes it upright
    im = pil.fromarray(scene())
    if orientation in undo:
        im = im.transpose(pil.Transpose(ways[undo[orientation]]))
    exif = pil.Exif()
    exif[ExifTags.Base.Orientation] = orientation
    return saved(im, format, exif=exif.tobytes(), **options)


def palette(transparent: bool) -> tuple[bytes, np.ndarray, np.ndarray]:
    im = pil.fromarray(scene()).quantize(32)
    rgb = np.array(im.convert("RGB"))
    index = np.array(im)
    options: dict[str, Any] = {"transparency": bytes([0, 128])} if transparent else {}
    alpha = np.where(index == 0, 0, np.where(index == 1, 128, 255)).astype(np.uint8)
    return saved(im, "PNG", **options), rgb, alpha


def in_lab(rgb: np.ndarray) -> pil.Image:
    lab, srgb = ImageCms.createProfile("LAB"), ImageCms.createProfile("sRGB")
    return ImageCms.profileToProfile(pil.fromarray(rgb), srgb, lab, outputMode="LAB")


def animation(format: str, **options: Any) -> bytes:
    frames = [pil.fromarray(np.roll(scene(), 9 * i, axis=1)) for i in range(3)]
    return saved(frames[0], format, save_all=True, append_images=frames[1:], **options)


def table() -> list[Row]:
    rgb, grey = scene(), three(luma(scene()))
    bit = np.where(luma(rgb) > 128, 255, 0).astype(np.uint8)
    rgba, la = np.dstack([rgb, HOLE]), np.dstack([luma(rgb), HOLE])
    plain_p, rgb_p, _ = palette(False)
    clear_p, _, alpha_p = palette(True)
    wide = saved(rgb, "PNG", icc_profile=wide_gamut())
    ink_plain, ink = cmyk_jpeg()
    ink_tagged, _ = cmyk_jpeg(cmyk_profile())
    naive = np.rint(255 * (1 - ink[..., :3]) * (1 - ink[..., 3:])).astype(np.uint8)
    true = np.rint(encoded(inked(ink))).astype(np.uint8)
    sepia = np.clip(grey * np.array([1.07, 0.92, 0.70]) + [12, 6, 0], 0, 255).astype(np.uint8)
    key16 = (b"tRNS", struct.pack(">H", int(GREY16[5, 5])))
    key16c = (b"tRNS", COLOUR16[5, 5].astype(">u2").tobytes())
    hit = (scene() == scene()[5, 5]).all(axis=-1)
    palette_gif = saved(pil.fromarray(rgb).quantize(64), "GIF")
    mpo = io.BytesIO()
    pil.fromarray(rgb).save(mpo, "MPO", save_all=True, append_images=[pil.fromarray(rgb)], quality=95, subsampling=0)
    srgb_icc = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    rows = [
        Row("png", saved(rgb, "PNG"), rgb),
        Row("jpeg", saved(rgb, "JPEG", quality=95, subsampling=0), rgb, 4),
        Row("webp lossless", saved(rgb, "WEBP", lossless=True), rgb),
        Row("webp lossy", saved(rgb, "WEBP", quality=95), rgb, 24, round_trip=False),
        Row("tiff", saved(rgb, "TIFF"), rgb),
        Row("tiff lzw", saved(rgb, "TIFF", compression="tiff_lzw"), rgb),
        Row("bmp", saved(rgb, "BMP"), rgb),
        Row("ppm", saved(rgb, "PPM"), rgb, output="PNG"),
        Row("mpo of a phone", mpo.getvalue(), rgb, 4),
        *(Row(f"jpeg turned {i}", turned(i, "JPEG", quality=98, subsampling=0), rgb, 4) for i in range(1, 9)),
        *(Row(f"png turned {i}", turned(i, "PNG"), rgb) for i in range(1, 9)),
        Row("webp turned 6", turned(6, "WEBP", lossless=True), rgb),
        *(Row(f"tiff turned {i}", turned(i, "TIFF"), rgb) for i in range(1, 9)),
        Row("tiff lzw turned 6", turned(6, "TIFF", compression="tiff_lzw"), rgb),
        Row("grey png", saved(grey[..., 0], "PNG"), grey, tone="grey", mode="L"),
        Row("grey jpeg", saved(grey[..., 0], "JPEG", quality=95), grey, 4, tone="grey", mode="L"),
        Row("grey in an rgb jpeg", saved(grey, "JPEG", quality=85), grey, 6, tone="grey"),
        Row("grey with alpha", saved(la, "PNG"), grey, alpha=HOLE, tone="grey", mode="LA"),
        Row("1 bit", saved(pil.fromarray(bit).convert("1"), "PNG"), three(bit), tone="grey", mode="1", depth=1),
        Row("1 bit tiff", saved(pil.fromarray(bit).convert("1"), "TIFF", compression="group4"), three(bit), tone="grey",
            mode="1", depth=1),
        Row("rgba, colours under alpha 0", saved(rgba, "PNG"), rgb, alpha=HOLE, mode="RGBA"),
        Row("rgba webp", saved(rgba, "WEBP", lossless=True, exact=True), rgb, alpha=HOLE, mode="RGBA"),
        Row("rgba tiff", saved(rgba, "TIFF"), rgb, alpha=HOLE, mode="RGBA"),
        Row("palette", plain_p, rgb_p, mode="P"),
        Row("palette with alpha", clear_p, rgb_p, alpha=alpha_p, mode="P"),
        Row("gif", palette_gif, np.array(opened(palette_gif).convert("RGB")), mode="P", output="PNG"),
        Row("16 bit grey png", png16(GREY16[..., None], 0), three(exact_8(GREY16)), tone="grey", mode="I;16", depth=16,
            notes=("I08",)),
        Row("16 bit grey png, dark", png16(DARK16[..., None], 0), three(exact_8(DARK16)), tone="grey", mode="I;16",
            depth=16, notes=("I08",)),
        Row("16 bit grey png, transparent value", png16(GREY16[..., None], 0, key16), three(exact_8(GREY16)),
            alpha=np.where(GREY16[5, 5] == GREY16, 0, 255), tone="grey", mode="I;16", depth=16, notes=("I08",)),
        Row("16 bit grey with alpha", png16(np.dstack([GREY16, HOLE.astype(np.uint16) * 257]), 4),
            three((GREY16 >> 8).astype(np.uint8)), 1, alpha=HOLE, tone="grey", mode="LA", depth=16, notes=("I08",)),
        Row("16 bit rgb png", png16(COLOUR16, 2), rgb, depth=16, notes=("I08",)),
        Row("16 bit rgb png, transparent colour", png16(COLOUR16, 2, key16c), rgb, alpha=np.where(hit, 0, 255),
            depth=16, notes=("I08",)),
        Row("16 bit rgba png", png16(np.dstack([COLOUR16, HOLE.astype(np.uint16) * 257]), 6), rgb, alpha=HOLE,
            mode="RGBA", depth=16, notes=("I08",)),
        Row("16 bit grey tiff", tiff(GREY16, "<", 16), three(exact_8(GREY16)), tone="grey", mode="I;16", depth=16,
            notes=("I08",)),
        Row("16 bit grey tiff, big-endian", tiff(GREY16, ">", 16), three(exact_8(GREY16)), tone="grey", mode="I;16B",
            depth=16, notes=("I08",)),
        Row("16 bit grey tiff, white is zero", tiff(GREY16, "<", 16, 0), three(exact_8(65535 - GREY16)), tone="grey",
            mode="I;16", depth=16, notes=("I08",)),
        Row("16 bit rgb tiff", tiff(COLOUR16, "<", 16, 2), rgb, depth=16, notes=("I08",)),
        Row("16 bit rgb tiff, big-endian", tiff(COLOUR16, ">", 16, 2), rgb, depth=16, notes=("I08",)),
        Row("float tiff", tiff((GREY16 / 65535).astype(np.float32), "<", 32, 1, 3), three(exact_8(GREY16)), 1,
            tone="grey", mode="F", depth=32, notes=("I08",)),
        Row("wide gamut", wide, np.rint(wide_to_srgb(rgb)).astype(np.uint8), 2, notes=("I26",)),
        Row("profile is srgb", saved(rgb, "PNG", icc_profile=srgb_icc), rgb),
        Row("grey profile", saved(grey[..., 0], "PNG", icc_profile=grey_gamma(1.0)),
            np.rint(encoded(grey / 255)).astype(np.uint8), 2, tone="grey", mode="L", notes=("I26",)),
        Row("profile of another kind", saved(rgb, "PNG", icc_profile=grey_gamma(1.0)), rgb, notes=("I12",)),
        Row("profile damaged", saved(rgb, "PNG", icc_profile=b"no profile at all" * 20), rgb, notes=("I12",)),
        Row("cmyk jpeg", ink_plain, naive, 6, mode="CMYK", notes=("I11",)),
        Row("cmyk jpeg with profile", ink_tagged, true, 8, mode="CMYK", notes=("I26",)),
        Row("cmyk tiff", saved(pil.fromarray(rgb).convert("CMYK"), "TIFF"), rgb, 1, mode="CMYK", notes=("I11",)),
        # 15 is what eight bits of Lab leave of a saturated colour.
        Row("lab tiff", saved(in_lab(rgb), "TIFF"), rgb, 15, mode="LAB", notes=("I26",)),
        Row("jpeg in tiff", saved(rgb, "TIFF", compression="jpeg", quality=98), rgb, 4),
        Row("animated gif", animation("GIF"), None, mode="P", notes=("I09",), output="PNG"),
        Row("animated webp", animation("WEBP", lossless=True), rgb, notes=("I09",)),
        Row("apng", animation("PNG"), rgb, notes=("I09",)),
        Row("tiff of 3 pages", animation("TIFF"), rgb, notes=("I10",)),
        Row("sepia", saved(sepia, "PNG"), sepia, tone="toned"),
        Row("1 pixel", saved(rgb[:1, :1], "PNG"), rgb[:1, :1], tone=tone_of(rgb[:1, :1])),
    ]  # fmt: skip
    if features.check("avif"):
        rows.append(Row("avif", saved(rgb, "AVIF", quality=95), rgb, 16, round_trip=False))
    return rows


def codes(image: Image) -> tuple[str, ...]:
    return tuple(n.code for n in image.notes)


def off(a: np.ndarray, b: np.ndarray) -> int:
    assert a.shape == b.shape
    return int(np.abs(a.astype(np.int16) - b.astype(np.int16)).max())


@pytest.mark.parametrize("row", table(), ids=lambda row: row.name)
def test_pitfall(row: Row) -> None:
    image = decode(row.data, name="照片.dat")
    assert codes(image) == row.notes
    assert (image.tone, image.source.mode, image.source.depth) == (row.tone, row.mode, row.depth)
    if row.pixels is not None:
        assert off(image.pixels, row.pixels) <= row.within
    assert (image.alpha is None) == (row.alpha is None)
    if row.alpha is not None:
        np.testing.assert_array_equal(image.alpha, row.alpha)
    if image.tone == "grey":
        assert (image.pixels[..., :1] == image.pixels).all()

    # And back: the same kind of file, the same pixels (JPEG: as close as its quality allows), nothing turned again.
    assert output_format(image)[0] == (row.output or image.source.format)
    data = encode(image)
    assert pil.open(io.BytesIO(data)).format == (row.output or image.source.format)
    assert opened(data).getexif().get(ExifTags.Base.Orientation, 1) == 1
    again = decode(data)
    lossy = image.source.format == "JPEG"
    if row.round_trip:
        assert off(again.pixels, image.pixels) <= (5 if lossy else 0)
    assert (again.alpha is None) == (image.alpha is None)
    if image.alpha is not None:
        np.testing.assert_array_equal(again.alpha, image.alpha)
    assert again.tone == image.tone
    if row.mode in ("L", "LA", "1") or row.mode.startswith("I"):
        assert opened(data).mode == ("L" if image.alpha is None else "LA")


# --- colour ------------------------------------------------------------------------------------------------------
def test_wide_gamut_looks_the_same_to_a_colour_managed_viewer() -> None:
    """The written file is tagged sRGB, and a viewer that honours profiles shows both files alike."""
    original = saved(scene(), "JPEG", quality=100, subsampling=0, icc_profile=wide_gamut())
    data = encode(decode(original), quality=100)

    def as_seen(data: bytes) -> np.ndarray:
        im = opened(data)
        seen = ImageCms.profileToProfile(
            im, ImageCms.ImageCmsProfile(io.BytesIO(im.info["icc_profile"])), ImageCms.createProfile("sRGB")
        )
        return np.asarray(seen)

    assert off(as_seen(original), as_seen(data)) <= 4
    name = ImageCms.getProfileDescription(ImageCms.ImageCmsProfile(io.BytesIO(opened(data).info["icc_profile"])))
    assert "sRGB" in name
    assert off(np.asarray(opened(original)), as_seen(original)) > 15, "the profile must matter for this test to count"


def test_an_srgb_profile_is_kept_byte_for_byte_and_none_is_invented() -> None:
    icc = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    assert opened(encode(decode(saved(scene(), "PNG", icc_profile=icc)))).info["icc_profile"] == icc
    assert "icc_profile" not in opened(encode(decode(saved(scene(), "PNG")))).info


def test_grey_file_gets_no_rgb_profile() -> None:
    icc = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    image = decode(saved(luma(scene()), "PNG", icc_profile=icc))
    assert codes(image) == ()
    assert "icc_profile" not in opened(encode(image)).info


def test_cmyk_profile_matters() -> None:
    plain, tagged = decode(cmyk_jpeg()[0]), decode(cmyk_jpeg(cmyk_profile())[0])
    assert off(plain.pixels, tagged.pixels) > 60


def test_equal_pictures_give_equal_bytes() -> None:
    data, written = saved(scene(), "JPEG", icc_profile=wide_gamut()), set()
    for _ in range(2):
        image_io.image_meta.srgb_profile.cache_clear()
        written.add(encode(decode(data)))
        time.sleep(1.1)  # LittleCMS stamps profiles that it makes with the second
    assert len(written) == 1


def test_darkest_ink_becomes_black() -> None:
    """Printed black is a dark grey; without black point compensation every CMYK photo would look foggy."""
    ink = np.full((32, 32, 4), 255, np.uint8)
    ink[:16] = 0
    icc = cmyk_profile(floor=0.02)
    image = decode(saved(pil.fromarray(ink, mode="CMYK"), "JPEG", quality=98, icc_profile=icc))
    assert image.pixels[20:].max() <= 4
    assert image.pixels[:10].min() >= 250


@pytest.mark.parametrize("size", [(40, 30), (352, 352), (700, 900)])
def test_tone(size: tuple[int, int]) -> None:
    """Grey, sepia and cyanotype with grain and JPEG are told from colour, also from colour that is nearly gone."""
    rgb = texture(*size)
    grey = three(luma(rgb))
    noise = np.random.default_rng(2).normal(0, 4, rgb.shape)

    def through_jpeg(a: np.ndarray) -> np.ndarray:
        return np.array(opened(saved(np.clip(a, 0, 255).astype(np.uint8), "JPEG", quality=60)))

    share = (grey / 255.0)[..., :1]
    assert tone_of(through_jpeg(grey + noise)) == "grey"
    assert tone_of(through_jpeg(grey * [1.07, 0.92, 0.7] + [12, 6, 0] + noise)) == "toned"
    assert tone_of(through_jpeg([10, 20, 60] * (1 - share) + [225, 240, 250] * share + noise)) == "toned"
    assert tone_of(through_jpeg(rgb.astype(float))) == "colour"
    assert tone_of(through_jpeg(grey + 0.35 * (rgb.astype(float) - grey))) == "colour"


def test_one_hue_alone_is_not_toned() -> None:
    """Skin, hair and wood share a hue; what tells them from sepia is that equally light places differ in colour."""
    y, x = np.mgrid[0:300, 0:300] / 300
    rgb = 60 + 140 * x[..., None] + 45 * y[..., None] * np.array([1.0, -0.1, -0.8])
    assert tone_of(np.clip(rgb, 0, 255).astype(np.uint8)) == "colour"


@pytest.mark.parametrize("shape", [(1, 1), (1, 5000), (3000, 2), (70, 32_000), (129, 127)])
def test_tone_of_any_shape(shape: tuple[int, int]) -> None:
    rgb = np.resize(scene(), (*shape, 3))
    assert tone_of(np.repeat(rgb[..., :1], 3, axis=2)) == "grey"
    assert tone_of(rgb) in ("colour", "toned")
    assert tone_of(rgb, np.zeros(shape, np.uint8)) == "grey"
    assert tone_of(rgb, np.full(shape, 255, np.uint8)) == tone_of(rgb)


def test_one_small_coloured_face_keeps_a_grey_landscape_from_being_grey() -> None:
    rgb = three(luma(texture(600, 1200)))
    rgb[400:440, 600:632] = [200, 120, 90]
    image = decode(saved(rgb, "PNG"))
    assert image.tone != "grey"
    np.testing.assert_array_equal(image.pixels, rgb)


def test_tone_ignores_what_alpha_hides_and_hidden_colours_survive() -> None:
    rgb = three(luma(scene()))
    rgb[HOLE == 0] = [255, 0, 200]
    alpha = np.where(HOLE == 0, 0, 255).astype(np.uint8)
    image = decode(saved(np.dstack([rgb, alpha]), "PNG"))
    assert (tone_of(image.pixels, image.alpha), image.tone) == ("grey", "toned")
    np.testing.assert_array_equal(decode(encode(image)).pixels, rgb)


def test_tone_of_real_portraits(shared: Path) -> None:
    for file in sorted((shared / "data/photos").glob("portrait-*.jpg")):
        image = read(file)
        assert image.tone == "colour", file.name
        sepia = image.pixels @ np.array([[0.393, 0.349, 0.272], [0.769, 0.686, 0.534], [0.189, 0.168, 0.131]])
        assert tone_of(np.clip(sepia, 0, 255).astype(np.uint8)) == "toned", file.name
    assert read(shared / "data/photos/solvay-1927.png").tone == "grey"


# --- EXIF --------------------------------------------------------------------------------------------------------
def rich_exif(orientation: int = 6) -> bytes:
    exif = pil.Exif()
    exif[ExifTags.Base.Orientation] = orientation
    exif[ExifTags.Base.Make], exif[ExifTags.Base.Artist] = "测试相机".encode(), "Ada"
    exif[ExifTags.IFD.Exif] = {
        ExifTags.Base.DateTimeOriginal: "1927:10:29 12:00:00",
        ExifTags.Base.ExposureTime: 0.01,
        0xA002: 48,
        0xA003: 64,
        0xA001: 0xFFFF,
        0xA005: {1: "R03"},
    }
    exif[ExifTags.IFD.GPSInfo] = {1: "N", 2: (50.0, 50.0, 0.0), 3: "E", 4: (4.0, 21.0, 0.0)}
    return exif.tobytes()


def with_thumbnail(exif: bytes) -> bytes:
    """The same block with an IFD1 that holds a JPEG thumbnail."""
    body = bytearray(exif[6:])
    order = "<" if body[:2] == b"II" else ">"
    first = struct.unpack_from(order + "I", body, 4)[0]
    entries = struct.unpack_from(order + "H", body, first)[0]
    struct.pack_into(order + "I", body, first + 2 + 12 * entries, len(body))
    thumbnail = b"\xff\xd8\xff\xe0THUMBNAIL" + b"\xff\xd9"
    at = len(body) + 2 + 24 + 4
    body += struct.pack(order + "HHHIIHHIII", 2, 0x201, 4, 1, at, 0x202, 4, 1, len(thumbnail), 0) + thumbnail
    return exif[:6] + bytes(body)


@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_exif_is_kept_without_place_and_thumbnail(format: str) -> None:
    block = with_thumbnail(rich_exif())
    assert b"THUMBNAIL" in block
    data = saved(np.rot90(scene()), "JPEG", exif=block, icc_profile=wide_gamut())
    assert opened(data).getexif().get_ifd(ExifTags.IFD.IFD1), "the thumbnail must be there for this test to count"
    image = decode(data)
    assert image.pixels.shape == (48, 64, 3)
    wider = replace(image, pixels=np.repeat(image.pixels, 2, axis=1))
    written = encode(wider, format=format)
    exif = opened(written).getexif()
    detail = exif.get_ifd(ExifTags.IFD.Exif)
    assert exif[ExifTags.Base.Orientation] == 1
    assert exif[ExifTags.Base.Make].encode("latin-1").decode() == "测试相机"
    assert exif[ExifTags.Base.Artist] == "Ada"
    assert detail[ExifTags.Base.DateTimeOriginal] == "1927:10:29 12:00:00"
    assert (detail[0xA002], detail[0xA003]) == (128, 48), "pixel dimensions follow the written picture"
    assert detail[0xA001] == 1, "colours were converted to sRGB"
    assert ExifTags.IFD.GPSInfo not in exif
    assert not exif.get_ifd(ExifTags.IFD.GPSInfo)
    assert b"THUMBNAIL" not in written


def test_orientation_in_xmp_alone_is_applied_and_does_not_come_back() -> None:
    packet = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:Description tiff:Orientation="6"/></x:xmpmeta>'
    packet = b"http://ns.adobe.com/xap/1.0/\0" + packet
    data = saved(np.rot90(scene()), "JPEG", quality=98, subsampling=0)
    data = data[:2] + b"\xff\xe1" + struct.pack(">H", len(packet) + 2) + packet + data[2:]
    image = decode(data)
    assert off(image.pixels, scene()) <= 4
    assert b"Orientation" not in encode(image)
    assert decode(encode(image)).pixels.shape == image.pixels.shape


def test_damaged_exif_costs_the_exif_and_not_the_picture() -> None:
    block = bytearray(rich_exif(1))
    block[14:] = random.Random(0).randbytes(len(block) - 14)
    image = decode(saved(scene(), "PNG", exif=bytes(block)))
    np.testing.assert_array_equal(image.pixels, scene())
    assert set(codes(image)) <= {"I13"}
    encode(image)


def test_dpi_survives_and_follows_the_turn() -> None:
    data = saved(np.rot90(scene()), "JPEG", dpi=(300, 150), exif=turned_exif(6))
    assert opened(encode(decode(data))).info["dpi"] == (150, 300)


def turned_exif(orientation: int) -> bytes:
    exif = pil.Exif()
    exif[ExifTags.Base.Orientation] = orientation
    return exif.tobytes()


# --- formats and quality -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("quality", [30, 75, 90, 96, 100])
@pytest.mark.parametrize("subsampling", [0, 1, 2])
def test_jpeg_is_written_at_least_as_fine_as_it_came(quality: int, subsampling: int) -> None:
    data = saved(texture(64, 64), "JPEG", quality=quality, subsampling=subsampling)
    image = decode(data)
    assert image.source.quality == quality
    before, after = opened(data), opened(encode(image))
    for i, steps in after.quantization.items():
        assert all(a <= b for a, b in zip(steps, before.quantization[i], strict=True))
    assert after.layer[0][1:3] == before.layer[0][1:3], "chroma sampling"


def test_jpeg_of_another_program_is_not_written_coarser() -> None:
    tables = [[7] * 10 + [40] * 54, [9] * 64]
    before = opened(saved(texture(64, 64), "JPEG", qtables=tables))
    after = opened(encode(decode(saved(texture(64, 64), "JPEG", qtables=tables))))
    for i, steps in after.quantization.items():
        assert all(a <= b for a, b in zip(steps, before.quantization[i], strict=True))


def test_quality_is_obeyed_or_refused() -> None:
    image = decode(saved(texture(64, 64), "JPEG", quality=95))
    assert len(encode(image, quality=30)) < len(encode(image, quality=80)) < len(encode(image))
    for wrong in (0, 101, 85.5, "90"):
        with pytest.raises(OptionsInvalid) as caught:
            encode(image, quality=wrong)  # type: ignore[arg-type]
        assert caught.value.code == "I18"


@pytest.mark.parametrize(
    ("asked", "format"),
    [("png", "PNG"), ("jpg", "JPEG"), (".TIF", "TIFF"), ("WebP", "WEBP"), ("JPEG", "JPEG"), ("bmp", "BMP")],
)
def test_other_format_on_request(asked: str, format: str) -> None:
    image = decode(saved(scene(), "PNG"), name="a.png")
    assert output_format(image, asked) == (format, None)
    assert opened(encode(image, format=asked)).format == format


def test_format_that_cannot_be_written() -> None:
    gif = decode(animation("GIF"), name="跳舞.gif")
    chosen, said = output_format(gif)
    assert (chosen, said and said.code) == ("PNG", "I15")
    assert output_name(gif) == "跳舞_restored.png"
    for unknown in ("gif", "heic", "xyz"):
        with pytest.raises(OptionsInvalid) as caught:
            encode(gif, format=unknown)
        assert caught.value.code == "I16"


def test_alpha_is_never_lost_in_silence() -> None:
    image = decode(saved(np.dstack([scene(), HOLE]), "PNG"), name="a.png")
    chosen, said = output_format(image, "jpg")
    assert (chosen, said and said.code) == ("JPEG", "I17")
    flat = np.asarray(opened(encode(image, format="BMP")))
    assert (flat[HOLE == 0] == 255).all()
    np.testing.assert_array_equal(flat[HOLE == 255], image.pixels[HOLE == 255])
    bitmap = replace(image, source=Source(name="a.bmp", format="BMP"))
    chosen, said = output_format(bitmap)
    assert (chosen, said and said.code, output_name(bitmap)) == ("PNG", "I28", "a_restored.png")
    opaque = replace(bitmap, alpha=np.full_like(HOLE, 255))
    assert output_format(opaque) == ("BMP", None)


def test_side_that_a_format_cannot_hold() -> None:
    wide = Image(pixels=np.zeros((2, 16_400, 3), np.uint8), source=Source(name="w.webp", format="WEBP"))
    assert output_format(wide)[0] == "PNG"
    assert opened(encode(wide)).size == (16_400, 2)
    with pytest.raises(OptionsInvalid) as caught:
        encode(wide, format="webp")
    assert caught.value.code == "I27"


def test_pixels_without_a_file_become_png() -> None:
    image = Image(pixels=scene())
    assert opened(encode(image)).format == "PNG"
    assert output_name(image) == "photo_restored.png"


def test_grey_file_whose_pixels_gained_colour_is_written_in_colour() -> None:
    image = decode(saved(luma(scene()), "JPEG"))
    assert opened(encode(image.with_pixels(scene()))).mode == "RGB"


# --- damage ------------------------------------------------------------------------------------------------------
def rows_that_agree(a: np.ndarray, b: np.ndarray) -> float:
    different = np.flatnonzero((a != b).reshape(len(a), -1).any(axis=1))
    return different[0] / len(a) if len(different) else 1.0


@pytest.mark.parametrize("share", [0.15, 0.3, 0.5, 0.7, 0.9, 0.99])
@pytest.mark.parametrize("options", [{}, {"subsampling": 0}, {"restart_marker_rows": 1}], ids=str)
def test_cut_jpeg_gives_the_usable_share(share: float, options: dict[str, Any]) -> None:
    data = saved(texture(400, 300), "JPEG", quality=90, **options)
    whole = decode(data).pixels
    image = decode(data[: int(len(data) * share)])
    assert image.pixels.shape == whole.shape
    (said,) = image.notes
    assert said.code == "I02"
    truth = 100 * rows_that_agree(image.pixels, whole)
    assert truth - 7 <= said.params["pct"] <= truth + 0.01
    assert str(said.params["pct"]) in say(said, "zh")
    assert str(said.params["pct"]) in say(said, "en")
    with pytest.raises(ImageUnreadable) as caught:
        decode(data[: int(len(data) * share)], truncated="refuse")
    assert caught.value.code == "I14"


def test_cut_jpeg_filled_up_with_zeros() -> None:
    """What a failing memory card leaves; libjpeg decodes the zeros without complaint."""
    data = saved(texture(400, 300), "JPEG", quality=90)
    half = data[: len(data) // 2]
    image = decode(half + bytes(len(data) - len(half)))
    assert codes(image) == ("I02",)
    assert image.notes[0].params == decode(half).notes[0].params


def test_jpeg_without_its_last_two_bytes_has_lost_nothing() -> None:
    data = saved(texture(400, 300), "JPEG")
    image = decode(data[:-2], truncated="refuse")
    assert codes(image) == ()
    np.testing.assert_array_equal(image.pixels, decode(data).pixels)


@pytest.mark.parametrize("junk", [bytes(200), b"trailer of a phone" * 9 + bytes(99)], ids=["zeros", "trailer"])
@pytest.mark.parametrize("progressive", [False, True])
def test_bytes_behind_a_whole_jpeg_are_no_damage(junk: bytes, progressive: bool) -> None:
    data = saved(texture(100, 80), "JPEG", progressive=progressive)
    assert codes(decode(data + junk, truncated="refuse")) == ()


@pytest.mark.parametrize(("share", "code"), [(0.1, "I24"), (0.4, "I24"), (0.8, "I24")])
def test_cut_progressive_jpeg(share: float, code: str) -> None:
    data = saved(texture(400, 300), "JPEG", quality=90, progressive=True)
    cut = data[: int(len(data) * share)]
    image = decode(cut)
    assert codes(image) == (code,)
    pct = image.notes[0].params["pct"]
    coarse = decode(data).pixels.astype(int)
    rows = max(1, int(pct / 100 * 400))
    assert np.abs(image.pixels[:rows].astype(int) - coarse[:rows]).mean() < 30, "the share that is promised is there"
    with pytest.raises(ImageUnreadable):
        decode(cut, truncated="refuse")


@pytest.mark.parametrize("format", ["PNG", "TIFF", "BMP", "PPM"])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
def test_cut_file_of_other_formats(format: str, share: float) -> None:
    data = saved(texture(200, 150), format)
    cut = data[: int(len(data) * share)]
    if format == "TIFF":  # Pillow writes the directory at the end; put it in front as cameras do
        cut = front_tiff(texture(200, 150))[: int(len(data) * share)]
    whole = texture(200, 150)
    image = decode(cut)
    assert codes(image) == ("I02",)
    agree = (image.pixels == whole).reshape(200, -1).all(axis=1).mean() * 100
    assert agree - 2 <= image.notes[0].params["pct"] <= agree
    with pytest.raises(ImageUnreadable):
        decode(cut, truncated="refuse")


def front_tiff(rgb: np.ndarray) -> bytes:
    """An uncompressed RGB TIFF whose directory stands before the pixels."""
    height, width = rgb.shape[:2]
    start = 8 + 2 + 9 * 12 + 4 + 6
    entries = [
        (256, 3, 1, width),
        (257, 3, 1, height),
        (258, 3, 3, start - 6),
        (259, 3, 1, 1),
        (262, 3, 1, 2),
        (273, 4, 1, start),
        (277, 3, 1, 3),
        (278, 3, 1, height),
        (279, 4, 1, rgb.nbytes),
    ]
    packed = b"".join(struct.pack("<HHII", *e) for e in entries)
    head = b"II*\0" + struct.pack("<IH", 8, len(entries)) + packed + bytes(4)
    return head + struct.pack("<HHH", 8, 8, 8) + rgb.tobytes()


def test_png_with_a_wrong_checksum_says_so() -> None:
    data = bytearray(saved(texture(60, 60), "PNG"))
    data[-20] ^= 1  # the checksum inside the zlib stream or of IDAT
    try:
        image = decode(bytes(data))
    except ImageUnreadable as error:
        assert error.code == "I05"
    else:
        assert codes(image) in ((), ("I29",), ("I02",))


@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP", "TIFF", "GIF", "BMP"])
def test_header_alone_is_refused_with_a_code(format: str) -> None:
    im = pil.fromarray(scene())
    data = saved(im.quantize(16) if format == "GIF" else im, format)
    for length in (16, 24, 40):
        with pytest.raises((ImageUnreadable, ImageTooLarge)):
            decode(data[:length])


# --- what is no picture ------------------------------------------------------------------------------------------
NO_PICTURE = {
    "kind.empty": b"",
    "kind.zeros": bytes(3000),
    "kind.html": b"\xef\xbb\xbf<!DOCTYPE html><html><body>404</body></html>",
    "kind.xml": b"<?xml version='1.0'?><note/>",
    "kind.svg": b"<?xml version='1.0'?><svg xmlns='http://www.w3.org/2000/svg'/>",
    "kind.text": "这不是照片，只是一段文字。\n".encode(),
    "kind.pdf": b"%PDF-1.7\n1 0 obj",
    "kind.postscript": b"%!PS-Adobe-3.0",
    "kind.zip": b"PK\x03\x04" + bytes(40),
    "kind.archive": b"7z\xbc\xaf\x27\x1c" + bytes(40),
    "kind.lfs": b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
    "kind.psd": b"8BPS" + bytes(40),
    "kind.raw": b"II*\0\x10\0\0\0CR\x02\0" + bytes(40),
    "kind.jxl": b"\xff\x0a" + bytes(40),
    "kind.video": b"\0\0\0\x18ftypmp42" + bytes(40),
    "kind.program": b"MZ\x90\0" + bytes(40),
    "kind.unknown": random.Random(5).randbytes(400),
}


@pytest.mark.parametrize("kind", NO_PICTURE)
def test_what_is_no_picture_is_named_in_both_languages(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "照片.jpg"
    file.write_bytes(NO_PICTURE[kind])
    with pytest.raises(ImageUnreadable) as caught:
        read(file)
    assert caught.value.code == "I01"
    zh, en = CATALOGUE[kind]
    assert zh in say(caught.value.note, "zh")
    assert en in say(caught.value.note, "en")
    assert caught.value.note.as_dict()["params"] == {"kind": kind}


def test_every_kind_has_a_row() -> None:
    assert {k for k in CATALOGUE if k.startswith("kind.")} == set(NO_PICTURE)


def test_text_in_an_old_chinese_encoding_is_text() -> None:
    with pytest.raises(ImageUnreadable) as caught:
        decode("这是国标编码的文字。".encode("gb18030"))
    assert caught.value.note.params["kind"].code == "kind.text"


def test_heic_without_its_reader_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImageUnreadable) as caught:
        decode(b"\0\0\0\x18ftypheic" + bytes(60))
    assert caught.value.code == "I04"
    for lang in ("zh", "en"):
        assert "pip install pillow-heif" in say(caught.value.note, lang)


def test_heic_with_its_reader() -> None:
    heif = pytest.importorskip("pillow_heif")
    buffer = io.BytesIO()
    heif.from_pillow(pil.fromarray(scene())).save(buffer, quality=95)
    image = decode(buffer.getvalue(), name="IMG_1.HEIC")
    assert image.source.format == "HEIF"
    assert np.abs(image.pixels.astype(int) - scene()).mean() < 6
    assert output_name(image) == "IMG_1_restored.png"


def test_damage_is_told_from_no_picture() -> None:
    data = bytearray(saved(scene(), "PNG"))
    data[8:30] = b"?" * 22
    with pytest.raises(ImageUnreadable) as caught:
        decode(bytes(data))
    assert caught.value.code == "I05"


# --- limits ------------------------------------------------------------------------------------------------------
def test_limit_comes_from_the_header(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused with figures, and no pixel is decoded: the file is a header with next to nothing behind it."""
    monkeypatch.setattr(image_io.image_rescue, "load", lambda *a: pytest.fail("pixels were decoded"))
    with pytest.raises(ImageTooLarge) as caught:
        decode(png(30_000, 20_000, 8, 2, b""))
    assert caught.value.code == "I03"
    for lang in ("zh", "en"):
        assert all(figure in say(caught.value.note, lang) for figure in ("30000", "20000", "600.0", "200"))


def test_limit_is_the_callers() -> None:
    data = saved(texture(1000, 1100), "JPEG")
    assert decode(data, limit_mp=1.1).pixels.shape == (1000, 1100, 3)
    with pytest.raises(ImageTooLarge):
        decode(data, limit_mp=1.0)


def test_bombs_and_absurd_sides() -> None:
    huge_gif = bytearray(saved(pil.fromarray(scene()).quantize(16), "GIF"))
    huge_gif[6:10] = b"\xff\xff\xff\xff"
    canvas = b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\x02\0\0\0" + b"\xff\xff\xff" + b"\x3f\0\0"
    for data, code in (
        (png(2_000_000, 3, 8, 0, b""), "I06"),
        (png(12_000, 12_000, 8, 2, b""), "I07"),
        (bytes(huge_gif), "I03"),
        (canvas + bytes(100), "I03"),
        (saved(pil.new("L", (12_000, 12_000)), "PNG", compress_level=9)[:4000], "I07"),
    ):
        started = time.perf_counter()
        with pytest.raises(ImageTooLarge) as caught:
            decode(data)
        assert caught.value.code == code
        assert time.perf_counter() - started < 0.5


def test_pillows_own_limit_plays_no_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a global of the process: 89 megapixels warn and 179 raise, unless somebody changed it."""
    data, rows = saved(scene(), "PNG"), table()
    monkeypatch.setattr(pil, "MAX_IMAGE_PIXELS", 1000)
    with pytest.raises(pil.DecompressionBombError):
        pil.open(io.BytesIO(data))
    for row in rows:
        if row.pixels is not None:
            assert off(decode(row.data).pixels, row.pixels) <= row.within, row.name
    assert (pil.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES) == (1000, False)


def test_jpeg_with_endless_scans_is_refused() -> None:
    data = saved(scene(), "JPEG", progressive=True)
    last = data.rindex(b"\xff\xda")
    with pytest.raises(ImageUnreadable):
        decode(data[:last] + data[last:-2] * 150 + b"\xff\xd9")


# --- paths -------------------------------------------------------------------------------------------------------
def test_paths_that_lead_nowhere(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for path, expected in (
        (tmp_path / "没有.jpg", {"I19"}),
        (tmp_path, {"I20"}),
        (tmp_path / "a\0b.jpg", {"I19", "I21"}),
        (tmp_path / ("x" * 400), {"I19", "I21"}),
        (tmp_path / "loop", {"I19", "I21"}),
        ("/dev/null", {"I20"}),
    ):
        with pytest.raises(PathInaccessible) as caught:
            read(path)
        assert caught.value.code in expected
        assert isinstance(caught.value, OSError)


def test_big_file_that_is_no_picture_is_not_read_whole(tmp_path: Path) -> None:
    film = tmp_path / "film.jpg"
    with film.open("wb") as stream:
        stream.write(b"\0\0\0\x18ftypmp42")
        stream.truncate(30 << 30)  # sparse
    started = time.perf_counter()
    with pytest.raises(ImageUnreadable):
        read(film)
    with film.open("r+b") as stream:
        stream.write(saved(scene(), "PNG"))
    with pytest.raises(ImageTooLarge) as caught:
        read(film)
    assert caught.value.code == "I25"
    assert time.perf_counter() - started < 1


def test_write_and_read_with_chinese_names_and_wrong_suffix(tmp_path: Path) -> None:
    target = tmp_path / "旧照片【一】" / "奶奶 1950.jpg"
    source = tmp_path / "输入.txt"
    source.write_bytes(saved(scene(), "PNG"))
    image = read(source)
    assert image.source.name == "输入.txt"
    assert write(image, target) == target
    assert opened(target.read_bytes()).format == "JPEG", "a known suffix of the target decides"
    plain = write(image, tmp_path / "result.out")
    np.testing.assert_array_equal(read(plain).pixels, scene())
    assert opened(plain.read_bytes()).format == "PNG", "else the input's format"
    assert opened(write(image, str(target), format="webp").read_bytes()).format == "WEBP"
    assert sorted(p.name for p in target.parent.iterdir()) == [target.name]


def test_failed_write_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "folder.png").mkdir()
    (tmp_path / "file").write_bytes(b"")
    image = Image(pixels=scene())
    for path in (tmp_path / "folder.png", tmp_path / "file" / "a.png", tmp_path / "a\0.png"):
        with pytest.raises(PathInaccessible) as caught:
            write(image, path)
        assert caught.value.code == "I22"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "folder.png"]
    with pytest.raises(OptionsInvalid):
        write(image, tmp_path / "a.gif")


def test_a_full_disk_has_one_code_and_long_names_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image = Image(pixels=scene())
    longest = tmp_path / f"{'长' * 83}.png"  # 253 bytes
    assert write(image, longest) == longest

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(PathInaccessible) as caught:
        write(image, tmp_path / "b.png")
    assert caught.value.code == "U17"
    assert list(tmp_path.iterdir()) == [longest]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("photo.png", "photo_restored.png"),
        ("photo.PNG", "photo_restored.PNG"),
        ("photo.jpg", "photo_restored.png"),
        ("IMG.v2", "IMG.v2_restored.png"),
        ("奶奶【1950】.png", "奶奶【1950】_restored.png"),
        ("../../etc/passwd.png", "passwd_restored.png"),
        ("..\\..\\boot.png", "boot_restored.png"),
        ("a\r\nb\x00\u202egnp.png", "abgnp_restored.png"),
        ('a<b>:"c|?*.png', "a_b___c____restored.png"),
        ("bad\udcff.png", "bad__restored.png"),
        ("", "photo_restored.png"),
        ("...", "photo_restored.png"),
        (".png", "png_restored.png"),
    ],
)
def test_output_name(name: str, expected: str) -> None:
    image = Image(pixels=scene(), source=Source(name=name, format="PNG"))
    assert output_name(image) == expected
    assert output_name(image).encode()


def test_output_name_details() -> None:
    jpeg = Image(pixels=scene(), source=Source(name="a.jpeg", format="JPEG"))
    assert output_name(jpeg) == "a_restored.jpeg"
    assert output_name(jpeg, "_2x", format="webp") == "a_2x.webp"
    assert output_name(replace(jpeg, source=Source(name="CON.JPG", format="JPEG")), "") == "_CON.JPG"
    assert output_name(jpeg, "/../x") == "ax.jpeg"
    long = output_name(replace(jpeg, source=Source(name="祖" * 300 + ".jpg", format="JPEG")))
    assert len(long.encode()) <= 255
    assert long.startswith("祖祖")
    assert long.endswith("_restored.jpg")


# --- fuzz, threads, import ---------------------------------------------------------------------------------------
def seeds() -> dict[str, bytes]:
    im = pil.fromarray(texture(40, 56))
    exif = with_thumbnail(rich_exif())
    return {
        "jpeg": saved(im, "JPEG", exif=exif, icc_profile=wide_gamut()),
        "progressive": saved(im, "JPEG", progressive=True),
        "cmyk": cmyk_jpeg(cmyk_profile())[0],
        "png": saved(im, "PNG", exif=exif, icc_profile=wide_gamut()),
        "png16": png16(GREY16[..., None], 0),
        "palette": palette(True)[0],
        "apng": animation("PNG"),
        "webp": saved(im, "WEBP", exif=exif),
        "webp lossless": saved(im.convert("RGBA"), "WEBP", lossless=True),
        "animated webp": animation("WEBP"),
        "tiff": saved(im, "TIFF", exif=exif),
        "tiff lzw": saved(im, "TIFF", compression="tiff_lzw"),
        "tiff16": tiff(GREY16, ">", 16),
        "tiff pages": animation("TIFF"),
        "gif": animation("GIF"),
        "bmp": saved(im, "BMP"),
        "bmp1": saved(im.convert("1"), "BMP"),
        "ppm": saved(im, "PPM"),
    }


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Bit flips, header edits, cuts, doubled and removed pieces."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5, 20))):
        at = rng.randrange(min(len(out), rng.choice((48, 300, len(out)))))
        kind = rng.randrange(6)
        if kind == 0:
            out[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            out[at] = rng.choice((0, 1, 127, 128, 255))
        elif kind == 2:
            out[at : at + 4] = rng.choice((b"\xff\xff\xff\xff", b"\0\0\0\0", b"\x7f\xff\xff\xff", b"\0\0\xff\xff"))
        elif kind == 3 and len(out) > 200:
            del out[rng.randrange(64, len(out)) :]
        elif kind == 4:
            out[at:at] = out[at : at + rng.randrange(1, 40)]
        elif len(out) > 200:
            del out[at : at + rng.randrange(1, 30)]
    return bytes(out)


def fuzz(rounds: int, seed: int, check: Callable[[str, bytes, float], None]) -> dict[str, int]:
    """Decode and re-encode mutated files; `check` sees each with its seconds. Returns how many opened and failed."""
    rng = random.Random(seed)
    pool = sorted(seeds().items())
    seen = {"opened": 0, "refused": 0}
    for i in range(rounds):
        name, data = pool[i % len(pool)]
        data = mutated(data, rng)
        started = time.perf_counter()
        try:
            image = decode(data, name="x.jpg")
        except GpenError as error:
            assert say(error.note, "zh")
            assert say(error.note, "en")
            seen["refused"] += 1
        else:
            encode(image)
            for said in image.notes:
                assert say(said, "zh")
            seen["opened"] += 1
        check(name, data, time.perf_counter() - started)
    return seen


@pytest.mark.filterwarnings("ignore")
def test_mutated_files_give_a_picture_or_a_code() -> None:
    def check(name: str, data: bytes, seconds: float) -> None:
        assert seconds < 2, f"{name}: {seconds:.1f} s"

    seen = fuzz(432, 7, check)
    assert seen["opened"] > 60
    assert seen["refused"] > 60


def test_threads_do_not_share_how_to_treat_damage() -> None:
    """One opens cut files, one refuses them, one reads whole ones, at the same time."""
    data = saved(texture(300, 300), "JPEG", quality=90)
    cut, whole, cut_png = data[: len(data) // 2], decode(data).pixels, saved(texture(300, 300), "PNG")[:90_000]
    wrong: list[str] = []
    stop = time.perf_counter() + 1.5

    def loop(step: Callable[[], bool], name: str) -> None:
        while time.perf_counter() < stop:
            try:
                if not step():
                    wrong.append(name)
            except Exception as error:
                wrong.append(f"{name}: {error!r}")

    def refuses() -> bool:
        for part in (cut, cut_png):
            with pytest.raises(ImageUnreadable):
                decode(part, truncated="refuse")
        try:
            pil.open(io.BytesIO(cut)).load()  # somebody else in this process who relies on Pillow's default
        except OSError:
            return True
        return False

    first = decode(cut).pixels
    steps = {
        "opens": lambda: bool((decode(cut).pixels == first).all()) and codes(decode(cut_png)) == ("I02",),
        "refuses": refuses,
        "whole": lambda: bool((decode(data).pixels == whole).all()),
    }
    threads = [threading.Thread(target=loop, args=(step, name)) for name, step in steps.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_import_is_light() -> None:
    code = "import sys, gpen_zoo.image_io; print(sorted({'torch', 'gradio', 'cv2', 'scipy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_photos_beside_the_project(shared: Path) -> None:
    for file in sorted((shared / "data/photos").iterdir()):
        image = read(file)
        again = decode(encode(image), name=file.name)
        assert output_name(image).startswith(file.stem)
        assert again.pixels.shape == image.pixels.shape
        error = np.abs(again.pixels.astype(int) - image.pixels).mean()
        assert error <= (0 if image.source.format == "PNG" else 1.5), f"{file.name}: {error}"
