"""The field that takes a photo, whatever the file is."""

from __future__ import annotations

from abc import ABCMeta
from typing import Any

import gradio as gr


def uploaded_path(field: Any, payload: Any) -> str | None:
    """The uploaded file itself.

    gr.Image would open it with Pillow first and fail without a word on anything that cannot be read; our decoder says
    what is wrong.
    """
    return payload.path if payload else None


# A class, because Gradio makes the field anew for a visitor once it was given a value; made without Gradio's metaclass,
# which writes a stub beside the source of every subclass. `is_template`: for the browser it is a gr.Image.
PhotoField: Any = ABCMeta.__new__(
    type(gr.Image),
    "PhotoField",
    (gr.Image,),
    {"__module__": __name__, "is_template": True, "preprocess": uploaded_path},
)
