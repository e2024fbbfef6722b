"""Shared ground rules for the tests: two threads, no network, no user settings."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.browser import Served

# Before gradio, huggingface_hub or torch are imported anywhere.
os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
os.environ.setdefault("OMP_NUM_THREADS", "2")
for name in ("GPEN_ZOO_HOME", "GPEN_ZOO_MANIFEST", "HF_ENDPOINT", "HF_TOKEN", "MODELSCOPE_ENDPOINT"):
    os.environ.pop(name, None)

SHARED = Path(__file__).parents[2] / "shared"


@pytest.fixture(autouse=True)
def zoo_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty zoo folder for every test, so that weights of the developer's machine change nothing."""
    home = tmp_path / "zoo"
    monkeypatch.setenv("GPEN_ZOO_HOME", str(home))
    return home


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """The command line sets up the log of its process; here the process goes on to the next test."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One Chromium for all tests marked `browser`; each visitor gets a profile of their own."""
    from tests.browser import chromium

    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The page on the bundled weights."""
    from tests.browser import served_page

    with served_page(tmp_path_factory.mktemp("served")) as running:
        yield running


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with golden numbers and photos beside the project; the test skips where it is absent."""
    if not SHARED.is_dir():
        pytest.skip("../shared is absent")
    return SHARED
