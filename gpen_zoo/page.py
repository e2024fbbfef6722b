"""The web page: widgets and wiring. What happens on a click is in desk.py; here paths go in and widgets are updated.

Gradio 6 facts that shaped it: `gr.I18n` covers static labels only, so whatever is computed is written in the language
the visitor has chosen, which every handler is told; a language switch happens in the browser and keeps all work.
"""

from __future__ import annotations

import html
import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import gradio as gr

from gpen_zoo.desk import Desk
from gpen_zoo.examples import make_examples
from gpen_zoo.hints import CATALOGUE, Lang, Note, say
from gpen_zoo.manifest import Entry
from gpen_zoo.restore import load
from gpen_zoo.sessions import Session, Sessions
from gpen_zoo.types import Options, RestoreResult, Verdict
from gpen_zoo.zoo import Zoo

LANGS: tuple[Lang, ...] = ("zh", "en")
KEEP_SECONDS = 7200  # of uploads and of files made for API callers; `ui.privacy` says so
WAITING = 20  # visitors in the queue before the next is asked to come back later
FONTS = ["system-ui", "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", "sans-serif"]
THEME = gr.themes.Soft(primary_hue="teal", font=FONTS, font_mono=["ui-monospace", "monospace"])
CSS = """
.gradio-container {max-width: 1240px; width: 100% !important; margin: 0 auto !important}
#head {align-items: flex-start; flex-wrap: nowrap}
#language {flex: none; width: auto; margin-top: .6em}
#language .wrap {flex-wrap: nowrap}
#language label {white-space: nowrap}
#pairs .grid-wrap {margin-top: 2.4em; min-height: 0 !important; max-height: 28em}
#pairs button.thumbnail-item {aspect-ratio: 2 / 1}
footer .divider {display: none}
#faces .wrap {flex-direction: column; flex-wrap: nowrap; align-items: stretch; max-height: 19em; overflow-y: auto}
#faces label, #faces label.selected {white-space: normal; background: none; color: inherit; border: 0;
  box-shadow: none; padding: .2em .3em}
@media (max-width: 640px) {#head {flex-wrap: wrap} #head > * {min-width: 100% !important}}
#status ul {margin: .4em 0 0 1.1em; padding: 0; list-style: disc}
#status .code {opacity: .65; font-size: .85em; margin-left: .4em}
#status .problem {border-left: 4px solid #d33; padding: .5em .8em; font-weight: 600}
.toast-title {font-size: 0}
"""
# The visitor's own choice first, then ?lang=, then the browser.
PICK_LANGUAGE = """() => /^zh/i.test(localStorage.getItem('gpen_zoo_lang')
  || new URLSearchParams(location.search).get('lang') || navigator.language) ? 'zh' : 'en'"""


class Page(NamedTuple):
    """The page, and what `launch` has to be told with it."""

    blocks: gr.Blocks
    launch_options: dict[str, Any]


class Labels:
    """Static texts of the page in both languages, switched in the browser without asking the server."""

    def __init__(self, own: dict[str, tuple[str, str]]) -> None:
        texts = {k: v for k, v in CATALOGUE.items() if k.startswith("ui.")} | own
        # svelte-i18n reads a dot as a path into nested tables.
        self._texts = {k.replace(".", "_"): dict(zip(LANGS, v, strict=True)) for k, v in texts.items()}
        self.i18n = gr.I18n(**{lang: {k: v[lang] for k, v in self._texts.items()} for lang in LANGS})
        self._specs: list[tuple[Any, dict[str, str]]] = []

    def __call__(self, key: str) -> Any:
        """The text as Gradio wants it at construction."""
        return self.i18n(key.replace(".", "_"))

    def on(self, component: Any, **properties: str) -> Any:
        """Remember which property of a component carries which text; returns the component."""
        self._specs.append((component, {p: k.replace(".", "_") for p, k in properties.items()}))
        return component

    @property
    def components(self) -> list[Any]:
        return [component for component, _ in self._specs]

    def switch(self) -> str:
        """JavaScript: language → an update for each of `components`; remembers the choice."""
        updates = {
            lang: [{p: self._texts[k][lang] for p, k in s.items()} | {"__type__": "update"} for _, s in self._specs]
            for lang in LANGS
        }
        table = json.dumps(updates, ensure_ascii=False).replace("</", "<\\/")
        remember = (
            "localStorage.setItem('gpen_zoo_lang', l); document.documentElement.lang = l == 'zh' ? 'zh-CN' : 'en'"
        )
        return f"l => {{{remember}; return ({table})[l]}}"


