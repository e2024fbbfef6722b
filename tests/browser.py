"""A real Chromium, and the page it looks at, for the tests marked `browser`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
# No sandbox: CI runs as root. The rest keeps Chromium from calling home, which a closed network answers slowly.
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


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


SCREENSHOTS = Path(__file__).parent / "screenshots"
