"""A folder ready to become a Hugging Face model repository: weights, card, digests, and the block that uses it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import yaml

from gpen_zoo import weightfile
from gpen_zoo.errors import WeightCorrupt
from gpen_zoo.hints import say
from gpen_zoo.lock import Record, write_text
from gpen_zoo.manifest import VERSION, Entry

CARD, DIGESTS, BLOCK = "README.md", "SHA256SUMS", "weights_manifest.yaml"


def export(entry: Entry, record: Record | None, stored: Path, to: Path) -> tuple[Path, ...]:
    """Write the verified file `stored` and its papers into the folder `to`; returns the files.

    The block's repository is a placeholder that the publisher fills in; its digest is what makes it safe. Raises
    WeightCorrupt when the copy differs from the original.
    """
    to.mkdir(parents=True, exist_ok=True)
    digest = weightfile.sha256_of(stored)
    copy = to / stored.name
    fresh = to / f".{stored.name}.new"
    try:
        shutil.copyfile(stored, fresh)
        if (found := weightfile.sha256_of(fresh)) != digest:
            raise WeightCorrupt("W04", file=fresh, expected=digest, found=found)
        os.replace(fresh, copy)
    finally:
        fresh.unlink(missing_ok=True)
    write_text(to / CARD, _card(entry, record, digest))
    write_text(to / DIGESTS, f"{digest}  {stored.name}\n")
    block = manifest_block(entry, stored.name, copy.stat().st_size, digest)
    write_text(to / BLOCK, block)
    return copy, to / CARD, to / DIGESTS, to / BLOCK


def manifest_block(entry: Entry, file: str, size: int, digest: str) -> str:
    """A whole manifest with this one weight, pinned, for `GPEN_ZOO_MANIFEST` of another installation."""
    licence = {"spdx": entry.licence.spdx, "zh": entry.licence.zh, "en": entry.licence.en}
    weight: dict[str, Any] = {
        "name": entry.name,
        "role": entry.role,
        "branch": entry.branch,
        "file": file,
        "architecture": {"family": entry.architecture.family, **entry.architecture.params},
        "bytes": size,
        "sha256": digest,
        "sources": [{"kind": "huggingface", "repo": f"OWNER/{entry.name}", "file": file, "revision": "main"}],
        "licence": entry.licence.key,
    }
    document: dict[str, Any] = {"version": VERSION, "licences": {entry.licence.key: licence}}
    if entry.alignment:
        weight["alignment"] = entry.name
        document["alignments"] = {entry.name: [list(point) for point in entry.alignment]}
    document["weights"] = [{key: value for key, value in weight.items() if value is not None}]
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=200)


def pin_block(entry: Entry, record: Record) -> str:
    """The YAML lines that pin what was accepted for `entry`, for its block in the manifest."""
    lines: dict[str, Any] = {"bytes": record.original_bytes, "sha256": record.original_sha256}
    if record.dtype == "float32" and record.sha256 != record.original_sha256:
        lines["safetensors"] = {"bytes": record.bytes, "sha256": record.sha256}
    block = yaml.safe_dump([{"name": entry.name, **lines}], sort_keys=False)
    return f"# {record.trust}, {record.source}, {record.date}\n{block}"


def _card(entry: Entry, record: Record | None, digest: str) -> str:
    """The model card: front matter of the hub, then both languages. The licence statement is the manifest's, as is."""
    licence = entry.licence.spdx.lower() if entry.licence.spdx != "NOASSERTION" else "unknown"
    front = yaml.safe_dump(
        {
            "license": licence,
            "library_name": "gpen-zoo",
            "tags": ["face-restoration", entry.architecture.family.lower()],
        },
        sort_keys=False,
    )
    facts = {
        "name": entry.name,
        "file": entry.stored_as,
        "sha256": digest,
        "original": record.original_file if record else entry.file,
        "original_sha256": record.original_sha256 if record else (entry.sha256 or "?"),
        "source": record.source if record else "gpen_zoo",
        "date": record.date if record else "-",
        "dtype": record.dtype if record else "-",
    }
    chinese = say("W50", "zh", licence=entry.licence.zh, **facts)
    english = say("W50", "en", licence=entry.licence.en, **facts)
    return f"---\n{front}---\n\n# {entry.name}\n\n{english}\n\n## 中文\n\n{chinese}\n"
