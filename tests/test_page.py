"""The Restore tab and the frame of the page in a real Chromium, and the API, on the bundled weights."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from gradio_client import Client, handle_file
from gradio_client.exceptions import AppError
from playwright.sync_api import Browser, Route, expect
from skimage import data

import gpen_zoo as gz
from gpen_zoo.hints import CATALOGUE, Lang, say
from gpen_zoo.options import FIELDS
from gpen_zoo.types import Image
from tests.browser import (
    SHAPES,
    Served,
    choose,
    leave,
    open_page,
    picture,
    restore,
    shoot,
    sources,
)

browser_test = pytest.mark.browser


@pytest.fixture(scope="module")
def photo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    small = data.astronaut()[::2, ::2].copy()
    return gz.write(Image(pixels=small), tmp_path_factory.mktemp("photo") / "奶奶 1965.jpg", quality=60)


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve faces, so that there is time to stop."""
    face = data.astronaut()[:250, 130:340]
    rows = np.vstack([np.hstack([face] * 4)] * 3).copy()
    return gz.write(Image(pixels=rows), tmp_path_factory.mktemp("crowd") / "crowd.jpg")


@browser_test
@pytest.mark.parametrize("lang", ["zh", "en"])
@pytest.mark.parametrize("shape", SHAPES)
def test_from_upload_to_download(
    browser: Browser, served: Served, photo: Path, tmp_path: Path, lang: Lang, shape: str
) -> None:
    page = open_page(browser, served.url, lang, shape, dark=shape == "wide" and lang == "zh")
    choose(page, photo)
    told = page.locator("#status")
    expect(told).to_contain_text(say("ui.found", lang, found=1, todo=1), use_inner_text=True)
    expect(told).to_contain_text("256×256", use_inner_text=True)
    page.locator("#restore-button").click()
    expect(page.locator("#status .done")).to_be_visible(timeout=60_000)
    expect(page.locator("#download")).to_be_enabled()
    before, after = (picture(page, src) for src in sources(page))
    assert before.shape == after.shape == (256, 256, 3)
    assert not np.array_equal(before, after)
    expect(told).to_contain_text(say("D01", lang, name="gpen-demo-256"), use_inner_text=True)
    expect(page.locator("#faces li")).to_have_count(1)

    shown = sources(page)[1]
    slider = page.locator("#strength input[type=range]")
    slider.focus()
    for _ in range(10):
        slider.press("ArrowLeft")
    expect(page.locator("#faces .value")).to_have_text("0.50")
    expect(page.locator("#download")).to_be_enabled()
    assert sources(page)[1] != shown
    milder = picture(page, sources(page)[1]).astype(int)
    assert 0 < np.abs(milder - before).mean() < np.abs(after.astype(int) - before).mean()

    with page.expect_download() as started:
        page.locator("#download").click()
    assert started.value.suggested_filename == "奶奶 1965_restored.jpg"
    target = tmp_path / "got.jpg"
    started.value.save_as(target)
    assert target.read_bytes() in [p.read_bytes() for p in served.files.rglob("*_restored.jpg")]
    assert gz.read(target).pixels.shape == (256, 256, 3)

    page.get_by_role("button", name=say("ui.report", lang)).click()
    expect(page.locator("#command textarea")).to_have_value(
        'gpen-zoo restore -i "奶奶 1965.jpg" -o restored/ --strength 0.5'
    )
    with page.expect_download() as started:
        page.locator("#report-file").click()
    assert started.value.suggested_filename == "奶奶 1965_restored.json"
    assert page.evaluate("document.documentElement.scrollWidth") <= SHAPES[shape]["width"]
    shoot(page, f"restored-{lang}-{shape}")
    leave(page)


