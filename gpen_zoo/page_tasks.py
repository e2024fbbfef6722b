"""Tabs of GPEN's other tasks: colour a photo, fill something in, make a face from a label map.

Each is there whether its weights are or not; without them it says what they are and how to get them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import gradio as gr

from gpen_zoo.desk import Stage
from gpen_zoo.hints import Note
from gpen_zoo.page_labels import Labels, plain, words
from gpen_zoo.page_panels import cell, compare, duration, panel, problem, tag, terms, working
from gpen_zoo.page_photo import PhotoField
from gpen_zoo.page_restore import AT_ONCE, PRIVATE, SHOWN_BY_BROWSERS, key_of, script
from gpen_zoo.page_terms import Restricted, Terms
from gpen_zoo.task_networks import TASKS, Task
from gpen_zoo.tasks_desk import Picture, TasksDesk
from gpen_zoo.waiting import watched

AREAS = [("ui.area_whole", "whole"), ("ui.area_faces", "faces"), ("ui.area_both", "both")]
# What is to be filled has to be seen on a white dress too; the network is given white whatever the colour here.
BRUSH = "rgba(255, 0, 110, 0.75)"


def tasks_tab(desk: TasksDesk, labels: Labels, tab: gr.Tab, tabs: gr.Tabs, restricted: Restricted) -> None:
    """A tab for each task, inside the open `tab`, which is one of `tabs`: seven in a row do not fit on a phone.
    restricted: see page_terms.py."""
    made = []
    with gr.Tabs(elem_id="task-tabs"):
        for task in TASKS:
            with labels(gr.Tab, label=f"ui.tab_{task}", id=task):
                made.append(_Tab(desk, task, labels, tabs, restricted))
    # Weights may have come or gone since.
    tab.select(
        lambda: [update for one in made for update in one.state()],
        None,
        [part for one in made for part in one.parts],
        queue=False,
        **PRIVATE,
    )


class _Tab:
    """Widgets and wiring of one task, inside an open `gr.Tab`.

    parts: what depends on whether the weights are there; `state` is what they are then.
    """

    def __init__(self, desk: TasksDesk, task: Task, labels: Labels, tabs: gr.Tabs, restricted: Restricted) -> None:
        self._desk, self._task = desk, task
        plain(tag("p", words(f"ui.about_{task}")), elem_id=f"{task}-about")
        there = desk.available(task)
        with gr.Column(visible=not there, elem_id=f"{task}-missing") as missing:
            plain(_how_to_get(desk, task))
            to_weights = labels(gr.Button, value="ui.to_weights", elem_id=f"{task}-to-weights")
        with gr.Row(visible=there) as body:
            with gr.Column(scale=2, min_width=300):
                self._make_inputs(labels)
                self._terms = Terms(
                    labels, restricted, status=f"{task}-status", button=f"{task}-run", name=f"{task}-consent"
                )
            with gr.Column(scale=3, min_width=320):
                self._pair = plain(_empty(task), elem_id=f"{task}-pair", js_on_load=script("compare.js"))
                self._download = labels(
                    gr.DownloadButton, label="ui.task_download", interactive=False, elem_id=f"{task}-download"
                )
        self.parts = missing, body
        to_weights.click(lambda: gr.Tabs(selected="weights"), None, tabs, queue=False, **PRIVATE)
        self._wire()

    def state(self) -> list[Any]:
        """Updates of `parts`."""
        there = self._desk.available(self._task)
        return [gr.update(visible=not there), gr.update(visible=there)]

    def _make_inputs(self, labels: Labels) -> None:
        task = self._task
        photo: dict[str, Any] = {"type": "filepath", "image_mode": None, "sources": ["upload", "clipboard"]}
        self._photo = labels(
            PhotoField,
            label="ui.label_map" if task == "seg2face" else "ui.photo",
            placeholder="ui.drop_map" if task == "seg2face" else "ui.drop",
            elem_id=f"{task}-photo",
            elem_classes="photo-field",
            height=160 if task == "inpaint" else 240,  # that one is shown again, to be painted on
            **photo,
        )
        self._settings: list[Any] = []
        self._canvas: gr.ImageEditor | None = None
        if task == "inpaint":
            self._canvas = labels(
                gr.ImageEditor,
                label="ui.paint_here",
                type="filepath",
                format="png",
                sources=(),
                transforms=(),
                layers=False,
                brush=gr.Brush(default_size=24, colors=[BRUSH], color_mode="fixed"),
                eraser=gr.Eraser(default_size=24),
                canvas_size=(640, 480),
                buttons=[],
                visible=False,
                interactive=True,
                elem_id="inpaint-canvas",
            )
            with labels(gr.Accordion, label="ui.mask_instead", open=False, elem_id="inpaint-mask-box"):
                mask = labels(gr.File, label="ui.mask_file", type="filepath", height=110, elem_id="inpaint-mask")
            self._settings += [self._canvas, mask]
        if task == "colorize":
            self._settings.append(
                labels(
                    gr.Slider,
                    label="ui.colour_strength",
                    info="ui.colour_strength_info",
                    minimum=0,
                    maximum=1,
                    value=1,
                    step=0.05,
                    elem_id="colorize-strength",
                )
            )
        if task != "seg2face":
            self._settings.append(
                labels(
                    gr.Dropdown,
                    label="ui.area",
                    info="ui.area_info",
                    choices=AREAS,
                    value="whole",
                    elem_id=f"{task}-area",
                )
            )
        with gr.Row(elem_classes="task-buttons"):
            self._run = labels(
                gr.Button, value=f"ui.run_{task}", variant="primary", elem_id=f"{task}-run", scale=3, min_width=120
            )
            self._stop = labels(
                gr.Button,
                value="ui.stop",
                variant="stop",
                interactive=False,
                elem_id=f"{task}-stop",
                scale=1,
                min_width=90,
            )
        self._status = plain("", elem_id=f"{task}-status")

    def _wire(self) -> None:
        seen = [self._photo, self._status, self._pair, self._download]
        canvas = [] if self._canvas is None else [self._canvas]
        gr.on(
            [self._photo.input, self._photo.clear],
            self._on_photo,
            self._photo,
            [*seen, *canvas],
            trigger_mode="always_last",
            concurrency_limit=2,
            **PRIVATE,
        )
        self._run.click(
            self._press_run,
            [self._terms.none, self._photo, *self._settings],
            [self._status, self._pair, self._download, self._run, self._stop, self._terms.box],
            js=self._terms.told(),
            concurrency_limit=AT_ONCE,
            **PRIVATE,
        )
        self._stop.click(self._press_stop, None, None, queue=False, **PRIVATE)
        self._pair.full_size(self._on_full_size, None, self._pair, concurrency_limit=2, **PRIVATE)

    def _on_photo(self, photo: str | None, request: gr.Request) -> Iterator[list[Any]]:
        task, key = self._task, key_of(request)
        blank = [_empty(task), gr.update(value=None, interactive=False)]
        no_canvas = [] if self._canvas is None else [gr.update(value=None, visible=False)]
        if not photo:
            self._desk.leave(key, task)
            yield [gr.skip(), "", *blank, *no_canvas]
            return
        yield [gr.skip(), working(Stage(name="read", done=0, total=1)), *blank, *no_canvas]
        answer = self._desk.look(key, task, photo)
        if isinstance(answer, Note):
            yield [gr.skip(), problem(answer), *blank, *no_canvas]
            return
        foreign = answer.format not in SHOWN_BY_BROWSERS
        field = gr.update(value=str(answer.before)) if foreign else gr.skip()
        canvas = []
        if self._canvas is not None:
            value: dict[str, Any] = {"background": str(answer.canvas), "layers": [], "composite": None}
            canvas = [gr.update(value=value, visible=True)]
        ready = words("ui.paint_ready") if canvas else words("ui.task_ready")
        yield [field, panel([ready], answer.notes), *blank, *canvas]

    def _press_run(
        self, accepted: list[str], photo: str | None, request: gr.Request, *rest: Any
    ) -> Iterator[list[Any]]:
        wanted = [self._desk.entry(self._task).name] if photo else []
        if missing := self._terms.missing(wanted, accepted):
            yield [terms(missing), *[gr.skip()] * 4, gr.update(visible=True)]
            return
        key, agreed = key_of(request), gr.update(visible=False)
        off = gr.update(value=None, interactive=False)
        running = [gr.update(interactive=False), gr.update(interactive=bool(photo)), agreed]
        resting = [gr.update(interactive=True), gr.update(interactive=False), agreed]

        def work(tell: Callable[[Stage], None]) -> Picture | Note:
            if self._task == "colorize":
                strength, area = rest
                return self._desk.colorize(key, photo, float(strength), area, tell)
            if self._task == "inpaint":
                canvas, mask, area = rest
                return self._desk.inpaint(key, photo, _layers(canvas), mask, area, tell)
            return self._desk.seg2face(key, photo, tell)

        yield [working(Stage(name="read", done=0, total=1)), gr.skip(), off, *running]
        for news in watched(work, lambda: self._desk.stop(key, self._task)):
            if isinstance(news, Stage):
                yield [working(news), gr.skip(), off, *running]
            elif isinstance(news.value, Picture):
                done = news.value
                yield [_finished(done), self._compared(done), self._file(key), *resting]
            else:
                yield [problem(news.value), gr.skip(), self._file(key), *resting]

    def _file(self, key: str) -> Any:
        """The download of the last result, which a refusal or a stop leaves as it was."""
        picture = self._desk.sessions[self._task].get(key)
        if picture is None or picture.file is None:
            return gr.update(value=None, interactive=False)
        return gr.update(value=str(picture.file), interactive=True)

    def _press_stop(self, request: gr.Request) -> None:
        self._desk.stop(key_of(request), self._task)

    def _on_full_size(self, request: gr.Request) -> Any:
        paths = self._desk.full_size(key_of(request), self._task)
        return gr.skip() if isinstance(paths, Note) else compare(*paths, full=True, **_texts(self._task))

    def _compared(self, picture: Picture) -> str:
        assert picture.beside is not None
        assert picture.after is not None
        return compare(picture.beside, picture.after, full=picture.full, **_texts(self._task))


def _texts(task: Task) -> dict[str, Any]:
    """What the divider and the two sides of a comparison are called."""
    return {"name": f"{task}-divider", "texts": ("ui.task_divider", f"ui.before_{task}", f"ui.after_{task}")}


def _how_to_get(desk: TasksDesk, task: Task) -> str:
    """That the weights are not there, what they are, and both ways to them."""
    entry = desk.entry(task)
    accept = "" if entry.pinned else " --accept-unpinned"
    command = tag("code", f"gpen-zoo weights download {cell(entry.name)}{accept}")
    lines = [words("ui.task_missing", name=entry.name), words("ui.task_get", name=entry.name)]
    unpinned = "" if entry.pinned else tag("p", words("ui.task_terms"))
    return tag("div", *(tag("p", line) for line in lines), tag("pre", command), unpinned, cls="gz-panel")


def _empty(task: Task) -> str:
    """In place of before/after, while there is nothing to compare."""
    return tag("div", tag("p", words(f"ui.idle_{task}")), cls="gz-empty quiet")


def _finished(picture: Picture) -> str:
    """How long it took, and every notice."""
    assert picture.result is not None
    result = picture.result
    seconds = duration(sum(ms for _, ms in result.timings) / 1000)
    size = {"width": result.image.width, "height": result.image.height}
    return panel([words("ui.task_done", seconds=seconds, weights=result.weights, **size)], result.notes, "done")


def _layers(canvas: Mapping[str, Any] | None) -> list[str]:
    """Files of what was painted."""
    return [str(layer) for layer in (canvas or {}).get("layers") or () if layer]
