"""One address into one `.part` file: time-outs, resume, retries, progress. No policy, no trust, no final name.

The part grows only at its end and only with bytes of one version of the file, so whatever kills the process leaves
either nothing or a beginning that can be continued. What "one version" means is kept beside it (`.part.json`): the
address and the validator (strong ETag, else Last-Modified) that the server gave; a later run continues with
`Range` + `If-Range`, and a server that has another version by then sends the whole file, which starts the part anew.
"""

from __future__ import annotations

import email.utils
import errno
import http.client
import json
import logging
import os
import random
import shutil
import time
import urllib.error
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from gpen_zoo.errors import Cancelled, FetchFailed, GpenError
from gpen_zoo.transport import Address, not_reached, open_address
from gpen_zoo.transport import Limits as Limits  # who fetches also says for how long

PIECE = 1 << 18
RETRY_STATUS = (408, 425, 429, 500, 502, 503, 504)
PATIENCE = 60.0  # seconds; the longest Retry-After worth waiting for while other sources exist
SPARE = 64 << 20  # bytes to leave free on the disk

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """done, total: bytes, total None when the server does not say. speed: bytes per second of this run."""

    host: str
    done: int
    total: int | None
    speed: float

    @property
    def seconds_left(self) -> float | None:
        return (self.total - self.done) / self.speed if self.total is not None and self.speed > 0 else None


Report: TypeAlias = Callable[[Progress], None]


class _Retry(Exception):
    """A failure that another attempt may cure. cause: the error to raise when none does."""

    def __init__(self, cause: FetchFailed, wait: float = 0.0) -> None:
        super().__init__(str(cause))
        self.cause, self.wait = cause, wait


class _StartAnew(Exception):
    """The part cannot be continued (416, or a range that does not fit): drop it and read from the beginning."""


