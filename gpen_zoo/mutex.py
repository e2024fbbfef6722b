"""One process at a time per weight: a lock of the operating system on a file that also says who holds it.

The kernel releases such a lock when its owner dies, however it dies, so there is no stale lock to guess about; the
owner and age inside the file are for people. The file itself stays: deleting it would let a third process lock a new
file of the same name while a second still waits on the old one.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gpen_zoo.errors import Cancelled, FetchFailed

POLL = 0.1
HELD_AT = 1 << 30  # Windows locks bytes, and a locked byte cannot be read: lock one far behind the text


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Who holds a lock. since: seconds since the epoch."""

    pid: int
    host: str
    since: float


@contextmanager
def hold(
    path: Path,
    *,
    timeout: float,
    waiting: Callable[[Owner | None], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Iterator[None]:
    """Hold the lock `path` while the block runs; threads of one process exclude each other too.

    waiting: called once, with the owner, when the lock is taken. Raises FetchFailed after `timeout` seconds, or
    Cancelled.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        until, told = time.monotonic() + timeout, False
        while not _try_lock(handle):
            if not told and waiting:
                waiting(owner_of(path))
            told = True
            if cancelled and cancelled():
                raise Cancelled("N10", file=path.name)
            if time.monotonic() > until:
                owner = owner_of(path)
                raise FetchFailed("N13", file=path, pid=owner.pid if owner else "?", host=owner.host if owner else "?")
            time.sleep(POLL)
        text = json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": time.time()})
        os.ftruncate(handle, 0)
        os.write(handle, text.encode())
        try:
            yield
        finally:
            os.ftruncate(handle, 0)
    finally:
        os.close(handle)  # releases the lock


def owner_of(path: Path) -> Owner | None:
    """The owner written in a lock file, or None when it is free (or being taken this moment)."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return Owner(pid=int(data["pid"]), host=str(data["host"]), since=float(data["since"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


if sys.platform == "win32":
    import msvcrt

    def _try_lock(handle: int) -> bool:
        os.lseek(handle, HELD_AT, os.SEEK_SET)
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        os.lseek(handle, 0, os.SEEK_SET)
        return True

else:
    import fcntl

    def _try_lock(handle: int) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
