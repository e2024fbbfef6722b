"""What programs may call: endpoints that are listed on the page's API view and answer with files and JSON."""

from __future__ import annotations

import html
from typing import Any

import gradio as gr

from gpen_zoo.batch_desk import Batch, BatchDesk
from gpen_zoo.desk import Desk
from gpen_zoo.errors import guarded
from gpen_zoo.hints import Note, say
from gpen_zoo.options import options_from_json
from gpen_zoo.page_restore import key_of
from gpen_zoo.zoo import Zoo


def add_api(desk: Desk, batches: BatchDesk, zoo: Zoo) -> None:
    """Endpoints without widgets, inside open `gr.Blocks`."""

    def restore(photo: str | None, options: dict[str, Any] | None) -> tuple[str, dict[str, Any]]:
        """Restore the faces of a photo.

        Options, each may be left out: strength (0-1 or "auto"), aligned (the picture is one face, cut out already),
        faces (a list of numbers from 1), strengths (number to strength), boxes (of faces that were missed: x, y, width,
        height), largest, min_size (px), mask ("face", "face+hair", "crop"), tone ("auto", "colour", "toned", "grey"),
        grain, scale (1, 2, 4), background ("auto", "lanczos" or the name of a weight).

        Args:
            photo: any picture file.
            options: as above, for example {"strength": 0.7}.

        Returns:
            the restored file and the report.
        """
        answer = desk.serve(photo, options)
        if isinstance(answer, Note):
            raise refused(answer)
        return str(answer[0]), answer[1]

    def restore_batch(
        files: list[str] | None, options: dict[str, Any] | None, request: gr.Request
    ) -> tuple[str, list[dict[str, Any]]]:
        """Restore the faces of many photos.

        Args:
            files: picture files and zips of them.
            options: as for /restore.

        Returns:
            a zip of the results with an error log inside, and one report a photo.
        """
        chosen = guarded(lambda: options_from_json(options))
        if isinstance(chosen, Note):
            raise refused(chosen)
        answer = batches.restore(f"api {key_of(request)}", files or [], chosen)
        if isinstance(answer, Batch):
            return str(answer.archive), list(answer.reports)
        raise refused(answer)

    def weights() -> dict[str, Any]:
        """Every known weight and how it stands on this server."""
        return {"in_use": list(desk.in_use), "weights": [line.as_dict() for line in zoo.listing()]}

    call = [gr.File(visible=False, type="filepath"), gr.JSON(value={}, visible=False)]
    reply = [gr.File(label="restored", visible=False), gr.JSON(label="report", visible=False)]
    gr.Button(visible=False).click(restore, call, reply, api_name="restore", concurrency_limit=4)
    many = [gr.File(visible=False, type="filepath", file_count="multiple"), gr.JSON(value={}, visible=False)]
    reply = [gr.File(label="zip", visible=False), gr.JSON(label="reports", visible=False)]
    gr.Button(visible=False).click(restore_batch, many, reply, api_name="batch", concurrency_limit=2)
    table = gr.JSON(label="weights", visible=False)
    gr.Button(visible=False).click(weights, None, table, api_name="weights")


def refused(note: Note) -> gr.Error:
    """The error a caller of the API gets: the code and the hint in both languages."""
    message = f"{note.code}: {say(note, 'en')} / {say(note, 'zh')}"
    return gr.Error(html.escape(message, quote=False), print_exception=False)
