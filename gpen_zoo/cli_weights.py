"""`gpen-zoo weights …`: see, get, check, convert, keep and pass on weights."""
# ruff: noqa: T201

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpen_zoo.console import FAILED, OK, complain, open_zoo, write_json
from gpen_zoo.errors import OptionsInvalid, guarded
from gpen_zoo.hints import Lang, Note, say

if TYPE_CHECKING:
    from gpen_zoo.fetch import Progress, Report
    from gpen_zoo.zoo import Installed

PRELOAD = "GPEN_ZOO_PRELOAD"  # names for `warm`, between commas: what the build of a container wants

Command = Callable[..., argparse.ArgumentParser]


def add_commands(to: Any, command: Command, lang: Lang) -> None:
    """Every action with its flags."""

    def words(key: str) -> str:
        return say(f"cli.{key}", lang)

    listing = command(to, "list", "cli.weights_list", run_list)
    listing.add_argument("--json", action="store_true", help=words("as_json"))
    command(to, "info", "cli.weights_info", run_info).add_argument("name", metavar="NAME", help=words("one_name"))
    verify = command(to, "verify", "cli.weights_verify", run_verify)
    verify.add_argument("name", nargs="*", metavar="NAME", help=words("names"))
    verify.add_argument("--all", action="store_true", help=words("verify_all"))
    for name, key in (("download", "cli.weights_download"), ("warm", "cli.weights_warm")):
        get = command(to, name, key, run_download)
        get.set_defaults(preload=name == "warm")
        get.add_argument("name", nargs="*", metavar="NAME", help=words("download_names"))
        get.add_argument("--all-branches", action="store_true", help=words("all_branches"))
        get.add_argument("--source", default="", metavar="N|KIND|ADDRESS", help=words("source"))
        get.add_argument("--endpoint", metavar="URL", help=words("endpoint"))
        get.add_argument("--accept-unpinned", action="store_true", help=words("accept_unpinned"))
        get.add_argument("--half", action="store_true", help=words("half_file"))
        get.add_argument("--deadline", type=float, default=7200.0, metavar="S", help=words("deadline"))
        get.add_argument("-q", "--quiet", action="store_true", help=words("no_bar"))
    inspect = command(to, "inspect", "cli.weights_inspect", run_inspect)
    inspect.add_argument("file", nargs="+", type=Path, metavar="FILE", help=words("any_file"))
    inspect.add_argument("--json", action="store_true", help=words("as_json"))
    convert = command(to, "convert", "cli.weights_convert", run_adopt)
    adopt = command(to, "adopt", "cli.weights_adopt", run_adopt)
    adopt.add_argument("--scan", action="store_true", help=words("scan"))
    for taking, many in ((convert, "+"), (adopt, "*")):
        taking.add_argument("path", nargs=many, type=Path, metavar="FILE|DIR", help=words("weight_files"))
        taking.add_argument("--name", default="", metavar="NAME", help=words("adopt_name"))
        taking.add_argument("--accept-unpinned", action="store_true", help=words("accept_unpinned"))
        taking.add_argument("--half", action="store_true", help=words("half_file"))
    export = command(to, "export", "cli.weights_export", run_export)
    export.add_argument("name", metavar="NAME", help=words("one_name"))
    export.add_argument("--to", type=Path, required=True, metavar="DIR", help=words("export_to"))
    command(to, "pin", "cli.weights_pin", run_pin).add_argument("name", metavar="NAME", help=words("one_name"))
    remove = command(to, "remove", "cli.weights_remove", run_remove)
    remove.add_argument("name", nargs="+", metavar="NAME", help=words("one_name"))
    remove.add_argument("--forget", action="store_true", help=words("forget"))


def each(names: list[str], work: Callable[[str], None], lang: Lang) -> int:
    """Do `work` for every name; what fails is told and does not stop the rest."""
    failed = 0
    for name in names:
        answer = guarded(partial(work, name))
        if isinstance(answer, Note):
            failed += 1
            complain(answer, lang, name)
    return FAILED if failed else OK


def run_list(args: argparse.Namespace, lang: Lang) -> int:
    zoo = open_zoo()
    lines, used = zoo.listing(), zoo.disk_use()
    if args.json:
        rows = [line.as_dict() for line in lines]
        write_json("-", {"home": str(zoo.home), "disk_bytes": used, "weights": rows})
        return OK
    print(say("cli.disk_use", lang, home=zoo.home, mb=f"{used / 1e6:.1f}"))
    width = max(len(line.entry.name) for line in lines)
    for line in lines:
        size = f"{line.bytes / 1e6:.1f} MB" if line.bytes else "?"
        entry, status = line.entry, say(f"cli.{line.status}", lang)
        licence = entry.licence.spdx
        print(f"{entry.name:<{width}}  {entry.role:<13} {entry.branch or '':>5}  {size:>10}  {status}  {licence}")
    return OK


