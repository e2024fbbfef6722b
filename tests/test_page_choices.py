"""What a visitor chooses on the Restore tab in a real Chromium: faces, drawn ones too, sizes, terms; at a fast pace."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Request, expect
from skimage import data

import gpen_zoo as gz
from gpen_zoo.hints import Lang, say
from gpen_zoo.manifest import Licence
from gpen_zoo.types import Image
from gpen_zoo.zoo import Zoo
from tests.browser import Served, choose, leave, open_page, picture, restore, served_page, shoot, sources
from tests.test_tasks import NAMES, install

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def couple(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same face twice, above a strip without faces."""
    half = data.astronaut()[:300, 100:400]
    noise = np.random.default_rng(7).integers(60, 200, (100, 600, 3), dtype=np.uint8)
    pixels = np.vstack([np.hstack([half, half[:, ::-1]]), noise])
    return gz.write(Image(pixels=pixels), tmp_path_factory.mktemp("couple") / "外公外婆.png")


@pytest.mark.parametrize(("lang", "shape"), [("zh", "wide"), ("en", "phone")])
def test_a_missed_face_is_drawn_restored_and_taken_away(
    browser: Browser, served: Served, couple: Path, lang: Lang, shape: str
) -> None:
    page = open_page(browser, served.url, lang, shape)
    page.locator("#draw-box > button").click()
    expect(page.locator("#draw")).to_contain_text(say("ui.draw_later", lang), use_inner_text=True)
    choose(page, couple)
    expect(page.locator("#draw .known")).to_have_count(2)
    add = page.locator("#draw [data-do=add]")
    expect(add).to_be_disabled()
    if shape == "wide":
        page.locator("#draw .canvas").scroll_into_view_if_needed()
        area = page.locator("#draw .canvas").bounding_box()
        assert area is not None
        rate = area["width"] / 600
        page.mouse.move(area["x"] + 100 * rate, area["y"] + 390 * rate)
        page.mouse.down()
        page.mouse.move(area["x"] + 30 * rate, area["y"] + 310 * rate, steps=4)
        page.mouse.up()
        sides = [float(page.locator(f"#draw [data-side={s}]").input_value()) for s in ("x", "y", "w", "h")]
        assert np.abs(np.array(sides) - (30, 310, 70, 80)).max() <= 2
        add.click()
    else:
        for side, value in (("x", 30), ("y", 310), ("w", 70), ("h", 80)):
            page.locator(f"#draw [data-side={side}]").fill(str(value))
        expect(add).to_be_enabled()
        page.locator("#draw [data-side=h]").press("Enter")
    expect(page.locator("#faces li")).to_have_count(3)
    expect(page.locator("#draw .known")).to_have_count(3)
    expect(page.locator("#draw [data-side=w]")).to_have_value("0")
    expect(add).to_be_disabled()
    page.locator("#restore-button").click()
    expect(page.locator("#status .done")).to_be_visible(timeout=60_000)
    expect(page.locator("#faces li").nth(2)).to_contain_text(say("F40", lang), use_inner_text=True)
    expect(page.locator("#download")).to_be_enabled()
    page.locator("#report-box > button").click()
    expect(page.locator("#command textarea")).to_have_value(re.compile(r"--faces 1,2 --box \d+,\d+,\d+,\d+$"))
    before, after = (picture(page, src).astype(int) for src in sources(page))
    assert np.abs(after - before)[320:380, 40:90].mean() > 1
    shoot(page, f"drawn-{lang}-{shape}")
    page.locator("#faces [data-erase]").click()
    expect(page.locator("#faces li")).to_have_count(2)
    expect(page.locator("#download")).to_be_enabled()
    before, after = (picture(page, src).astype(int) for src in sources(page))
    assert np.array_equal(before[320:380, 40:90], after[320:380, 40:90])
    leave(page)