@browser_test
def test_switching_the_language_keeps_the_work_and_is_remembered(browser: Browser, served: Served, photo: Path) -> None:
    page = open_page(browser, served.url, "en")
    restore(page, photo)
    shown = sources(page)
    page.locator("#language").get_by_label("中文").check()
    expect(page.locator("#restore-button")).to_have_text(say("ui.restore", "zh"))
    for place, sentence in (
        ("#status", say("D01", "zh", name="gpen-demo-256")),
        ("#faces", say("F44", "zh", percent=60).partition("，")[0]),
        ("#photo-input", say("ui.photo", "zh")),
    ):
        expect(page.locator(place)).to_contain_text(sentence, use_inner_text=True)
    assert sources(page) == shown
    assert page.evaluate("document.documentElement.lang") == "zh-CN"
    page.reload()
    expect(page.locator("#restore-button")).to_have_text(say("ui.restore", "zh"))
    leave(page)


@browser_test
def test_a_link_can_name_the_language(browser: Browser, served: Served) -> None:
    page = open_page(browser, served.url, "en")
    page.goto(served.url + "?lang=zh")
    expect(page.locator("#restore-button")).to_have_text(say("ui.restore", "zh"))
    expect(page.locator("#privacy")).to_contain_text(say("ui.privacy", "zh"), use_inner_text=True)
    leave(page)


@browser_test
def test_no_label_of_the_page_is_left_in_the_other_language(browser: Browser, served: Served) -> None:
    page = open_page(browser, served.url, "en")
    for lang, other in (("zh", "en"), ("en", "zh")):
        page.locator("#language").get_by_label("中文" if lang == "zh" else "English").check()
        expect(page.locator("#restore-button")).to_have_text(say("ui.restore", lang))
        text = page.locator(".gradio-container").inner_text()
        static = ("ui.title", "ui.lead", "ui.photo", "ui.strength", "ui.download", "ui.privacy", "ui.idle", "ui.drop")
        for key in static:
            pair = dict(zip(("zh", "en"), CATALOGUE[key], strict=True))
            assert pair[lang] in text, key
            if pair[lang] not in pair[other] and pair[other] not in pair[lang]:
                assert pair[other] not in text, key
    leave(page)


@browser_test
def test_unticking_a_face_gives_its_photo_back(browser: Browser, served: Served, photo: Path) -> None:
    page = open_page(browser, served.url, "en")
    restore(page, photo)
    before, shown = sources(page)
    page.locator("#faces input[type=checkbox]").first.uncheck()
    expect(page.locator("#faces")).to_contain_text(say("F05", "en"), use_inner_text=True)
    expect(page.locator("#download")).to_be_enabled()
    assert sources(page)[1] != shown
    assert np.array_equal(picture(page, before), picture(page, sources(page)[1]))
    leave(page)


@browser_test
def test_a_face_has_a_strength_of_its_own(browser: Browser, served: Served, photo: Path) -> None:
    page = open_page(browser, served.url, "en")
    restore(page, photo)
    page.locator("#auto input").uncheck()
    expect(page.locator("#faces .value")).to_have_text("1.00")
    own = page.locator("#faces input[type=range]")
    own.focus()
    for _ in range(4):
        own.press("ArrowLeft")
    expect(page.locator("#faces .value")).to_have_text("0.80")
    page.locator("#strength input[type=range]").press("ArrowLeft")  # while the server is still busy with the face
    expect(page.locator("#download")).to_be_enabled()
    page.wait_for_timeout(1500)
    expect(page.locator("#faces .value")).to_have_text("0.80")
    page.locator("#report-box > button").click()
    expect(page.locator("#report")).to_contain_text(re.compile(r'"strengths":\s*{\s*"1":\s*0.8'))
    page.locator("#faces .reset").click()
    expect(page.locator("#faces .value")).to_have_text("0.95")
    leave(page)


@browser_test
def test_a_change_takes_the_download_away_before_the_server_hears_of_it(
    browser: Browser, served: Served, photo: Path
) -> None:
    page = open_page(browser, served.url, "en")
    restore(page, photo)
    page.locator("#more > button").click()
    held: list[Route] = []
    page.route("**/queue/join*", lambda route: held.append(route))
    for touch in (
        lambda: page.locator("#strength input[type=range]").press("ArrowLeft"),
        lambda: page.locator("#grain input").check(),
        lambda: page.locator("#faces input[type=checkbox]").first.uncheck(),
    ):
        touch()
        expect(page.locator("#download")).to_be_disabled(timeout=2_000)
        page.wait_for_timeout(300)
        assert len(held) == 1
        held.pop().continue_()
        expect(page.locator("#download")).to_be_enabled()
    leave(page)


