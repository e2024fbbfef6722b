"""The last tab: what to expect, where weights come from, how programs call, common questions, and what runs here."""

from __future__ import annotations

import html

import gradio as gr

from gpen_zoo.doctor import Examination, examine
from gpen_zoo.errors import guarded
from gpen_zoo.hints import Note, note
from gpen_zoo.page_labels import plain, told, words
from gpen_zoo.page_panels import cell, problem, tag
from gpen_zoo.page_restore import PRIVATE
from gpen_zoo.zoo import Zoo

# A question, and the hints that answer it, filled with an example.
QUESTIONS = (
    ("ui.faq_no_face", (note("F01"),)),
    ("ui.faq_invented", (note("F02", px=20), note("F03", px=9, least=16))),
    ("ui.faq_softer", (note("F06", side=900, size=512),)),
    ("ui.faq_weak", (note("D01", name="gpen-demo-256"),)),
    ("ui.faq_heic", (note("I04", format="HEIF", package="pillow-heif"),)),
    ("ui.faq_page", (note("W02", file="GPEN-BFR-512.pth"), note("W03", file="GPEN-BFR-512.pth"))),
    ("ui.faq_unpinned", (note("N11", file="GPEN-BFR-1024.pth", host="example.org"),)),
    ("ui.faq_memory", (note("M01", failed="cuda:0 float32, batch 8", plan="cuda:0 float32, batch 2"),)),
    ("ui.faq_cleared", (note("S02"),)),
)
PYTHON = """from gradio_client import Client, handle_file

client = Client("ADDRESS")
file, report = client.predict(handle_file("grandma.jpg"), {"strength": 0.8}, api_name="/restore")
archive, reports = client.predict([handle_file("a.jpg"), handle_file("b.zip")], {}, api_name="/batch")
table = client.predict(api_name="/weights")"""
ONE_CURL = "curl -F file=@grandma.jpg ADDRESS/v1/restore -o restored.jpg"
CURL = """curl -F files=@grandma.jpg ADDRESS/gradio_api/upload   # → ["PATH"]
curl -H 'Content-Type: application/json' ADDRESS/gradio_api/call/restore \\
  -d '{"data": [{"path": "PATH", "meta": {"_type": "gradio.FileData"}}, {"strength": 0.8}]}'   # → event_id
curl ADDRESS/gradio_api/call/restore/EVENT_ID"""


def help_tab(zoo: Zoo, tab: gr.Tab) -> None:
    """Contents and wiring of the tab, inside the open `tab`. This machine is examined when it is first opened."""
    plain(text(), elem_id="help")
    here = plain(tag("p", words("ui.help_examining"), cls="quiet"), elem_id="help-versions")

    def on_open() -> str:
        found = guarded(lambda: examine(zoo))
        return problem(found) if isinstance(found, Note) else versions(found)

    tab.select(on_open, None, here, concurrency_limit=1, **PRIVATE)


def text() -> str:
    """All that does not depend on this machine."""
    questions = (
        tag("details", tag("summary", words(question)), *(tag("p", told(answer)) for answer in answers))
        for question, answers in QUESTIONS
    )
    parts = [
        tag("h2", words("ui.help_what")),
        *(tag("p", words(f"ui.help_what_{n}")) for n in (1, 2, 3)),
        tag("h2", words("ui.help_weights")),
        *(tag("p", words(f"ui.help_weights_{n}")) for n in (1, 2, 3)),
        tag("h2", words("ui.help_faq")),
        *questions,
        tag("h2", words("ui.help_api")),
        tag("p", words("ui.help_api_1")),
        _code(PYTHON),
        _code(CURL),
        tag("p", words("ui.help_api_2")),
        _code(ONE_CURL),
    ]
    return tag("div", *parts, cls="gz-help")


def _code(lines: str) -> str:
    return tag("pre", tag("code", html.escape(lines, quote=False)))


def versions(found: Examination) -> str:
    """What runs here, as `gpen-zoo doctor` says it."""
    facts = [
        (words("cli.doctor_device"), cell(found.device)),
        (words("cli.doctor_use"), cell(", ".join(found.branches) or "-") + "; " + cell(found.detector)),
        *((cell(name), cell(number or "-")) for name, number in found.versions.items()),
    ]
    rows = (tag("dt", key) + tag("dd", value) for key, value in facts)
    notes = tag("ul", *(tag("li", told(one)) for one in found.problems))
    return tag(
        "div",
        tag("h2", words("cli.doctor_versions")),
        tag("div", tag("dl", *rows), cls="gz-card"),
        tag("h2", words("cli.doctor_problems")),
        notes if found.problems else tag("p", words("cli.doctor_fine")),
        cls="gz-help",
    )
