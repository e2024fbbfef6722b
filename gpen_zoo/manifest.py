"""weights_manifest.yaml → a tuple of frozen entries. Facts only: nothing here touches a weight or the network.

There is one manifest, at the top of the repository. `setup.py` copies it into the wheel, so an installed package finds
it beside its modules and a checkout finds it one folder up. `GPEN_ZOO_MANIFEST` names a second file that is laid over
it: entries of the same name are replaced, new ones are added, and licences and alignments of ours may be referred to.
"""

from __future__ import annotations

import os
import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, get_args
from urllib.parse import urlsplit

import yaml

from gpen_zoo.errors import ManifestInvalid

Role: TypeAlias = Literal[
    "restorer", "colorizer", "inpainter", "seg2face", "discriminator", "detector", "parser", "upscaler"
]
SourceKind: TypeAlias = Literal["huggingface", "modelscope", "https", "local"]
Points: TypeAlias = tuple[tuple[float, float], ...]

FILE_NAME = "weights_manifest.yaml"
VERSION = 1
LIMIT = 1 << 20  # bytes; a manifest is a few kilobytes, and YAML aliases can blow up

NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}"  # becomes a file name on every system
SHA256 = r"[0-9a-f]{64}"
REPO = r"[\w.-]+/[\w.-]+"
REVISION = r"[\w.-]+"
# Device names of Windows: such a file could be written on Linux and never be opened there.
RESERVED = {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10))}


@dataclass(frozen=True, slots=True, kw_only=True)
class Licence:
    """What is known about the terms of a weight. spdx: an SPDX expression, `NOASSERTION` where none is stated."""

    key: str
    spdx: str
    zh: str
    en: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """family: `GPEN`, `RetinaFace`…; params: its constructor's numbers (for GPEN those of `network.Config`)."""

    family: str
    params: Mapping[str, int | float | str]

    def __hash__(self) -> int:
        return hash((self.family, *sorted(self.params.items())))


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One place to get a file from. Hubs use repo, file, revision, repo_type (`model` or `space`); `https` uses url;
    `local` uses path."""

    kind: SourceKind
    repo: str = ""
    file: str = ""
    revision: str = ""
    repo_type: str = "model"
    url: str = ""
    path: str = ""

    @property
    def file_name(self) -> str:
        """The last part of the path or address."""
        return PurePosixPath(self.file or urlsplit(self.url).path or self.path.replace("\\", "/")).name

    def __str__(self) -> str:
        if self.kind == "https":
            return self.url
        if self.kind == "local":
            return self.path
        return f"{self.kind}:{self.repo_type + 's/' if self.repo_type != 'model' else ''}{self.repo}/{self.file}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """Exact size and sha256 of a file."""

    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One weight.

    file: the author's file name. bytes, sha256: of that file; `sha256 is None` means nobody has recorded it.
    about_mb: expected size in MB where `bytes` is None. converted: the same of the canonical safetensors file, once
    known. branch: side of the picture in pixels, for GPEN's networks. alignment: five points relative to the side of
    the crop (left eye, right eye, nose, left and right mouth corner). bundled: `file` lies in gpen_zoo/assets.
    """

    name: str
    role: Role
    branch: int | None
    file: str
    architecture: Architecture
    bytes: int | None
    about_mb: float | None
    sha256: str | None
    converted: Digest | None
    bundled: bool
    sources: tuple[Source, ...]
    licence: Licence
    alignment: Points | None
    aliases: tuple[str, ...]

    @property
    def pinned(self) -> bool:
        return self.sha256 is not None

    @property
    def stored_as(self) -> str:
        """File name in the zoo folder. ONNX stays ONNX; everything else is kept as safetensors."""
        return f"{self.name}.onnx" if self.file.endswith(".onnx") else f"{self.name}.safetensors"

    @property
    def expected_bytes(self) -> int | None:
        """Size to reckon with before a download; exact where known."""
        if self.bytes is None:
            return round(self.about_mb * 1e6) if self.about_mb else None
        return self.bytes

    def answers_to(self, name: str) -> bool:
        """True for the name, the author's file name and every alias, with or without suffix, in any case."""
        wanted = name.casefold()
        known = [self.name, self.file, self.stored_as, *self.aliases]
        return any(wanted in (k.casefold(), _stem(k).casefold()) for k in known)


def default_path() -> Path:
    """The manifest of this installation: beside the modules in a wheel, one folder up in a checkout."""
    package = Path(__file__).parent
    installed = package / FILE_NAME
    return installed if installed.is_file() else package.parent / FILE_NAME


def load(path: Path | None = None) -> tuple[Entry, ...]:
    """All entries of `path`, or of the project's manifest with `GPEN_ZOO_MANIFEST` laid over it.

    Raises ManifestInvalid naming file, entry and field.
    """
    if path is not None:
        return _entries(path, _Base({}, {}))[0]
    entries, base = _entries(default_path(), _Base({}, {}))
    overlay = os.environ.get("GPEN_ZOO_MANIFEST")
    if not overlay:
        return entries
    own, _ = _entries(Path(overlay), base)
    replaced = {entry.name: entry for entry in own}
    merged = tuple(replaced.pop(entry.name, entry) for entry in entries) + tuple(replaced.values())
    _check_unique(Path(overlay), merged)
    return merged