def build(zoo: Zoo | None = None) -> Page:
    """The page on the weights of `zoo`. Raises WeightMissing or WeightCorrupt when no restorer can be had."""
    zoo = zoo or Zoo()
    desk = Desk(load(zoo=zoo), Sessions())
    entries = [zoo.entry(branch.name) for branch in desk.restorer.branches]
    labels = Labels(
        {
            "head": both(lambda lang: f"<h1>{say('ui.title', lang)}</h1><p>{say('ui.lead', lang)}</p>"),
            "weights": both(lambda lang: weights_html(entries, lang)),
            "idle": both(lambda lang: f"<p>{say('ui.idle', lang)}</p>"),
        }
    )
    on, text = labels.on, labels
    with gr.Blocks(title="GPEN Zoo", analytics_enabled=False, delete_cache=(600, KEEP_SECONDS)) as blocks:
        with gr.Row(elem_id="head"):
            on(gr.HTML(text("head")), value="head")
            choices = [("中文", "zh"), ("English", "en")]
            lang = gr.Radio(
                choices, value="en", show_label=False, container=False, elem_id="language", scale=0, min_width=190
            )
        with gr.Row():
            with gr.Column(scale=2, min_width=300):
                photo = on(
                    gr.Image(
                        label=text("ui.photo"),
                        type="filepath",
                        image_mode=None,
                        sources=["upload", "clipboard", "webcam"],
                        elem_id="photo-input",
                        height=300,
                    ),
                    label="ui.photo",
                )
                # Gradio would open the file with Pillow first and fail without a word on anything it cannot read;
                # our decoder says what is wrong, so it gets the uploaded file itself.
                photo.preprocess = lambda payload: payload.path if payload else None
                run = on(gr.Button(text("ui.restore"), variant="primary", elem_id="restore-button"), value="ui.restore")
                aligned = on(
                    gr.Checkbox(label=text("ui.aligned"), info=text("ui.aligned_info"), elem_id="aligned"),
                    label="ui.aligned",
                    info="ui.aligned_info",
                )
                samples = make_examples(Path(tempfile.mkdtemp(prefix="gpen-zoo-examples-")))
                if samples:
                    shown = gr.Examples([[str(p)] for p in samples], [photo], label=text("ui.examples"))
                    on(shown.dataset, label="ui.examples")
            with gr.Column(scale=3, min_width=320):
                slider = on(
                    gr.ImageSlider(label=text("ui.slider"), type="filepath", max_height=640, elem_id="result-slider"),
                    label="ui.slider",
                )
                strength = on(
                    gr.Slider(
                        0,
                        1,
                        value=1,
                        step=0.05,
                        label=text("ui.strength"),
                        info=text("ui.strength_info"),
                        elem_id="strength",
                    ),
                    label="ui.strength",
                    info="ui.strength_info",
                )
                status = gr.HTML(text("idle"), elem_id="status")
                download = on(
                    gr.DownloadButton(text("ui.download"), interactive=False, elem_id="download"),
                    label="ui.download",
                )
                faces = on(
                    gr.CheckboxGroup(label=text("ui.faces"), interactive=True, visible=False, elem_id="faces"),
                    label="ui.faces",
                )
                pairs = on(
                    gr.Gallery(
                        label=text("ui.pairs"),
                        columns=3,
                        height="auto",
                        object_fit="contain",
                        visible=False,
                        preview=False,
                        elem_id="pairs",
                    ),
                    label="ui.pairs",
                )
                with on(gr.Accordion(text("ui.report"), open=False), label="ui.report"):
                    report = gr.JSON(show_label=False, elem_id="report")
        on(gr.HTML(text("weights"), elem_id="weights"), value="weights")
        on(gr.HTML(text("ui.privacy"), elem_id="privacy"), value="ui.privacy")

        def press_restore(
            photo: str | None,
            strength: float,
            aligned: bool,
            lang: Lang,
            request: gr.Request,
            progress: gr.Progress = gr.Progress(),  # noqa: B008 - Gradio finds it by this default
        ) -> list[Any]:
            def tell(stage: str, done: int, total: int) -> None:
                progress((done, max(total, 1)), desc=say(f"ui.stage_{stage}", lang, done=done, total=total))

            answer = desk.restore(key_of(request), photo, Options(strength=strength, aligned=aligned), tell)
            if isinstance(answer, Note):
                return [None, problem_html(answer, lang), *([gr.update(visible=False)] * 2)]
            return [
                slides(answer),
                status_html(answer.result, lang),
                face_ticks(answer.result, lang),
                face_pairs(answer),
            ]

        def reblend(strength: float, ticked: list[int], lang: Lang, request: gr.Request) -> list[Any]:
            key = key_of(request)
            session = desk.sessions.get(key)
            if session is None:
                return [gr.skip()] * 3  # nothing restored yet: the slider only sets what comes
            aligned = session.result.aligned
            answer = desk.blend(key, Options(strength=strength, faces=tuple(ticked), aligned=aligned))
            if isinstance(answer, Note):
                return [gr.skip(), problem_html(answer, lang), gr.skip()]
            choices = face_choices(answer.result, lang)
            return [slides(answer), status_html(answer.result, lang), gr.update(choices=choices)]

        def finish(request: gr.Request) -> list[Any]:
            key = key_of(request)
            session = desk.sessions.get(key)
            path = desk.finished_file(key) if session else None
            if session is None or not isinstance(path, Path):
                return [gr.update(value=None, interactive=False), None]
            return [gr.update(value=str(path), interactive=True), session.result.as_dict()]

        def retell(lang: Lang, request: gr.Request) -> list[Any]:
            session = desk.sessions.get(key_of(request))
            if session is None:
                return [f"<p>{say('ui.idle', lang)}</p>", gr.skip()]
            return [status_html(session.result, lang), gr.update(choices=face_choices(session.result, lang))]

        def leave(request: gr.Request) -> None:
            desk.sessions.drop(key_of(request))

        def serve(photo: str | None, options: dict[str, Any] | None) -> tuple[str, dict[str, Any]]:
            """Restore the faces of a photo.

            photo: any picture file. options: JSON object with any of strength (0-1), aligned (bool), faces (list of
            numbers from 1), strengths (number → strength); may be empty. Returns the restored file and the report.
            """
            answer = desk.serve(photo, options)
            if isinstance(answer, Note):
                message = f"{answer.code}: {say(answer, 'en')} / {say(answer, 'zh')}"
                raise gr.Error(html.escape(message, quote=False), print_exception=False)
            return str(answer[0]), answer[1]

        private: dict[str, Any] = {"api_visibility": "private"}
        done = run.click(
            press_restore,
            [photo, strength, aligned, lang],
            [slider, status, faces, pairs],
            concurrency_id="engine",
            concurrency_limit=1,
            show_progress_on=[slider],
            scroll_to_output=True,
            **private,
        )
        done.then(finish, None, [download, report], show_progress="hidden", **private)
        changed = gr.on(
            [strength.input, faces.input],
            reblend,
            [strength, faces, lang],
            [slider, status, faces],
            trigger_mode="always_last",
            show_progress="hidden",
            concurrency_limit=2,
            **private,
        )
        changed.then(finish, None, [download, report], show_progress="hidden", concurrency_limit=2, **private)
        gr.on(
            [run.click, strength.input, faces.input],
            lambda: gr.update(interactive=False),
            None,
            download,
            queue=False,
            show_progress="hidden",
            **private,
        )
        lang.change(None, lang, labels.components, js=labels.switch(), **private)
        lang.change(retell, lang, [status, faces], show_progress="hidden", queue=False, **private)
        blocks.load(None, None, lang, js=PICK_LANGUAGE, **private)
        blocks.unload(leave)

        call = [gr.File(visible=False, type="filepath"), gr.JSON(value={}, visible=False)]
        reply = [gr.File(label="restored", visible=False), gr.JSON(label="report", visible=False)]
        gr.Button(visible=False).click(
            serve, call, reply, api_name="restore", concurrency_id="engine", concurrency_limit=1
        )
    blocks.queue(max_size=WAITING, api_open=False)
    options = {
        "i18n": labels.i18n,
        "theme": THEME,
        "css": CSS,
        "show_error": False,
        "run_history": False,
        "enable_monitoring": False,
        "footer_links": ["api"],
    }
    return Page(blocks, options)


