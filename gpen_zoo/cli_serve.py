"""`gpen-zoo doctor` and `gpen-zoo serve`."""
# ruff: noqa: T201

from __future__ import annotations

import argparse
import logging
import os
import sys
import webbrowser
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from gpen_zoo.console import FAILED, OK, complain, open_zoo, write_json
from gpen_zoo.hints import Lang, note, say

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

    if args.plans:
        return run_plans(lang)
    found = examine(open_zoo(), accelerate=args.accelerate)
    if args.json:
        write_json("-", found.as_dict())
        return OK
    print(say("cli.doctor_versions", lang))
    for name, number in found.versions.items():
        print(f"  {name:<16} {number or '-'}")
    print(f"{say('cli.doctor_device', lang)}: {found.device}, {found.threads} threads")
    print(f"{say('cli.doctor_zoo', lang)}: {found.home}")
    print(f"{say('cli.doctor_use', lang)}: {', '.join(found.branches) or '-'}; {found.detector}")
    for label, trials in found.accelerators.items():
        print(f"{say('cli.doctor_accelerators', lang)} ({label}):")
        for trial in trials:
            print("  " + say(f"cli.trial_{trial.verdict}", lang, **trial.as_dict()))
    print(say("cli.doctor_problems", lang) + ":")
    for problem in found.problems:
        print(f"  {say(problem, lang)} [{problem.code}]")
    if not found.problems:
        print("  " + say("cli.doctor_fine", lang))
    return OK


def run_plans(lang: Lang) -> int:
    """Which plan machines with 2 to 24 GB get for each branch of the manifest, by the code that plans a run."""
    from gpen_zoo.architecture import Config
    from gpen_zoo.budget import plans_table

    restorers = [e for e in open_zoo().entries if e.role == "restorer" and e.architecture.family == "GPEN"]
    branches = {e.name: Config(**dict(e.architecture.params)) for e in restorers}  # type: ignore[arg-type]
    for device, title in (("cuda", "cli.plans_cuda"), ("cpu", "cli.plans_cpu")):
        print(say(title, lang))
        for row in plans_table(branches, device):
            print(f"  {row.branch:<14} {row.gigabytes:>3} GB  {row.bytes / 1e9:5.1f} GB  {row.plan}")
    return OK


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