def test_a_finger_draws_too(browser: Browser, served: Served, couple: Path) -> None:
    page = open_page(browser, served.url, "zh", "phone")
    choose(page, couple)
    page.locator("#draw-box > button").click()
    expect(page.locator("#draw .known")).to_have_count(2)
    page.wait_for_timeout(500)  # the part unfolds
    page.locator("#draw .canvas").scroll_into_view_if_needed()
    area = page.locator("#draw .canvas").bounding_box()
    assert area is not None
    rate = area["width"] / 600
    finger = page.context.new_cdp_session(page)
    for kind, at in (
        ("touchStart", (30, 310)),
        ("touchMove", (60, 350)),
        ("touchMove", (100, 390)),
        ("touchEnd", None),
    ):
        points = [{"x": area["x"] + at[0] * rate, "y": area["y"] + at[1] * rate}] if at else []
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    sides = [float(page.locator(f"#draw [data-side={s}]").input_value()) for s in ("x", "y", "w", "h")]
    assert np.abs(np.array(sides) - (30, 310, 70, 80)).max() <= 4
    expect(page.locator("#draw [data-do=add]")).to_be_enabled()
    leave(page)


def test_a_box_that_holds_a_known_face_is_explained(browser: Browser, served: Served, couple: Path) -> None:
    page = open_page(browser, served.url, "zh")
    choose(page, couple)
    page.locator("#draw-box > button").click()
    for side, value in (("x", 50), ("y", 10), ("w", 220), ("h", 260)):
        page.locator(f"#draw [data-side={side}]").fill(str(value))
    page.locator("#draw [data-do=add]").click()
    expect(page.locator("#status [role=alert]")).to_contain_text(say("F65", "zh"), use_inner_text=True)
    expect(page.locator("#faces li")).to_have_count(2)
    leave(page)


def test_a_face_unticked_before_the_work_is_spared(browser: Browser, served: Served, couple: Path) -> None:
    page = open_page(browser, served.url, "en")
    choose(page, couple)
    page.locator("#faces input[type=checkbox]").nth(1).uncheck()
    expect(page.locator("#status")).to_contain_text(say("ui.found", "en", found=2, todo=1), use_inner_text=True)
    expect(page.locator("#faces")).to_contain_text(say("ui.face_unticked", "en"), use_inner_text=True)
    expect(page.locator("#faces .code")).to_have_count(0)  # nothing has been done yet that needs a code
    page.locator("#restore-button").click()
    expect(page.locator("#status .done")).to_be_visible(timeout=60_000)
    expect(page.locator("#download")).to_be_enabled()
    expect(page.locator("#faces .after")).to_have_count(1)
    page.locator("#faces input[type=checkbox]").nth(1).check()
    expect(page.locator("#faces .after")).to_have_count(2)
    expect(page.locator("#download")).to_be_enabled()
    leave(page)


def test_a_photo_is_enlarged(browser: Browser, served: Served, couple: Path) -> None:
    page = open_page(browser, served.url, "zh")
    choose(page, couple)
    page.locator("#more > button").click()
    expect(page.locator("#background")).to_have_count(1)
    page.locator("#scale input").click()
    page.get_by_role("option", name="×2").click()
    page.locator("#restore-button").click()
    expect(page.locator("#status .done")).to_be_visible(timeout=60_000)
    expect(page.locator("#download")).to_be_enabled()
    before, after = (picture(page, src) for src in sources(page))
    assert (before.shape, after.shape) == ((400, 600, 3), (800, 1200, 3))
    boxes = [image.bounding_box() for image in page.locator("#result-slider img").all()]
    assert boxes[0] == boxes[1], "both are shown at one size"
    page.locator("#report-box > button").click()
    expect(page.locator("#command textarea")).to_have_value(re.compile(r"--scale 2$"))
    shoot(page, "enlarged-zh-wide")
    leave(page)


def test_many_quick_changes_are_told_in_turn(browser: Browser, served: Served, couple: Path) -> None:
    page = open_page(browser, served.url, "en")
    restore(page, couple)
    page.locator("#more > button").click()
    joined: list[Request] = []
    page.on("request", lambda request: joined.append(request) if "queue/join" in request.url else None)
    slider = page.locator("#strength input[type=range]")
    for i in range(12):
        slider.press("ArrowLeft")
        page.locator("#grain input").set_checked(i % 2 == 0)
        page.locator("#faces input[type=checkbox]").nth(1).set_checked(i % 2 == 1)
        page.wait_for_timeout(60)
        if i % 4 == 3:
            page.wait_for_timeout(250)
    expect(page.locator("#download")).to_be_enabled(timeout=60_000)
    page.wait_for_timeout(1000)
    expect(page.locator("#download")).to_be_enabled(timeout=60_000)
    page.locator("#report-box > button").click()
    report = page.locator("#report")
    expect(report).to_contain_text(re.compile(r'"strength":\s*0.4\b'))
    expect(report).to_contain_text(re.compile(r'"grain":\s*false'))
    expect(page.locator("#faces li.left-out")).to_have_count(0)
    assert 1 <= len(joined) < 15, "runs of touches are told once"
    leave(page)


