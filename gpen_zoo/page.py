"""The web page: its frame, the language, and how it is launched. Each tab has a module of its own.

Gradio 6 facts that shaped it: `gr.I18n` covers static labels only, so everything that is computed is HTML in both
languages, of which the style sheet shows one; a language switch happens in the browser and keeps all work.
"""

from __future__ import annotations

import os
import threading
from typing import Any, NamedTuple

import gradio as gr
from starlette.middleware import Middleware

from gpen_zoo import preload, zerogpu
from gpen_zoo.batch_desk import BatchDesk
from gpen_zoo.desk import Desk
from gpen_zoo.errors import guarded
from gpen_zoo.examples import make_examples
from gpen_zoo.isolated import Readers
from gpen_zoo.page_api import add_api
from gpen_zoo.page_batch import batch_tab
from gpen_zoo.page_help import help_tab
from gpen_zoo.page_labels import PICK_LANGUAGE, Labels, plain, words
from gpen_zoo.page_restore import ASSETS, PRIVATE, Surroundings, key_of, restore_tab, script
from gpen_zoo.page_tasks import tasks_tab
from gpen_zoo.page_weights import state as weights_state
from gpen_zoo.page_weights import weights_tab
from gpen_zoo.restore import Restorer, load
from gpen_zoo.same_origin import SameOrigin
from gpen_zoo.sessions import Session, Sessions
from gpen_zoo.tasks_desk import TasksDesk
from gpen_zoo.weights_desk import WeightsDesk
from gpen_zoo.zoo import Zoo

KEEP_SECONDS = 7200  # of uploads and of files made for API callers; `ui.privacy` says so
READ_SECONDS = 120.0  # for a photo to be decoded; a decoder that hangs is ended then
WAITING = 60  # events in Gradio's own queue before it refuses more
UPLOAD_LIMIT = "1gb"  # weights are imported through the page too
PUBLIC_UPLOAD_LIMIT = "250mb"
FONTS = ["system-ui", "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", "sans-serif"]
SUBDUED = {
    "body_text_color_subdued": "*neutral_600",
    "body_text_color_subdued_dark": "*neutral_300",
    "block_info_text_color": "*neutral_600",
    "block_info_text_color_dark": "*neutral_300",
}
# Darker than the theme's own, whose white on teal and grey on white are too faint to read for many (WCAG AA).
STRONGER = {
    "button_primary_background_fill": "*primary_700",
    "button_primary_background_fill_hover": "*primary_600",
    "button_primary_background_fill_dark": "*primary_700",
    "button_primary_background_fill_hover_dark": "*primary_600",
    "block_label_text_color": "*primary_800",
    "block_title_text_color": "*primary_800",
    "block_label_background_fill_dark": "*primary_700",
    "block_title_background_fill_dark": "*primary_700",
    "checkbox_label_background_fill_selected": "*primary_700",
    "checkbox_label_background_fill_selected_dark": "*primary_700",
    "checkbox_background_color_selected": "*primary_700",
    "checkbox_background_color_selected_dark": "*primary_700",
    "checkbox_border_color": "*neutral_500",
    "checkbox_border_color_dark": "*neutral_400",
    "slider_color": "*primary_600",
}
# The theme has white blocks without a border on a white page.
OUTLINED = {
    "body_background_fill": "*neutral_50",
    "block_border_width": "1px",
    "block_border_width_dark": "0px",
    "input_border_color": "*neutral_300",
}
THEME = gr.themes.Soft(primary_hue="teal", font=FONTS, font_mono=["ui-monospace", "monospace"]).set(
    **SUBDUED, **STRONGER, **OUTLINED
)


class Page(NamedTuple):
    """The page, what `launch` has to be told with it, and what serves its visitors."""

    blocks: gr.Blocks
    launch_options: dict[str, Any]
    desk: Desk


