"""The Help tab, every tab under axe-core's rules, and a page that asks for a login."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from skimage import data

import gpen_zoo as gz
from gpen_zoo.hints import CATALOGUE, Lang, say
from gpen_zoo.types import Image
from tests.browser import SHAPES, Served, leave, open_page, restore, served_page, shoot

TABS = ("restore", "batch", "tasks", "weights", "help")
AXE = "axe-core@4.14.1"


@pytest.fixture(scope="module")
def axe(pytestconfig: pytest.Config) -> str:
    """axe-core's script, got once through npm and kept in pytest's cache."""
    folder = Path(str(pytestconfig.cache.mkdir("axe")))  # type: ignore[union-attr]
    script = folder / "node_modules" / "axe-core" / "axe.min.js"
    if not script.is_file():
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("npm is not here")
        command = [npm, "install", "--no-save", "--no-audit", "--no-fund", "--prefix", str(folder), AXE]
        if subprocess.run(command, capture_output=True, timeout=120).returncode != 0:
            pytest.skip("npm cannot get axe-core")
    return script.read_text(encoding="utf-8")


def open_tab(page: Page, tab: str, lang: Lang) -> None:
    page.get_by_role("tab", name=say(f"ui.tab_{tab}", lang)).click()


def findings(page: Page, axe: str) -> list[str]:
    """Serious and critical breaches of WCAG A and AA, with the element."""
    # A button that is half faded in is too pale for a moment.
    page.wait_for_function("document.getAnimations().every(one => !(one instanceof CSSTransition))")
    page.evaluate(axe + "; null")
    found: dict[str, Any] = page.evaluate("axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa']})")
    return [
        f"{breach['id']}: {node['html'][:160]} {node['any'][0]['message'] if node['any'] else ''}"
        for breach in found["violations"]
        if breach["impact"] in ("serious", "critical")
        for node in breach["nodes"]
    ]


@pytest.mark.browser
@pytest.mark.parametrize(("lang", "shape", "dark"), [("zh", "phone", True), ("en", "wide", False)])
def test_no_tab_breaks_the_rules_of_accessibility(
    browser: Browser, served: Served, axe: str, tmp_path: Path, lang: Lang, shape: str, dark: bool
) -> None:
    photo = gz.write(Image(pixels=data.astronaut()[:220, 120:340].copy()), tmp_path / "face.jpg")
    page = open_page(browser, served.url, lang, shape, dark=dark)
    restore(page, photo)
    page.locator("#more > button").click()
    page.locator("#report-box > button").click()
    seen = []
    for tab in TABS:
        open_tab(page, tab, lang)
        if tab == "help":
            expect(page.locator("#help-versions dl")).to_be_visible(timeout=30_000)
        page.wait_for_timeout(400)
        seen += [f"{tab}: {finding}" for finding in findings(page, axe)]
        assert page.evaluate("document.documentElement.scrollWidth") <= SHAPES[shape]["width"], tab
        shoot(page, f"{tab}-{lang}-{shape}{'-dark' if dark else ''}")
    assert seen == []
    leave(page)


@pytest.mark.browser
def test_no_text_of_any_tab_is_left_in_the_other_language(browser: Browser, served: Served) -> None:
    page = open_page(browser, served.url, "en")
    for lang, other in (("zh", "en"), ("en", "zh")):
        page.locator("#language").get_by_label("中文" if lang == "zh" else "English").check()
        for tab in TABS:
            open_tab(page, tab, lang)
            if tab == "help":
                expect(page.locator("#help-versions dl")).to_be_visible(timeout=30_000)
            shown = page.locator(".gradio-container").inner_text()
            for key, pair in CATALOGUE.items():
                words = dict(zip(("zh", "en"), pair, strict=True))[other]
                if key.startswith("ui.") and "{" not in words and len(words) > 12 and pair[0] != pair[1]:
                    assert words not in shown, f"{tab}: {key}"
    leave(page)


@pytest.mark.browser
def test_help_answers_and_says_what_runs_here(browser: Browser, served: Served) -> None:
    page = open_page(browser, served.url, "zh")
    open_tab(page, "help", "zh")
    page.get_by_text(say("ui.faq_no_face", "zh")).click()
    expect(page.locator("#help")).to_contain_text(say("F01", "zh"), use_inner_text=True)
    expect(page.locator("#help-versions")).to_contain_text("torch", timeout=30_000)
    expect(page.locator("#help-versions")).to_contain_text("gpen-demo-256")
    leave(page)


@pytest.mark.browser
def test_a_login_can_be_asked_for(browser: Browser, tmp_path: Path) -> None:
    with served_page(tmp_path, GPEN_ZOO_AUTH="张三:密码") as served:
        context = browser.new_context(locale="zh-CN")
        page = context.new_page()
        page.goto(served.url)
        page.locator("input").nth(0).fill("张三")
        page.locator("input[type=password]").fill("密码")
        assert page.locator("#restore-button").count() == 0
        page.get_by_role("button").first.click()
        expect(page.locator("#restore-button")).to_be_visible(timeout=20_000)
        assert page.request.get(served.url + "config", headers={"Cookie": ""}).status == 401
        context.close()
