"""`gpen-zoo` and `python -m gpen_zoo`: restore, weights, doctor, serve.

Exit codes: 0 all done, 1 some input failed, 2 wrong usage, 130 interrupted. Results and tables go to standard output,
hints about what went wrong to standard error. The only place of the package that prints or exits.
"""
# ruff: noqa: T201

from __future__ import annotations

import argparse
import json
import locale
import logging
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpen_zoo.errors import GpenError, OptionsInvalid, PathInaccessible, guarded
from gpen_zoo.hints import Lang, Note, pick_language, say
from gpen_zoo.types import REPORT_VERSION, Options, RestoreResult, Verdict

if TYPE_CHECKING:
    from gpen_zoo.manifest import Entry
    from gpen_zoo.restore import Restorer
    from gpen_zoo.zoo import Zoo

OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130
QUIETLY_FINE = "F04"  # a face that was simply restored needs no line of its own


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line (default: the process's own) and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a console that lacks a character must not end a run of hours
            stream.reconfigure(errors="replace")
    argv = list(sys.argv[1:] if argv is None else argv)
    lang = language_of(argv)
    args = parser(lang).parse_args(argv)
    logging.basicConfig(level=args.log_level.upper(), format="%(levelname)s %(name)s: %(message)s")
    try:
        code: int = args.run(args, lang)
    except GpenError as error:
        complain(error.note, lang)
        return USAGE if isinstance(error, OptionsInvalid) else FAILED
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
    top = argparse.ArgumentParser(prog="gpen-zoo", description=say("cli.about", lang))
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--lang", choices=("zh", "en"), default=argparse.SUPPRESS, help=say("cli.lang", lang))
    levels = ("debug", "info", "warning", "error", "critical")
    common.add_argument("--log-level", choices=levels, default="critical", help=say("cli.log_level", lang))
    top.add_argument("--lang", choices=("zh", "en"), help=say("cli.lang", lang))
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    def command(to: Any, name: str, key: str, run: Any) -> argparse.ArgumentParser:
        made: argparse.ArgumentParser = to.add_parser(
            name, parents=[common], help=say(key, lang), description=say(key, lang)
        )
        made.set_defaults(run=run)
        return made

    restore = command(commands, "restore", "cli.restore", run_restore)
    restore.add_argument("-i", "--input", nargs="+", required=True, metavar="FILE", help=say("cli.input", lang))
    restore.add_argument("-o", "--output", default="output", metavar="DIR|FILE", help=say("cli.output", lang))
    restore.add_argument("--strength", type=float, default=1.0, metavar="0-1", help=say("cli.strength", lang))
    restore.add_argument("--aligned", action="store_true", help=say("cli.aligned", lang))
    restore.add_argument("--faces", metavar="1,3", help=say("cli.faces", lang))
    restore.add_argument("--model", default="auto", metavar="NAME", help=say("cli.weights_name", lang))
    restore.add_argument("--device", default="auto", help=say("cli.device", lang))
    restore.add_argument("--json", metavar="REPORT", help=say("cli.json", lang))

    weights = commands.add_parser("weights", help=say("cli.weights", lang), description=say("cli.weights", lang))
    actions = weights.add_subparsers(required=True, metavar="ACTION")
    command(actions, "list", "cli.weights_list", run_list).add_argument("--json", action="store_true")
    command(actions, "info", "cli.weights_info", run_info).add_argument("name", metavar="NAME")
    verify = command(actions, "verify", "cli.weights_verify", run_verify)
    verify.add_argument("name", nargs="*", metavar="NAME", help=say("cli.names", lang))

    command(commands, "doctor", "cli.doctor", run_doctor).add_argument("--json", action="store_true")
    serve = command(commands, "serve", "cli.serve", run_serve)
    serve.add_argument("--host", default="127.0.0.1", help=say("cli.host", lang))
    serve.add_argument("--port", type=int, default=7860, help=say("cli.port", lang))
    serve.add_argument("--open", action="store_true", help=say("cli.open", lang))
    return top


def complain(what: Note, lang: Lang, about: str = "gpen-zoo") -> None:
    """A hint on standard error."""
    print(say("cli.failed", lang, input=about, reason=say(what, lang), code=what.code), file=sys.stderr)


def run_restore(args: argparse.Namespace, lang: Lang) -> int:
    from gpen_zoo.options import check_options
    from gpen_zoo.restore import load

    options = Options(strength=args.strength, aligned=args.aligned, faces=face_numbers(args.faces))
    check_options(options)
    inputs = [Path(p) for p in args.input]
    target = Path(args.output)
    single = is_file_name(target)
    if single and len(inputs) > 1:
        raise OptionsInvalid("U08", count=len(inputs), path=target)
    restorer = load(args.model, device=args.device)
    reports: list[dict[str, Any]] = []
    taken: set[Path] = set()
    failed = 0
    told: set[str] = set()
    for path in inputs:
        answer = guarded(partial(restore_file, restorer, path, target, single, options, taken))
        if isinstance(answer, Note):
            failed += 1
            complain(answer, lang, str(path))
            reports.append({"input": str(path), "output": None, "error": answer.as_dict()})
            continue
        result, written = answer
        reports.append({"input": str(path), "output": str(written), "error": None, **result.as_dict()})
        if args.json != "-":
            tell_result(path, written, result, lang, told)
    write_report(args.json, reports)
    if len(inputs) > 1 and args.json != "-":
        print(say("cli.total", lang, done=len(inputs) - failed, failed=failed))
    return FAILED if failed else OK


def restore_file(
    restorer: Restorer, path: Path, target: Path, single: bool, options: Options, taken: set[Path]
) -> tuple[RestoreResult, Path]:
    """Restore one file and write it; `taken` are the files this run has written, none of which is written twice."""
    from gpen_zoo.image_io import output_name, read, write

    result = restorer(read(path), options)
    written = target if single else free_name(target / output_name(result.image), taken)
    if written.exists() and written.samefile(path):
        raise OptionsInvalid("U07", path=written)
    taken.add(write(result.image, written))
    return result, written


def is_file_name(target: Path) -> bool:
    """Whether -o names a file: it ends like a picture and is not a folder already there."""
    from gpen_zoo.image_io import format_of_suffix

    return format_of_suffix(target.suffix) is not None and not target.is_dir()


def free_name(path: Path, taken: set[Path]) -> Path:
    """`path`, or the same with a number when another photo of this run already has it (a/me.jpg, b/me.jpg)."""
    number, free = 2, path
    while free in taken:
        free, number = path.with_stem(f"{path.stem}_{number}"), number + 1
    return free


def face_numbers(text: str | None) -> tuple[int, ...] | None:
    """`1,3` → (1, 3). OptionsInvalid for anything but numbers and commas."""
    if text is None:
        return None
    try:
        return tuple(int(word) for word in text.replace("，", ",").split(",") if word.strip())
    except ValueError:
        raise OptionsInvalid("U04", value=text) from None


def tell_result(path: Path, written: Path, result: RestoreResult, lang: Lang, told: set[str]) -> None:
    """Lines about one photo. What is the same for every photo of a run (the demo weights) is told once."""
    restored = sum(1 for f in result.faces if f.verdict is Verdict.RESTORED)
    seconds = f"{sum(ms for _, ms in result.timings) / 1000:.1f}"
    print(say("cli.done", lang, input=path, output=written))
    print("  " + say("ui.summary", lang, found=len(result.faces), restored=restored, seconds=seconds))
    for face in result.faces:
        if face.note.code != QUIETLY_FINE:
            print("  " + say("ui.face", lang, index=face.index, reason=say(face.note, lang)))
    for notice in result.notes:
        if notice.code != "D01" or notice.code not in told:
            print(f"  {say(notice, lang)} [{notice.code}]")
        told.add(notice.code)


def write_report(path: str | None, reports: list[dict[str, Any]]) -> None:
    """The JSON report of a run: to a file, to standard output for `-`, nowhere for None."""
    if path is None:
        return
    text = json.dumps({"version": REPORT_VERSION, "results": reports}, ensure_ascii=False, indent=2)
    if path == "-":
        print(text)
        return
    try:
        Path(path).write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise PathInaccessible("I22", path=path, reason=error.strerror or error) from error


def run_list(args: argparse.Namespace, lang: Lang) -> int:
    zoo = open_zoo()
    rows = [entry_row(zoo, entry) for entry in zoo.entries]
    if args.json:
        print(json.dumps({"home": str(zoo.home), "weights": rows}, ensure_ascii=False, indent=2))
        return OK
    print(say("cli.doctor_zoo", lang) + ": " + str(zoo.home))
    width = max(len(row["name"]) for row in rows)
    for row in rows:
        size = f"{row['bytes'] / 1e6:.1f} MB" if row["bytes"] else "?"
        status = say(f"cli.{row['status']}", lang)
        print(f"{row['name']:<{width}}  {row['role']:<13} {row['branch'] or '':>5}  {size:>10}  {status}")
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
    entries = [zoo.entry(n) for n in args.name] or [e for e in zoo.entries if zoo.path_of(e).is_file()]
    bad = 0
    for entry in entries:
        answer = guarded(partial(zoo.locate, entry.name))
        if isinstance(answer, Note):
            bad += 1
            complain(answer, lang, entry.name)
        else:
            print(say("cli.verified", lang, name=entry.name, path=answer))
    return FAILED if bad else OK


def run_doctor(args: argparse.Namespace, lang: Lang) -> int:
    from gpen_zoo.doctor import examine

    found = examine(open_zoo())
    if args.json:
        print(json.dumps(found.as_dict(), ensure_ascii=False, indent=2))
        return OK
    print(say("cli.doctor_versions", lang))
    for name, number in found.versions.items():
        print(f"  {name:<16} {number or '-'}")
    print(f"{say('cli.doctor_device', lang)}: {found.device}, {found.threads} threads")
    print(f"{say('cli.doctor_zoo', lang)}: {found.home}")
    print(f"{say('cli.doctor_use', lang)}: {', '.join(found.branches) or '-'}; {found.detector}")
    print(say("cli.doctor_problems", lang) + ":")
    for problem in found.problems:
        print(f"  {say(problem, lang)} [{problem.code}]")
    if not found.problems:
        print("  " + say("cli.doctor_fine", lang))
    return OK


def run_serve(args: argparse.Namespace, lang: Lang) -> int:
    os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")  # read when gradio is imported
    from gpen_zoo.page import build

    page = build(open_zoo())
    page.blocks.launch(server_name=args.host, server_port=args.port, inbrowser=args.open, **page.launch_options)
    return OK


def open_zoo() -> Zoo:
    from gpen_zoo.zoo import Zoo

    return Zoo()


def entry_row(zoo: Zoo, entry: Entry) -> dict[str, Any]:
    """One line of the table of weights."""
    return {
        "name": entry.name,
        "role": entry.role,
        "branch": entry.branch,
        "status": zoo.status(entry),
        "bytes": entry.expected_bytes,
        "sha256": entry.sha256,
        "licence": entry.licence.spdx,
    }