def build(zoo: Zoo | None = None) -> Page:
    """The page on the weights of `zoo`. Raises WeightMissing or WeightCorrupt when no restorer can be had."""
    zoo = zoo or Zoo()
    sessions: Sessions[Session] = Sessions()
    readers = Readers()
    desk = Desk(
        restorer_of(zoo),
        sessions,
        faces_shown=not zerogpu.present(),
        read=lambda photo, stop: readers.read(photo, seconds=READ_SECONDS, stopped=stop),
    )
    batches, tasks = BatchDesk(desk), TasksDesk(desk, zoo)
    weights = WeightsDesk(
        zoo, desk, locked=locked(), token=os.environ.get("GPEN_ZOO_ADMIN_TOKEN"), restorer_of=restorer_of
    )
    samples = tuple(make_examples(sessions.new_folder()))
    labels = Labels()
    with gr.Blocks(title="GPEN Zoo", analytics_enabled=False, delete_cache=(600, KEEP_SECONDS)) as blocks:
        with gr.Row(elem_id="head"):
            plain(f"<h1>{words('ui.title')}</h1><p>{words('ui.lead')}</p>")
            choices = [("中文", "zh"), ("English", "en")]
            lang = gr.Radio(
                choices, value="en", show_label=False, container=False, elem_id="language", scale=0, min_width=190
            )
        with gr.Tabs(elem_id="tabs") as tabs:
            with labels(gr.Tab, label="ui.tab_restore", id="restore") as tab:
                around = Surroundings(
                    device=device_name(), samples=samples, lang=lang, tab=tab, restricted=weights.restricted
                )
                restore_tab(desk, labels, around, blocks)
            with labels(gr.Tab, label="ui.tab_batch", id="batch"):
                batch_tab(batches, labels, weights.restricted)
            with labels(gr.Tab, label="ui.tab_tasks", id="tasks") as tab:
                tasks_tab(tasks, labels, tab, tabs, weights.restricted)
            with labels(gr.Tab, label="ui.tab_weights", id="weights"):
                weights_view = weights_tab(weights, lang, labels)
            with labels(gr.Tab, label="ui.tab_help", id="help") as tab:
                help_tab(zoo, tab)
        plain(f'<p class="quiet">{words("ui.privacy")}</p>', elem_id="privacy", js_on_load=script("fields.js"))
        add_api(desk, batches, zoo)
        lang.change(None, lang, labels.components, js=labels.switch(), **PRIVATE)
        blocks.load(None, None, lang, js=PICK_LANGUAGE, **PRIVATE)

        blocks.load(lambda: weights_state(weights, zoo.entries[0].name), None, weights_view, **PRIVATE)

        def leave(request: gr.Request) -> None:
            desk.leave(key_of(request))
            batches.leave(key_of(request))
            tasks.leave(key_of(request))
            weights.stop(key_of(request))

        blocks.unload(leave)
    blocks.queue(max_size=WAITING, api_open=False)

    def prepare() -> None:
        guarded(readers.start)  # a photo that comes first would wait for it
        preload.fetch_wanted(zoo, weights.use)
        if not zerogpu.present():  # no card outside of a visitor's request
            desk.prepare_samples(samples)

    threading.Thread(target=prepare, daemon=True).start()
    return Page(blocks, launch_options(labels), desk)


def launch_options(labels: Labels) -> dict[str, Any]:
    """Keyword arguments for `Blocks.launch`; those that `gr.mount_gradio_app` knows hold for it too."""
    options = {
        "i18n": labels.i18n,
        "theme": THEME,
        "css": (ASSETS / "page.css").read_text(encoding="utf-8"),
        "show_error": False,
        "run_history": False,
        "enable_monitoring": False,
        "footer_links": ["api"],
        "max_file_size": os.environ.get("GPEN_ZOO_MAX_UPLOAD") or (PUBLIC_UPLOAD_LIMIT if locked() else UPLOAD_LIMIT),
        "app_kwargs": {"middleware": [Middleware(SameOrigin)]},
    }
    return {**options, "auth": people} if (people := allowed_people()) else options


def allowed_people() -> list[tuple[str, str]]:
    """Names and passwords in `GPEN_ZOO_AUTH`, as `name:password,name:password`; empty when everybody may come in."""
    pairs = (pair.partition(":") for pair in os.environ.get("GPEN_ZOO_AUTH", "").split(",") if pair.strip())
    return [(name.strip(), password) for name, _, password in pairs]


def restorer_of(zoo: Zoo) -> Restorer:
    """What restores photos here."""
    return zerogpu.borrowed(load(zoo=zoo))


def locked() -> bool:
    """Whether changing weights needs the admin token: on a Space, and wherever one is set."""
    return preload.on_space() or bool(os.environ.get("GPEN_ZOO_ADMIN_TOKEN"))


def device_name() -> str:
    """The device as estimates name it."""
    from gpen_zoo.engine import pick_device

    return pick_device("auto").upper()
