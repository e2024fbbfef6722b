"""The first tab: a photo goes in, is looked at, restored face by face, compared, adjusted and downloaded."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import gradio as gr

from gpen_zoo import page_panels
from gpen_zoo.desk import Desk, Stage, Tell
from gpen_zoo.hints import Lang, Note
from gpen_zoo.page_labels import PICK_LANGUAGE, Labels, plain
from gpen_zoo.page_options import AT_FIRST, Choices, chosen, installed, more_options
from gpen_zoo.page_photo import PhotoField
from gpen_zoo.page_terms import Restricted, Terms
from gpen_zoo.previews import LONGEST
from gpen_zoo.sessions import Session
from gpen_zoo.types import Options
from gpen_zoo.waiting import watched

ASSETS = Path(__file__).parent / "assets"
SHOWN_BY_BROWSERS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "AVIF")
AT_ONCE = 30  # handlers that may wait for the engine; the line itself is shorter
# A change takes the download away until it is answered: it would be of what was chosen before. See live.js.
BLOCK = "() => ({__type__: 'update', interactive: false})"
LIVE = "document.querySelector('#live').live"
TELL_OPTIONS = f"(...all) => {{ {LIVE}.tell('options', all); return [] }}"
TELL_STRENGTH = f"(strength, auto, ...rest) => {{ {LIVE}.tell('options', [strength, false, ...rest]); return [] }}"
PRIVATE: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden"}
NOTHING: list[Any] = [gr.update(value=None, interactive=False), gr.update(value=None, interactive=False), None, ""]


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the tab needs of the rest of the page. device: as estimates name it. samples: example photos. lang: the
    language switch. tab: the tab itself. restricted: see `page_terms`."""

    device: str
    samples: tuple[Path, ...]
    lang: gr.Radio
    tab: gr.Tab
    restricted: Restricted


