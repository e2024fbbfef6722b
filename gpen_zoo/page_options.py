"""What a visitor can choose for a photo: the widgets, their meaning, and choices that depend on what is installed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import gradio as gr

from gpen_zoo.desk import Desk
from gpen_zoo.hints import Lang, say
from gpen_zoo.page_labels import Labels
from gpen_zoo.types import Mask, Options, ToneChoice

MASKS = [("ui.mask_face", "face"), ("ui.mask_hair", "face+hair"), ("ui.mask_crop", "crop")]
TONES = [("ui.tone_auto", "auto"), ("ui.tone_colour", "colour"), ("ui.tone_toned", "toned"), ("ui.tone_grey", "grey")]
BRANCHES = [("ui.branch_auto", "")]
BACKGROUNDS = [("ui.background_auto", "auto"), ("ui.background_lanczos", "lanczos")]
SCALES = [("×1", 1), ("×2", 2), ("×4", 4)]
# Of the widgets that `values` lists, as they are at first.
AT_FIRST: list[Any] = [1, True, False, "face", "auto", False, False, 0, 1, "auto"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """The widgets. Those that only need a new blend are `light`; the others a new look at the photo."""

    strength: gr.Slider
    auto: gr.Checkbox
    aligned: gr.Checkbox
    branch: gr.Dropdown
    mask: gr.Dropdown
    tone: gr.Dropdown
    grain: gr.Checkbox
    largest: gr.Checkbox
    min_size: gr.Slider
    scale: gr.Dropdown
    background: gr.Dropdown

    @property
    def values(self) -> list[Any]:
        """What `chosen` wants, in its order; the branch is asked for by itself."""
        first = [self.strength, self.auto, self.aligned, self.mask, self.tone, self.grain]
        return [*first, self.largest, self.min_size, self.scale, self.background]

    @property
    def light(self) -> list[Any]:
        """All but the strength, whose slider switches `auto` off."""
        return [self.auto, self.mask, self.tone, self.grain, self.largest, self.min_size]

    @property
    def heavy(self) -> list[Any]:
        """What asks for a new plan."""
        return [self.aligned, self.branch, self.scale, self.background]


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
    scale: Any,
    background: str,
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
        scale=scale,
        background=background or "auto",
    )


def more_options(labels: Labels) -> dict[str, Any]:
    """The widgets of the closed part, by their name in `Choices`."""

    def dropdown(name: str, **more: Any) -> Any:
        return labels(gr.Dropdown, label=f"ui.{name}", info=f"ui.{name}_info", elem_id=name, **more)

    with labels(gr.Accordion, label="ui.more", open=False, elem_id="more"):
        return {
            "aligned": labels(gr.Checkbox, label="ui.aligned", info="ui.aligned_info", elem_id="aligned"),
            "branch": dropdown("branch", choices=BRANCHES, value="", dynamic=("choices",)),
            "scale": dropdown("scale", choices=SCALES, value=1),
            "background": dropdown("background", choices=BACKGROUNDS, value="auto", dynamic=("choices", "info")),
            "mask": dropdown("mask", choices=MASKS, value="face"),
            "tone": dropdown("tone", choices=TONES, value="auto"),
            "grain": labels(gr.Checkbox, label="ui.grain", info="ui.grain_info", elem_id="grain"),
            "largest": labels(gr.Checkbox, label="ui.largest", elem_id="largest"),
            "min_size": labels(
                gr.Slider, label="ui.min_size", minimum=0, maximum=200, value=0, step=4, elem_id="min-size"
            ),
        }


def installed(desk: Desk, lang: Lang, branch: str, background: str) -> list[Any]:
    """Updates of the widgets `branch` and `background` for what is installed now. A choice that is gone is undone."""
    upscalers = desk.restorer.upscalers.names()
    there = [name for name, present in upscalers if present]
    absent = [name for name, present in upscalers if not present]
    info = say("ui.background_info", lang)
    if absent:
        between, names = ("", "、") if lang == "zh" else (" ", ", ")
        info += between + say("ui.background_absent", lang, names=names.join(absent))
    return [
        _update([(say(key, lang), value) for key, value in BRANCHES], list(desk.in_use), branch),
        _update([(say(key, lang), value) for key, value in BACKGROUNDS], there, background) | {"info": info},
    ]


def _update(fixed: list[tuple[str, str]], names: list[str], value: str) -> dict[str, Any]:
    choices = [*fixed, *((name, name) for name in names)]
    kept = value if value in (v for _, v in choices) else fixed[0][1]
    update: dict[str, Any] = gr.update(choices=choices, value=kept)
    return update
