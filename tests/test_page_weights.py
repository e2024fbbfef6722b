"""The Weights tab: in a real Chromium against a local hub, and what stands behind it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from gradio_client import Client
from playwright.sync_api import Browser, Page, expect
from skimage import data

import gpen_zoo as gz
from gpen_zoo import manifest
from gpen_zoo.desk import Desk
from gpen_zoo.hints import note, say
from gpen_zoo.manifest import Entry
from gpen_zoo.obtain import Wish
from gpen_zoo.sessions import Session, Sessions
from gpen_zoo.types import Image
from gpen_zoo.weights_desk import WeightsDesk
from gpen_zoo.zoo import Zoo
from tests import hub_server as hubs
from tests.browser import SHAPES, Served, leave, open_page, served_page, shoot
from tests.hub_server import Hub
from tests.test_download import HF, QUICK, entry_of, pth

BUNDLED = manifest.load()[0]


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return pth(tmp_path_factory.mktemp("made"))


@pytest.fixture(scope="module")
def entries(content: bytes) -> tuple[Entry, ...]:
    tasks = [entry for entry in manifest.load() if entry.role in ("colorizer", "inpainter", "seg2face")]
    return BUNDLED, entry_of(content, HF), *tasks


@pytest.fixture(scope="module")
def hub(content: bytes) -> Iterator[Hub]:
    with pytest.MonkeyPatch.context() as patch, hubs.running() as server:
        patch.setenv("NO_PROXY", "127.0.0.1,localhost")
        patch.setenv("HF_ENDPOINT", server.url)
        server.add_hugging_face("a/gpen", "sub/mine.pth", content)
        yield server


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, hub: Hub, entries: tuple[Entry, ...]) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("served")
    with served_page(folder, Zoo(folder / "zoo", entries)) as running:
        yield running


@pytest.fixture
def desk(tmp_path: Path, entries: tuple[Entry, ...]) -> WeightsDesk:
    zoo = Zoo(tmp_path / "zoo", entries)
    return WeightsDesk(zoo, Desk(gz.load(zoo=zoo), Sessions(tmp_path / "files")), locked=False, token=None)


def branches_offered(page: Page) -> list[str]:
    """What the Restore tab has to choose from; comes back to the Weights tab."""
    page.get_by_role("tab", name=say("ui.tab_restore", "zh")).click()
    page.wait_for_timeout(1000)
    if not page.locator("#branch").is_visible():
        page.locator("#more > button").click()
    page.locator("#branch input").click()
    offered = page.get_by_role("option").all_inner_texts()
    page.keyboard.press("Escape")
    page.get_by_role("tab", name=say("ui.tab_weights", "zh")).click()
    return [text.strip().removeprefix("✓").strip() for text in offered]


@pytest.mark.browser
def test_a_weight_is_fetched_after_a_cut_used_verified_and_removed(
    browser: Browser, served: Served, hub: Hub, content: bytes
) -> None:
    page = open_page(browser, served.url, "zh", "phone")
    page.get_by_role("tab", name=say("ui.tab_weights", "zh")).click()
    status = page.locator("#weight-status")
    for impossible in ("download", "remove"):  # the bundled demo, which is chosen at first
        expect(page.locator(f"#weight-{impossible}")).to_be_disabled()
    expect(page.locator("#weight-verify")).to_be_enabled()
    expect(page.locator("#weight-card")).to_contain_text(say("ui.w_bundled", "zh"), use_inner_text=True)
    page.locator("#weights").get_by_role("button", name="Mine-64").click()
    for impossible in ("verify", "remove"):
        expect(page.locator(f"#weight-{impossible}")).to_be_disabled()
    card = page.locator("#weight-card")
    expect(card).to_contain_text("Mine-64")
    expect(card).to_contain_text("仅供学术与非商业用途", use_inner_text=True)
    page.locator("#weight-download").click()
    expect(status).to_contain_text(say("S22", "zh", name="Mine-64"), use_inner_text=True)
    page.get_by_label(say("ui.w_consent", "zh")).first.check()
    hub.faults[:] = [hubs.cut(len(content) // 2)]
    page.locator("#weight-download").click()
    expect(status.locator(".done")).to_contain_text("Mine-64", timeout=30_000)
    ranges = [seen.headers.get("Range") for seen in hub.bodies()]
    assert len(ranges) == 2
    assert str(ranges[1]).startswith("bytes=")
    assert [b.name for b in served.desk.restorer.branches] == ["Mine-64"]
    expect(page.locator("#weights tr.chosen")).to_contain_text(say("ui.w_in_use", "zh"), use_inner_text=True)
    expect(page.get_by_label(say("ui.w_consent", "zh")).first).to_be_hidden()
    page.locator("#weight-verify").click()
    expect(status).to_contain_text("SHA256", use_inner_text=True)
    assert branches_offered(page) == [say("ui.branch_auto", "zh"), "Mine-64"]
    page.once("dialog", lambda dialog: dialog.dismiss())
    page.locator("#weight-remove").click()
    page.wait_for_timeout(300)
    assert [b.name for b in served.desk.restorer.branches] == ["Mine-64"]
    page.once("dialog", lambda dialog: dialog.accept() if dialog.message == say("ui.w_remove_sure", "zh") else None)
    page.locator("#weight-remove").click()
    expect(status).to_contain_text(say("S25", "zh", name="Mine-64", mb=0)[:12], use_inner_text=True)
    assert [b.name for b in served.desk.restorer.branches] == ["gpen-demo-256"]
    assert branches_offered(page) == [say("ui.branch_auto", "zh"), "gpen-demo-256"]
    assert page.evaluate("document.documentElement.scrollWidth") <= SHAPES["phone"]["width"]
    shoot(page, "weights-zh-phone")
    leave(page)


@pytest.mark.browser
def test_a_download_is_stopped_and_a_file_imported(
    browser: Browser, served: Served, hub: Hub, content: bytes, tmp_path: Path
) -> None:
    page = open_page(browser, served.url, "en")
    page.get_by_role("tab", name=say("ui.tab_weights", "en")).click()
    page.locator("#weights").get_by_role("button", name="Mine-64").click()
    expect(page.locator("#weight-card")).to_contain_text("Mine-64")
    page.get_by_label(say("ui.w_consent", "en")).first.check()
    hub.pause, hub.piece = 0.3, 4096
    page.locator("#weight-download").click()
    expect(page.locator("#weight-status progress[max]")).to_be_visible(timeout=15_000)
    page.locator("#weight-stop").click()
    expect(page.locator("#weight-status [role=alert]")).to_contain_text("N10", timeout=15_000)
    hub.pause, hub.piece = 0.0, 1 << 16

    page.locator("#weight-import > button").click()
    wrong, right = tmp_path / "weights.pth", tmp_path / "renamed.bin"
    wrong.write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    right.write_bytes(content)
    page.locator("#import-file input[type=file]").set_input_files(wrong)
    told = page.locator("#import-status")
    expect(told).to_contain_text("W03", use_inner_text=True)
    page.locator("#import-file button[aria-label='Clear'], #import-file button[title='Clear']").first.click()
    expect(told).to_be_empty()
    page.locator("#import-file input[type=file]").set_input_files(right)
    expect(told).to_contain_text("W40", use_inner_text=True)
    page.locator("#import-consent input").check()
    page.locator("#import-run").click()
    expect(told).to_contain_text("S23", use_inner_text=True)
    expect(page.locator("#weights tr.chosen .good")).to_have_count(1)
    page.locator("#plans-box > button").click()
    expect(page.locator("#plans table")).to_have_count(2)
    shoot(page, "weights-en-wide")
    leave(page)


@pytest.mark.browser
def test_a_public_page_shows_weights_and_changes_none(
    browser: Browser, tmp_path: Path, hub: Hub, entries: tuple[Entry, ...]
) -> None:
    with served_page(tmp_path, Zoo(tmp_path / "zoo", entries), GPEN_ZOO_ADMIN_TOKEN="öffne") as served:
        page = open_page(browser, served.url, "en")
        page.get_by_role("tab", name=say("ui.tab_weights", "en")).click()
        page.locator("#weights").get_by_role("button", name="Mine-64").click()
        expect(page.locator("#weight-card")).to_contain_text("Mine-64")
        assert str(tmp_path / "zoo") not in page.content()
        page.get_by_label(say("ui.w_consent", "en")).first.check()
        page.locator("#weight-download").click()
        expect(page.locator("#weight-status")).to_contain_text(say("S21", "en"), use_inner_text=True)
        assert not (tmp_path / "zoo").exists()
        page.locator("#weight-token input").fill("öffne")
        page.locator("#weight-download").click()
        expect(page.locator("#weight-status .done")).to_be_visible(timeout=20_000)
        leave(page)


def test_programs_may_read_the_table(served: Served) -> None:
    answer = Client(served.url, verbose=False).predict(api_name="/weights")
    assert [line["name"] for line in answer["weights"]][:2] == ["gpen-demo-256", "Mine-64"]
    assert answer["weights"][0]["status"] == "bundled"


def test_without_a_token_nobody_changes_a_public_page(tmp_path: Path, desk: WeightsDesk) -> None:
    public = WeightsDesk(desk.zoo, desk._desk, locked=True, token=None)
    for answer in (
        public.download("a", "Mine-64", token="", consent=True),
        public.verify("gpen-demo-256", token=""),
        public.remove("Mine-64", token=""),
        public.inspect("x", token=""),
        public.adopt("x", name="", token="", consent=True, accept_unpinned=True),
    ):
        assert answer == note("S20")


def test_terms_are_accepted_before_the_first_use_only(
    desk: WeightsDesk, hub: Hub, content: bytes, tmp_path: Path
) -> None:
    wish = Wish(limits=QUICK)
    refused = note("S22", name="Mine-64")
    assert desk.download("a", "Mine-64", token="", consent=False, wish=wish) == refused
    file = tmp_path / "mine.pth"
    file.write_bytes(content)
    assert desk.adopt(str(file), name="Mine-64", token="", consent=False, accept_unpinned=False) == refused
    assert desk.download("a", "Mine-64", token="", consent=True, wish=wish).code == "S23"
    assert desk.download("a", "Mine-64", token="", consent=False, wish=wish).code == "S24"
    assert not desk.wants_consent(BUNDLED)


def test_a_change_keeps_the_engines_that_are_loaded(desk: WeightsDesk, hub: Hub) -> None:
    assert desk.in_use() == ("gpen-demo-256",)
    desk.download("a", "Mine-64", token="", consent=True, wish=Wish(limits=QUICK))
    assert desk.in_use() == ("Mine-64",)
    branch = desk._desk.restorer.branches[0]
    desk.use("gpen-demo-256")
    assert desk._desk.restorer.branches[0] is branch
    desk.use("Mine-64")
    assert desk._desk.restorer.branches[0] is not branch


def test_examples_are_made_anew_when_weights_change_and_only_then(
    desk: WeightsDesk, hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner, wish = desk._desk, Wish(limits=QUICK)
    photo = gz.write(Image(pixels=data.astronaut()[:220, 120:340].copy()), tmp_path / "example.jpg")
    inner.prepare_samples((photo,))
    assert weights_of(inner, photo) == ("gpen-demo-256",)
    desk.download("a", "Mine-64", token="", consent=True, wish=wish)
    for _ in range(200):
        if inner._samples:
            break
        time.sleep(0.05)
    assert weights_of(inner, photo) == ("Mine-64",)
    monkeypatch.setattr(inner, "use", lambda *given: pytest.fail("nothing has changed"))
    assert desk.download("a", "Mine-64", token="", consent=True, wish=wish).code == "S24"
    assert weights_of(inner, photo) == ("Mine-64",)


def test_what_another_process_brought_in_is_used(desk: WeightsDesk, hub: Hub) -> None:
    Zoo(desk.zoo.home, desk.zoo.entries).download("Mine-64", Wish(limits=QUICK))
    assert desk.in_use() == ("gpen-demo-256",)
    assert desk.download("a", "Mine-64", token="", consent=True).code == "S24"
    assert desk.in_use() == ("Mine-64",)


def weights_of(desk: Desk, photo: Path) -> tuple[str, ...]:
    session = desk.try_sample("anna", str(photo))
    assert isinstance(session, Session)
    assert session.result is not None
    return session.result.weights


def test_plans_are_those_of_the_manifest(tmp_path: Path) -> None:
    zoo = Zoo(tmp_path / "zoo")
    desk = WeightsDesk(zoo, Desk(gz.load(zoo=zoo), Sessions(tmp_path / "files")), locked=False, token=None)
    assert list(desk.branches()) == ["GPEN-BFR-256", "GPEN-BFR-512", "GPEN-BFR-1024", "GPEN-BFR-2048"]
    rows = {(row.branch, row.gigabytes): row for row in desk.table("cuda")}
    assert all(row.bytes < row.gigabytes * 2**30 for row in rows.values())
    assert rows["GPEN-BFR-2048", 24].plan.batch >= rows["GPEN-BFR-2048", 2].plan.batch