def key_of(request: gr.Request) -> str:
    """The visitor's key; Gradio makes it anew for every opened page."""
    return str(request.session_hash)


def both(write: Callable[[Lang], str]) -> tuple[str, str]:
    """The same text in both languages, in the catalogue's order."""
    return write("zh"), write("en")


def slides(session: Session) -> tuple[str, str]:
    """Before and after for the slider; both have the same size."""
    return str(session.before), str(session.after)


def face_choices(result: RestoreResult, lang: Lang) -> list[tuple[str, int]]:
    """One line a face: its number, then verdict and reason in a sentence."""
    return [(say("ui.face", lang, index=f.index, reason=say(f.note, lang)), f.index) for f in result.faces]


def face_ticks(result: RestoreResult, lang: Lang) -> dict[str, Any]:
    """The list of faces, all of them ticked that were restored."""
    ticked = [face.index for face in result.faces if face.verdict is Verdict.RESTORED]
    update: dict[str, Any] = gr.update(
        choices=face_choices(result, lang), value=ticked, visible=bool(result.faces), interactive=True
    )
    return update


def face_pairs(session: Session) -> dict[str, Any]:
    """The gallery of faces before and after."""
    pairs = [(str(path), str(number)) for number, path in session.pairs]
    update: dict[str, Any] = gr.update(value=pairs, visible=bool(pairs))
    return update


