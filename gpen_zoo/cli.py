"""`gpen-zoo` and `python -m gpen_zoo`: the words of the command line, and which command gets them.

Exit codes: 0 all done, 1 some input failed, 2 wrong usage, 130 interrupted. Results and tables go to standard output,
hints about what went wrong to standard error.
"""

from __future__ import annotations

import argparse
import locale
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from gpen_zoo import cli_eval, cli_flags, cli_restore, cli_serve, cli_tasks, cli_weights, logs
from gpen_zoo.cli_parser import CHOSEN, Parser
from gpen_zoo.console import FAILED, INTERRUPTED, USAGE, complain
from gpen_zoo.errors import GpenError, OptionsInvalid
from gpen_zoo.hints import Lang, pick_language, say

LEVELS = ("debug", "info", "warning", "error", "critical")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line (default: the process's own) and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a console that lacks a character must not end a run of hours
            stream.reconfigure(errors="replace")
    argv = list(sys.argv[1:] if argv is None else argv)
    lang = language_of(argv)
    args = parser(lang).parse_args(argv)
    logs.set_up(args.log_level or ("info" if args.log_json else "critical"), as_json=args.log_json)
    try:
        code: int = args.run(args, lang)
    except GpenError as error:
        complain(error.note, lang)
        # W19: a name that no weight has
        return USAGE if isinstance(error, OptionsInvalid) or error.code == "W19" else FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    return code


def language_of(argv: Sequence[str]) -> Lang:
    """`--lang` wherever it stands, else the locale. Known before parsing, because help is written in it."""
    for i, word in enumerate(argv):
        if word == "--lang" and i + 1 < len(argv):
            return pick_language(argv[i + 1])
        if word.startswith("--lang="):
            return pick_language(word.partition("=")[2])
    for variable in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if os.environ.get(variable):
            return pick_language(os.environ[variable])
    return pick_language(locale.getlocale()[0])


def parser(lang: Lang) -> argparse.ArgumentParser:
    """The command line with its help in `lang`."""
    top = Parser(prog="gpen-zoo", description=say("cli.about", lang), lang=lang)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--lang", choices=("zh", "en"), default=argparse.SUPPRESS, help=say("cli.lang", lang))
    common.add_argument("--log-level", choices=LEVELS, help=say("cli.log_level", lang))
    common.add_argument("--log-json", action="store_true", help=say("cli.log_json", lang))
    top.add_argument("--lang", choices=("zh", "en"), help=say("cli.lang", lang))
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    def command(to: Any, name: str, key: str, run: Callable[..., int]) -> argparse.ArgumentParser:
        # Abbreviations are off: the script's --in_size must not be taken for half of --input_something one day.
        made: argparse.ArgumentParser = to.add_parser(
            name, parents=[common], help=say(key, lang), description=say(key, lang), allow_abbrev=False
        )
        made.set_defaults(run=run, **{CHOSEN: made})
        return made

    cli_flags.add_arguments(command(commands, "restore", "cli.restore", cli_restore.run), lang)
    cli_tasks.add_commands(commands, command, lang)
    cli_eval.add_arguments(command(commands, "eval", "cli.eval", cli_eval.run), lang)
    weights = commands.add_parser("weights", help=say("cli.weights", lang), description=say("cli.weights", lang))
    cli_weights.add_commands(weights.add_subparsers(required=True, metavar="ACTION"), command, lang)
    cli_serve.add_commands(commands, command, lang)
    return top
