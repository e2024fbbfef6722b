"""The page in a real Chromium and the API through gradio_client, on the bundled weights."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gradio_client import Client, handle_file
from gradio_client.exceptions import AppError
from playwright.sync_api import Browser, Page, expect
from skimage import data

import gpen_zoo as gz
from gpen_zoo.hints import CATALOGUE, Lang, say
from gpen_zoo.types import Image
from tests.browser import SCREENSHOTS, chromium

SHAPES = {"wide": {"width": 1280, "height": 900}, "phone": {"width": 390, "height": 844}}
LOCALES: dict[Lang, str] = {"zh": "zh-HK", "en": "en-GB"}  # neither is in Gradio's own list of languages


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Address of the running page, and the folder Gradio serves files from."""
    folder = tmp_path_factory.mktemp("served")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRADIO_TEMP_DIR", str(folder))
        patch.setenv("GPEN_ZOO_HOME", str(folder / "zoo"))
        from gpen_zoo.page import build

        page = build()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        page.blocks.launch(server_port=port, prevent_thread_lock=True, quiet=True, **page.launch_options)
        yield f"http://127.0.0.1:{port}/", folder
        page.blocks.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def photo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    small = data.astronaut()[::2, ::2].copy()
    return gz.write(Image(pixels=small), tmp_path_factory.mktemp("photo") / "奶奶 1965.jpg", quality=60)


def open_page(browser: Browser, url: str, lang: Lang, shape: str = "wide", *, dark: bool = False) -> Page:
    scheme: Any = "dark" if dark else "light"
    context = browser.new_context(
        locale=LOCALES[lang], viewport=SHAPES[shape], color_scheme=scheme, accept_downloads=True
    )
    page = context.new_page()
    page.problems = []  # type: ignore[attr-defined]
    page.on("pageerror", lambda error: page.problems.append(str(error)))  # type: ignore[attr-defined]
    page.goto(url)
    expect(page.locator("#restore-button")).to_have_text(say("ui.restore", lang))
    return page


def restore(page: Page, photo: Path) -> None:
    page.locator("#photo-input input[type=file]").set_input_files(photo)
    expect(page.locator("#photo-input img")).to_have_count(1)
    page.locator("#restore-button").click()
    expect(page.locator("#result-slider img")).to_have_count(2, timeout=60_000)
    expect(page.locator("#download")).to_be_enabled()


def sources(page: Page) -> list[str]:
    return [str(i.get_attribute("src")) for i in page.locator("#result-slider img").all()]


def picture(page: Page, src: str) -> np.ndarray:
    return gz.decode(page.request.get(src).body()).pixels


@pytest.mark.browser
@pytest.mark.parametrize("lang", ["zh", "en"])
@pytest.mark.parametrize("shape", SHAPES)
def test_from_upload_to_download(
    browser: Browser, served: tuple[str, Path], photo: Path, tmp_path: Path, lang: Lang, shape: str
) -> None:
    page = open_page(browser, served[0], lang, shape, dark=shape == "wide" and lang == "zh")
    restore(page, photo)
    before, after = (picture(page, src) for src in sources(page))
    assert before.shape == after.shape == (256, 256, 3)
    assert not np.array_equal(before, after)
    expect(page.locator("#status")).to_contain_text(say("D01", lang, name="gpen-demo-256"))
    expect(page.locator("#faces label")).to_have_count(1)
    expect(page.locator("#weights")).to_contain_text("CC0-1.0")

    shown = sources(page)[1]
    slider = page.locator("#strength input[type=range]")
    slider.focus()
    for _ in range(10):
        slider.press("ArrowLeft")
    expect(page.locator("#result-slider img").nth(1)).not_to_have_attribute("src", shown)
    expect(page.locator("#download")).to_be_enabled()
    page.wait_for_timeout(1000)  # the last of ten blends, each of which may still replace the one before
    expect(page.locator("#download")).to_be_enabled()
    milder = picture(page, sources(page)[1]).astype(int)
    assert 0 < np.abs(milder - before).mean() < np.abs(after.astype(int) - before).mean()

    with page.expect_download() as started:
        page.locator("#download").click()
    assert started.value.suggested_filename == "奶奶 1965_restored.jpg"
    target = tmp_path / "got.jpg"
    started.value.save_as(target)
    written = [p.read_bytes() for p in served[1].rglob("*_restored.jpg")]
    assert target.read_bytes() in written
    assert gz.read(target).pixels.shape == (256, 256, 3)

    assert page.evaluate("document.documentElement.scrollWidth") <= SHAPES[shape]["width"]
    SCREENSHOTS.mkdir(exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"restored-{lang}-{shape}.png", full_page=True)
    assert page.problems == []  # type: ignore[attr-defined]
    page.context.close()


@pytest.mark.browser
def test_switching_the_language_keeps_the_work_and_is_remembered(
    browser: Browser, served: tuple[str, Path], photo: Path
) -> None:
    page = open_page(browser, served[0], "en")
    restore(page, photo)
    shown = sources(page)
    page.locator("#language").get_by_label("中文").check()
    expect(page.locator("#restore-button")).to_have_text("修复")
    expect(page.locator("#status")).to_contain_text(say("D01", "zh", name="gpen-demo-256"))
    expect(page.locator("#faces")).to_contain_text(say("F04", "zh", branch="gpen-demo-256"))
    expect(page.locator("#photo-input")).to_contain_text(say("ui.photo", "zh"))
    assert sources(page) == shown
    assert page.evaluate("document.documentElement.lang") == "zh-CN"
    page.reload()
    expect(page.locator("#restore-button")).to_have_text("修复")
    page.context.close()