@browser_test
def test_more_options_change_the_result_and_the_command_line(browser: Browser, served: Served, photo: Path) -> None:
    page = open_page(browser, served.url, "zh")
    restore(page, photo)
    page.locator("#more > button").click()
    page.locator("#report-box > button").click()
    for place, choice in (("#mask", say("ui.mask_crop", "zh")), ("#tone", say("ui.tone_grey", "zh"))):
        shown = sources(page)[1]
        page.locator(f"{place} input").click()
        page.get_by_role("option", name=choice).click()
        expect(page.locator("#result-slider img").nth(1)).not_to_have_attribute("src", shown)
        expect(page.locator("#download")).to_be_enabled()
        page.wait_for_function("old => document.querySelector('#result-slider .after').src != old", arg=shown)
    page.locator("#largest input").check()
    line = page.locator("#command textarea")
    expect(line).to_have_value(re.compile("--mask crop --tone grey --largest$"))
    assert np.ptp(picture(page, sources(page)[1])[100:130, 100:130], axis=2).max() > 20, "beside the face, as it was"
    page.locator("#min-size input[type=number]").fill("200")
    page.locator("#min-size input[type=number]").press("Enter")
    expect(page.locator("#faces li.left-out")).to_have_count(1)
    before, after = (picture(page, src) for src in sources(page))
    assert np.array_equal(before, after)
    leave(page)


@browser_test
def test_work_is_stopped_in_the_middle_and_can_be_started_again(browser: Browser, served: Served, crowd: Path) -> None:
    page = open_page(browser, served.url, "zh")
    choose(page, crowd)
    expect(page.locator("#faces li")).to_have_count(12)
    page.locator("#restore-button").click()
    expect(page.locator("#result-slider img")).to_have_count(2, timeout=30_000)
    shoot(page, "working")
    page.locator("#stop-button").click()
    expect(page.locator("#status [role=alert]")).to_contain_text(say("S05", "zh"), use_inner_text=True)
    expect(page.locator("#restore-button")).to_be_enabled()
    expect(page.locator("#stop-button")).to_be_disabled()
    expect(page.locator("#result-slider img")).to_have_count(0)
    page.locator("#restore-button").click()
    expect(page.locator("#status .done")).to_be_visible(timeout=60_000)
    expect(page.locator("#faces .after")).to_have_count(12)
    expect(page.locator("#download")).to_be_enabled()
    page.locator("#restore-button").click()
    expect(page.locator("#download")).to_be_disabled()
    page.locator("#stop-button").click()
    expect(page.locator("#status [role=alert]")).to_contain_text(say("S05", "zh"), use_inner_text=True)
    expect(page.locator("#faces .after")).to_have_count(12)
    with page.expect_download() as started:
        page.locator("#download").click()
    assert gz.read(started.value.path()).pixels.shape == gz.read(crowd).pixels.shape
    leave(page)


@browser_test
@pytest.mark.parametrize("lang", ["zh", "en"])
def test_what_is_no_picture_is_explained_before_the_work(
    browser: Browser, served: Served, photo: Path, tmp_path: Path, lang: Lang
) -> None:
    page = open_page(browser, served.url, lang)
    empty, web = tmp_path / "空.jpg", tmp_path / "page.jpg"
    empty.write_bytes(b"")
    web.write_bytes(b"<!doctype html><html><script>document.title='hacked'</script></html>")
    page.locator("#restore-button").click()
    refusal = page.locator("#status [role=alert]")
    expect(refusal).to_contain_text(say("S01", lang), use_inner_text=True)
    for path, kind in ((web, "kind.html"), (empty, "kind.empty")):
        choose(page, path)
        expect(refusal).to_contain_text(say(kind, lang), use_inner_text=True)
        page.locator("#restore-button").click()
        expect(refusal).to_contain_text(say(kind, lang), use_inner_text=True)
        expect(page.locator("#download")).to_be_disabled()
        page.reload()
        expect(page.locator("#restore-button")).to_have_text(say("ui.restore", lang))
    leave(page)


