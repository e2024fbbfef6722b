"""From a source to an installed weight: which sources, what vouches for the bytes, and the one way into the zoo folder.

Order of things, each step only after the one before: digest known or accepted → size → sha256 → structure →
conversion, read back → record → rename. A process that dies anywhere leaves a part that can be continued, or a record
whose file is absent, never a file that is used unverified.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from gpen_zoo import fetch, lock, mutex, weightfile
from gpen_zoo.architecture import Network
from gpen_zoo.convert import Dtype, convert
from gpen_zoo.errors import FetchFailed, WeightCorrupt, WeightMissing, WeightWrongKind
from gpen_zoo.fetch import Report
from gpen_zoo.hints import Note, note
from gpen_zoo.lock import Record, Trust
from gpen_zoo.manifest import Digest, Entry, Source
from gpen_zoo.sources import Offer, offer_of, offline
from gpen_zoo.transport import Limits

WORK = ".work"  # parts, locks and files set aside, inside the zoo folder so that a rename never crosses disks
RECORDS_PATIENCE = 60.0  # seconds to wait for another process to finish writing the record file

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """How to get a weight. source: number (from 1), kind or part of the address of the one source to use, "" for all
    in order. endpoint: replaces `HF_ENDPOINT`. accept_unpinned: take a file that nothing vouches for."""

    source: str = ""
    endpoint: str | None = None
    accept_unpinned: bool = False
    dtype: Dtype = "float32"
    limits: Limits = Limits()
    report: Report | None = None
    cancelled: Callable[[], bool] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Goal:
    """What the bytes of a source must be. digest None: nothing is known, and the user accepts that."""

    bytes: int | None
    sha256: str | None
    trust: Trust


def obtain(home: Path, entry: Entry, wish: Wish) -> tuple[Record, tuple[Note, ...]]:
    """Fetch, verify and install `entry`; returns its record and why earlier sources did not serve.

    The caller holds the weight's lock. Raises FetchFailed when every source failed, Cancelled, WeightMissing for an
    entry without sources, and what concerns every source alike (a full disk) at once.
    """
    tried: list[Note] = []
    known = lock.read_records(home).get(entry.name)
    chances = [1]  # one wrong file is fetched anew once, whichever source sent it
    for source in _chosen(home, entry, wish):
        try:
            record = _from_source(home, entry, source, known, wish, chances)
        except (FetchFailed, WeightCorrupt, WeightWrongKind) as error:
            if error.code == "N08":
                raise  # the disk is as full for the next source
            log.info("%s: %s", source, error)
            tried.append(note("N20", source=str(source), why=error.note))
            continue
        return record, tuple(tried)
    raise FetchFailed("N21", name=entry.name, tried=tuple(tried), file=entry.file, sha256=digest_of(entry), folder=home)


def missing(home: Path, entry: Entry) -> WeightMissing:
    """Where to get a weight that is not in the folder `home`, with the command that fetches it (W16)."""
    return WeightMissing(
        "W16",
        name=entry.name,
        folder=home,
        accept="" if entry.pinned else " --accept-unpinned",
        file=entry.file,
        sha256=digest_of(entry),
        where=", ".join(str(source) for source in entry.sources) or "-",
    )


def digest_of(entry: Entry) -> str | Note:
    """The recorded digest of the author's file, or that there is none."""
    return entry.sha256 or note("cli.no_digest")


def _chosen(home: Path, entry: Entry, wish: Wish) -> tuple[Source, ...]:
    sources = entry.sources
    if wish.source:
        by_number = [s for n, s in enumerate(sources, 1) if str(n) == wish.source]
        by_text = [s for s in sources if s.kind == wish.source or wish.source.casefold() in str(s).casefold()]
        sources = tuple(by_number or by_text)
        if not sources:
            known = ", ".join(map(str, entry.sources)) or "-"
            raise FetchFailed("N15", name=entry.name, wanted=wish.source, known=known)
    if offline():
        sources = tuple(source for source in sources if source.kind == "local")
        if not sources:
            raise FetchFailed("N02", name=entry.name, folder=home, file=entry.file, sha256=digest_of(entry))
    if not sources:
        raise missing(home, entry)
    return sources


def _from_source(
    home: Path, entry: Entry, source: Source, known: Record | None, wish: Wish, chances: list[int]
) -> Record:
    offer = offer_of(source, endpoint=wish.endpoint, limits=wish.limits)
    goal = _goal(entry, source, offer, known, wish)
    if offer.address is None:
        assert offer.path is not None
        path = offer.path
        digest = Digest(bytes=path.stat().st_size, sha256=weightfile.sha256_of(path))
        if goal.sha256 not in (None, digest.sha256):
            raise WeightCorrupt("W04", file=path, expected=goal.sha256, found=digest.sha256)
    else:
        path = part_path(home, entry, offer.address.url)
        digest = _fetched(entry, source, offer, goal, path, wish, chances)
    return install(home, entry, path, digest, goal.trust, source=str(source), file=source.file_name, dtype=wish.dtype)


def _goal(entry: Entry, source: Source, offer: Offer, known: Record | None, wish: Wish) -> _Goal:
    """What vouches for the bytes this source will send; FetchFailed when nothing does or the host contradicts it."""
    host = offer.address.host if offer.address else str(source)
    size, digest, trust = _pinned(entry, source)
    if digest is None and known is not None:
        # Accepted once, binding ever since, whoever serves it now.
        size, digest, trust = known.original_bytes, known.original_sha256, known.trust
    if digest is not None and offer.sha256 not in (None, digest):
        raise FetchFailed("N12", host=host, file=source.file_name, found=offer.sha256, expected=digest)
    if size is not None and offer.bytes not in (None, size):
        raise FetchFailed("N06", host=host, expected=size, found=offer.bytes)
    if digest is None:
        if offer.sha256 is None and not wish.accept_unpinned:
            raise FetchFailed("N11", host=host, file=source.file_name)
        digest, trust = offer.sha256, "hub" if offer.sha256 else "user"
    return _Goal(bytes=size if size is not None else offer.bytes, sha256=digest, trust=trust)