def fetch(
    address: Address,
    part: Path,
    *,
    expected_bytes: int | None = None,
    limit_bytes: int | None = None,
    limits: Limits | None = None,
    report: Report | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> None:
    """Read `address` into `part`, continuing what an earlier run left there.

    expected_bytes: exact size, checked against what the server announces before a byte is read. limit_bytes: refuse
    more than this when the exact size is unknown. Raises FetchFailed (the part stays and can be continued) or
    Cancelled (likewise).
    """
    run = _Run(address, part, expected_bytes, limit_bytes, limits or Limits(), report, cancelled or (lambda: False))
    run.until_done()


class _Run:
    def __init__(
        self,
        address: Address,
        part: Path,
        expected: int | None,
        most: int | None,
        limits: Limits,
        report: Report | None,
        cancelled: Callable[[], bool],
    ) -> None:
        self.address, self.part, self.expected, self.most = address, part, expected, expected or most
        self.limits, self.report, self.cancelled = limits, report, cancelled
        self.note_file = part.with_name(part.name + ".json")
        self.began = time.monotonic()
        self.gained, self.reached, self.last_report = 0, 0, 0.0
        self.total: int | None = None

    def until_done(self) -> None:
        failures, anew = 0, 0
        while True:
            before = self.reached
            try:
                self._attempt()
                return
            except _StartAnew as reason:
                anew += 1
                if anew > 2:
                    raise FetchFailed("N04", host=self.address.host, reason=str(reason)) from None
                self._drop()
            except _Retry as failure:
                # Getting further is no failure; sending the same bytes again and again is.
                failures = 1 if self.reached > before else failures + 1
                # A host that never answers may be blocked where the user lives; the next source is not.
                silent = not self.reached and failure.cause.code != "N03"
                most = min(2, self.limits.attempts) if silent else self.limits.attempts
                if failures >= most or failure.wait > PATIENCE:
                    raise failure.cause from None
                log.info("%s: %s (attempt %d)", self.address.host, failure, failures)
                backoff = self.limits.pause * 2 ** (failures - 1) * random.uniform(0.75, 1.25)
                self._wait(max(failure.wait, backoff))

    def _attempt(self) -> None:
        have, validator = self._resumable()
        if self.expected is not None and have == self.expected:
            return
        headers = {"Range": f"bytes={have}-", "If-Range": validator} if have else {}
        with self._reading():
            response = open_address(self.address, headers, self.limits)
            with response:
                self._check_status(response)
                have = self._begin(response, have, validator)
                self._copy(response, have)

    def _resumable(self) -> tuple[int, str]:
        """How many bytes of the part can be continued, and the validator to ask with."""
        try:
            note = json.loads(self.note_file.read_bytes())
            size = self.part.stat().st_size
        except (OSError, ValueError):
            return 0, ""
        known = isinstance(note, dict) and note.get("url") == self.address.url and note.get("validator")
        if not known or (self.most is not None and size > self.most):
            return 0, ""
        return size, str(note["validator"])

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Network trouble becomes a retry; a full disk and the rest of OSError become what they are."""
        host = self.address.host
        try:
            yield
        except GpenError:
            raise  # FetchFailed is a ConnectionError as well
        except urllib.error.URLError as error:
            raise _Retry(not_reached(host, error)) from error
        except TimeoutError as error:
            raise _Retry(FetchFailed("N01", host=host)) from error
        except (http.client.HTTPException, ConnectionError) as error:
            raise _Retry(FetchFailed("N04", host=host, reason=str(error) or type(error).__name__)) from error
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise _Retry(FetchFailed("N04", host=host, reason=str(error))) from error
            free = shutil.disk_usage(self.part.parent).free // 1_000_000
            need = ((self.total or self.expected or 0) + SPARE) // 1_000_000
            raise FetchFailed("N08", folder=self.part.parent, need=need, free=free) from error

    def _check_status(self, response: http.client.HTTPResponse) -> None:
        status, host = response.status, self.address.host
        if status == 416:
            raise _StartAnew("HTTP 416")
        failure = FetchFailed("N03", host=host, status=status)
        if status in RETRY_STATUS:
            raise _Retry(failure, _retry_after(response.headers.get("Retry-After")))
        if status not in (200, 206):
            raise failure
        if response.headers.get_content_type() == "text/html":
            raise FetchFailed("N07", host=host)
        if response.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise FetchFailed("N04", host=host, reason=f"Content-Encoding {response.headers['Content-Encoding']}")

    def _begin(self, response: http.client.HTTPResponse, have: int, validator: str) -> int:
        """Decide from the headers where the bytes belong; returns the length of the part they follow."""
        length = response.headers.get("Content-Length", "")
        announced = int(length) if length.isdigit() else None
        if response.status == 206:
            first, total = _content_range(response.headers.get("Content-Range", ""))
            if not have or first != have:
                raise _StartAnew(f"Content-Range {response.headers.get('Content-Range')}")
            # Some servers answer a stale If-Range with a part of the new version all the same.
            if "ETag" in response.headers and validator.startswith('"') and response.headers["ETag"] != validator:
                raise _StartAnew(f"ETag {response.headers['ETag']}")
        else:
            have, total = 0, announced
        self.total = total
        if self.expected is not None and total is not None and total != self.expected:
            self._drop()
            raise FetchFailed("N06", host=self.address.host, expected=self.expected, found=total)
        if self.most is not None and (total or 0) > self.most:
            raise FetchFailed("N06", host=self.address.host, expected=self.most, found=total)
        need = (total or self.expected or 0) - have
        check_free(self.part.parent, need)
        if not have:
            self._drop()
            note = {"url": self.address.url, "validator": _validator(response.headers)}
            self.note_file.write_text(json.dumps(note), encoding="utf-8")
        return have

    def _copy(self, response: http.client.HTTPResponse, done: int) -> None:
        with self.part.open("ab" if done else "wb") as file:
            while True:
                self._check_time()
                piece = response.read1(PIECE)
                if not piece:
                    break
                file.write(piece)
                done += len(piece)
                self.gained, self.reached = self.gained + len(piece), max(self.reached, done)
                if self.most is not None and done > self.most:
                    raise FetchFailed("N06", host=self.address.host, expected=self.most, found=done)
                self._tell(done)
            file.flush()
            os.fsync(file.fileno())
        self._tell(done, last=True)
        goal = self.total if self.total is not None else self.expected
        if goal is not None and done != goal:
            raise _Retry(FetchFailed("N04", host=self.address.host, reason=f"{done}/{goal} bytes"))

    def _tell(self, done: int, last: bool = False) -> None:
        now = time.monotonic()
        if self.report and (last or now - self.last_report >= 0.1):
            self.last_report = now
            total = self.total if self.total is not None else self.expected
            speed = self.gained / max(now - self.began, 1e-3)
            self.report(Progress(host=self.address.host, done=done, total=total, speed=speed))

    def _check_time(self) -> None:
        if self.cancelled():
            raise Cancelled("N10", file=self.part.name)
        if time.monotonic() - self.began > self.limits.deadline:
            raise FetchFailed("N05", host=self.address.host, seconds=round(self.limits.deadline))

    def _wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._check_time()
            time.sleep(min(0.1, max(0.0, until - time.monotonic())))
        self._check_time()

    def _drop(self) -> None:
        self.part.unlink(missing_ok=True)
        self.note_file.unlink(missing_ok=True)


def check_free(folder: Path, need: int) -> None:
    """Raises FetchFailed when `folder` has not `need` bytes and some spare."""
    free = shutil.disk_usage(folder).free
    if need and free < need + SPARE:
        raise FetchFailed("N08", folder=folder, need=(need + SPARE) // 1_000_000, free=free // 1_000_000)


def _validator(headers: http.client.HTTPMessage) -> str:
    """What `If-Range` may carry: a strong ETag, else Last-Modified, else nothing."""
    tag = headers.get("ETag", "")
    return tag if tag.startswith('"') else headers.get("Last-Modified", "")


def _content_range(value: str) -> tuple[int, int | None]:
    """`bytes 100-199/200` → (100, 200); total None for `*`; (-1, None) when unreadable."""
    unit, _, rest = value.partition(" ")
    span, _, total = rest.partition("/")
    first = span.partition("-")[0]
    if unit != "bytes" or not first.isdigit():
        return -1, None
    return int(first), int(total) if total.isdigit() else None


def _retry_after(value: str | None) -> float:
    """Seconds from a Retry-After header, which holds a number or a date; 0 when absent or unreadable."""
    if not value:
        return 0.0
    if value.strip().isdigit():
        return float(value)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return 0.0
