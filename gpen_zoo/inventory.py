"""What there is: one line for each weight of the manifest, installed or not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpen_zoo import lock
from gpen_zoo.manifest import Entry
from gpen_zoo.shelf import Shelf, Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One line of the inventory. bytes: on the disk when it is there, else what a download would take (None unknown).
    source, trust, dtype: of the installed file, "" where there is no record."""

    entry: Entry
    status: Status
    bytes: int | None
    source: str = ""
    trust: str = ""
    dtype: str = ""

    def as_dict(self) -> dict[str, Any]:
        entry = self.entry
        return {
            "name": entry.name,
            "role": entry.role,
            "branch": entry.branch,
            "status": self.status,
            "bytes": self.bytes,
            "sha256": entry.sha256,
            "pinned": entry.pinned,
            "sources": [str(source) for source in entry.sources],
            "licence": {"spdx": entry.licence.spdx, "zh": entry.licence.zh, "en": entry.licence.en},
            "source": self.source,
            "trust": self.trust,
            "dtype": self.dtype,
        }


def listing(shelf: Shelf, entries: tuple[Entry, ...]) -> tuple[Listed, ...]:
    """One line for each of `entries`, in order; hashes nothing. WeightCorrupt when the record file is damaged."""
    records = lock.read_records(shelf.home)
    lines = []
    for entry in entries:
        path = shelf.path_of(entry)
        there = path.is_file()
        record = records.get(entry.name) if there else None
        line = Listed(
            entry=entry,
            status=shelf.status(entry),
            bytes=path.stat().st_size if there else entry.expected_bytes,
            source=record.source if record else "",
            trust=record.trust if record else "",
            dtype=record.dtype if record else "",
        )
        lines.append(line)
    return tuple(lines)