def _pinned(entry: Entry, source: Source) -> tuple[int | None, str | None, Trust]:
    """Size and digest the manifest states for what `source` serves: the author's file or its conversion."""
    if is_conversion(entry, source.file_name):
        converted = entry.converted
        return (converted.bytes, converted.sha256, "pinned") if converted else (None, None, "pinned")
    return entry.bytes, entry.sha256, "pinned"


def is_conversion(entry: Entry, file: str) -> bool:
    """True when `file` is safetensors made from the author's file, rather than the author's file itself."""
    return file.endswith(".safetensors") and not entry.file.endswith(".safetensors")


def _fetched(
    entry: Entry, source: Source, offer: Offer, goal: _Goal, part: Path, wish: Wish, chances: list[int]
) -> Digest:
    """Fill `part` until its digest is right; a wrong file is set aside and fetched anew once."""
    assert offer.address is not None
    part.parent.mkdir(parents=True, exist_ok=True)
    # The part and its conversion stand side by side for a moment.
    fetch.check_free(part.parent, 2 * (goal.bytes or entry.expected_bytes or 0) - _size(part))
    while True:
        fetch.fetch(
            offer.address,
            part,
            expected_bytes=goal.bytes,
            limit_bytes=2 * (entry.expected_bytes or 1 << 30),
            limits=wish.limits,
            report=wish.report,
            cancelled=wish.cancelled,
        )
        digest = Digest(bytes=part.stat().st_size, sha256=weightfile.sha256_of(part))
        if goal.sha256 in (None, digest.sha256):
            return digest
        set_aside(part, part.parent)
        if not chances:
            raise WeightCorrupt(
                "N16",
                host=offer.address.host,
                file=source.file_name,
                expected=goal.sha256,
                found=digest.sha256,
                folder=part.parent,
            )
        chances.pop()
        log.warning(
            "%s sent wrong bytes for %s (%s); fetching anew once", offer.address.host, entry.name, digest.sha256
        )


def install(
    home: Path,
    entry: Entry,
    original: Path,
    digest: Digest,
    trust: Trust,
    *,
    source: str,
    file: str,
    dtype: Dtype = "float32",
) -> Record:
    """Bring verified bytes into the zoo folder: convert or copy, check the structure, record, rename.

    original: file whose digest is `digest`; it is only read. Raises WeightCorrupt or WeightWrongKind.
    """
    work = home / WORK
    work.mkdir(parents=True, exist_ok=True)
    fresh = work / f"{entry.name}.new"  # the weight's lock is held
    try:
        stored = _prepare(entry, original, digest, fresh, dtype)
        record = Record(
            file=entry.stored_as,
            bytes=stored.bytes,
            sha256=stored.sha256,
            original_file=file,
            original_bytes=digest.bytes,
            original_sha256=digest.sha256,
            trust=trust,
            source=source,
            date=datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            dtype=dtype,
        )
        change_record(home, entry.name, record)
        os.replace(fresh, home / entry.stored_as)
    finally:
        fresh.unlink(missing_ok=True)
    return record


def _prepare(entry: Entry, original: Path, digest: Digest, fresh: Path, dtype: Dtype) -> Digest:
    kind = weightfile.container(original)
    if entry.stored_as.endswith(".onnx"):
        if kind != "onnx":
            raise weightfile.complaint(original, kind, entry.name)
    elif kind != "safetensors" or dtype != "float32":
        return convert(original, fresh, entry, digest, dtype=dtype)
    else:
        wanted = Network(entry.architecture.family, entry.architecture.params)
        weightfile.check_file(original, wanted, entry.name)
    shutil.copyfile(original, fresh)
    with fresh.open("rb+") as copy:
        os.fsync(copy.fileno())
    if (found := weightfile.sha256_of(fresh)) != digest.sha256:  # the original may have changed under our hands
        raise WeightCorrupt("W04", file=original, expected=digest.sha256, found=found)
    return digest


def change_record(home: Path, name: str, record: Record | None) -> None:
    """Set or (None) forget the record of one weight, whatever other processes do to the others meanwhile."""
    with mutex.hold(home / WORK / "records.lock", timeout=RECORDS_PATIENCE):
        records = lock.read_records(home)
        records.pop(name, None)
        if record is not None:
            records[name] = record
        lock.write_records(home, records)


def part_path(home: Path, entry: Entry, url: str) -> Path:
    """The part of one weight from one address: another source must not continue it."""
    return home / WORK / f"{entry.name}.{hashlib.sha256(url.encode()).hexdigest()[:12]}.part"


def parts_of(home: Path, entry: Entry) -> Iterator[Path]:
    """Unfinished downloads of `entry` with their notes, what was set aside, and conversions that a kill cut short."""
    for ending in ("part", "part.json", "part.bad"):
        yield from (home / WORK).glob(f"{entry.name}.????????????.{ending}")
    yield from (home / WORK).glob(f"{entry.stored_as}.bad")
    yield from (home / WORK).glob(f"{entry.name}.new")


def set_aside(path: Path, work: Path) -> None:
    """Move a bad file into `work`, over an older one of the same name, so that a bad host cannot fill the disk."""
    os.replace(path, work / (path.name + ".bad"))
    path.with_name(path.name + ".json").unlink(missing_ok=True)


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0
