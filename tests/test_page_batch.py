"""The Batch tab in a real Chromium, and its API."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from gradio_client import Client, handle_file
from playwright.sync_api import Browser, expect
from skimage import data

import gpen_zoo as gz
from gpen_zoo.hints import Lang, say
from gpen_zoo.types import Image
from tests.browser import SHAPES, Served, leave, open_page, shoot


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two good ones with Chinese names, one that is a web page."""
    folder = tmp_path_factory.mktemp("photos")
    face = data.astronaut()[:220, 120:340].copy()
    made = [gz.write(Image(pixels=face), folder / name, quality=70) for name in ("奶奶.jpg", "爷爷.jpg")]
    broken = folder / "broken.jpg"
    broken.write_bytes(b"<!doctype html><html></html>")
    return [made[0], broken, made[1]]


@pytest.mark.browser
@pytest.mark.parametrize(("lang", "shape"), [("zh", "phone"), ("en", "wide")])
def test_a_batch_with_a_broken_file(
    browser: Browser, served: Served, photos: list[Path], tmp_path: Path, lang: Lang, shape: str
) -> None:
    page = open_page(browser, served.url, lang, shape)
    page.get_by_role("tab", name=say("ui.tab_batch", lang)).click()
    run = page.locator("#batch-run")
    run.click()
    expect(page.locator("#batch-status [role=alert]")).to_contain_text(say("S10", lang), use_inner_text=True)
    page.locator("#batch-files input[type=file]").set_input_files(photos)
    expect(page.locator("#batch-files")).to_contain_text("爷爷")
    run.click()
    expect(page.locator("#batch-status .done")).to_be_visible(timeout=60_000)
    expect(page.locator("#batch-status")).to_contain_text(
        say("ui.batch_done", lang, done=2, failed=1), use_inner_text=True
    )
    rows = page.locator("#batch-table tr")
    expect(rows).to_have_count(4)
    expect(rows.nth(2)).to_contain_text(say("kind.html", lang), use_inner_text=True)
    expect(rows.nth(1).locator("img")).to_have_count(1)
    with page.expect_download() as started:
        page.locator("#batch-download").click()
    target = tmp_path / "got.zip"
    started.value.save_as(target)
    with zipfile.ZipFile(target) as opened:
        assert opened.namelist() == ["奶奶_restored.jpg", "爷爷_restored.jpg", "report.json", "errors.txt"]
    assert page.evaluate("document.documentElement.scrollWidth") <= SHAPES[shape]["width"]
    shoot(page, f"batch-{lang}-{shape}")
    leave(page)


def test_the_api_takes_many_files(served: Served, photos: list[Path]) -> None:
    client = Client(served.url, verbose=False)
    archive, reports = client.predict([handle_file(p) for p in photos], {"strength": 0.5}, api_name="/batch")
    assert [r["error"]["code"] if r["error"] else None for r in reports] == [None, "I01", None]
    assert reports[0]["faces"][0]["strength"] == 0.5
    with zipfile.ZipFile(archive) as opened:
        assert len(opened.namelist()) == 4
