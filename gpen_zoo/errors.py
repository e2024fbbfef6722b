"""One error type with a code and parameters, and the children a caller may want to tell apart.

GpenError
├── WeightMissing      FileNotFoundError   a weight is not in the zoo folder
├── WeightCorrupt      ValueError          bytes are not what was recorded, or no readable weights at all
├── WeightWrongKind    ValueError          readable, but another network than the one asked for
├── FetchFailed        ConnectionError     every source of a weight failed
├── ManifestInvalid    ValueError          weights_manifest.yaml: entry and field are named
├── ImageUnreadable    ValueError          bytes that no decoder takes
├── ImageTooLarge      ValueError          refused from the header, before pixels are decoded
├── PathInaccessible   OSError             a file or folder cannot be read or written
├── OptionsInvalid     ValueError          an option outside its range
├── OutOfMemory        MemoryError         the last rung of the ladder did not fit either
├── InferenceTimeoutError  TimeoutError    one photo took longer than it was given
└── Cancelled                              the caller asked to stop

Raised only when a whole request cannot be served. A single face that cannot be served gets a verdict instead.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar

from gpen_zoo.hints import Note, note, say

log = logging.getLogger(__name__)

T = TypeVar("T")


class GpenError(Exception):
    """`code` and `params` index the catalogue in hints.py; `str(error)` is the English sentence."""

    def __init__(self, code: str, **params: Any) -> None:
        self.note: Note = note(code, **params)
        super().__init__(say(self.note, "en"))

    @property
    def code(self) -> str:
        return self.note.code

    def __str__(self) -> str:
        # FileNotFoundError and ConnectionError are OSErrors, whose own __str__ would print an errno pair.
        return say(self.note, "en")

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors cross process borders (ZeroGPU forks, isolated decoders); the default would pass the sentence as code.
        return _rebuild, (type(self), self.note)


def _rebuild(kind: type[GpenError], what: Note) -> GpenError:
    return kind(what.code, **what.params)


class WeightMissing(GpenError, FileNotFoundError):
    """A weight is not in the zoo folder."""


class WeightCorrupt(GpenError, ValueError):
    """The bytes are not what was recorded, or are no readable weights at all."""


class WeightWrongKind(GpenError, ValueError):
    """Readable weights, but of another network than the one asked for."""


class FetchFailed(GpenError, ConnectionError):
    """Every source of a weight failed."""


class ManifestInvalid(GpenError, ValueError):
    """The manifest breaks a rule; the message names entry and field."""


class ImageUnreadable(GpenError, ValueError):
    """No decoder takes these bytes."""


class ImageTooLarge(GpenError, ValueError):
    """The header promises more pixels than the limit; nothing was decoded."""


class PathInaccessible(GpenError, OSError):
    """A file or folder cannot be read or written."""


class OptionsInvalid(GpenError, ValueError):
    """An option lies outside its range."""


class OutOfMemory(GpenError, MemoryError):
    """The last rung of the engine's ladder did not fit either."""


class InferenceTimeoutError(GpenError, TimeoutError):
    """One photo took longer than it was given; others are not affected."""


class Cancelled(GpenError):
    """The caller asked to stop; nothing was written."""


def guarded(work: Callable[[], T]) -> T | Note:
    """The value of `work`, or the note of what went wrong. The unforeseen is logged with its traceback and told too."""
    try:
        return work()
    except GpenError as error:
        log.info("refused: %s", error)
        return error.note
    except Exception as error:
        log.exception("unforeseen error")
        return note("S03", kind=type(error).__name__)