def status_html(result: RestoreResult, lang: Lang) -> str:
    """What was done in a line, then every notice with its code."""
    restored = sum(1 for face in result.faces if face.verdict is Verdict.RESTORED)
    seconds = f"{sum(ms for _, ms in result.timings) / 1000:.1f}"
    summary = say("ui.summary", lang, found=len(result.faces), restored=restored, seconds=seconds)
    notices = "".join(f"<li>{note_html(n, lang)}</li>" for n in result.notes)
    return f'<p>{summary}</p><ul class="notices">{notices}</ul>'


def problem_html(note: Note, lang: Lang) -> str:
    """Why there is no result, and what to do."""
    return f'<div class="problem" role="alert">{note_html(note, lang)}</div>'


def note_html(note: Note, lang: Lang) -> str:
    """A sentence with its code; file names in it are escaped."""
    return f'{html.escape(say(note, lang))}<span class="code">{note.code}</span>'


def weights_html(entries: Sequence[Entry], lang: Lang) -> str:
    """The weights in use with size and licence."""
    lines = [f"<b>{say('ui.weights', lang)}</b>"]
    for entry in entries:
        size = say("ui.weight", lang, name=entry.name, size=entry.branch, mb=f"{(entry.bytes or 0) / 1e6:.0f}")
        licence = say("ui.licence", lang, text=entry.licence.zh if lang == "zh" else entry.licence.en)
        lines.append(f"<p>{html.escape(size)}<br><small>{html.escape(licence)}</small></p>")
    return "".join(lines)
