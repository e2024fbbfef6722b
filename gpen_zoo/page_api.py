"""What programs may call: endpoints that are listed on the page's API view and answer with files and JSON."""

from __future__ import annotations

import html
from typing import Any

import gradio as gr

from gpen_zoo.desk import Desk
from gpen_zoo.hints import Note, say


def add_api(desk: Desk) -> None:
    """Endpoints without widgets, inside open `gr.Blocks`."""

    def restore(photo: str | None, options: dict[str, Any] | None) -> tuple[str, dict[str, Any]]:
        """Restore the faces of a photo.

        photo: any picture file. options: JSON object with any of strength (0-1), aligned (bool), faces (list of
        numbers from 1), strengths (number → strength); may be empty. Returns the restored file and the report.
        """
        answer = desk.serve(photo, options)
        if isinstance(answer, Note):
            raise refused(answer)
        return str(answer[0]), answer[1]

    call = [gr.File(visible=False, type="filepath"), gr.JSON(value={}, visible=False)]
    reply = [gr.File(label="restored", visible=False), gr.JSON(label="report", visible=False)]
    gr.Button(visible=False).click(restore, call, reply, api_name="restore", concurrency_limit=4)


def refused(note: Note) -> gr.Error:
    """The error a caller of the API gets: the code and the hint in both languages."""
    message = f"{note.code}: {say(note, 'en')} / {say(note, 'zh')}"
    return gr.Error(html.escape(message, quote=False), print_exception=False)