def run_info(args: argparse.Namespace, lang: Lang) -> int:
    zoo = open_zoo()
    entry = zoo.entry(args.name)
    print(f"{entry.name}  [{say('cli.' + zoo.status(entry), lang)}]")
    print(f"  {zoo.path_of(entry)}")
    print(f"  {entry.role}, {entry.architecture.family} {dict(entry.architecture.params)}")
    print(f"  {entry.file}  {entry.bytes or '?'} bytes  sha256 {entry.sha256 or '?'}")
    for source in entry.sources:
        print(f"  <- {source}")
    print("  " + say("ui.licence", lang, text=entry.licence.zh if lang == "zh" else entry.licence.en))
    return OK


def run_verify(args: argparse.Namespace, lang: Lang) -> int:
    zoo = open_zoo()
    names = [] if args.all else args.name

    def verify(name: str) -> None:
        print(say(zoo.verify(name), lang))

    return each(names or [e.name for e in zoo.entries if zoo.path_of(e).is_file()], verify, lang)


def run_download(args: argparse.Namespace, lang: Lang) -> int:
    from gpen_zoo.fetch import Limits
    from gpen_zoo.obtain import Wish

    zoo = open_zoo()
    names = [*args.name, *([e.name for e in zoo.branches()] if args.all_branches else [])]
    if args.preload:
        names = names or [name.strip() for name in os.environ.get(PRELOAD, "").split(",") if name.strip()]
    elif not names:
        raise OptionsInvalid("U31")

    def download(name: str) -> None:
        with download_bar(name, args.quiet) as report:
            wish = Wish(
                source=args.source,
                endpoint=args.endpoint,
                accept_unpinned=args.accept_unpinned,
                dtype="float16" if args.half else "float32",
                limits=Limits(deadline=args.deadline),
                report=report,
            )
            tell_installed(zoo.download(name, wish), lang)

    return each(names, download, lang)


@contextmanager
def download_bar(name: str, quiet: bool) -> Iterator[Report]:
    """A bar with bytes, speed and time left on standard error, where that is a terminal."""
    from tqdm import tqdm

    with tqdm(desc=name, unit="B", unit_scale=True, disable=True if quiet else None) as bar:

        def report(progress: Progress) -> None:
            bar.total = progress.total
            bar.set_postfix_str(progress.host, refresh=False)
            bar.update(progress.done - bar.n)

        yield report


def tell_installed(installed: Installed, lang: Lang) -> None:
    """Where a weight lies now, and why earlier sources did not serve."""
    for why in installed.tried:
        print(f"  {say(why, lang)} [{why.code}]", file=sys.stderr)
    code = "cli.fetched" if installed.fresh else "cli.verified"
    print(say(code, lang, name=installed.entry.name, path=installed.path))


def run_inspect(args: argparse.Namespace, lang: Lang) -> int:
    zoo = open_zoo()
    found = []

    def inspect(path: str) -> None:
        finding = zoo.inspect(Path(path))
        found.append(finding.as_dict())
        if not args.json:
            print(f"{path}: {say(finding.note, lang)} [{finding.note.code}]")

    code = each([str(path) for path in args.file], inspect, lang)
    if args.json:
        write_json("-", found)
    return code


def run_adopt(args: argparse.Namespace, lang: Lang) -> int:
    zoo = open_zoo()
    paths = [str(path) for path in args.path]
    if getattr(args, "scan", False) or not paths:
        matches = zoo.find()
        print(say("cli.scanned", lang, count=len(matches)))
        paths += [str(match.path) for match in matches]

    def adopt(path: str) -> None:
        taken = zoo.adopt(
            Path(path),
            name=args.name,
            accept_unpinned=args.accept_unpinned,
            dtype="float16" if args.half else "float32",
        )
        for installed in taken:
            tell_installed(installed, lang)
        if not taken:
            print(say("cli.none_adopted", lang, path=path))

    return each(paths, adopt, lang)


def run_export(args: argparse.Namespace, lang: Lang) -> int:
    for path in open_zoo().export(args.name, args.to):
        print(path)
    return OK


def run_pin(args: argparse.Namespace, lang: Lang) -> int:
    print(open_zoo().pin(args.name), end="")
    return OK


def run_remove(args: argparse.Namespace, lang: Lang) -> int:
    zoo = open_zoo()

    def remove(name: str) -> None:
        freed = zoo.remove(name, forget=args.forget)
        print(say("cli.removed", lang, name=name, mb=f"{freed / 1e6:.1f}"))

    return each(args.name, remove, lang)
