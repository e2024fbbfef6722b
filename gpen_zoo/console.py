"""What the commands share: exit codes, complaints, JSON. The commands are the only place of the package that prints."""
# ruff: noqa: T201

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpen_zoo.hints import Lang, Note, say
from gpen_zoo.outputs import not_written

if TYPE_CHECKING:
    from gpen_zoo.zoo import Zoo

OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130


def complain(what: Note, lang: Lang, about: str = "gpen-zoo") -> None:
    """A hint on standard error. about: what it concerns, left out where the hint names it anyway."""
    if str(what.params.get("path")) == about:
        about = "gpen-zoo"
    print(say("cli.failed", lang, input=about, reason=say(what, lang), code=what.code), file=sys.stderr)


def write_json(path: str, value: Any) -> None:
    """JSON to a file, or to standard output for `-`. Raises PathInaccessible (U17, I22)."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    if path == "-":
        print(text)
        return
    try:
        Path(path).write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise not_written(path, error) from error


def open_zoo() -> Zoo:
    """The zoo of this user; imported late, because it takes longer than printing help."""
    from gpen_zoo.zoo import Zoo

    return Zoo()
