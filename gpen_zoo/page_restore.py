"""The first tab: a photo goes in, is looked at, restored face by face, compared, adjusted and downloaded."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import gradio as gr

from gpen_zoo import page_panels
from gpen_zoo.desk import Desk, Stage, Tell
from gpen_zoo.hints import Note
from gpen_zoo.page_labels import Labels, plain
from gpen_zoo.page_photo import PhotoField
from gpen_zoo.previews import LONGEST
from gpen_zoo.sessions import Session
from gpen_zoo.types import Mask, Options, ToneChoice
from gpen_zoo.waiting import watched

ASSETS = Path(__file__).parent / "assets"
SHOWN_BY_BROWSERS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "AVIF")
AT_ONCE = 30  # handlers that may wait for the engine; the line itself is shorter
# Read when the server is asked: of events that came while it was busy Gradio keeps the last, with the first one's data.
# Until the answer there is no download: it would be of what was chosen before. Gradio runs this only when it asks the
# server, so BLOCK does the same for a change that has to wait for an earlier one.
HOLD = "document.querySelector('#download').disabled = true"
READ_STRIP = f"() => {{ {HOLD}; return document.querySelector('#faces').chosen }}"
READ_OPTIONS = f"(...all) => {{ {HOLD}; return all }}"
READ_STRENGTH = f"(strength, auto, ...rest) => {{ {HOLD}; return [strength, false, ...rest] }}"
BLOCK = "() => ({__type__: 'update', interactive: false})"
MASKS = [("ui.mask_face", "face"), ("ui.mask_hair", "face+hair"), ("ui.mask_crop", "crop")]
TONES = [("ui.tone_auto", "auto"), ("ui.tone_colour", "colour"), ("ui.tone_toned", "toned"), ("ui.tone_grey", "grey")]
PRIVATE: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden"}


def restore_tab(desk: Desk, device: str, labels: Labels, samples: tuple[Path, ...]) -> None:
    """Widgets and wiring of the tab, inside an open `gr.Tab`. device: as estimates name it. samples: example photos."""
    with gr.Row():
        with gr.Column(scale=2, min_width=300):
            photo = labels(
                PhotoField,
                label="ui.photo",
                placeholder="ui.drop",
                type="filepath",
                image_mode=None,
                sources=["upload", "clipboard", "webcam"],
                elem_id="photo-input",
                height=300,
            )
            with gr.Row(elem_id="buttons"):
                run = labels(
                    gr.Button, value="ui.restore", variant="primary", elem_id="restore-button", scale=3, min_width=120
                )
                stop = labels(
                    gr.Button,
                    value="ui.stop",
                    variant="stop",
                    elem_id="stop-button",
                    interactive=False,
                    scale=1,
                    min_width=90,
                )
            status = plain("", elem_id="status")
            if samples:
                shown = plain(page_panels.examples(samples), elem_id="examples", js_on_load=script("examples.js"))
            with labels(gr.Accordion, label="ui.more", open=False, elem_id="more"):
                aligned = labels(gr.Checkbox, label="ui.aligned", info="ui.aligned_info", elem_id="aligned")
                branch = labels(
                    gr.Dropdown,
                    label="ui.branch",
                    info="ui.branch_info",
                    choices=[("ui.branch_auto", ""), *((b.name, b.name) for b in desk.restorer.branches)],
                    value="",
                    elem_id="branch",
                )
                mask = labels(
                    gr.Dropdown, label="ui.mask", info="ui.mask_info", choices=MASKS, value="face", elem_id="mask"
                )
                tone = labels(
                    gr.Dropdown, label="ui.tone", info="ui.tone_info", choices=TONES, value="auto", elem_id="tone"
                )
                grain = labels(gr.Checkbox, label="ui.grain", info="ui.grain_info", elem_id="grain")
                largest = labels(gr.Checkbox, label="ui.largest", elem_id="largest")
                min_size = labels(
                    gr.Slider, label="ui.min_size", minimum=0, maximum=200, value=0, step=4, elem_id="min-size"
                )
        with gr.Column(scale=3, min_width=320):
            pair = plain(page_panels.empty(), elem_id="result-slider", js_on_load=script("compare.js"))
            strength = labels(
                gr.Slider,
                label="ui.strength",
                info="ui.strength_info",
                minimum=0,
                maximum=1,
                value=1,
                step=0.05,
                elem_id="strength",
            )
            auto = labels(gr.Checkbox, label="ui.auto", info="ui.auto_info", value=True, elem_id="auto")
            download = labels(gr.DownloadButton, label="ui.download", interactive=False, elem_id="download")
            faces = plain("", elem_id="faces", js_on_load=script("faces.js"))
            with labels(gr.Accordion, label="ui.report", open=False, elem_id="report-box"):
                command = labels(
                    gr.Textbox,
                    label="ui.command",
                    info="ui.command_info",
                    buttons=["copy"],
                    interactive=False,
                    lines=2,
                    elem_id="command",
                )
                report_file = labels(
                    gr.DownloadButton, label="ui.report_file", interactive=False, size="sm", elem_id="report-file"
                )
                report = gr.JSON(show_label=False, elem_id="report", max_height=420)

    nothing: list[Any] = [gr.update(value=None, interactive=False), gr.update(value=None, interactive=False), None, ""]
    finished = [download, report_file, report, command]

    def on_photo(photo: str | None, branch: str, request: gr.Request, *values: Any) -> Iterator[list[Any]]:
        blank = [page_panels.empty(), "", *nothing]
        if not photo:
            desk.leave(key_of(request))
            yield [gr.skip(), "", *blank]
            return
        yield [gr.skip(), page_panels.working(Stage(name="look", done=0, total=0)), *blank]
        answer = desk.look(key_of(request), photo, chosen(Options(), *values), branch)
        if isinstance(answer, Note):
            yield [gr.skip(), page_panels.problem(answer), *blank]
            return
        foreign = answer.image.source.format not in SHOWN_BY_BROWSERS
        field = gr.update(value=str(answer.before)) if foreign else gr.skip()
        blank[1] = page_panels.strip(answer)
        yield [field, page_panels.looked_at(answer, device), *blank]

    def press_restore(photo: str | None, branch: str, request: gr.Request, *values: Any) -> Iterator[list[Any]]:
        key = key_of(request)
        session = desk.sessions.get(key)
        options = chosen(session.options if session else Options(), *values)
        running = [gr.update(interactive=False), gr.update(interactive=bool(photo)), *nothing]
        resting = [gr.update(interactive=True), gr.update(interactive=False), *nothing]

        def work(tell: Tell) -> Session | Note:
            return desk.restore(key, photo, options, tell, branch)

        for told in watched(work, lambda: desk.stop(key)):
            if isinstance(told, Stage):
                yield [page_panels.working(told), gr.skip(), gr.skip(), *running]
            elif isinstance(told, Session):
                yield [gr.skip(), pair_of(told), page_panels.strip(told), *running]
            elif isinstance(told.value, Session):
                done = told.value
                yield [page_panels.finished(done), pair_of(done), page_panels.strip(done), *resting]
                yield [gr.skip()] * 5 + finish(key)
            else:
                yield [page_panels.problem(told.value), *after_refusal(key), *resting[:2], *finish(key)]

    def press_stop(request: gr.Request) -> None:
        desk.stop(key_of(request))

    def after_refusal(key: str) -> list[Any]:
        """Pair and faces: what there was before a stop, nothing after a photo that cannot be read. So does `finish`."""
        session = desk.sessions.get(key)
        if session is None:
            return [page_panels.empty(), ""]
        return [pair_of(session) if session.result else page_panels.empty(), page_panels.strip(session)]

    def changed(request: gr.Request, change: Callable[[Options], Options]) -> Iterator[list[Any]]:
        key = key_of(request)
        yield [gr.skip()] * 3 + [gr.update(interactive=False)] + [gr.skip()] * 3
        answer = desk.blend(key, change)
        if isinstance(answer, Note):
            # Before there is a photo the slider only sets what comes.
            told = gr.skip() if answer.code == "S02" else page_panels.problem(answer)
            yield [told, gr.skip(), gr.skip(), *finish(key)]
        elif answer.result is None:
            yield [gr.skip(), gr.skip(), page_panels.strip(answer), *[gr.skip()] * 4]
        else:
            shown = [page_panels.finished(answer), pair_of(answer), page_panels.strip(answer)]
            yield shown + [gr.skip()] * 4
            yield [gr.skip()] * 3 + finish(key)

    def on_options(request: gr.Request, *values: Any) -> Iterator[list[Any]]:
        yield from changed(request, lambda options: chosen(options, *values))

    def on_faces(strip: dict[str, Any], request: gr.Request) -> Iterator[list[Any]]:
        ticked = tuple(int(number) for number in strip["ticked"])
        own = tuple((int(number), float(value)) for number, value in strip["own"].items())
        yield from changed(request, lambda options: replace(options, faces=ticked, strengths=own))

    def finish(key: str) -> list[Any]:
        """The files to download, the report and the command line."""
        session = desk.sessions.get(key)
        path = desk.finished_file(key)
        if session is None or session.result is None or not isinstance(path, Path):
            return nothing
        told = session.result.as_dict()
        written = session.folder / f"{path.stem}.json"
        written.write_text(json.dumps(told, ensure_ascii=False, indent=2), encoding="utf-8")
        line = page_panels.command_line(session)
        ready = [gr.update(value=str(path), interactive=True), gr.update(value=str(written), interactive=True)]
        return [*ready, told, line]

    def on_full_size(request: gr.Request) -> Any:
        paths = desk.full_size(key_of(request))
        return gr.skip() if isinstance(paths, Note) else page_panels.compare(*paths, full=True)

    def on_sample(event: gr.EventData, request: gr.Request) -> list[Any]:
        key = key_of(request)
        answer = desk.try_sample(key, str(samples[int(event.place)]))
        reset: list[Any] = [True, False, "face", "auto", False, False, 0]
        if isinstance(answer, Note):
            return [None, page_panels.problem(answer), page_panels.empty(), "", *reset, *nothing]
        # Not the example itself: Gradio deletes in time what has been in a field.
        field = str(answer.before)
        if answer.result is None:
            told = page_panels.looked_at(answer, device)
            return [field, told, page_panels.empty(), page_panels.strip(answer), *reset, *nothing]
        shown = [field, page_panels.finished(answer), pair_of(answer), page_panels.strip(answer)]
        return [*shown, *reset, *finish(key)]

    choices = [strength, auto, aligned, mask, tone, grain, largest, min_size]
    inputs = [photo, branch, *choices]
    gr.on(
        [photo.input, photo.clear, aligned.input, branch.input],
        on_photo,
        inputs,
        [photo, status, pair, faces, *finished],
        trigger_mode="always_last",
        concurrency_limit=2,
        **PRIVATE,
    )
    pressed = [status, pair, faces, run, stop, *finished]
    run.click(press_restore, inputs, pressed, concurrency_limit=AT_ONCE, **PRIVATE)
    stop.click(press_stop, None, None, queue=False, **PRIVATE)
    live: dict[str, Any] = {"trigger_mode": "always_last", "concurrency_limit": 2, **PRIVATE}
    adjusted = [status, pair, faces, *finished]
    # Moving the slider is a wish for that strength. In the browser, so that the server hears of both at once.
    strength.input(None, None, auto, js="() => false", **PRIVATE)
    ticks = [auto.input, mask.input, tone.input, grain.input, largest.input, min_size.input]
    gr.on([strength.input, *ticks, faces.input], None, None, download, js=BLOCK, **PRIVATE)
    strength.input(on_options, choices, adjusted, js=READ_STRENGTH, **live)
    gr.on(ticks, on_options, choices, adjusted, js=READ_OPTIONS, **live)
    faces.input(on_faces, gr.JSON(visible=False), adjusted, js=READ_STRIP, **live)
    pair.full_size(on_full_size, None, pair, concurrency_limit=2, **PRIVATE)
    if samples:
        back = [auto, aligned, mask, tone, grain, largest, min_size]
        shown.try_one(on_sample, None, [photo, status, pair, faces, *back, *finished], **PRIVATE)


def chosen(
    base: Options,
    strength: float,
    auto: bool,
    aligned: bool,
    mask: Mask,
    tone: ToneChoice,
    grain: bool,
    largest: bool,
    min_size: float,
) -> Options:
    """`base` with what the widgets say; ticks and strengths of single faces stay."""
    return replace(
        base,
        strength=None if auto else float(strength),
        aligned=aligned,
        mask=mask,
        tone=tone,
        grain=grain,
        largest=largest,
        min_size=float(min_size),
    )


def pair_of(session: Session) -> str:
    """Before and after of a session that has an after."""
    assert session.after is not None
    return page_panels.compare(
        session.before, session.after, full=max(session.image.width, session.image.height) <= LONGEST
    )


def key_of(request: gr.Request) -> str:
    """The visitor's key; Gradio makes it anew for every opened page."""
    return str(request.session_hash)


def script(name: str) -> str:
    """JavaScript that comes with the package."""
    return (ASSETS / name).read_text(encoding="utf-8")
