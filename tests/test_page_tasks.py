"""The tabs of the other tasks in a real Chromium: without their weights, and with tiny random ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

import gpen_zoo as gz
from gpen_zoo.hints import Lang, say
from gpen_zoo.label_map import COLOURS
from gpen_zoo.task_networks import TASKS
from gpen_zoo.types import Image
from gpen_zoo.zoo import Zoo
from tests.browser import SHAPES, Served, leave, open_page, picture, served_page, shoot
from tests.test_page_help import axe, findings
from tests.test_tasks import ASTRONAUT, GREY, LUMA, classes, install

__all__ = ["axe"]  # a fixture


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served_page(tmp_path_factory.mktemp("bare")) as running:
        yield running


@pytest.fixture(scope="module")
def equipped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("equipped")
    with served_page(folder, Zoo(folder / "zoo", install(folder / "zoo"))) as running:
        yield running


def open_task(page: Page, task: str, lang: Lang) -> None:
    page.get_by_role("tab", name=say("ui.tab_tasks", lang), exact=True).click()
    page.get_by_role("tab", name=say(f"ui.tab_{task}", lang), exact=True).click()


@pytest.mark.browser
@pytest.mark.parametrize("lang", ["zh", "en"])
@pytest.mark.parametrize("shape", SHAPES)
def test_without_weights_each_tab_says_what_is_missing(
    browser: Browser, bare: Served, axe: str, lang: Lang, shape: str
) -> None:
    page = open_page(browser, bare.url, lang, shape)
    for tab in ("restore", "batch", "tasks", "weights", "help"):  # none in a menu
        expect(page.get_by_role("tab", name=say(f"ui.tab_{tab}", lang), exact=True)).to_be_visible()
    for task in TASKS:
        open_task(page, task, lang)
        told = page.locator(f"#{task}-missing")
        expect(told.locator("code")).to_have_text(re.compile(r"^gpen-zoo weights download GPEN-\S+ --accept-unpinned$"))
        expect(told).to_contain_text(say("ui.task_missing", lang, name="")[-6:], use_inner_text=True)
        expect(page.locator(f"#{task}-run")).to_have_count(0)
        assert page.evaluate("document.documentElement.scrollWidth") <= SHAPES[shape]["width"]
        assert findings(page, axe) == []
        if task == "colorize":
            shoot(page, f"task-missing-{lang}-{shape}")
    page.locator("#seg2face-to-weights").click()
    expect(page.locator("#weights")).to_be_visible()
    leave(page)


@pytest.mark.browser
@pytest.mark.parametrize(("lang", "shape"), [("zh", "wide"), ("en", "phone")])
def test_a_photo_is_coloured(
    browser: Browser, equipped: Served, axe: str, tmp_path: Path, lang: Lang, shape: str
) -> None:
    photo = gz.write(Image(pixels=GREY), tmp_path / "奶奶.png")
    page = open_page(browser, equipped.url, lang, shape)
    open_task(page, "colorize", lang)
    page.locator("#colorize-photo input[type=file]").set_input_files(photo)
    expect(page.locator("#colorize-status")).to_contain_text(say("ui.task_ready", lang), use_inner_text=True)
    page.locator("#colorize-run").click()
    expect(page.locator("#colorize-status .done")).to_be_visible(timeout=30_000)
    expect(page.locator("#colorize-pair img")).to_have_count(2)
    expect(page.locator("#colorize-pair .tag.right")).to_have_text(say("ui.after_colorize", lang), use_inner_text=True)
    with page.expect_download() as got:
        page.locator("#colorize-download").click()
    assert got.value.suggested_filename == "奶奶_colorized.png"
    pixels = gz.read(got.value.path()).pixels
    assert np.ptp(pixels.astype(int), axis=2).max() > 20
    assert np.abs(pixels @ LUMA - GREY[..., 0]).max() <= 0.51
    assert page.evaluate("document.documentElement.scrollWidth") <= SHAPES[shape]["width"]
    assert findings(page, axe) == []
    shoot(page, f"task-colorize-{lang}-{shape}")
    other: Lang = "en" if lang == "zh" else "zh"
    page.get_by_label("English" if other == "en" else "中文").check()
    expect(page.locator("#colorize-run")).to_have_text(say("ui.run_colorize", other))
    expect(page.locator("#colorize-pair img")).to_have_count(2)
    leave(page)


@pytest.mark.browser
@pytest.mark.parametrize(("lang", "shape"), [("en", "wide"), ("zh", "phone")])
def test_what_was_painted_over_is_filled_in(
    browser: Browser, equipped: Served, axe: str, tmp_path: Path, lang: Lang, shape: str
) -> None:
    photo = gz.write(Image(pixels=ASTRONAUT), tmp_path / "torn.png")
    page = open_page(browser, equipped.url, lang, shape)
    open_task(page, "inpaint", lang)
    page.locator("#inpaint-photo input[type=file]").set_input_files(photo)
    canvas = page.locator("#inpaint-canvas canvas").first
    expect(canvas).to_be_visible(timeout=20_000)
    expect(page.locator("#inpaint-status")).to_contain_text(say("ui.paint_ready", lang), use_inner_text=True)
    page.locator("#inpaint-run").click()  # nothing is painted yet
    expect(page.locator("#inpaint-status .problem")).to_contain_text("P11", timeout=20_000)
    page.wait_for_timeout(500)
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x - 30, y)
    page.mouse.down()
    page.mouse.move(x + 30, y, steps=12)
    page.mouse.up()
    page.wait_for_timeout(500)
    shoot(page, f"task-painted-{lang}-{shape}")
    page.locator("#inpaint-run").click()
    expect(page.locator("#inpaint-status .done")).to_be_visible(timeout=30_000)
    with page.expect_download() as got:
        page.locator("#inpaint-download").click()
    assert got.value.suggested_filename == "torn_filled.png"
    changed = (gz.read(got.value.path()).pixels != ASTRONAUT).any(axis=2)
    rows, columns = np.nonzero(changed)
    assert 0 < changed.mean() < 0.3
    assert abs(rows.mean() - 128) < 25
    assert abs(columns.mean() - 128) < 25
    assert page.evaluate("document.documentElement.scrollWidth") <= SHAPES[shape]["width"]
    assert findings(page, axe) == []
    shoot(page, f"task-inpaint-{lang}-{shape}")
    leave(page)


@pytest.mark.browser
@pytest.mark.parametrize("task", TASKS)
def test_no_broken_picture_is_shown_for_what_is_none(
    browser: Browser, equipped: Served, tmp_path: Path, task: str
) -> None:
    text = tmp_path / "page.jpg"
    text.write_text("no picture at all")
    page = open_page(browser, equipped.url, "en")
    open_task(page, task, "en")
    page.locator(f"#{task}-photo input[type=file]").set_input_files(text)
    expect(page.locator(f"#{task}-status .problem")).to_be_visible()
    expect(page.locator(f"#{task}-photo img")).to_have_count(1)
    expect(page.locator(f"#{task}-photo img")).to_be_hidden()
    leave(page)


@pytest.mark.browser
def test_a_face_from_a_label_map_and_a_photo_that_is_none(browser: Browser, equipped: Served, tmp_path: Path) -> None:
    good = gz.write(Image(pixels=COLOURS[classes()]), tmp_path / "map.png")
    bad = gz.write(Image(pixels=ASTRONAUT), tmp_path / "photo.png")
    page = open_page(browser, equipped.url, "en", "wide")
    open_task(page, "seg2face", "en")
    page.locator("#seg2face-photo input[type=file]").set_input_files(bad)
    expect(page.locator("#seg2face-status .problem")).to_contain_text("P22")
    page.locator("#seg2face-photo input[type=file]").set_input_files(good)
    expect(page.locator("#seg2face-status")).to_contain_text(say("ui.task_ready", "en"), use_inner_text=True)
    page.locator("#seg2face-run").click()
    expect(page.locator("#seg2face-status .done")).to_be_visible(timeout=30_000)
    images = page.locator("#seg2face-pair img")
    expect(images).to_have_count(2)
    assert picture(page, str(images.nth(1).evaluate("i => i.src"))).shape == (64, 64, 3)
    shoot(page, "task-seg2face-en-wide")
    leave(page)
