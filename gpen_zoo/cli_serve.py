"""`gpen-zoo doctor` and `gpen-zoo serve`."""
# ruff: noqa: T201

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Any

from gpen_zoo.console import OK, open_zoo, write_json
from gpen_zoo.hints import Lang, say

Command = Callable[..., argparse.ArgumentParser]


def add_commands(to: Any, command: Command, lang: Lang) -> None:
    """Both commands with their flags."""
    command(to, "doctor", "cli.doctor", run_doctor).add_argument("--json", action="store_true")
    serve = command(to, "serve", "cli.serve", run_serve)
    serve.add_argument("--host", default="127.0.0.1", help=say("cli.host", lang))
    serve.add_argument("--port", type=int, default=7860, help=say("cli.port", lang))
    serve.add_argument("--open", action="store_true", help=say("cli.open", lang))


def run_doctor(args: argparse.Namespace, lang: Lang) -> int:
    from gpen_zoo.doctor import examine

    found = examine(open_zoo())
    if args.json:
        write_json("-", found.as_dict())
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
