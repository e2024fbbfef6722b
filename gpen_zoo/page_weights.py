"""The third tab: every known weight, its terms, where it stands here, and how to get, check, drop or bring it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gradio as gr

from gpen_zoo import page_weights_panels as panels
from gpen_zoo.fetch import Progress
from gpen_zoo.hints import Lang, Note, say
from gpen_zoo.obtain import Wish
from gpen_zoo.page_labels import Labels, plain
from gpen_zoo.page_panels import panel, problem
from gpen_zoo.page_restore import PRIVATE, key_of, script
from gpen_zoo.waiting import watched
from gpen_zoo.weights_desk import WeightsDesk

GOOD = ("W35", "S23", "S24", "S25", "W40")
SURE = "confirm(document.documentElement.dataset.gz == 'zh' ? {zh!r} : {en!r})"


def weights_tab(desk: WeightsDesk, lang: gr.Radio, labels: Labels) -> list[Any]:
    """Widgets and wiring of the tab, inside an open `gr.Tab`; returns what `state` fills, anew for each visitor."""
    names = [entry.name for entry in desk.zoo.entries]
    with gr.Row():
        with gr.Column(scale=3, min_width=320):
            table = plain(panels.table(desk), elem_id="weights", js_on_load=script("weights.js"))
        with gr.Column(scale=2, min_width=300):
            chosen = labels(gr.Dropdown, label="ui.w_chosen", choices=names, value=names[0], elem_id="weight-chosen")
            card = plain(panels.card(desk, names[0]), elem_id="weight-card")
            token = labels(
                gr.Textbox,
                label="ui.w_token",
                info="ui.w_token_info",
                type="password",
                visible=desk.locked,
                elem_id="weight-token",
            )
            consent = labels(
                gr.Checkbox,
                label="ui.w_consent",
                visible=desk.wants_consent(desk.zoo.entry(names[0])),
                elem_id="weight-consent",
            )
            with gr.Row(elem_id="weight-buttons"):
                get = labels(
                    gr.Button, value="ui.w_download", variant="primary", elem_id="weight-download", min_width=80
                )
                stop = labels(
                    gr.Button,
                    value="ui.stop",
                    variant="stop",
                    interactive=False,
                    elem_id="weight-stop",
                    min_width=80,
                )
                verify = labels(gr.Button, value="ui.w_verify", elem_id="weight-verify", min_width=80)
                remove = labels(gr.Button, value="ui.w_remove", elem_id="weight-remove", min_width=80)
            status = plain("", elem_id="weight-status")
            with labels(gr.Accordion, label="ui.more", open=False, elem_id="weight-more"):
                source = labels(
                    gr.Dropdown,
                    label="ui.w_source",
                    choices=[("ui.w_any_source", "")],
                    value="",
                    elem_id="weight-source",
                )
                mirror = labels(gr.Textbox, label="ui.w_mirror", info="ui.w_mirror_info", elem_id="weight-mirror")
                unpinned = labels(gr.Checkbox, label="ui.w_unpinned", elem_id="weight-unpinned")
            with labels(gr.Accordion, label="ui.w_import", open=False, elem_id="weight-import"):
                file = labels(gr.File, label="ui.w_import_file", type="filepath", height=120, elem_id="import-file")
                meant = labels(
                    gr.Dropdown,
                    label="ui.w_import_as",
                    choices=[("ui.w_by_digest", ""), *((name, name) for name in names)],
                    value="",
                    elem_id="import-as",
                )
                import_consent = labels(gr.Checkbox, label="ui.w_consent", elem_id="import-consent")
                import_unpinned = labels(gr.Checkbox, label="ui.w_unpinned", elem_id="import-unpinned")
                bring = labels(gr.Button, value="ui.w_import_run", elem_id="import-run")
                import_status = plain("", elem_id="import-status")
    with labels(gr.Accordion, label="ui.w_plans", open=False, elem_id="plans-box"):
        plain(panels.plans(desk), elem_id="plans")

    def on_chosen(name: str, lang: Lang, request: gr.Request) -> list[Any]:
        entry = desk.zoo.entry(name)
        first = [(say("ui.w_any_source", lang), "")]
        others = [(str(where), str(number)) for number, where in enumerate(entry.sources, 1)]
        fresh = gr.update(visible=desk.wants_consent(entry), value=False)
        table, card, _, *buttons = state(desk, name, key_of(request))
        return [table, card, fresh, *buttons, gr.update(choices=first + others, value=""), ""]

    def on_table(event: gr.EventData) -> Any:
        return gr.update(value=event.name)

    def press_download(
        name: str, token: str | None, consent: bool, source: str, mirror: str, unpinned: bool, request: gr.Request
    ) -> Iterator[list[Any]]:
        key = key_of(request)
        wish = Wish(source=source, endpoint=(mirror or "").strip() or None, accept_unpinned=unpinned)
        running = [*[gr.skip()] * 3, gr.update(interactive=False), *[gr.skip()] * 2, gr.update(interactive=True)]

        def work(tell: Any) -> Note:
            return desk.download(key, name, token=token, consent=consent, wish=wish, tell=tell)

        yield [panels.asking(), *running]
        for news in watched(work, lambda: desk.stop(key)):
            if isinstance(news, Progress):
                yield [panels.progress(news), *running]
            else:
                yield [told(news.value), *state(desk, name), gr.update(interactive=False)]

    def press_stop(request: gr.Request) -> None:
        desk.stop(key_of(request))

    def press_verify(name: str, token: str | None, request: gr.Request) -> list[Any]:
        return [told(desk.verify(name, token=token)), *state(desk, name, key_of(request))]

    def press_remove(name: str, token: str | None, sure: bool, request: gr.Request) -> list[Any]:
        answer = told(desk.remove(name, token=token)) if sure else gr.skip()
        return [answer, *state(desk, name, key_of(request))]

    def on_file(path: str | None, token: str | None) -> Any:
        return told(desk.inspect(path, token=token)) if path else ""

    def press_import(
        path: str | None, meant: str, token: str | None, consent: bool, unpinned: bool, name: str, request: gr.Request
    ) -> list[Any]:
        answer = desk.adopt(path, name=meant, token=token, consent=consent, accept_unpinned=unpinned)
        return [told(answer), *state(desk, name, key_of(request))]

    view = [table, card, consent, get, verify, remove]
    chosen.change(on_chosen, [chosen, lang], [*view, source, status], concurrency_limit=4, **PRIVATE)
    table.choose(on_table, None, chosen, trigger_mode="multiple", queue=False, **PRIVATE)
    get.click(
        press_download,
        [chosen, token, consent, source, mirror, unpinned],
        [status, *view, stop],
        concurrency_limit=3,
        **PRIVATE,
    )
    stop.click(press_stop, None, None, queue=False, **PRIVATE)
    verify.click(press_verify, [chosen, token], [status, *view], **PRIVATE)
    sure = SURE.format(zh=say("ui.w_remove_sure", "zh"), en=say("ui.w_remove_sure", "en"))
    remove.click(
        press_remove,
        [chosen, token, gr.Checkbox(visible=False)],
        [status, *view],
        js=f"(name, token, _) => [name, token, {sure}]",
        **PRIVATE,
    )
    gr.on([file.upload, file.clear], on_file, [file, token], import_status, **PRIVATE)
    bring.click(
        press_import,
        [file, meant, token, import_consent, import_unpinned, chosen],
        [import_status, *view],
        **PRIVATE,
    )
    return view


def state(desk: WeightsDesk, name: str, key: str = "") -> list[Any]:
    """Updates: the table, the card of a weight, the tick that accepts its terms, and the buttons that fetch, verify and
    remove it, each usable where it can do something. key: of a visitor who may be downloading just now."""
    entry = desk.zoo.entry(name)
    can = bool(entry.sources) and not desk.downloading(key), desk.zoo.present(entry), desk.removable(entry)
    consent = gr.update(visible=desk.wants_consent(entry))
    return [panels.table(desk, name), panels.card(desk, name), consent, *(gr.update(interactive=c) for c in can)]


def told(note: Note) -> str:
    """What came of it: good news or a problem."""
    return panel([], [note], kind="done") if note.code in GOOD else problem(note)