@browser_test
@pytest.mark.parametrize("lang", ["zh", "en"])
def test_what_is_no_picture_is_explained_after_a_good_photo_too(
    browser: Browser, served: Served, photo: Path, tmp_path: Path, lang: Lang
) -> None:
    page = open_page(browser, served.url, lang)
    restore(page, photo)
    empty, web = tmp_path / "空.jpg", tmp_path / "page.jpg"
    empty.write_bytes(b"")
    web.write_bytes(b"<!doctype html><html></html>")
    for path, kind in ((web, "kind.html"), (empty, "kind.empty")):
        page.locator("#photo-input button[aria-label='Remove Image']").click()
        expect(page.locator("#status")).to_be_empty()
        page.locator("#photo-input input[type=file]").set_input_files(path)
        refusal = page.locator("#status [role=alert]")
        expect(refusal).to_contain_text(say(kind, lang), use_inner_text=True)
        expect(page.locator("#result-slider img")).to_have_count(0)
        expect(page.locator("#faces")).to_be_empty()
        expect(page.locator("#download")).to_be_disabled()
        expect(page.get_by_test_id("toast-body")).to_have_count(0)
    assert not list(Path(gz.__file__).parent.glob("*.pyi")), "stubs that Gradio writes"
    leave(page)


@browser_test
def test_kinds_of_photos(browser: Browser, served: Served, tmp_path: Path) -> None:
    """A turned phone photo, a see-through PNG, a TIFF that no browser shows, and one of 30 megapixels."""
    pixels = data.astronaut()[:400, 50:350].copy()
    turned = tmp_path / "turned.jpg"
    one = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0"  # orientation 6
    exif = b"Exif\0\0" + one
    plain = gz.encode(Image(pixels=np.rot90(pixels).copy()), format="JPEG")
    turned.write_bytes(plain[:2] + b"\xff\xe1" + (len(exif) + 2).to_bytes(2, "big") + exif + plain[2:])
    clear = gz.write(Image(pixels=pixels, alpha=np.full((400, 300), 128, np.uint8)), tmp_path / "clear.png")
    scan = gz.write(Image(pixels=pixels), tmp_path / "scan.tif")
    big = np.full((5000, 6000, 3), 120, np.uint8)
    big[1000:1400, 1000:1300] = pixels
    large = gz.write(Image(pixels=big), tmp_path / "large.jpg", quality=80)
    page = open_page(browser, served.url, "en")
    for path, size in ((turned, (400, 300)), (clear, (400, 300)), (scan, (400, 300)), (large, (1707, 2048))):
        restore(page, path)
        assert page.locator("#photo-input img").evaluate("i => i.naturalWidth") > 0, path.name
        assert picture(page, sources(page)[0]).shape[:2] == size, path.name
        expect(page.locator("#faces li")).to_have_count(1)
        with page.expect_download() as started:
            page.locator("#download").click()
        assert started.value.suggested_filename == f"{path.stem}_restored{path.suffix}"
        if path != large:
            page.locator("#photo-input button[aria-label='Remove Image']").click()
            expect(page.locator("#status")).to_be_empty()
    page.get_by_role("button", name="100 %").click()
    expect(page.locator(".compare.actual[data-full]")).to_be_visible()
    widths = page.locator("#result-slider img").evaluate_all("all => all.map(i => i.naturalWidth)")
    assert widths == [6000, 6000]
    leave(page)


@browser_test
def test_the_divider_and_the_faces_obey_the_keyboard(browser: Browser, served: Served, photo: Path) -> None:
    page = open_page(browser, served.url, "en")
    restore(page, photo)
    divider = page.get_by_label(say("ui.divider", "en"))
    divider.focus()
    divider.press("Home")
    clip = "i => getComputedStyle(i).clipPath"
    assert page.locator("#result-slider .after").evaluate(clip).endswith("0%)")
    thumb = page.get_by_role("button", name=say("ui.thumb", "en", index=1))
    thumb.focus()
    thumb.press("Enter")
    expect(thumb).to_have_attribute("aria-pressed", "true")
    page.locator("#strength input[type=range]").press("ArrowLeft")
    expect(page.locator("#faces .value")).to_have_text("0.95")
    assert page.locator("#result-slider .after").evaluate(clip).endswith("0%)"), "the divider stays where it was"
    leave(page)


