"""What is this file, and what now? One note for any file somebody may take for weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpen_zoo import architecture, weightfile
from gpen_zoo.architecture import Network
from gpen_zoo.convert import read_original
from gpen_zoo.errors import GpenError
from gpen_zoo.hints import Note, note
from gpen_zoo.manifest import Entry
from gpen_zoo.weightfile import Container

# The same file name hides different bytes in different projects; digests pinned by them.
ONNX_EXPORTS = {
    "aa5bd3ab238640a378c59e4a560f7a7150627944cf2129e6311ae4720e833271": "GPEN-BFR-256 (VisoMaster, Rope)",
    "0960f836488735444d508b588e44fb5dfd19c68fde9163ad7878aa24d1d5115e": "GPEN-BFR-512 (VisoMaster, Rope)",
    "cec8892093d7b99828acde97bf231fb0964d3fb11b43f3b0951e36ef1e192a3e": "GPEN-BFR-1024 (VisoMaster, Rope)",
    "d0229ff43f979c360bd19daa9cd0ce893722d59f41a41822b9223ebbe4f89b3e": "GPEN-BFR-2048 (VisoMaster, Rope)",
    "bf80acb8e91ba8852e3f012505be2c3b6cd6b3eed5ec605e3db87863c4e74d4e": "GPEN-BFR-512 (ReActor)",
    "bad8bf0426873828df2dbf4e3b3d9ababba9da7965b8b72426569486f7ae5c25": "GPEN-BFR-256 (facefusion 3.0.0)",
    "d5f066b9068a8b74217f9712e28e875a6144629b108a6f7355acbdb3a2832c54": "GPEN-BFR-512 (facefusion 3.0.0)",
    "bcd31aa52110a2005efc96abbab4546d57e42482648f08715b552423d96b381b": "GPEN-BFR-1024 (facefusion 3.0.0)",
    "66d12a637118d71b00f5a290b8dac13c81c1c0326a127a1978799c6e17bb8d1f": "GPEN-BFR-2048 (facefusion 3.0.0)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """container: kind of file; network: what its tensors belong to, None when there are none to look at; entry: name
    of the manifest's weight whose recorded digest the file has; note: what it is and the next step."""

    path: Path
    bytes: int
    sha256: str
    container: Container
    network: Network | None
    entry: str | None
    note: Note

    def as_dict(self) -> dict[str, Any]:
        return {
            "file": str(self.path),
            "bytes": self.bytes,
            "sha256": self.sha256,
            "container": self.container,
            "network": None if self.network is None else str(self.network),
            "entry": self.entry,
            "note": self.note.as_dict(),
        }


def identify(path: Path, entries: tuple[Entry, ...]) -> Finding:
    """Look at `path` by digest, then container, then names and shapes. Raises FileNotFoundError and other OSErrors."""
    path = Path(path)
    digest, kind = weightfile.sha256_of(path), weightfile.container(path)
    entry = next((e for e in entries if digest in (e.sha256, e.converted.sha256 if e.converted else None)), None)
    network, what = _look(path, kind, digest)
    if entry is not None:
        what = note("W40", file=path.name, name=entry.name)
    return Finding(
        path=path,
        bytes=path.stat().st_size,
        sha256=digest,
        container=kind,
        network=network,
        entry=entry.name if entry else None,
        note=what,
    )


def _look(path: Path, kind: Container, digest: str) -> tuple[Network | None, Note]:
    if digest in ONNX_EXPORTS:
        return None, note("W45", file=path.name, name=ONNX_EXPORTS[digest])
    try:
        if kind == "safetensors":
            network = architecture.network_of(weightfile.read_header(path).tensors)
            return network, _of_network(path, network)
        if kind in ("pickle", "pickle-zip"):
            original = read_original(path)
            network = architecture.network_of(original.state)
            if original.wrapper == "g_ema" and network.family == "GPEN":
                return network, note("W42", file=path.name, found=network)
            return network, _of_network(path, network)
    except GpenError as error:
        return None, error.note
    return None, weightfile.complaint(path, kind).note


def _of_network(path: Path, network: Network) -> Note:
    codes: Mapping[str, str] = {"": "W13", "GPEN": "W41", "Discriminator": "W43"}
    code = codes.get(network.family, "W44")
    # Nobody looks for an RRDBNet: people know these files by the project they come from.
    found = f"Real-ESRGAN ({network})" if network.family in ("RRDBNet", "SRVGGNetCompact") else network
    return note(code, file=path.name) if code in ("W13", "W43") else note(code, file=path.name, found=found)
