"""A real Chromium, and the page it looks at, for the tests marked `browser`."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

import gpen_zoo as gz
from gpen_zoo.hints import Lang, say
from gpen_zoo.zoo import Zoo

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
# No sandbox: CI runs as root. The rest keeps Chromium from calling home, which a closed network answers slowly.
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
SCREENSHOTS = Path(__file__).parent / "screenshots"
SHAPES = {"wide": {"width": 1280, "height": 900}, "phone": {"width": 390, "height": 844}}
LOCALES: dict[Lang, str] = {"zh": "zh-HK", "en": "en-GB"}  # neither is in Gradio's own list of languages


@contextmanager
def chromium() -> Iterator[Browser]:
    """Skips the test where no Chromium is installed, unless GPEN_ZOO_REQUIRE_BROWSER=1 demands one."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        if os.environ.get("GPEN_ZOO_REQUIRE_BROWSER") == "1":
            pytest.fail("no Chromium found, and GPEN_ZOO_REQUIRE_BROWSER=1")
        pytest.skip("no Chromium found")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


@dataclass(frozen=True)
class Served:
    """A running page. url: its address. files: folder Gradio serves files from. desk: what serves its visitors."""

    url: str
    files: Path
    desk: Any


@contextmanager
def served_page(folder: Path, zoo: Zoo | None = None, **environment: str) -> Iterator[Served]:
    """The page on `zoo`, or an empty one in `folder`, with further environment variables."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRADIO_TEMP_DIR", str(folder / "files"))
        patch.setenv("GPEN_ZOO_HOME", str(folder / "zoo"))
        for name, value in environment.items():
            patch.setenv(name, value)
        from gpen_zoo.page import build

        page = build(zoo)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        page.blocks.launch(server_port=port, prevent_thread_lock=True, quiet=True, **page.launch_options)
        try:
            yield Served(f"http://127.0.0.1:{port}/", folder / "files", page.desk)
        finally:
            page.blocks.close()


def open_page(browser: Browser, url: str, lang: Lang, shape: str = "wide", *, dark: bool = False) -> Page:
    """A new visitor with an empty profile, who has the page before them. Errors of scripts go to `page.problems`."""
    scheme: Any = "dark" if dark else "light"
    context = browser.new_context(
        locale=LOCALES[lang], viewport=SHAPES[shape], color_scheme=scheme, accept_downloads=True
    )
    page = context.new_page()
    page.set_default_timeout(20_000)
    page.problems = []  # type: ignore[attr-defined]
    page.on("pageerror", lambda error: page.problems.append(str(error)))  # type: ignore[attr-defined]
    page.goto(url)
    expect(page.locator("#restore-button")).to_have_text(say("ui.restore", lang))
    return page


def leave(page: Page) -> None:
    """Close a visitor's browser; no script may have failed in it."""
    assert page.problems == []  # type: ignore[attr-defined]
    page.context.close()


def choose(page: Page, photo: Path) -> None:
    """Put a photo into the field of the Restore tab and wait for what is said about it."""
    page.locator("#photo-input input[type=file]").set_input_files(photo)
    expect(page.locator("#status .gz-panel:not(.working)")).to_be_visible(timeout=30_000)


def restore(page: Page, photo: Path) -> None:
    """Choose a photo, restore it, wait for everything."""
    choose(page, photo)
    page.locator("#restore-button").click()
    expect(page.locator("#status .done")).to_be_visible(timeout=60_000)
    expect(page.locator("#download")).to_be_enabled()


def sources(page: Page) -> list[str]:
    """Addresses of the two compared pictures, before and after."""
    return [str(image.evaluate("i => i.src")) for image in page.locator("#result-slider img").all()]


def picture(page: Page, src: str) -> np.ndarray:
    """Pixels of a picture on the page."""
    return gz.decode(page.request.get(src).body()).pixels


def shoot(page: Page, name: str) -> None:
    """Keep a screenshot for people to look at; CI stores the folder, git ignores it."""
    SCREENSHOTS.mkdir(exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)