@dataclass(frozen=True, slots=True)
class _Base:
    licences: Mapping[str, Licence]
    alignments: Mapping[str, Points]


class _Loader(yaml.SafeLoader):
    """SafeLoader keeps the last of two equal keys in silence; here they are an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, Hashable):
                if key in seen:
                    raise yaml.constructor.ConstructorError(None, None, f"duplicate key {key}", key_node.start_mark)
                seen.add(key)
        return super().construct_mapping(node, deep)


class _Block:
    """One mapping of the file, read field by field; every complaint carries its place."""

    def __init__(self, path: Path, entry: str, data: Any, prefix: str = "") -> None:
        self.path, self.entry, self.prefix = path, entry, prefix
        if not isinstance(data, dict):
            raise ManifestInvalid("W23", file=path, entry=entry, field=prefix or "-", expected="{…}", value=data)
        self.data: dict[Any, Any] = dict(data)

    def wrong(self, field: str, expected: str, value: Any) -> ManifestInvalid:
        return ManifestInvalid(
            "W23", file=self.path, entry=self.entry, field=self.prefix + field, expected=expected, value=repr(value)
        )

    def take(self, field: str) -> Any:
        if field not in self.data:
            raise ManifestInvalid("W21", file=self.path, entry=self.entry, field=self.prefix + field)
        return self.data.pop(field)

    def text(self, field: str, pattern: str = r"(?s).*\S.*", default: str | None = None) -> str:
        if default is not None and field not in self.data:
            return default
        value = self.take(field)
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise self.wrong(field, pattern, value)
        return value

    def choice(self, field: str, options: tuple[str, ...], default: str | None = None) -> Any:
        return self.text(field, "|".join(options), default)

    def number(self, field: str, kind: type[int] | type[float]) -> Any:
        """A positive number or None."""
        value = self.data.pop(field, None)
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, kind)) or value <= 0):
            raise self.wrong(field, f"{kind.__name__} > 0 | null", value)
        return value

    def items(self, field: str) -> list[Any]:
        value = self.data.pop(field, [])
        if not isinstance(value, list):
            raise self.wrong(field, "[…]", value)
        return value

    def finish(self) -> None:
        if self.data:
            field = str(next(iter(self.data)))
            raise ManifestInvalid("W22", file=self.path, entry=self.entry, field=self.prefix + field)


def _entries(path: Path, base: _Base) -> tuple[tuple[Entry, ...], _Base]:
    top = _Block(path, "-", _parse(path))
    if (version := top.take("version")) != VERSION:
        raise top.wrong("version", str(VERSION), version)
    licences, alignments = dict(base.licences), dict(base.alignments)
    for key, data in _Block(path, "licences", top.data.pop("licences", {})).data.items():
        block = _Block(path, "licences", data, f"{key}.")
        licences[key] = Licence(key=key, spdx=block.text("spdx"), zh=block.text("zh"), en=block.text("en"))
        block.finish()
    for key, data in _Block(path, "alignments", top.data.pop("alignments", {})).data.items():
        alignments[key] = _points(path, str(key), data)
    weights = top.items("weights")
    top.finish()
    known = _Base(licences, alignments)
    entries = tuple(_entry(path, number, data, known) for number, data in enumerate(weights, 1))
    _check_unique(path, entries)
    return entries, known


def _parse(path: Path) -> Any:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ManifestInvalid("W25", file=path, problem=error.strerror or str(error)) from error
    if len(raw) > LIMIT:
        raise ManifestInvalid("W25", file=path, problem=f"{len(raw)} bytes > {LIMIT}")
    try:
        return yaml.load(raw, Loader=_Loader)  # a SafeLoader
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ManifestInvalid("W25", file=path, problem=" ".join(str(error).split())) from error


def _entry(path: Path, number: int, data: Any, base: _Base) -> Entry:
    block = _Block(path, f"#{number}", data)
    name = block.text("name", NAME)
    block.entry = name
    if name.split(".")[0].casefold() in RESERVED or name.endswith("."):
        raise block.wrong("name", NAME, name)
    branch, size = block.number("branch", int), block.number("bytes", int)
    bundled = block.data.pop("bundled", False)
    if not isinstance(bundled, bool):
        raise block.wrong("bundled", "true | false", bundled)
    licence = block.text("licence")
    if licence not in base.licences:
        raise block.wrong("licence", "|".join(base.licences), licence)
    alignment = block.data.pop("alignment", None)
    if alignment is not None and alignment not in base.alignments:
        raise block.wrong("alignment", "|".join(base.alignments), alignment)
    digest = block.data.pop("sha256", None)
    if digest is not None and (not isinstance(digest, str) or not re.fullmatch(SHA256, digest)):
        raise block.wrong("sha256", f"{SHA256} | null", digest)
    if digest is not None and size is None:
        raise block.wrong("bytes", "int > 0", None)
    entry = Entry(
        name=name,
        role=block.choice("role", get_args(Role)),
        branch=branch,
        file=_file_name(block, "file", block.text("file")),
        architecture=_architecture(block, branch),
        bytes=size,
        about_mb=block.number("about_mb", float),
        sha256=digest,
        converted=_converted(block),
        bundled=bundled,
        sources=tuple(_source(block, n, source) for n, source in enumerate(block.items("sources"), 1)),
        licence=base.licences[licence],
        alignment=None if alignment is None else base.alignments[alignment],
        aliases=tuple(_file_name(block, "aliases", alias) for alias in block.items("aliases")),
    )
    if bundled and digest is None:
        raise block.wrong("sha256", SHA256, None)
    block.finish()
    return entry


def _architecture(block: _Block, branch: int | None) -> Architecture:
    inner = _Block(block.path, block.entry, block.take("architecture"), "architecture.")
    family = inner.text("family")
    if family == "GPEN":
        for field in ("size", "style_dim", "n_mlp", "channel_multiplier", "narrow"):
            if inner.data.get(field) is None:
                inner.take(field)
        if inner.data["size"] != branch:
            raise block.wrong("branch", str(inner.data["size"]), branch)
    for field, value in inner.data.items():
        if isinstance(value, bool) or not isinstance(value, (int, float, str)) or (value != value):
            raise inner.wrong(str(field), "int|float|str", value)
        if not isinstance(value, str) and value <= 0:
            raise inner.wrong(str(field), "> 0", value)
    return Architecture(family=family, params=MappingProxyType(inner.data))


def _converted(block: _Block) -> Digest | None:
    data = block.data.pop("safetensors", None)
    if data is None:
        return None
    inner = _Block(block.path, block.entry, data, "safetensors.")
    size = inner.number("bytes", int)
    if size is None:
        inner.take("bytes")
    digest = Digest(bytes=size, sha256=inner.text("sha256", SHA256))
    inner.finish()
    return digest


def _source(block: _Block, number: int, data: Any) -> Source:
    inner = _Block(block.path, block.entry, data, f"sources[{number}].")
    kind: SourceKind = inner.choice("kind", get_args(SourceKind))
    if kind == "https":
        source = Source(kind=kind, url=_url(inner, inner.text("url")))
    elif kind == "local":
        source = Source(kind=kind, path=inner.text("path"))
    else:
        source = Source(
            kind=kind,
            repo=inner.text("repo", REPO),
            file=_relative(inner, "file", inner.text("file")),
            revision=inner.text("revision", REVISION),
            repo_type=inner.choice("repo_type", ("model", "space"), "model"),
        )
    inner.finish()
    return source


def _url(block: _Block, url: str) -> str:
    """HTTPS, or plain HTTP to this very machine (a local mirror); no user name or password inside."""
    parts = urlsplit(url)
    local = parts.scheme == "http" and parts.hostname in ("127.0.0.1", "::1", "localhost")
    if not (parts.scheme == "https" or local) or not parts.hostname or parts.username or parts.password:
        raise block.wrong("url", "https://…", url)
    return url


def _file_name(block: _Block, field: str, value: Any) -> str:
    """A bare file name: it is joined to a folder later, so no part of it may climb out."""
    if not isinstance(value, str) or not re.fullmatch(NAME, value):
        raise block.wrong(field, NAME, value)
    return value


def _relative(block: _Block, field: str, value: str) -> str:
    parts = value.split("/")
    if "\\" in value or ":" in value or any(part in ("", ".", "..") for part in parts):
        raise block.wrong(field, "folder/file", value)
    return value


def _points(path: Path, key: str, data: Any) -> Points:
    block = _Block(path, "alignments", {key: data})
    try:
        points = tuple((float(x), float(y)) for x, y in data)
    except (TypeError, ValueError):
        raise block.wrong(key, "5 × [x, y]", data) from None
    if len(points) != 5 or not all(0 <= v <= 1 for point in points for v in point):
        raise block.wrong(key, "5 × [x, y], 0…1", data)
    return points


def _check_unique(path: Path, entries: tuple[Entry, ...]) -> None:
    owners: dict[str, str] = {}
    for entry in entries:
        for field, name in (("name", entry.name), ("file", entry.file), *(("aliases", a) for a in entry.aliases)):
            owner = owners.setdefault(_stem(name).casefold(), entry.name)
            if owner != entry.name or (field == "name" and sum(e.name == name for e in entries) > 1):
                raise ManifestInvalid("W24", file=path, entry=entry.name, field=field, value=name, other=owner)


def _stem(name: str) -> str:
    """Without the suffix of a weight file; `GPEN-0.5` keeps its dot."""
    return re.sub(r"\.(pth|pt|onnx|safetensors)$", "", name, flags=re.IGNORECASE)