@pytest.mark.browser
def test_no_label_of_the_page_is_left_in_the_other_language(browser: Browser, served: tuple[str, Path]) -> None:
    page = open_page(browser, served[0], "en")
    for lang, other in (("zh", "en"), ("en", "zh")):
        page.locator("#language").get_by_label("中文" if lang == "zh" else "English").check()
        expect(page.locator("#restore-button")).to_have_text(say("ui.restore", lang))
        text = page.locator(".gradio-container").inner_text()
        static = ("ui.title", "ui.lead", "ui.photo", "ui.strength", "ui.slider", "ui.download", "ui.privacy", "ui.idle")
        for key in static:
            pair = dict(zip(("zh", "en"), CATALOGUE[key], strict=True))
            assert pair[lang] in text, key
            if pair[lang] not in pair[other] and pair[other] not in pair[lang]:
                assert pair[other] not in text, key
    page.context.close()


@pytest.mark.browser
def test_unticking_a_face_gives_its_photo_back(browser: Browser, served: tuple[str, Path], photo: Path) -> None:
    page = open_page(browser, served[0], "en")
    restore(page, photo)
    before, shown = sources(page)
    page.locator("#faces input[type=checkbox]").first.uncheck()
    expect(page.locator("#result-slider img").nth(1)).not_to_have_attribute("src", shown)
    assert np.array_equal(picture(page, before), picture(page, sources(page)[1]))
    expect(page.locator("#faces")).to_contain_text(say("F05", "en"))
    page.context.close()


@pytest.mark.browser
@pytest.mark.parametrize("lang", ["zh", "en"])
def test_what_is_no_picture_is_explained(
    browser: Browser, served: tuple[str, Path], tmp_path: Path, lang: Lang
) -> None:
    page = open_page(browser, served[0], lang)
    empty, web = tmp_path / "空.jpg", tmp_path / "page.jpg"
    empty.write_bytes(b"")
    web.write_bytes(b"<!doctype html><html><script>document.title='hacked'</script></html>")
    page.locator("#restore-button").click()
    expect(page.locator("#status [role=alert]")).to_contain_text(say("S01", lang))
    for path, kind in ((web, "kind.html"), (empty, "kind.empty")):
        page.locator("#photo-input input[type=file]").set_input_files(path)
        expect(page.locator("#photo-input img")).to_have_count(1)
        page.locator("#restore-button").click()
        expect(page.locator("#status [role=alert]")).to_contain_text(say(kind, lang))
        expect(page.locator("#download")).to_be_disabled()
        page.locator("#photo-input button").first.click()
        page.reload()
        expect(page.locator("#restore-button")).to_have_text(say("ui.restore", lang))
    page.context.close()


@pytest.mark.browser
def test_an_example_photo_can_be_tried_at_once(browser: Browser, served: tuple[str, Path]) -> None:
    page = open_page(browser, served[0], "zh", "phone")
    page.get_by_role("button").filter(has=page.locator("img[src*='old-print']")).first.click()
    expect(page.locator("#photo-input img")).to_have_count(1)
    page.locator("#restore-button").click()
    expect(page.locator("#result-slider img")).to_have_count(2, timeout=60_000)
    expect(page.locator("#faces label")).to_have_count(1)
    page.context.close()


@pytest.mark.browser
def test_two_visitors_at_once_get_their_own_photos(
    browser: Browser, served: tuple[str, Path], photo: Path, tmp_path: Path
) -> None:
    mirrored = gz.write(Image(pixels=data.astronaut()[::2, ::-2].copy()), tmp_path / "mirrored.png")
    pages = [open_page(browser, served[0], "en"), open_page(browser, served[0], "zh")]
    for page, path in zip(pages, (photo, mirrored), strict=True):
        page.locator("#photo-input input[type=file]").set_input_files(path)
        expect(page.locator("#photo-input img")).to_have_count(1)
        page.locator("#restore-button").click()
    for page, path in zip(pages, (photo, mirrored), strict=True):
        expect(page.locator("#result-slider img")).to_have_count(2, timeout=60_000)
        seen = picture(page, sources(page)[0]).astype(int)
        assert np.abs(seen - gz.read(path).pixels).mean() < 4
        page.context.close()


def test_the_api_restores_a_file(served: tuple[str, Path], photo: Path) -> None:
    client = Client(served[0], verbose=False)
    path, report = client.predict(handle_file(photo), {"strength": 0.5}, api_name="/restore")
    assert gz.read(path).pixels.shape == (256, 256, 3)
    assert Path(path).name.endswith("_restored.jpg")
    assert report["version"] == 1
    assert report["faces"][0]["verdict"] == "restored"
    assert report["faces"][0]["strength"] == 0.5
    plain = client.predict(handle_file(photo), {}, api_name="/restore")[1]
    assert plain["faces"][0]["strength"] == 1


def test_the_api_says_what_was_wrong_in_both_languages(served: tuple[str, Path], photo: Path, tmp_path: Path) -> None:
    client = Client(served[0], verbose=False)
    with pytest.raises(AppError) as refused:
        client.predict(handle_file(photo), {"strength": 7}, api_name="/restore")
    assert "U01" in str(refused.value)
    assert say("U01", "zh", value=7) in str(refused.value)
    text = tmp_path / "notes.txt"
    text.write_text("not a picture")
    with pytest.raises(AppError, match="I01"):
        client.predict(handle_file(text), {}, api_name="/restore")


def test_only_the_api_is_public(served: tuple[str, Path]) -> None:
    described = Client(served[0], verbose=False).view_api(return_format="dict", print_info=False)
    assert list(described["named_endpoints"]) == ["/restore"]
