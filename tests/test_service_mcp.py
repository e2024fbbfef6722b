"""The API as tools for assistants: a real client on `gpen-zoo serve --mcp`, where the extra is installed, and what is
said where it is not. The extra lives in an environment of its own, so the first half skips elsewhere."""

from __future__ import annotations

import asyncio
import base64
import importlib.util
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from skimage import data

import gpen_zoo as gz
from gpen_zoo.types import Image

ROOT = Path(__file__).parents[1]
INSTALLED = importlib.util.find_spec("mcp") is not None
needs_extra = pytest.mark.skipif(not INSTALLED, reason="the extra `mcp` is not installed")
PHOTO = gz.encode(Image(pixels=data.astronaut()), format="JPEG")


def command(*words: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "gpen_zoo", "serve", "--port", "0", "--mcp", *words],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    child = command("--lang", "en", "--grace", "0", GRADIO_TEMP_DIR=str(tmp_path))
    assert child.stdout is not None
    child.stdout.readline()
    told = child.stdout.readline()
    try:
        assert told.startswith("MCP tools at http"), told
        yield told.split()[-1]
    finally:
        child.send_signal(signal.SIGTERM)
        child.communicate(timeout=60)


def sent(content: bytes, kind: str = "image/jpeg") -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


async def talk(address: str) -> dict[str, Any]:
    from mcp import ClientSession
    from mcp.client.streamable_http import streamablehttp_client

    # Another host than the server's: nobody may make the server look for itself elsewhere.
    elsewhere = streamablehttp_client(address, headers={"Host": "127.0.0.1:9"})
    async with elsewhere as (read, write, _), ClientSession(read, write) as session:
        await session.initialize()
        return {
            "tools": (await session.list_tools()).tools,
            "weights": await session.call_tool("weights", {}),
            "photo": await session.call_tool("restore", {"photo": sent(PHOTO), "options": {"strength": 0.5}}),
            "wrong": await session.call_tool("restore", {"photo": sent(PHOTO), "options": {"strength": 2}}),
            "broken": await session.call_tool("restore", {"photo": sent(b"no picture")}),
            "batch": await session.call_tool("restore_batch", {"files": [sent(PHOTO), sent(b"no picture")]}),
        }


@needs_extra
def test_an_assistant_lists_the_tools_and_restores_a_photo(address: str) -> None:
    told = asyncio.run(talk(address))
    tools = {tool.name: tool for tool in told["tools"]}
    assert set(tools) == {"restore", "restore_batch", "weights"}
    assert "faces" in tools["restore"].description
    properties = tools["restore"].inputSchema["properties"]
    assert (properties["photo"]["type"], properties["options"]["type"]) == ("string", "object")
    assert "strength" in properties["options"]["description"]
    assert tools["restore_batch"].inputSchema["properties"]["files"]["items"]["type"] == "string"

    assert json.loads(told["weights"].content[0].text)["in_use"] == ["gpen-demo-256"]

    assert not told["photo"].isError, told["photo"].content
    picture, where, report = told["photo"].content
    made = base64.b64decode(picture.data)
    assert gz.decode(made).pixels.shape == data.astronaut().shape
    (face,) = json.loads(report.text)["faces"]
    assert face["verdict"] == "restored"
    assert face["strength"] == 0.5
    expected = gz.load("gpen-demo-256")(gz.decode(PHOTO), gz.Options(strength=0.5)).image
    difference = np.abs(gz.decode(made).pixels.astype(int) - expected.pixels.astype(int))
    assert difference.mean() < 2, "only what JPEG does lies between"
    assert where.text.startswith("Image URL: http")

    for answer, code in (("wrong", "U01"), ("broken", "I01")):
        assert told[answer].isError
        assert told[answer].content[0].text.startswith(f"{code}: ")
    archive, reports = told["batch"].content
    assert archive.text.endswith(".zip")
    good, bad = json.loads(reports.text)
    assert len(good["faces"]) == 1
    assert bad["error"]["code"] == "I01"


@needs_extra
def test_a_page_of_another_site_cannot_use_the_tools(address: str) -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    headers = {"Accept": "application/json, text/event-stream"}
    assert httpx.post(address, json=call, headers=headers).status_code == 200
    assert httpx.post(address, json=call, headers=headers | {"Origin": "https://elsewhere.example"}).status_code == 403


@pytest.mark.skipif(INSTALLED, reason="the extra `mcp` is installed")
@pytest.mark.parametrize(("lang", "words"), [("en", 'Run pip install ".[mcp]"'), ("zh", '运行 pip install ".[mcp]"')])
def test_where_the_extra_is_absent_the_command_says_so(lang: str, words: str) -> None:
    out, err = (child := command("--lang", lang)).communicate(timeout=60)
    assert child.returncode == 1
    assert words in err
    assert "[T21]" in err and "found" not in err
    assert not out


def test_a_login_excludes_the_tools() -> None:
    _, err = (child := command("--lang", "en", GPEN_ZOO_AUTH="me:secret")).communicate(timeout=60)
    assert child.returncode == 1
    assert "[T22]" in err
