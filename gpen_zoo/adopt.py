"""Files that are already on this machine, under whatever name, recognised by size and digest and taken in by copy."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from gpen_zoo import architecture, weightfile
from gpen_zoo.convert import read_original
from gpen_zoo.errors import WeightWrongKind
from gpen_zoo.identify import identify
from gpen_zoo.lock import Record, Trust
from gpen_zoo.manifest import Digest, Entry

SUFFIXES = (".pth", ".pt", ".ckpt", ".safetensors", ".onnx", ".bin")
DEEPEST, MOST = 8, 20_000  # folder levels and files of one scan: a cache may be large, a home folder endless

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A file that is the original (or the conversion) of `entry`. trust: what says so."""

    path: Path
    entry: Entry
    digest: Digest
    trust: Trust


def match(path: Path, entries: tuple[Entry, ...], records: Mapping[str, Record]) -> Match | None:
    """The weight whose recorded size and digest `path` has. Hashes only when a size fits."""
    size, digest = path.stat().st_size, ""
    for entry in entries:
        for known, trust in _known(entry, records.get(entry.name)):
            if known.bytes == size:
                digest = digest or weightfile.sha256_of(path)
                if known.sha256 == digest:
                    return Match(path=path, entry=entry, digest=known, trust=trust)
    return None


def _known(entry: Entry, record: Record | None) -> Iterator[tuple[Digest, Trust]]:
    if entry.bytes is not None and entry.sha256 is not None:
        yield Digest(bytes=entry.bytes, sha256=entry.sha256), "pinned"
    if entry.converted:
        yield entry.converted, "pinned"
    if record and entry.sha256 in (None, record.original_sha256):
        yield Digest(bytes=record.original_bytes, sha256=record.original_sha256), record.trust


def by_the_users_word(path: Path, entry: Entry, records: Mapping[str, Record]) -> Match:
    """Take `path` for `entry`, which has no digest to compare with, after looking at its names and shapes.

    Raises WeightWrongKind when the entry has a digest after all (then only that counts) or the tensors are others'.
    """
    if known := next(_known(entry, records.get(entry.name)), None):
        found = weightfile.sha256_of(path)
        code = "W39" if known[1] == "pinned" else "W36"
        raise WeightWrongKind(code, file=path, name=entry.name, found=found, expected=known[0].sha256)
    state = read_original(path).state
    wanted = architecture.Network(entry.architecture.family, entry.architecture.params)
    architecture.check_network(path.name, state, wanted, entry.name)
    digest = Digest(bytes=path.stat().st_size, sha256=weightfile.sha256_of(path))
    return Match(path=path, entry=entry, digest=digest, trust="user")


def refusal(path: Path, entries: tuple[Entry, ...]) -> WeightWrongKind:
    """The error for a file that no recorded digest fits: what it is, and what to do."""
    return WeightWrongKind("W37", file=path.name, what=identify(path, entries).note)


def scan(places: tuple[Path, ...], entries: tuple[Entry, ...], records: Mapping[str, Record]) -> tuple[Match, ...]:
    """Every file below `places` whose digest is recorded, one for each weight; names do not matter, digests do."""
    found: dict[str, Match] = {}
    for place in places:
        for path in files_below(place):
            try:
                fits = match(path, entries, records)
            except OSError as error:
                log.info("cannot read %s: %s", path, error)
                continue
            if fits:
                found.setdefault(fits.entry.name, fits)
    return tuple(found.values())


def files_below(place: Path) -> Iterator[Path]:
    """Weight files below a folder, or the file itself. Hub caches name their blobs by digest, without a suffix."""
    if place.is_file():
        yield place
        return
    count = 0
    for folder, folders, names in os.walk(place):
        if len(Path(folder).relative_to(place).parts) >= DEEPEST:
            folders.clear()
        for name in sorted(names):
            path = Path(folder, name)
            blob = Path(folder).name == "blobs"
            if (blob or path.suffix.lower() in SUFFIXES) and path.is_file() and not path.is_symlink():
                yield path
                count += 1
                if count >= MOST:
                    return


def likely_places() -> tuple[Path, ...]:
    """Folders where face restoration weights tend to lie already; only those that exist."""
    home, here = Path.home(), Path.cwd()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    hub = os.environ.get("HF_HUB_CACHE") or Path(os.environ.get("HF_HOME") or cache / "huggingface", "hub")
    modelscope = os.environ.get("MODELSCOPE_CACHE") or cache / "modelscope"
    bases = [here, here.parent, home] + ([Path("C:/")] if sys.platform == "win32" else [])
    programs = [base / name for base in bases for name in ("ComfyUI", "stable-diffusion-webui")]
    places = [
        here / "weights",
        Path(hub),
        Path(modelscope),
        *(program / "models" / folder for program in programs for folder in ("facerestore_models", "GFPGAN")),
        *(base / "GPEN" / "weights" for base in bases),
    ]
    return tuple(dict.fromkeys(place for place in places if place.is_dir()))
