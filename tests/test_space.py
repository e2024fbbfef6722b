"""What a Space or a container needs: storage, weights asked for, a borrowed card, no strangers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

import gpen_zoo as gz
from gpen_zoo import manifest, preload, zerogpu
from gpen_zoo.branches import Upscalers
from gpen_zoo.hints import Note
from gpen_zoo.same_origin import SameOrigin
from gpen_zoo.types import Image
from gpen_zoo.zoo import Zoo
from tests.test_background import stored
from tests.test_download import HF, Hub, entry_of, hub, pth  # noqa: F401 - a fixture

ROOT = Path(__file__).parents[1]


def test_weights_go_to_the_persistent_storage_of_a_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPEN_ZOO_HOME", "mine")
    monkeypatch.setenv("SYSTEM", "spaces")
    preload.settle(tmp_path)
    assert preload.os.environ["GPEN_ZOO_HOME"] == "mine"
    monkeypatch.delenv("GPEN_ZOO_HOME")
    preload.settle(tmp_path / "absent")
    assert "GPEN_ZOO_HOME" not in preload.os.environ
    preload.settle(tmp_path)
    assert preload.os.environ["GPEN_ZOO_HOME"] == str(tmp_path / "gpen-zoo")
    monkeypatch.setenv("GPEN_ZOO_HOME", "")


def test_what_was_asked_for_is_fetched_and_used(
    hub: Hub,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    content = pth(tmp_path)
    hub.add_hugging_face("a/gpen", "sub/mine.pth", content)
    zoo, used = Zoo(tmp_path / "zoo", (manifest.load()[0], entry_of(content, HF))), list[str]()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    preload.fetch_wanted(zoo, used.append)
    assert (used, hub.seen) == ([], []), "nothing is downloaded without being asked for"
    monkeypatch.setenv("GPEN_ZOO_PRELOAD", "Nonsense, mine.pth ,")
    preload.fetch_wanted(zoo, used.append)
    assert used == ["Mine-64"]
    preload.fetch_wanted(zoo, used.append)
    assert used == ["Mine-64"]


def test_a_space_adopts_what_its_hub_cache_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = pth(tmp_path)
    blobs = tmp_path / "hub" / "models--a--gpen" / "blobs"
    blobs.mkdir(parents=True)
    (blobs / "000").write_bytes(content)
    for name, value in {"HF_HUB_CACHE": str(tmp_path / "hub"), "HOME": str(tmp_path), "SYSTEM": "spaces"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path / "hub")
    zoo, used = Zoo(tmp_path / "zoo", (entry_of(content),)), list[str]()
    preload.fetch_wanted(zoo, used.append)
    assert used == ["Mine-64"]


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """ZeroGPU as far as it shows from outside: every call goes through pickle, as to another process."""
    import pickle

    calls: list[Any] = []
    fake = ModuleType("spaces")

    def gpu(duration: Callable[..., int]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            def call(*given: Any) -> Any:
                calls.append(duration(*given))
                if isinstance(calls[0], Exception):
                    raise calls[0]
                return pickle.loads(pickle.dumps(function(*pickle.loads(pickle.dumps(given)))))

            return call

        return decorate

    fake.GPU = gpu  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "spaces", fake)
    monkeypatch.setenv("SPACES_ZERO_GPU", "true")
    zerogpu._decorated.cache_clear()
    return calls


def crops(size: int, count: int = 1) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 255, (count, size, size, 3), dtype=np.uint8)


def test_the_network_runs_on_the_borrowed_card_and_nothing_else(card: list[Any]) -> None:
    plain = gz.load()
    there = zerogpu.borrowed(plain)
    some = crops(plain.branches[0].size, 2)
    told: list[tuple[int, int]] = []
    answer = there.branches[0].engine.restore(some, on_crop=lambda done, total: told.append((done, total)))
    assert card == [round(zerogpu.START_SECONDS + 2 * zerogpu.FACE_SECONDS / 4)]
    assert told == [(2, 2)]
    own = plain.branches[0].engine.restore(some)
    assert all(np.array_equal(a.pixels, b.pixels) for a, b in zip(answer, own, strict=True))  # type: ignore[arg-type]
    picture = Image(pixels=np.full((64, 64, 3), 90, np.uint8))
    assert there(picture).notes == plain(picture).notes
    assert len(card) == 1, "no card is borrowed for a photo without faces"


def test_the_background_is_enlarged_on_the_borrowed_card(card: list[Any], zoo_home: Path) -> None:
    name = "RealESRGAN-x2plus"
    zoo = Zoo(entries=(stored(zoo_home, name, wrapper="params_ema"),))
    plain = replace(gz.load(), upscalers=Upscalers(zoo, "cpu", "float32"))
    there = zerogpu.borrowed(plain)
    picture = Image(pixels=np.random.default_rng(0).integers(0, 255, (40, 60, 3), dtype=np.uint8))
    told: list[tuple[str, int, int]] = []
    options = gz.Options(scale=2, background=name)
    made = there(picture, options, progress=lambda *news: told.append(news))
    assert card == [round(zerogpu.START_SECONDS + zerogpu.MEGAPIXEL_SECONDS * 80 * 120 / 1e6)]
    assert ("background", 1, 1) in told
    assert np.array_equal(made.image.pixels, plain(picture, options).image.pixels)
    assert made.notes == plain(picture, options).notes
    assert there.upscalers.names() == plain.upscalers.names()
    there(picture, replace(options, background="lanczos"))
    assert len(card) == 1


def test_what_the_platform_refuses_becomes_a_hint(card: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    class Refused(Exception):
        message = "You have exceeded your GPU quota"

    there = zerogpu.borrowed(gz.load())
    card.append(Refused())
    with pytest.raises(gz.GpenError) as caught:
        there.branches[0].engine.restore(crops(256))
    assert caught.value.code == "S30"
    assert "quota" in str(caught.value)
    card.clear()
    monkeypatch.setattr(zerogpu, "_branches", {"gpen-demo-256": there.branches[0]})
    assert isinstance(zerogpu.run("nobody", crops(256)), Note)


def test_without_zerogpu_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPACES_ZERO_GPU", raising=False)
    plain = gz.load()
    assert zerogpu.borrowed(plain) is plain


def test_other_sites_cannot_press_buttons() -> None:
    app = Starlette(
        routes=[Route("/", lambda request: PlainTextResponse("done"), methods=["GET", "POST"])],
        middleware=[Middleware(SameOrigin)],
    )
    client = TestClient(app, base_url="http://here.example")
    assert client.post("/").status_code == 200
    assert client.post("/", headers={"Origin": "http://here.example"}).status_code == 200
    for origin in ("http://evil.example", "null"):
        assert client.post("/", headers={"Origin": origin}).status_code == 403
        assert client.get("/", headers={"Origin": origin}).status_code == 200
    behind = {"Origin": "https://public.example", "X-Forwarded-Host": "public.example"}
    assert client.post("/", headers=behind).status_code == 200


def test_the_entry_point_of_a_space_builds_its_page(tmp_path: Path) -> None:
    code = "import app; print(app.demo.title, app.page.launch_options['auth'])"
    environment = {**preload.os.environ, "GPEN_ZOO_HOME": str(tmp_path), "GPEN_ZOO_AUTH": "张三:密码, ann:a:b"}
    out = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=True, timeout=120
    )
    assert out.stdout.strip() == "GPEN Zoo [('张三', '密码'), ('ann', 'a:b')]"
