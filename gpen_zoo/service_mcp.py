"""The page's endpoints as tools for assistants (Model Context Protocol), by Gradio's own server.

It needs Gradio's extra `mcp`, which asks for an older pydantic than Gradio itself takes, so that many leave it out.
A tool takes files as `data:` addresses in base64 or as public https ones, and gives files back in both ways.
"""

from __future__ import annotations

import base64
import json
from importlib import metadata
from pathlib import Path
from typing import Any

import gradio as gr
from gradio.mcp import GradioMCPServer
from gradio_client.utils import is_file_obj_with_meta

from gpen_zoo.errors import GpenError

PATH = "/gradio_api/mcp/"
FILE = {"type": "string", "description": "data:…;base64,… with the file's bytes, or a public https address"}


class Tools(GradioMCPServer):
    """Gradio's server where what it tells and takes of our endpoints is right (seen in Gradio 6.31)."""

    def get_input_schema(
        self, tool_name: str, parameters: dict[str, str] | None = None
    ) -> tuple[dict[str, Any], list[list[str | int]]]:
        """The schema of a tool. Gradio's names no type for JSON and a `$ref` to nowhere for lists of files; calls are
        checked against it, so that none would be let through."""
        schema, positions = super().get_input_schema(tool_name, parameters)
        for name, kind in schema["properties"].items():
            told = {"description": kind["description"]} if kind.get("description") else {}
            if [name] in positions:
                schema["properties"][name] = FILE | told
            elif [name, "items"] in positions:
                schema["properties"][name] = {"type": "array", "items": FILE} | told
            elif kind.get("type") == {}:
                schema["properties"][name] = {"type": "object"} | told
        return schema, positions

    def convert_strings_to_filedata(self, value: Any, filedata_positions: list[list[str | int]]) -> Any:
        """Arguments with files in the place of their addresses, those in lists too."""
        lists = [position[0] for position in filedata_positions if position[1:] == ["items"]]
        items = [[name, n] for name in lists for n in range(len(value.get(name, ())))]
        return super().convert_strings_to_filedata(value, filedata_positions + items)

    def postprocess_output_data(self, data: Any, root_url: str) -> Any:
        """What a tool answers. Gradio makes one text of several outputs where the caller asked for no progress, and
        writes a report as Python would, which no other language reads."""
        outputs = data[0] if isinstance(data[0], tuple) else data
        written = [
            json.dumps(output, ensure_ascii=False)
            if isinstance(output, (dict, list)) and not is_file_obj_with_meta(output)
            else output
            for output in outputs
        ]
        return super().postprocess_output_data(written, root_url)

    @staticmethod
    def get_base64_data(image: Any, format: str) -> str:
        """The file itself: Gradio would encode the picture once more, with a loss for JPEG."""
        return base64.b64encode(Path(image.filename).read_bytes()).decode()


def require(*, login: bool) -> None:
    """Raises GpenError: T22 when visitors have to log in (the tools could not), T21 where Gradio's extra is absent, T26
    where it is of a version that Gradio cannot use."""
    if login:
        raise GpenError("T22")
    # Gradio swallows the failed import of any part; the last of them tells whether all are there.
    if hasattr(GradioMCPServer, "StreamableHTTPSessionManager"):
        return
    try:
        found = metadata.version("mcp")
    except metadata.PackageNotFoundError as error:
        raise GpenError("T21") from error
    raise GpenError("T26", found=found)


def settle(blocks: gr.Blocks) -> None:
    """After `blocks` were mounted with `mcp_server=True`. Raises GpenError (T21, T26) when Gradio could not make the
    tools, which it keeps to itself."""
    if not blocks.mcp_server or blocks.mcp_server_obj is None:
        raise GpenError("T26", found=blocks.mcp_error) if blocks.mcp_error else GpenError("T21")
    blocks.mcp_server_obj.__class__ = Tools  # Gradio makes the object itself, and takes no class of ours


def reach(blocks: gr.Blocks, address: str) -> None:
    """Tell the tools where their own server is. Left to itself, Gradio takes the first caller's Host header for it and
    keeps it: a stranger could have every later photo sent elsewhere."""
    assert blocks.mcp_server_obj is not None
    blocks.mcp_server_obj._local_url = address