@browser_test
def test_an_example_shows_before_and_after_without_waiting(browser: Browser, served: Served) -> None:
    page = open_page(browser, served.url, "zh", "phone")
    for _ in range(200):
        if served.desk.samples_ready == 3:
            break
        page.wait_for_timeout(100)
    page.get_by_role("button").filter(has=page.locator("img[src*='old-print']")).first.click()
    expect(page.locator("#result-slider img")).to_have_count(2, timeout=5_000)
    expect(page.locator("#photo-input img")).to_have_count(1)
    expect(page.locator("#faces li")).to_have_count(1)
    expect(page.locator("#download")).to_be_enabled()
    shoot(page, "example-zh-phone")
    leave(page)


@browser_test
def test_two_visitors_at_once_get_their_own_photos(
    browser: Browser, served: Served, photo: Path, tmp_path: Path
) -> None:
    mirrored = gz.write(Image(pixels=data.astronaut()[::2, ::-2].copy()), tmp_path / "mirrored.png")
    pages = [open_page(browser, served.url, "en"), open_page(browser, served.url, "zh")]
    for page, path in zip(pages, (photo, mirrored), strict=True):
        choose(page, path)
    for page in pages:
        page.locator("#restore-button").click()
    for page, path in zip(pages, (photo, mirrored), strict=True):
        expect(page.locator("#status .done")).to_be_visible(timeout=60_000)
        seen = picture(page, sources(page)[0]).astype(int)
        assert np.abs(seen - gz.read(path).pixels).mean() < 4
        leave(page)


@browser_test
def test_a_visitor_who_leaves_takes_their_photo_along(browser: Browser, served: Served, photo: Path) -> None:
    page = open_page(browser, served.url, "en")
    restore(page, photo)
    shown = sources(page)[1]
    before = len(served.desk.sessions)
    assert page.request.get(shown).status == 200
    page.goto("about:blank")
    for _ in range(100):
        if len(served.desk.sessions) < before:
            break
        page.wait_for_timeout(100)
    assert page.request.get(shown).status != 200
    leave(page)


@browser_test
def test_nothing_is_loaded_from_elsewhere(browser: Browser, served: Served, photo: Path) -> None:
    page = open_page(browser, served.url, "zh")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.reload()
    restore(page, photo)
    page.wait_for_timeout(500)
    assert asked
    assert [url for url in asked if not url.startswith((served.url, "data:", "blob:"))] == []
    leave(page)


def test_the_api_restores_a_file(served: Served, photo: Path) -> None:
    client = Client(served.url, verbose=False)
    path, report = client.predict(handle_file(photo), {"strength": 0.5}, api_name="/restore")
    assert gz.read(path).pixels.shape == (256, 256, 3)
    assert Path(path).name.endswith("_restored.jpg")
    assert report["version"] == 1
    assert report["faces"][0]["verdict"] == "restored"
    assert report["faces"][0]["strength"] == 0.5
    (face,) = client.predict(handle_file(photo), {}, api_name="/restore")[1]["faces"]
    assert face["strength"] == face["default_strength"] == report["faces"][0]["default_strength"] != 0.5


def test_the_api_says_what_was_wrong_in_both_languages(served: Served, photo: Path, tmp_path: Path) -> None:
    client = Client(served.url, verbose=False)
    with pytest.raises(AppError) as refused:
        client.predict(handle_file(photo), {"strength": 7}, api_name="/restore")
    assert "U01" in str(refused.value)
    assert say("U01", "zh", value=7) in str(refused.value)
    text = tmp_path / "notes.txt"
    text.write_text("not a picture")
    with pytest.raises(AppError, match="I01"):
        client.predict(handle_file(text), {}, api_name="/restore")


def test_only_the_api_is_public(served: Served) -> None:
    described = Client(served.url, verbose=False).view_api(return_format="dict", print_info=False)
    assert list(described["named_endpoints"]) == ["/restore", "/batch", "/weights"]
    told = described["named_endpoints"]["/restore"]["description"]
    assert [name for name in FIELDS if name not in told] == []
