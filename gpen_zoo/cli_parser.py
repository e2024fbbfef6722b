"""argparse in the user's language: what is wrong with a command line, and the headings of `--help`."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable
from functools import partial
from typing import Any, NoReturn

from gpen_zoo.console import USAGE, complain
from gpen_zoo.hints import Lang, Note, note, say

# argparse hands over a finished English sentence; those of Python 3.10 to 3.14 begin like this.
_SENTENCES = tuple(
    (re.compile(pattern, re.DOTALL), code)
    for pattern, code in (
        (r"unrecognized arguments: (?P<words>.+)", "U34"),
        (r"the following arguments are required: (?P<words>.+)", "U35"),
        (r"argument (?P<flag>.+?): invalid choice: (?P<value>.+?) \(choose from (?P<known>.+)\)", "U36"),
        (r"argument (?P<flag>.+?): invalid .+? value: (?P<value>.+)", "U37"),
        (r"argument (?P<flag>.+?): expected .+", "U38"),
    )
)


CHOSEN = "chosen_parser"  # attribute of a parsed command line: the parser of its command


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that complains with a code, and whose own words are in `lang`."""

    def __init__(self, *, lang: Lang, **more: Any) -> None:
        super().__init__(**more | {"add_help": False, "formatter_class": partial(_Formatter, lang=lang)})
        self.lang: Lang = lang
        self._positionals.title, self._optionals.title = say("cli.arguments", lang), say("cli.flags", lang)
        self.add_argument("-h", "--help", action="help", help=say("cli.help", lang))

    def add_subparsers(self, **more: Any) -> Any:
        """As argparse does; the commands speak the same language."""
        return super().add_subparsers(**{"parser_class": partial(Parser, lang=self.lang), **more})

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse does, but the usage shown with an unknown flag is that of the command it was given to."""
        found, unknown = self.parse_known_args(args, namespace)
        if unknown:
            getattr(found, CHOSEN, self).error("unrecognized arguments: " + " ".join(unknown))
        return found

    def error(self, message: str) -> NoReturn:
        """Usage and what is wrong, on standard error; ends the program with code 2."""
        self.print_usage(sys.stderr)
        complain(problem(message), self.lang, self.prog)
        self.exit(USAGE)


class _Formatter(argparse.HelpFormatter):
    def __init__(self, prog: str, *, lang: Lang) -> None:
        super().__init__(prog)
        self._lang = lang

    def add_usage(
        self,
        usage: str | None,
        actions: Iterable[argparse.Action],
        groups: Iterable[Any],
        prefix: str | None = None,
    ) -> None:
        super().add_usage(usage, actions, groups, say("cli.usage", self._lang) if prefix is None else prefix)


def problem(message: str) -> Note:
    """A sentence of argparse as a note: U34 to U38 where it is a known one, else U39 with its words."""
    for pattern, code in _SENTENCES:
        if found := pattern.fullmatch(message):
            return note(code, **found.groupdict())
    return note("U39", reason=message)
