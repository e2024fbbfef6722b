"""What is this file? Containers and safetensors headers; digests; and reading a file that is sound.

Everything is decided from the bytes, never from the name. A safetensors file is checked by its header alone, before a
tensor is touched: the format is https://github.com/huggingface/safetensors, and the checks are those its own reader
makes plus duplicate keys, which JSON readers pass over in silence.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from gpen_zoo.architecture import Network, check_network
from gpen_zoo.errors import GpenError, WeightCorrupt, WeightWrongKind

if TYPE_CHECKING:
    import torch

Container: TypeAlias = Literal[
    "safetensors", "pickle-zip", "pickle", "onnx", "empty", "html", "lfs-pointer", "message", "zip-cut", "unknown"
]

CHUNK = 1 << 20
HEADER_LIMIT = 100_000_000  # bytes, the limit of the safetensors library itself
ITEM_BYTES = {
    name: size
    for size, names in (
        (1, "BOOL U8 I8 F8_E4M3 F8_E5M2"),
        (2, "I16 U16 F16 BF16"),
        (4, "I32 U32 F32"),
        (8, "I64 U64 F64"),
    )
    for name in names.split()
}
FLOATS = ("F32", "F16", "BF16")


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor in a safetensors header. start, end: byte positions within the data part."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Header:
    """A checked safetensors header: every byte of the data part belongs to exactly one tensor."""

    tensors: Mapping[str, Tensor]
    metadata: Mapping[str, str]


def sha256_of(path: Path, progress: Callable[[int], None] | None = None) -> str:
    """sha256 of a file as 64 hex digits, read in pieces of 1 MiB. progress gets the number of bytes read so far."""
    digest, done, buffer = hashlib.sha256(), 0, bytearray(CHUNK)
    with path.open("rb", buffering=0) as file:
        while count := file.readinto(buffer):
            digest.update(memoryview(buffer)[:count])
            done += count
            if progress:
                progress(done)
    return digest.hexdigest()


def container(path: Path) -> Container:
    """The kind of file by its first bytes (and, for a zip, its directory)."""
    size = path.stat().st_size
    if size == 0:
        return "empty"
    with path.open("rb") as file:
        start = file.read(512)
    if start.startswith(b"PK\x03\x04"):
        return _zip_kind(path)
    if size >= 9 and start[8:9] == b"{" and not start[:8].isspace() and int.from_bytes(start[:8], "little") < 1 << 40:
        return "safetensors"
    if start.startswith(b"version https://git-lfs"):
        return "lfs-pointer"
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if text.startswith((b"<!doctype html", b"<html", b"<head", b"<script", b"<!--")):
        return "html"
    if text.startswith((b"{", b"[", b"<?xml", b"<error")):
        return "message"
    if start[:1] == b"\x80" and start[1] <= 5:
        return "pickle"
    # An ONNX file is a protobuf that opens with ir_version (field 1) and producer or opset (fields 2-8).
    if start[:1] == b"\x08" and 1 <= start[1] <= 20 and start[2] in (0x12, 0x1A, 0x22, 0x28, 0x32, 0x3A, 0x42):
        return "onnx"
    return "unknown"


def _zip_kind(path: Path) -> Container:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, EOFError):
        return "zip-cut"  # the directory stands at the end, so it is the first thing a cut takes away
    return "pickle-zip" if any(name.endswith("data.pkl") for name in names) else "unknown"


def complaint(path: Path, kind: Container, wanted: str = "") -> GpenError:
    """The error for a file that is no safetensors, with what to do about it. wanted: name of the weight, if known."""
    name = path.name
    with path.open("rb") as file:
        start = file.read(48)
    if kind == "empty":
        return WeightCorrupt("W01", file=name)
    if kind == "html":
        return WeightCorrupt("W02", file=name)
    if kind == "lfs-pointer":
        return WeightCorrupt("W03", file=name)
    if kind == "message":
        return WeightCorrupt("W14", file=name, start=" ".join(start.decode("utf-8", "replace").split()))
    if kind == "zip-cut":
        return WeightCorrupt("W28", file=name)
    if kind in ("pickle", "pickle-zip"):
        return WeightWrongKind("W18", file=name)
    if kind == "onnx":
        return WeightWrongKind("W20", file=name, wanted=wanted or ".pth")
    return WeightCorrupt("W15", file=name, start=start[:8].hex(" "))


def read_header(path: Path) -> Header:
    """Header of a safetensors file. Raises WeightCorrupt (or WeightWrongKind for a pickle or ONNX file) otherwise."""
    kind = container(path)
    if kind != "safetensors":
        raise complaint(path, kind)
    with path.open("rb") as file:
        total = os.fstat(file.fileno()).st_size
        length = int.from_bytes(file.read(8), "little")
        if length > HEADER_LIMIT or 8 + length > total:
            raise WeightCorrupt("W07", file=path.name, length=length)
        raw = file.read(length)
    data = _parse_header(path, raw)
    metadata = data.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise WeightCorrupt("W08", file=path.name)
    tensors = {name: _tensor(path, name, entry) for name, entry in data.items()}
    _check_layout(path, tensors, total - 8 - length, 8 + length)
    return Header(MappingProxyType(tensors), MappingProxyType(metadata))


def _parse_header(path: Path, raw: bytes) -> dict[str, Any]:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise WeightCorrupt("W09", file=path.name, tensor=twice)
        return found

    try:
        data = json.loads(raw.decode("utf-8"), object_pairs_hook=unique)
    except WeightCorrupt:
        raise  # a ValueError too
    except (ValueError, RecursionError):
        raise WeightCorrupt("W08", file=path.name) from None
    if not isinstance(data, dict):
        raise WeightCorrupt("W08", file=path.name)
    return data


def _tensor(path: Path, name: str, data: Any) -> Tensor:
    if not isinstance(data, dict) or set(data) != {"dtype", "shape", "data_offsets"}:
        raise WeightCorrupt("W11", file=path.name, tensor=name, found="-")
    dtype, shape, offsets = data["dtype"], data["shape"], data["data_offsets"]
    if not isinstance(dtype, str) or dtype not in ITEM_BYTES:
        raise WeightCorrupt("W11", file=path.name, tensor=name, found=str(dtype)[:40])
    if not _naturals(shape):
        raise WeightCorrupt("W11", file=path.name, tensor=name, found=str(shape)[:40])
    if not _naturals(offsets) or len(offsets) != 2:
        raise WeightCorrupt("W10", file=path.name, tensor=name)
    if offsets[1] - offsets[0] != math.prod(shape) * ITEM_BYTES[dtype]:
        raise WeightCorrupt("W11", file=path.name, tensor=name, found=f"{dtype} {tuple(shape)}")
    return Tensor(dtype, tuple(shape), *offsets)


def _naturals(values: Any) -> bool:
    return isinstance(values, list) and all(type(v) is int and 0 <= v < 1 << 48 for v in values)


def _check_layout(path: Path, tensors: Mapping[str, Tensor], data_bytes: int, header_bytes: int) -> None:
    position = 0
    for name, tensor in sorted(tensors.items(), key=lambda item: (item[1].start, item[1].end)):
        if tensor.start != position:
            raise WeightCorrupt("W10", file=path.name, tensor=name)
        position = tensor.end
    if position > data_bytes:
        raise WeightCorrupt("W06", file=path.name, expected=header_bytes + position, found=header_bytes + data_bytes)
    if position < data_bytes:
        raise WeightCorrupt("W10", file=path.name, tensor=f"(+{data_bytes - position} bytes)")


def check_file(path: Path, wanted: Network, title: str) -> Header:
    """Header, dtypes, names and shapes of a safetensors file that must hold `wanted`, the weight called `title`.

    Raises WeightCorrupt or WeightWrongKind; reads the header only.
    """
    kind = container(path)
    if kind != "safetensors":
        raise complaint(path, kind, title)
    header = read_header(path)
    check_network(path.name, header.tensors, wanted, title)
    for name, tensor in header.tensors.items():
        # BatchNorm counters are the only integers in any of these networks.
        if tensor.dtype not in FLOATS and not name.endswith("num_batches_tracked"):
            raise WeightCorrupt("W11", file=path.name, tensor=name, found=tensor.dtype)
    return header


def read_state_dict(path: Path) -> dict[str, torch.Tensor]:
    """Tensors of a safetensors file on the CPU, in the dtype of the file (float16 stays float16: widen before use).

    The file's header is checked; its digest is not, that is what `Zoo.locate` does before it hands out a path.
    """
    read_header(path)
    from safetensors.torch import load_file

    return load_file(path)
