"""`gpen-zoo doctor` and `gpen-zoo serve`."""
# ruff: noqa: T201

from __future__ import annotations

import argparse
import logging
import os
import sys
import webbrowser
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from gpen_zoo.console import FAILED, OK, complain, open_zoo, write_json
from gpen_zoo.hints import Lang, note, say

if TYPE_CHECKING:
    from gpen_zoo.budget import Row
    from gpen_zoo.doctor import Examination

PLANNED = ("cuda", "cpu")  # kinds of devices in the tables of plans

Command = Callable[..., argparse.ArgumentParser]
N = TypeVar("N", int, float)


def add_commands(to: Any, command: Command, lang: Lang) -> None:
    """Both commands with their flags."""
    doctor = command(to, "doctor", "cli.doctor", run_doctor)
    doctor.add_argument("--json", action="store_true", help=say("cli.as_json", lang))
    doctor.add_argument("--plans", action="store_true", help=say("cli.plans", lang))
    doctor.add_argument("--accelerate", action="store_true", help=say("cli.doctor_accelerate", lang))
    serve = command(to, "serve", "cli.serve", run_serve)

    def add(flag: str, words: str, **more: Any) -> None:
        serve.add_argument(flag, help=say(f"cli.{words}", lang), **more)

    # The names under which Gradio takes both from a container.
    add("--host", "host", default=os.environ.get("GRADIO_SERVER_NAME", "127.0.0.1"))
    add("--port", "port", type=int, default=int(os.environ.get("GRADIO_SERVER_PORT", "7860")))
    add("--open", "open", action="store_true")
    # The name under which Gradio takes it.
    add("--mcp", "mcp", action="store_true", default=os.environ.get("GRADIO_MCP_SERVER", "").lower() == "true")
    add("--timeout", "serve_timeout", type=at_least(0.0), default=300.0, metavar="S")
    add("--grace", "grace", type=at_least(0.0), default=20.0, metavar="S")
    add("--silence", "silence", type=at_least(1.0), default=600.0, metavar="S")
    add("--exit-when-wedged", "exit_when_wedged", action="store_true")
    add("--max-requests", "max_requests", type=at_least(1), default=16, metavar="N")
    add("--max-body-mb", "max_body", type=at_least(1), default=100, metavar="MB")


def at_least(least: N) -> Callable[[str], N]:
    """A number of the same type as `least` and no smaller; ValueError, which argparse tells as wrong usage."""

    def number(text: str) -> N:
        value = type(least)(text)
        if value < least:
            raise ValueError
        return value

    return number


def run_doctor(args: argparse.Namespace, lang: Lang) -> int:
    from gpen_zoo.doctor import examine

    # The plans alone are arithmetic and quick; the rest is looked at too where its most costly part was asked for.
    found = None if args.plans and not args.accelerate else examine(open_zoo(), accelerate=args.accelerate)
    tables = {device: plans_for(device) for device in PLANNED} if args.plans else {}
    if args.json:
        plans = {device: [{**asdict(row), "plan": str(row.plan)} for row in rows] for device, rows in tables.items()}
        write_json("-", {**(found.as_dict() if found else {}), **({"plans": plans} if plans else {})})
        return OK
    if found is not None:
        tell_examination(found, lang)
    for device, rows in tables.items():
        print(say(f"cli.plans_{device}", lang))
        for line in plan_lines(rows):
            print(f"  {line}")
    return OK


def tell_examination(found: Examination, lang: Lang) -> None:
    """Versions, device, weights, accelerators and problems."""

    def heading(words: str) -> str:
        return say("cli.doctor_line", lang, title=words, value="").rstrip()

    def line(key: str, value: str) -> None:
        print(say("cli.doctor_line", lang, title=say(key, lang), value=value))

    print(heading(say("cli.doctor_versions", lang)))
    for name, number in found.versions.items():
        print(f"  {name:<17} {number or '-'}")
    line("cli.doctor_device", say("cli.doctor_threads", lang, device=found.device, threads=found.threads))
    line("cli.doctor_zoo", found.home)
    branches = ", ".join(found.branches) or "-"
    line("cli.doctor_use", say("cli.doctor_in_use", lang, branches=branches, detector=found.detector))
    for label, trials in found.accelerators.items():
        print(heading(f"{say('cli.doctor_accelerators', lang)} [{label}]"))
        for trial in trials:
            print("  " + say(f"cli.trial_{trial.verdict}", lang, **trial.as_dict()))
    print(heading(say("cli.doctor_problems", lang)))
    for problem in found.problems:
        print(f"  {say(problem, lang)} [{problem.code}]")
    if not found.problems:
        print("  " + say("cli.doctor_fine", lang))


def plans_for(device: str) -> tuple[Row, ...]:
    """Which plan machines with 2 to 24 GB get for each branch of the manifest, by the code that plans a run."""
    from gpen_zoo.architecture import Config
    from gpen_zoo.budget import plans_table

    restorers = [e for e in open_zoo().entries if e.role == "restorer" and e.architecture.family == "GPEN"]
    branches = {e.name: Config(**dict(e.architecture.params)) for e in restorers}  # type: ignore[arg-type]
    return plans_table(branches, device)


def plan_lines(rows: Iterable[Row]) -> Iterator[str]:
    """A line for each plan of a branch, with the memory from which on and up to which it is taken."""
    for (branch, plan, needed), same in groupby(rows, key=lambda row: (row.branch, row.plan, row.bytes)):
        sizes = [row.gigabytes for row in same]
        memory = f"{sizes[0]}–{sizes[-1]} GB" if len(sizes) > 1 else f"{sizes[0]} GB"
        yield f"{branch:<14} {memory:>8} {needed / 2**20:>6.0f} MB  {plan}"


def run_serve(args: argparse.Namespace, lang: Lang) -> int:
    os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")  # read when gradio is imported
    from gpen_zoo import service_mcp
    from gpen_zoo.page import allowed_people
    from gpen_zoo.service import Limits, bind, create, serve, visible

    if args.mcp:
        service_mcp.require(login=bool(allowed_people()))
    listening = bind(args.host, args.port)
    limits = Limits(
        timeout=args.timeout or None,
        requests=args.max_requests,
        body_mb=args.max_body_mb,
        grace=args.grace,
        silence=args.silence,
    )

    def ready(port: int) -> None:
        address = f"http://{visible(args.host)}:{port}"
        print(say("cli.serving", lang, address=address), flush=True)
        if args.mcp:
            print(say("cli.serving_mcp", lang, address=address + service_mcp.PATH), flush=True)
        if args.open:
            webbrowser.open(address)

    def wedged() -> None:
        complain(note("T06", seconds=f"{limits.silence:g}"), lang)
        leave(FAILED)

    app = create(open_zoo(), limits, mcp=args.mcp)
    serve(app, listening=listening, ready=ready, wedged=wedged if args.exit_when_wedged else None)
    leave(OK)


def leave(code: int) -> NoReturn:
    """End the process. A thread may still be inside torch, with an example photo or for good, and the interpreter's own
    way out would then abort the process or wait for ever."""
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
