"""Author's `.pth` → canonical safetensors: the same original always gives the same bytes.

A pickle can run code when it is opened, so it is read with `weights_only=True` and in no other way. What comes out is
written by a writer of our own, because the order in which the safetensors library stores its metadata is not fixed,
and read back by that library and compared bit by bit.
"""

from __future__ import annotations

import json
import os
import pickle
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from gpen_zoo import architecture, weightfile
from gpen_zoo.architecture import Network
from gpen_zoo.errors import WeightCorrupt, WeightWrongKind
from gpen_zoo.manifest import Digest, Entry

if TYPE_CHECKING:
    import torch

Dtype: TypeAlias = Literal["float32", "float16"]

VERSION = "gpen_zoo 1"  # of the conversion; a change that alters bytes must change it
# Names under which training programs wrap the weights, best first: averaged before current, generator before the rest.
WRAPPERS = ("g_ema", "params_ema", "params", "state_dict", "g")
TYPE_NAMES = {
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "float64": "F64",
    "int64": "I64",
    "int32": "I32",
    "uint8": "U8",
    "bool": "BOOL",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Original:
    """A state dict as its author saved it. wrapper: the key it lay under, `""` for a flat one. keys: all of the
    wrapping dict (`g, d, g_ema, …` for a training checkpoint)."""

    state: Mapping[str, torch.Tensor]
    wrapper: str
    keys: tuple[str, ...]


def read_original(path: Path) -> Original:
    """Tensors of a `.pth`, `.pt` or safetensors file, by their official names, on the CPU, in the file's own dtypes.

    Raises WeightCorrupt (damaged, or a pickle with anything but data inside) or WeightWrongKind.
    """
    kind = weightfile.container(path)
    if kind == "safetensors":
        return Original(state=weightfile.read_state_dict(path), wrapper="", keys=())
    if kind not in ("pickle", "pickle-zip"):
        raise weightfile.complaint(path, kind)
    import torch

    try:
        data = torch.load(path, map_location="cpu", weights_only=True, mmap=kind == "pickle-zip")
    except pickle.UnpicklingError as error:
        raise WeightCorrupt("W30", file=path.name) from error
    except Exception as error:
        # torch.load reports damage as RuntimeError, EOFError, KeyError, ValueError, OSError, struct.error, …
        raise WeightCorrupt("W31", file=path.name, reason=type(error).__name__) from error
    return _unwrap(path, data)


def _unwrap(path: Path, data: Any) -> Original:
    if not isinstance(data, dict):
        raise WeightWrongKind("W13", file=path.name)
    keys = tuple(str(key) for key in data)
    wrapper = next((key for key in WRAPPERS if isinstance(data.get(key), dict)), "")
    state = data[wrapper] if wrapper else data
    import torch

    tensors: dict[str, torch.Tensor] = {}
    for name, value in state.items():
        usable = isinstance(name, str) and isinstance(value, torch.Tensor) and value.layout is torch.strided
        if not usable or str(value.dtype).removeprefix("torch.") not in TYPE_NAMES:
            raise WeightWrongKind("W13", file=path.name)
        tensors[name.removeprefix("module.")] = value.detach()
    if not tensors:
        raise WeightWrongKind("W13", file=path.name)
    return Original(state=tensors, wrapper=wrapper, keys=keys if wrapper else ())


def convert(original: Path, target: Path, entry: Entry, digest: Digest, *, dtype: Dtype = "float32") -> Digest:
    """Write the canonical safetensors of `original`, whose digest is `digest`, to `target`; returns target's digest.

    dtype `float16` halves the size, rounds every value and marks the file as such; `float32` keeps every bit. The
    metadata names the author's file, never the one at hand, so that every place gives the same bytes. The tensors
    must be those of `entry` and no others. Raises WeightCorrupt or WeightWrongKind; nothing is left at `target` then.
    """
    state = read_original(original).state
    wanted = Network(entry.architecture.family, entry.architecture.params)
    architecture.check_network(original.name, state, wanted, entry.name)
    if dtype == "float16":
        state = _halved(original.name, state)
    metadata = {
        "format": "pt",
        "name": entry.name,
        "architecture": json.dumps({"family": wanted.family, **wanted.params}, sort_keys=True),
        "source_file": entry.file,
        "source_sha256": digest.sha256,
        "converter": VERSION,
        "dtype": dtype,
    }
    try:
        write(target, state, metadata)
        _compare(target, state)
    except BaseException:
        target.unlink(missing_ok=True)
        raise
    return Digest(bytes=target.stat().st_size, sha256=weightfile.sha256_of(target))


def _halved(file: str, state: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    import torch

    halved = {name: value.half() if value.is_floating_point() else value for name, value in state.items()}
    for name, value in halved.items():
        if value.is_floating_point() and bool(torch.isinf(value).any() > torch.isinf(state[name]).any()):
            raise WeightWrongKind("W32", file=file, tensor=name)
    return halved


def write(target: Path, state: Mapping[str, torch.Tensor], metadata: Mapping[str, str]) -> None:
    """Canonical safetensors: widest items first and by name within a width, sorted header, flushed to the disk."""
    order = sorted(state, key=lambda name: (-state[name].element_size(), name))
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    position = 0
    for name in order:
        value = state[name]
        end = position + value.numel() * value.element_size()
        dtype = TYPE_NAMES[str(value.dtype).removeprefix("torch.")]
        header[name] = {"dtype": dtype, "shape": list(value.shape), "data_offsets": [position, end]}
        position = end
    text = json.dumps(header, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)  # so that the data starts on a multiple of 8, which mapped reading wants
    with target.open("wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for name in order:
            out.write(_bytes(state[name]))
        out.flush()
        os.fsync(out.fileno())


def _bytes(value: torch.Tensor) -> memoryview:
    """The raw little-endian bytes of a tensor; `reshape(-1)` first because a scalar has no last dimension to view."""
    import torch

    return value.contiguous().reshape(-1).view(torch.uint8).numpy().data


def _compare(target: Path, state: Mapping[str, torch.Tensor]) -> None:
    """Read the file back with the library that will read it from now on. Bits are compared, so that NaN equals NaN."""
    written = weightfile.read_state_dict(target)
    same = written.keys() == state.keys()
    if not same or any(name for name in _unequal(written, state)):
        raise WeightCorrupt("W31", file=target.name, reason="read-back")


def _unequal(written: Mapping[str, torch.Tensor], state: Mapping[str, torch.Tensor]) -> Iterator[str]:
    for name, value in state.items():
        other = written[name]
        if other.dtype != value.dtype or other.shape != value.shape or _bytes(other) != _bytes(value):
            yield name
