"""What a Space or a container wants before the first visitor: where weights stay, and which to have."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from gpen_zoo.adopt import Match
from gpen_zoo.errors import guarded
from gpen_zoo.hints import Note
from gpen_zoo.zoo import Zoo

PERSISTENT = Path("/data")  # where Spaces and our container mount storage that outlives a restart

log = logging.getLogger(__name__)


def on_space() -> bool:
    """Whether this is a Hugging Face Space."""
    return os.environ.get("SYSTEM") == "spaces"


def settle(persistent: Path = PERSISTENT) -> None:
    """Keep weights in the persistent storage of a Space, if it has one and nobody chose another place."""
    if on_space() and "GPEN_ZOO_HOME" not in os.environ and os.access(persistent, os.W_OK):
        os.environ["GPEN_ZOO_HOME"] = str(persistent / "gpen-zoo")


def wanted() -> tuple[str, ...]:
    """Names in `GPEN_ZOO_PRELOAD`, between commas."""
    return tuple(name.strip() for name in os.environ.get("GPEN_ZOO_PRELOAD", "").split(",") if name.strip())


def fetch_wanted(zoo: Zoo, use: Callable[[str], None]) -> None:
    """Bring in what was asked for: from the caches of this machine, else from its sources. use: told each new name.

    On a Space everything pinned that lies in the hub's cache counts as asked for: `preload_from_hub` put it there.
    Failures are logged; the page works without. Meant for a thread of its own.
    """
    names = wanted()

    def adopt(match: Match) -> None:
        zoo.adopt(match.path, name=match.entry.name)
        use(match.entry.name)

    def download(name: str) -> None:
        if not zoo.present(zoo.entry(name)):
            zoo.download(name)
            use(zoo.entry(name).name)

    if names or on_space():
        found = guarded(zoo.find)
        for match in () if isinstance(found, Note) else found:
            asked = not names or any(match.entry.answers_to(name) for name in names)
            if asked and not zoo.present(match.entry):
                _told(guarded(partial(adopt, match)))
    for name in names:
        _told(guarded(partial(download, name)))


def _told(answer: Note | None) -> None:
    if answer is not None:
        log.error("a weight that was asked for is not here: %s", answer)
