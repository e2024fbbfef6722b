"""Photo files decoded in a process of their own, which can be killed: for files that make a decoder hang or crash.

The child speaks over its standard input and output: a pickled request and answer each, behind eight bytes of length.
Only this package's own parent and child talk here, and what the child sends was made by the child's own code.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from gpen_zoo.deadline import stage_note
from gpen_zoo.errors import Cancelled, GpenError, ImageUnreadable, InferenceTimeoutError
from gpen_zoo.types import Image

TICK = 0.2  # seconds between two looks at whether a read is still wanted
START_SECONDS = 60  # for the child to import what it needs; not held against a photo
_LENGTH = struct.Struct(">Q")


class IsolatedReader:
    """Reads photos like `image_io.read` and `image_io.decode`, one at a time; its child is started when needed.

    Not safe from several threads: give each its own. Leave it with `close` or as a context manager.
    """

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> IsolatedReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(self, path: str | os.PathLike[str], *, seconds: float | None, limit: float | None = None) -> Image:
        """The picture in a file. Raises what `image_io.read` raises, InferenceTimeoutError (T01) after `seconds`, and
        ImageUnreadable (T02) when the decoder takes its process down. limit: the figure that T01 names, if another."""
        return self._ask(("read", os.fspath(path)), seconds, limit)

    def decode(self, data: bytes, *, name: str, seconds: float | None, limit: float | None = None) -> Image:
        """The picture in `data`; otherwise as `read`."""
        return self._ask(("decode", data, name), seconds, limit)

    def start(self) -> None:
        """Start the child now, so that the next photo's time does not pay for it. Raises ImageUnreadable (T02)."""
        self._started()

    def interrupt(self) -> None:
        """Called from another thread: the read under way fails now."""
        child = self._child
        if child is not None:
            child.kill()

    def close(self) -> None:
        """End the child; a later read starts a new one."""
        child, self._child = self._child, None
        if child is None:
            return
        child.kill()
        for stream in (child.stdin, child.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):  # a pipe that broke with a request still in its buffer
                    stream.close()
        child.wait()

    def _ask(self, request: tuple[Any, ...], seconds: float | None, limit: float | None) -> Image:
        child = self._started()
        overdue = threading.Event()

        def stop() -> None:
            overdue.set()
            child.kill()

        timer = threading.Timer(max(seconds, 0.001), stop) if seconds is not None else None
        if timer is not None:
            timer.daemon = True
            timer.start()
        try:
            assert child.stdin is not None
            assert child.stdout is not None
            _send(child.stdin, request)
            answer = _receive(child.stdout)
        except (OSError, EOFError) as error:
            status = child.wait()
            self.close()
            if overdue.is_set():
                shown = f"{limit if limit is not None else seconds:g}"
                raise InferenceTimeoutError("T01", seconds=shown, stage=stage_note("read")) from None
            raise ImageUnreadable("T02", reason=f"exit status {status}") from error
        finally:
            if timer is not None:
                timer.cancel()
                timer.join()  # it may be killing the child this moment, which the next photo must not run into
        if overdue.is_set():
            self.close()
        if isinstance(answer, GpenError):
            raise answer
        if not isinstance(answer, Image):
            raise ImageUnreadable("T02", reason=answer)
        return answer

    def _started(self) -> subprocess.Popen[bytes]:
        if self._child is None or self._child.poll() is not None:
            self.close()
            home = str(Path(__file__).parents[1])
            paths = [home, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
            child = self._child = subprocess.Popen(
                [sys.executable, "-m", "gpen_zoo.isolated"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
                start_new_session=True,  # Ctrl-C is for the run, which then ends its children itself
            )
            timer = threading.Timer(START_SECONDS, child.kill)
            timer.start()
            try:
                assert child.stdout is not None
                _receive(child.stdout)
            except (OSError, EOFError) as error:
                status = child.wait()
                self.close()
                raise ImageUnreadable("T02", reason=f"exit status {status}") from error
            finally:
                timer.cancel()
        return self._child


class Readers:
    """Isolated readers for several threads: each call has one to itself. most: of them at once, others wait."""

    def __init__(self, most: int = 4) -> None:
        self._idle: list[IsolatedReader] = []
        self._room = threading.BoundedSemaphore(most)

    @contextlib.contextmanager
    def lent(self) -> Iterator[IsolatedReader]:
        """A reader of one's own, its child running. Raises ImageUnreadable (T02) when that does not start."""
        with self._room:
            try:
                reader = self._idle.pop()
            except IndexError:
                reader = IsolatedReader()
            try:
                reader.start()
                yield reader
            finally:
                self._idle.append(reader)

    def read(self, path: str | os.PathLike[str], *, seconds: float, stopped: threading.Event | None = None) -> Image:
        """As `IsolatedReader.read`; `seconds` does not count the start of a child. stopped: ends the read when it is
        set, with Cancelled (S05)."""
        ended = threading.Event()

        def watch(stop: threading.Event, reader: IsolatedReader) -> None:
            while not ended.wait(TICK):
                if stop.is_set():
                    reader.interrupt()
                    return

        with self.lent() as reader:
            try:
                if stopped is not None:
                    threading.Thread(target=watch, args=(stopped, reader), daemon=True).start()
                return reader.read(path, seconds=seconds)
            except GpenError:
                if stopped is not None and stopped.is_set():
                    raise Cancelled("S05") from None
                raise
            finally:
                ended.set()

    def start(self) -> None:
        """Have one ready, so that the first photo does not wait for its start. Raises ImageUnreadable (T02)."""
        with self.lent():
            pass

    def close(self) -> None:
        """End the children that rest."""
        while self._idle:
            self._idle.pop().close()


def _send(stream: IO[bytes], value: object) -> None:
    data = pickle.dumps(value, protocol=5)
    stream.write(_LENGTH.pack(len(data)))
    stream.write(data)
    stream.flush()


def _receive(stream: IO[bytes]) -> Any:
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError
    (length,) = _LENGTH.unpack(head)
    data = stream.read(length)
    if len(data) < length:
        raise EOFError
    return pickle.loads(data)


def _answer(request: tuple[Any, ...]) -> object:
    """An Image, a GpenError, or words about an error nobody foresaw."""
    from gpen_zoo.image_io import decode, read

    try:
        return read(request[1]) if request[0] == "read" else decode(request[1], name=request[2])
    except GpenError as error:
        return error.with_traceback(None)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def serve() -> None:
    """The child: answers until its parent is gone."""
    from gpen_zoo import image_io  # before the first photo, whose time should not pay for it

    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # nothing a library prints may get between the answers
    try:
        _send(answers, image_io.__name__)
        while True:
            request = _receive(sys.stdin.buffer)
            _send(answers, _answer(request))
    except (EOFError, BrokenPipeError):  # also while this one was still starting
        with contextlib.suppress(OSError):  # what is left in its buffer has nowhere to go
            answers.close()


if __name__ == "__main__":
    serve()
