"""Figures of the web page, less than three minutes: `python -m benchmarks.page [PHOTO]`.

Needs Chromium and the packages of the browser tests. PHOTO: for the overhead over the command line; without it a made
one of 12 faces.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Page, expect, sync_playwright
from skimage import data

import gpen_zoo as gz
from benchmarks.measure import resident
from gpen_zoo.desk import Desk
from gpen_zoo.sessions import Session, Sessions
from gpen_zoo.types import Image, Options

VISITORS = 50
ROUNDS = 5
READY_SECONDS = 120


def crowd(path: Path) -> Path:
    """Twelve faces on a photo of 1640 × 1230, 2 megapixels."""
    face = data.astronaut()[:250, 130:340]
    pixels = np.full((1230, 1640, 3), 120, np.uint8)
    pixels[:750, :840] = np.vstack([np.hstack([face] * 4)] * 3)
    return gz.write(Image(pixels=pixels), path, quality=92)


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Address of a server in a process of its own, ready."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "gpen_zoo", "serve", "--port", str(port)]
    environment = {**os.environ, "GRADIO_TEMP_DIR": str(folder), "GRADIO_ANALYTICS_ENABLED": "False"}
    server = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}/"
    try:
        end = time.monotonic() + READY_SECONDS
        while True:
            try:
                urllib.request.urlopen(url + "readyz", timeout=5).close()
                break
            except OSError:
                if time.monotonic() > end or server.poll() is not None:
                    raise
                time.sleep(0.2)
        yield url
    finally:
        server.terminate()
        server.wait(60)


def opened(page: Page, url: str) -> float:
    """Seconds from asking for the page until Restore can be pressed."""
    start = time.perf_counter()
    page.goto(url)
    expect(page.locator("#restore-button")).to_be_enabled(timeout=60_000)
    expect(page.locator("html")).to_have_attribute("data-gz", "en", timeout=60_000)
    return time.perf_counter() - start


def restored(page: Page, photo: Path) -> tuple[float, float]:
    """Seconds from the upload until the photo was looked at, and from the press until the result can be downloaded."""
    start = time.perf_counter()
    page.locator("#photo-input input[type=file]").set_input_files(photo)
    expect(page.locator("#faces li").first).to_be_visible(timeout=300_000)
    looked = time.perf_counter()
    page.locator("#restore-button").click()
    expect(page.locator("#status .done")).to_be_visible(timeout=300_000)
    expect(page.locator("#download")).to_be_enabled(timeout=60_000)
    return looked - start, time.perf_counter() - looked


def blended(page: Page) -> float:
    """Seconds from a key on the strength slider until another picture is shown, with nothing else under way."""
    shown = page.locator("#result-slider .after").get_attribute("src")
    start = time.perf_counter()
    page.locator("#strength input[type=range]").press("ArrowLeft")
    expect(page.locator("#result-slider .after")).not_to_have_attribute("src", str(shown), timeout=60_000)
    seconds = time.perf_counter() - start
    expect(page.locator("#download")).to_be_enabled(timeout=60_000)
    page.wait_for_timeout(1200)
    return seconds


def in_browser(photo: Path, two_megapixels: Path, folder: Path) -> dict[str, float]:
    """What a visitor waits for."""
    path = next(p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p)
    with serving(folder) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        first = opened(browser.new_page(locale="en-GB"), url)
        page = browser.new_page(locale="en-GB")
        second = opened(page, url)
        restored(page, photo)  # loads the weights
        page.reload()
        expect(page.locator("#restore-button")).to_be_enabled()
        looked, pressed = restored(page, photo)
        page.reload()
        expect(page.locator("#restore-button")).to_be_enabled()
        restored(page, two_megapixels)
        blends = [blended(page) for _ in range(ROUNDS)]
        browser.close()
    return {
        "first page until interactive, s": first,
        "next page until interactive, s": second,
        "upload until looked at, s": looked,
        "press until result and files, s": pressed,
        "slider until the picture (2 MP), s": statistics.median(blends),
    }


def on_command_line(photo: Path, folder: Path) -> dict[str, float]:
    """The same photo by the command, its start included, and by the pipeline alone when all is loaded."""
    command = [sys.executable, "-m", "gpen_zoo", "restore", "-q", "-i", str(photo), "-o", str(folder / "cli")]
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    whole = time.perf_counter() - start
    restore = gz.load()
    restore(gz.read(photo))
    start = time.perf_counter()
    gz.write(restore(gz.read(photo)).image, folder / f"again{photo.suffix}")
    return {"command with its start, s": whole, "read, restore and write, loaded, s": time.perf_counter() - start}


def at_the_desk(photo: Path, portrait: Path, folder: Path) -> dict[str, float]:
    """Re-blend without a browser; memory of many visitors who come and go."""
    desk = Desk(gz.load(), Sessions(folder / "desk"))
    session = desk.restore("first", str(photo), Options())
    assert isinstance(session, Session), session
    blends = []
    for step in range(ROUNDS):
        start = time.perf_counter()
        desk.blend("first", lambda options, step=step: replace(options, strength=step / ROUNDS))  # type: ignore[misc]
        blends.append(time.perf_counter() - start)
    levels = []
    for visitor in range(VISITORS + 5):
        desk.restore(f"{visitor}", str(portrait), Options())
        desk.leave(f"{visitor}")
        gc.collect()
        if visitor in (4, VISITORS + 4):  # the first five fill what is kept for good
            levels.append(resident()[0] / 1e6)
    return {
        "blend at the desk (2 MP, 12 faces), s": statistics.median(blends),
        "MB before": levels[0],
        f"MB after {VISITORS} visitors": levels[1],
        "folders left": float(len([p for p in (folder / "desk").iterdir() if p.name != session.folder.name])),
    }


def main() -> None:
    """Measure and write JSON."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = crowd(folder / "crowd.jpg")
        photo = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else made
        found: dict[str, Any] = {"photo": photo.name, "load at the start": os.getloadavg()[0]}
        portrait = gz.write(Image(pixels=data.astronaut()), folder / "portrait.jpg")
        found |= {key: round(value, 2) for key, value in at_the_desk(made, portrait, folder).items()}
        found |= {key: round(value, 2) for key, value in on_command_line(photo, folder).items()}
        found |= {key: round(value, 2) for key, value in in_browser(photo, made, folder / "files").items()}
    sys.stdout.write(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
