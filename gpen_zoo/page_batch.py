"""The second tab: many photos or a zip in, a table that fills, a zip out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gradio as gr

from gpen_zoo.batch_desk import MOST_FILES, Batch, BatchDesk, Row
from gpen_zoo.hints import Note
from gpen_zoo.page_labels import Labels, plain, told, words
from gpen_zoo.page_panels import address, cell, panel, problem, tag, terms
from gpen_zoo.page_restore import AT_ONCE, PRIVATE, key_of
from gpen_zoo.page_terms import Restricted, Terms
from gpen_zoo.types import Options
from gpen_zoo.waiting import watched

FORMATS = [("ui.batch_same", ""), ("JPEG", "JPEG"), ("PNG", "PNG"), ("WebP", "WEBP")]
SHOWN_NOTES = 3  # of one photo in the table; the report has all


def batch_tab(desk: BatchDesk, labels: Labels, restricted: Restricted) -> None:
    """Widgets and wiring of the tab, inside an open `gr.Tab`. restricted: see page_terms.py."""
    with gr.Row():
        with gr.Column(scale=2, min_width=300):
            files = labels(
                gr.File,
                label="ui.batch_files",
                file_count="multiple",
                elem_id="batch-files",
                height=210,
                type="filepath",
            )
            plain(tag("p", words("ui.batch_about", most=MOST_FILES), cls="quiet"))
            with gr.Row(elem_id="batch-buttons"):
                run = labels(
                    gr.Button, value="ui.batch_run", variant="primary", elem_id="batch-run", scale=3, min_width=120
                )
                stop = labels(
                    gr.Button,
                    value="ui.stop",
                    variant="stop",
                    elem_id="batch-stop",
                    interactive=False,
                    scale=1,
                    min_width=90,
                )
            strength = labels(
                gr.Slider, label="ui.strength", minimum=0, maximum=1, value=1, step=0.05, elem_id="batch-strength"
            )
            auto = labels(gr.Checkbox, label="ui.auto", value=True, elem_id="batch-auto")
            kind = labels(gr.Dropdown, label="ui.batch_format", choices=FORMATS, value="", elem_id="batch-format")
        with gr.Column(scale=3, min_width=320):
            status = plain("", elem_id="batch-status")
            consent = Terms(labels, restricted, status="batch-status", button="batch-run", name="batch-consent")
            download = labels(gr.DownloadButton, label="ui.batch_download", interactive=False, elem_id="batch-download")
            table = plain("", elem_id="batch-table")

    def press_run(
        accepted: list[str], files: list[str] | None, strength: float, auto: bool, kind: str, request: gr.Request
    ) -> Iterator[list[Any]]:
        if missing := consent.missing(desk.weights if files else (), accepted):
            yield [terms(missing), *[gr.skip()] * 4, gr.update(visible=True)]
            return
        key, agreed = key_of(request), gr.update(visible=False)
        off = gr.update(value=None, interactive=False)
        running = [off, gr.update(interactive=False), gr.update(interactive=True), agreed]
        resting = [gr.update(interactive=True), gr.update(interactive=False), agreed]

        def work(tell: Any) -> Batch | Note:
            return desk.restore(
                key, files or [], Options(strength=None if auto else float(strength)), kind or None, tell
            )

        yield [tag("div", tag("p", words("ui.stage_read")), cls="gz-panel working", role="status"), "", *running]
        for news in watched(work, lambda: desk.stop(key)):
            if isinstance(news, Batch):
                yield [progress(news), rows(news.rows), *running]
            elif isinstance(news.value, Batch):
                done = news.value
                yield [finished(done), rows(done.rows), gr.update(value=str(done.archive), interactive=True), *resting]
            else:
                yield [problem(news.value), "", off, *resting]

    def press_stop(request: gr.Request) -> None:
        desk.stop(key_of(request))

    strength.input(None, None, auto, js="() => false", **PRIVATE)
    run.click(
        press_run,
        [consent.none, files, strength, auto, kind],
        [status, table, download, run, stop, consent.box],
        js=consent.told(),
        concurrency_limit=AT_ONCE,
        **PRIVATE,
    )
    stop.click(press_stop, None, None, queue=False, **PRIVATE)


def progress(batch: Batch) -> str:
    """How far it is."""
    if batch.ahead:
        return panel([words("ui.stage_line", done=batch.ahead, total=batch.ahead)], kind="working")
    done = len(batch.rows)
    bar = tag("progress", value=done, max=batch.total)
    text = tag("p", words("ui.batch_progress", done=done, total=batch.total))
    return tag("div", text, bar, cls="gz-panel working", role="status")


def finished(batch: Batch) -> str:
    """How many went well."""
    bad = sum(1 for row in batch.rows if row.error is not None)
    lines = [words("ui.batch_done", done=len(batch.rows) - bad, failed=bad)]
    if batch.stopped:
        lines.append(words("ui.batch_stopped", left=batch.total - len(batch.rows)))
    return panel(lines, kind="done")


def rows(all_rows: tuple[Row, ...]) -> str:
    """The table, one row a photo."""
    if not all_rows:
        return ""
    keys = ("ui.batch_photo", "ui.batch_name", "ui.batch_faces", "ui.batch_seconds", "ui.batch_notes")
    head = tag("tr", *(tag("th", words(key), scope="col") for key in keys))
    body = (_row(row) for row in all_rows)
    return tag("div", tag("table", head, *body, cls="gz-table photos"), cls="gz-scroll")


def _row(row: Row) -> str:
    picture = tag("img", cls="thumb", src=address(row.thumbnail), alt="") if row.thumbnail else ""
    if row.error is not None:
        said, faces = tag("span", told(row.error), cls="failed"), tag("span", words("ui.batch_bad"), cls="badge bad")
    else:
        unlike = tuple(dict.fromkeys(told(note) for note in row.notes if note.code != "D01"))
        said = "<br>".join(unlike[:SHOWN_NOTES])
        faces = tag("span", f"{row.restored} / {row.found}", cls="badge good" if row.restored else "badge")
    return tag(
        "tr",
        tag("td", picture),
        tag("td", cell(row.name)),
        tag("td", faces),
        tag("td", f"{row.seconds:.1f}", cls="num"),
        tag("td", said),
    )