def test_a_hanging_photo_is_told_and_stopped(
    browser: Browser, served: Served, couple: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    genuine, slow = served.desk.read, threading.Event()

    def read(photo: str, stop: threading.Event) -> Image:
        if "slow" in photo and stop.wait(20):
            raise gz.Cancelled("S05")
        image: Image = genuine(photo, stop)
        return image

    monkeypatch.setattr(served.desk, "read", read)
    copy = tmp_path / "slow.png"
    copy.write_bytes(couple.read_bytes())
    page = open_page(browser, served.url, "zh")
    page.locator("#photo-input input[type=file]").set_input_files(copy)
    expect(page.locator("#status .working")).to_contain_text(say("ui.stage_read", "zh"), use_inner_text=True)
    page.locator("#stop-button").click()
    expect(page.locator("#status [role=alert]")).to_contain_text(say("S05", "zh"), use_inner_text=True)
    expect(page.locator("#stop-button")).to_be_disabled()
    slow.set()
    leave(page)


def test_no_broken_picture_is_shown_for_what_is_none(browser: Browser, served: Served, tmp_path: Path) -> None:
    web = tmp_path / "page.jpg"
    web.write_bytes(b"<!doctype html><html></html>")
    page = open_page(browser, served.url, "en")
    choose(page, web)
    expect(page.locator("#status [role=alert]")).to_be_visible()
    expect(page.locator("#photo-input img")).to_be_hidden()
    leave(page)


@pytest.fixture(scope="module")
def restricted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A page whose weights are not for every use: the bundled ones, and others for colouring."""
    folder = tmp_path_factory.mktemp("restricted")
    licence = Licence(key="study", spdx="NOASSERTION", zh="仅供学习研究。", en="For study only.")
    entries = [
        replace(e, licence=licence) if e.bundled or e.name in NAMES.values() else e for e in install(folder / "zoo")
    ]
    with served_page(folder, Zoo(folder / "zoo", entries)) as running:
        yield running


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_terms_are_asked_for_once(browser: Browser, restricted: Served, couple: Path, lang: Lang) -> None:
    page = open_page(browser, restricted.url, lang)
    choose(page, couple)
    page.locator("#restore-button").click()
    words = {"zh": "仅供学习研究。", "en": "For study only."}
    expect(page.locator("#status [role=alert]")).to_contain_text(words[lang], use_inner_text=True)
    shoot(page, f"terms-{lang}")
    page.locator("#consent input").click()
    expect(page.locator("#status .done")).to_be_visible(timeout=60_000)
    expect(page.locator("#consent")).to_have_count(0)
    page.reload()
    restore(page, couple)
    leave(page)


@pytest.mark.parametrize(("tab", "lang"), [("batch", "zh"), ("colorize", "en")])
def test_terms_are_asked_for_on_the_other_tabs_too(
    browser: Browser, restricted: Served, couple: Path, tab: str, lang: Lang
) -> None:
    page = open_page(browser, restricted.url, lang)
    page.get_by_role("tab", name=say("ui.tab_batch" if tab == "batch" else "ui.tab_tasks", lang), exact=True).click()
    page.locator(f"#{'batch-files' if tab == 'batch' else 'colorize-photo'} input[type=file]").set_input_files(couple)
    if tab == "batch":
        expect(page.locator("#batch-files")).to_contain_text(couple.stem)
    else:
        expect(page.locator("#colorize-status .gz-panel:not(.working)")).to_be_visible()
    page.locator(f"#{tab}-run").click()
    words = {"zh": "仅供学习研究。", "en": "For study only."}
    expect(page.locator(f"#{tab}-status [role=alert]")).to_contain_text(words[lang], use_inner_text=True)
    shoot(page, f"terms-{tab}")
    page.locator(f"#{tab}-consent input").click()
    expect(page.locator(f"#{tab}-status .done")).to_be_visible(timeout=60_000)
    expect(page.locator(f"#{tab}-consent")).to_have_count(0)
    leave(page)