def restore_tab(desk: Desk, labels: Labels, around: Surroundings, blocks: gr.Blocks) -> None:
    """Widgets and wiring of the tab, inside an open `gr.Tab` of `blocks`."""
    device, samples = around.device, around.samples
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
                elem_classes="photo-field",
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
            terms = Terms(labels, around.restricted, status="status", button="restore-button", name="consent")
            if samples:
                shown = plain(page_panels.examples(samples), elem_id="examples", js_on_load=script("examples.js"))
            hidden = more_options(labels)
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
            with labels(gr.Accordion, label="ui.draw", open=False, elem_id="draw-box"):
                drawing = plain(page_panels.drawing(None), elem_id="draw", js_on_load=script("draw.js"))
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
    live = plain("<span></span>", elem_id="live", js_on_load=script("live.js"))
    choices = Choices(strength=strength, auto=auto, **hidden)
    finished = [download, report_file, report, command]

    def on_photo(photo: str | None, branch: str, request: gr.Request, *values: Any) -> Iterator[list[Any]]:
        key = key_of(request)
        session = desk.sessions.get(key)
        field, blank = gr.skip(), [page_panels.empty(), "", page_panels.drawing(None), *NOTHING]
        if not photo:
            desk.leave(key)
            yield [field, "", *blank, gr.update(interactive=False)]
            return
        if session is not None and session.shows(photo):
            blank = [page_panels.empty(), gr.skip(), gr.skip(), *NOTHING]
        options = chosen(Options(), *values)

        def work(tell: Tell) -> Session | Note:
            return desk.look(key, photo, options, branch, tell)

        for told in watched(work, lambda: desk.stop(key)):
            if isinstance(told, Stage):
                yield [field, page_panels.working(told), *blank, gr.update(interactive=True)]
            elif not isinstance(told, Session):
                answer = told.value
        rest = [*NOTHING, gr.update(interactive=False)]
        if isinstance(answer, Note):
            yield [field, page_panels.problem(answer), *after_refusal(key), *rest]
            return
        if answer.image.source.format not in SHOWN_BY_BROWSERS:
            field = gr.update(value=str(answer.before))
        seen = [page_panels.looked_at(answer, device), page_panels.empty(), page_panels.strip(answer)]
        yield [field, *seen, page_panels.drawing(answer), *rest]

    def press_restore(
        accepted: list[str], photo: str | None, branch: str, request: gr.Request, *values: Any
    ) -> Iterator[list[Any]]:
        key = key_of(request)
        session = desk.sessions.get(key)
        wanted = asked_for(session, branch) if photo else ()
        if missing := terms.missing(wanted, accepted):
            yield [page_panels.terms(missing), *[gr.skip()] * 9, gr.update(visible=True)]
            return
        options = chosen(session.options if session else Options(), *values)
        running = [gr.update(interactive=False), gr.update(interactive=bool(photo)), *NOTHING, gr.update(visible=False)]
        resting = [gr.update(interactive=True), gr.update(interactive=False)]

        def work(tell: Tell) -> Session | Note:
            return desk.restore(key, photo, options, tell, branch)

        for told in watched(work, lambda: desk.stop(key)):
            if isinstance(told, Stage):
                yield [page_panels.working(told), *[gr.skip()] * 3, *running]
            elif isinstance(told, Session):
                yield [gr.skip(), pair_of(told), page_panels.strip(told), gr.skip(), *running]
            elif isinstance(told.value, Session):
                done = told.value
                seen = [page_panels.finished(done), pair_of(done), page_panels.strip(done), page_panels.drawing(done)]
                yield [*seen, *resting, *NOTHING, gr.skip()]
                yield [gr.skip()] * 6 + [*finish(key), gr.skip()]
            else:
                yield [page_panels.problem(told.value), *after_refusal(key), *resting, *finish(key), gr.skip()]

    def asked_for(session: Session | None, branch: str) -> Sequence[str]:
        """Names of the weights that a press will use, as far as that is known."""
        if session is not None and session.branch == branch:
            return [face.branch for face in session.faces if face.branch]
        return [branch] if branch else desk.in_use

    def press_stop(request: gr.Request) -> None:
        desk.stop(key_of(request))

    def after_refusal(key: str) -> list[Any]:
        """Pair, faces and drawing: what there was before a stop, nothing after a photo that cannot be read. So does
        `finish`."""
        session = desk.sessions.get(key)
        if session is None:
            return [page_panels.empty(), "", page_panels.drawing(None)]
        pictures = pair_of(session) if session.result else page_panels.empty()
        return [pictures, page_panels.strip(session), page_panels.drawing(session)]

    def changed(
        key: str, work: Callable[[Tell], Session | Note], *, quiet: tuple[str, ...] = ()
    ) -> Iterator[list[Any]]:
        """What is shown while `work` changes the visitor's result, and then. quiet: codes that nobody needs to see."""
        yield [gr.skip()] * 5 + [gr.update(interactive=False)] + [gr.skip()] * 3
        for told in watched(work, lambda: desk.stop(key)):
            if isinstance(told, Stage):
                yield [page_panels.working(told), *[gr.skip()] * 3, gr.update(interactive=True), *[gr.skip()] * 4]
            elif not isinstance(told, Session):
                answer = told.value
        resting = gr.update(interactive=False)
        if isinstance(answer, Note):
            why = gr.skip() if answer.code in quiet else page_panels.problem(answer)
            yield [why, gr.skip(), gr.skip(), gr.skip(), resting, *finish(key)]
        elif answer.result is None:
            seen = [page_panels.looked_at(answer, device), gr.skip(), page_panels.strip(answer)]
            yield [*seen, page_panels.drawing(answer), resting, *[gr.skip()] * 4]
        else:
            seen = [page_panels.finished(answer), pair_of(answer), page_panels.strip(answer)]
            yield [*seen, page_panels.drawing(answer), resting, *[gr.skip()] * 4]
            yield [gr.skip()] * 5 + finish(key)

    def on_live(told: dict[str, Any], request: gr.Request) -> Iterator[list[Any]]:
        """told: the newest `options` (of `Choices.values`) and `faces` (ticked, own strengths), where they changed."""

        def change(options: Options) -> Options:
            if values := told.get("options"):
                options = chosen(options, *values)
            if strip := told.get("faces"):
                ticked = tuple(int(number) for number in strip["ticked"])
                own = tuple((int(number), float(value)) for number, value in strip["own"].items())
                options = replace(options, faces=ticked, strengths=own)
            return options

        key = key_of(request)
        # Before there is a photo the slider only sets what comes.
        yield from changed(key, lambda tell: desk.blend(key, change, tell), quiet=("S02",))

    def on_draw(event: gr.EventData, request: gr.Request) -> Iterator[list[Any]]:
        key, box = key_of(request), tuple(float(side) for side in event.box)
        yield from changed(key, lambda tell: desk.draw(key, box, tell))  # type: ignore[arg-type]

    def on_erase(event: gr.EventData, request: gr.Request) -> Iterator[list[Any]]:
        key, number = key_of(request), int(event.number)
        yield from changed(key, lambda tell: desk.erase(key, number))

    def finish(key: str) -> list[Any]:
        """The files to download, the report and the command line."""
        session = desk.sessions.get(key)
        path = desk.finished_file(key)
        if session is None or session.result is None or not isinstance(path, Path):
            return NOTHING
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
        reset = ["", *AT_FIRST[1:]]
        if isinstance(answer, Note):
            shown = [page_panels.problem(answer), page_panels.empty(), "", page_panels.drawing(None)]
            return [None, *shown, *reset, *NOTHING]
        # Not the example itself: Gradio deletes in time what has been in a field.
        field = str(answer.before)
        strip, drawn = page_panels.strip(answer), page_panels.drawing(answer)
        if answer.result is None:
            told = page_panels.looked_at(answer, device)
            return [field, told, page_panels.empty(), strip, drawn, *reset, *NOTHING]
        return [field, page_panels.finished(answer), pair_of(answer), strip, drawn, *reset, *finish(key)]

    def on_installed(lang: Lang, branch: str, background: str) -> list[Any]:
        return installed(desk, lang, branch, background)

    def busy(name: str) -> str:
        return f"(...all) => {{ {LIVE}.begin('{name}'); return all }}"

    def rested(event: Any, name: str) -> None:
        event.then(None, None, None, js=f"() => {{ {LIVE}.done('{name}'); return [] }}", **PRIVATE)

    inputs = [photo, choices.branch, *choices.values]
    rested(
        gr.on(
            [photo.input, photo.clear, *(widget.input for widget in choices.heavy)],
            on_photo,
            inputs,
            [photo, status, pair, faces, drawing, *finished, stop],
            trigger_mode="always_last",
            concurrency_limit=4,
            js=busy("photo"),
            **PRIVATE,
        ),
        "photo",
    )
    pressed = [status, pair, faces, drawing, run, stop, *finished, terms.box]
    with_terms: dict[str, Any] = {"js": terms.told(f"{LIVE}.begin('run');"), "concurrency_limit": AT_ONCE, **PRIVATE}
    rested(run.click(press_restore, [terms.none, *inputs], pressed, **with_terms), "run")
    stop.click(press_stop, None, None, queue=False, **PRIVATE)
    # Moving the slider is a wish for that strength. In the browser, so that the server hears of both at once.
    strength.input(None, None, auto, js="() => false", **PRIVATE)
    light = [widget.input for widget in choices.light]
    gr.on([strength.input, *light], None, None, download, js=BLOCK, **PRIVATE)
    live.hold(None, None, download, js=BLOCK, **PRIVATE)
    strength.input(None, choices.values, None, js=TELL_STRENGTH, **PRIVATE)
    gr.on(light, None, choices.values, None, js=TELL_OPTIONS, **PRIVATE)
    adjusted = [status, pair, faces, drawing, stop, *finished]
    once: dict[str, Any] = {"concurrency_limit": AT_ONCE, **PRIVATE}
    rested(live.input(on_live, terms.none, adjusted, js=f"() => {LIVE}.take()", **once), "live")
    rested(drawing.drawn(on_draw, None, adjusted, **once), "draw")
    rested(faces.erase(on_erase, None, adjusted, **once), "draw")
    pair.full_size(on_full_size, None, pair, concurrency_limit=2, **PRIVATE)
    if samples:
        back = [choices.branch, *choices.values[1:]]
        shown.try_one(on_sample, None, [photo, status, pair, faces, drawing, *back, *finished], **PRIVATE)
    fresh = {"inputs": [around.lang, choices.branch, choices.background], "queue": False, **PRIVATE}
    outputs = [choices.branch, choices.background]
    gr.on([around.lang.change, around.tab.select], on_installed, outputs=outputs, **fresh)
    first = f"(_, ...all) => [({PICK_LANGUAGE})(), ...all]"
    blocks.load(on_installed, outputs=outputs, js=first, **fresh)


def pair_of(session: Session) -> str:
    """Before and after of a session that has an after."""
    assert session.after is not None
    longest = max(session.image.width, session.image.height) * session.options.scale
    return page_panels.compare(session.before, session.after, full=longest <= LONGEST)


def key_of(request: gr.Request) -> str:
    """The visitor's key; Gradio makes it anew for every opened page."""
    return str(request.session_hash)


def script(name: str) -> str:
    """JavaScript that comes with the package."""
    return (ASSETS / name).read_text(encoding="utf-8")
