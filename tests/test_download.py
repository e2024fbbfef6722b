"""Policy over real clients and local hubs: which source, what vouches, what is recorded, and what never happens."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import torch

from gpen_zoo import lock, manifest, sources, weightfile
from gpen_zoo.errors import Cancelled, FetchFailed, WeightCorrupt, WeightMissing
from gpen_zoo.hints import Note, say
from gpen_zoo.manifest import Digest, Entry, Source
from gpen_zoo.network import GPEN
from gpen_zoo.obtain import WORK, Wish
from gpen_zoo.transport import Limits
from gpen_zoo.zoo import Zoo
from tests import hub_server as faults
from tests.hub_server import Hub

SMALL = {"size": 64, "style_dim": 16, "n_mlp": 2, "channel_multiplier": 1, "narrow": 0.0625}
QUICK = Limits(connect=5, read=5, deadline=60, attempts=2, pause=0.01)
WISH = Wish(limits=QUICK)
TRUSTING = Wish(limits=QUICK, accept_unpinned=True)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    with faults.running() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        monkeypatch.setenv("MODELSCOPE_ENDPOINT", server.url)
        yield server


def pth(tmp_path: Path, seed: int = 0, **changes: Any) -> bytes:
    torch.manual_seed(seed)
    torch.save(GPEN(**{**SMALL, **changes}).state_dict(), tmp_path / "made.pth")
    return (tmp_path / "made.pth").read_bytes()


@pytest.fixture
def content(tmp_path: Path) -> bytes:
    return pth(tmp_path)


def sha(content: bytes) -> str:
    import hashlib

    return hashlib.sha256(content).hexdigest()


def entry_of(content: bytes | None, *places: Source, **changes: Any) -> Entry:
    """A GPEN whose author published `content` as a .pth; None makes it unpinned."""
    facts: dict[str, Any] = {
        "name": "Mine-64",
        "branch": 64,
        "file": "mine.pth",
        "architecture": manifest.Architecture(family="GPEN", params=MappingProxyType(SMALL)),
        "bytes": len(content) if content else None,
        "sha256": sha(content) if content else None,
        "about_mb": 0.5,
        "sources": places,
    }
    return replace(manifest.load()[2], **{**facts, **changes})


HF = Source(kind="huggingface", repo="a/gpen", file="sub/mine.pth", revision=faults.COMMIT)
SPACE = Source(kind="huggingface", repo="a/demo", file="w/mine.pth", revision="main", repo_type="space")
MS = Source(kind="modelscope", repo="iic/gpen", file="faces/我的.pth", revision="master")


def plain(hub: Hub, content: bytes, name: str = "mine.pth") -> Source:
    return Source(kind="https", url=hub.add_plain(name, content))


def codes(tried: tuple[Note, ...]) -> list[str]:
    return [note.params["why"].code for note in tried]


def failure(zoo: Zoo, wish: Wish = WISH) -> tuple[list[str], str]:
    """Codes of every source's failure, and the sentence in English."""
    with pytest.raises(FetchFailed) as caught:
        zoo.download("Mine-64", wish)
    assert caught.value.code == "N21" and "来源" in say(caught.value.note, "zh")
    with pytest.raises((WeightMissing, WeightCorrupt)):
        zoo.locate("Mine-64")
    return codes(caught.value.note.params["tried"]), str(caught.value)


def test_hugging_face_through_its_own_client(hub: Hub, content: bytes, zoo_home: Path) -> None:
    hub.add_hugging_face("a/gpen", "sub/mine.pth", content)
    zoo = Zoo(entries=(entry_of(content, HF),))
    done = zoo.download("mine.pth", WISH)
    assert done.fresh and done.record is not None and done.record.trust == "pinned" and done.tried == ()
    head, get, body = hub.seen
    assert (head.method, get.method) == ("HEAD", "GET") and f"/a/gpen/resolve/{faults.COMMIT}/sub/mine.pth" in head.path
    assert body.host.startswith("localhost") and body.body
    state = weightfile.read_state_dict(done.path)
    torch.manual_seed(0)
    assert all(torch.equal(state[k], v) for k, v in GPEN(**SMALL).state_dict().items())  # type: ignore[arg-type]
    assert sorted(p.name for p in zoo_home.iterdir() if not p.name.startswith(".")) == [
        "Mine-64.safetensors",
        lock.LOCK_FILE,
    ]
    assert not list((zoo_home / WORK).glob("*.part*")) and not list((zoo_home / WORK).glob("*.new"))


def test_verified_file_needs_no_network(hub: Hub, content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.add_hugging_face("a/gpen", "sub/mine.pth", content)
    entries = (entry_of(content, HF),)
    Zoo(entries=entries).download("Mine-64", WISH)
    hub.seen.clear()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    done = Zoo(entries=entries).download("Mine-64", WISH)
    assert not done.fresh and hub.seen == []


def test_space_and_modelscope_and_plain(hub: Hub, content: bytes, zoo_home: Path) -> None:
    hub.add_hugging_face("a/demo", "w/mine.pth", content, kind="spaces")
    hub.add_modelscope("iic/gpen", "faces/我的.pth", content)
    for source in (SPACE, MS, plain(hub, content)):
        zoo = Zoo(entries=(entry_of(content, source),))
        assert zoo.download("Mine-64", WISH).fresh, source
        zoo.remove("Mine-64", forget=True)
    assert any("FilePath=faces%2F%E6%88%91" in seen.path for seen in hub.seen)


def test_next_source_on_failure_and_why(hub: Hub, content: bytes) -> None:
    """404, a captive portal, a wrong size, a host that says 503 for ever; the fifth serves."""
    absent = Source(kind="https", url=f"{hub.url}/files/absent.pth")
    hub.faults = [faults.captive_portal, faults.wrong_length(9), faults.status(503), faults.status(503)]
    bad = [plain(hub, content, f"{n}.pth") for n in range(3)]
    good = plain(hub, content)
    done = Zoo(entries=(entry_of(content, absent, *bad, good),)).download("Mine-64", WISH)
    assert codes(done.tried) == ["N03", "N07", "N06", "N03"] and done.record is not None
    assert done.record.source == good.url
    assert "503" in say(done.tried[3], "en") and "网页" in say(done.tried[1], "zh")


def test_all_sources_fail(hub: Hub, content: bytes, zoo_home: Path) -> None:
    nobody = Source(kind="https", url="http://127.0.0.1:9/mine.pth")
    found, text = failure(Zoo(entries=(entry_of(content, HF, MS, nobody),)))
    assert found == ["N03", "N03", "N17"]
    for part in ("mine.pth", sha(content), str(zoo_home), "huggingface:a/gpen/sub/mine.pth", "127.0.0.1:9"):
        assert part in text


@pytest.mark.parametrize("fault", [faults.other_bytes, faults.disguised_page])
def test_wrong_bytes_with_the_right_etag_are_set_aside_and_fetched_anew_once(
    hub: Hub, content: bytes, zoo_home: Path, fault: faults.Fault
) -> None:
    hub.faults = [fault]
    first = plain(hub, content)
    assert Zoo(entries=(entry_of(content, first),)).download("Mine-64", WISH).fresh
    assert len(hub.bodies()) == 2


def test_a_lying_mirror_is_left_after_one_second_chance(hub: Hub, content: bytes, zoo_home: Path) -> None:
    hub.faults = [faults.other_bytes] * 9
    liars = [plain(hub, content, f"{n}.pth") for n in range(3)]
    found, text = failure(Zoo(entries=(entry_of(content, *liars),)))
    assert found == ["N16"] * 3 and len(hub.bodies()) == 4 and "set" not in text.split("refused")[0]
    assert len(list((zoo_home / WORK).glob("*.bad"))) == 3 and not list((zoo_home / WORK).glob("*.part"))
    hub.faults = []
    assert Zoo(entries=(entry_of(content, *liars),)).download("Mine-64", WISH).fresh
    assert not list((zoo_home / WORK).glob("*.bad"))


def test_host_that_lists_another_digest_is_not_even_downloaded_from(hub: Hub, content: bytes, tmp_path: Path) -> None:
    hub.add_hugging_face("a/gpen", "sub/mine.pth", pth(tmp_path, 1))
    hub.add_modelscope("iic/gpen", "faces/我的.pth", content + b"x")
    found, text = failure(Zoo(entries=(entry_of(content, HF, MS),)))
    assert found == ["N12", "N12"] and hub.bodies() == [] and sha(content) in text


def test_unpinned_takes_what_the_hub_lists_and_binds_it(hub: Hub, content: bytes, tmp_path: Path) -> None:
    hub.add_modelscope("iic/gpen", "faces/我的.pth", content)
    zoo = Zoo(entries=(entry_of(None, MS),))
    record = zoo.download("Mine-64", WISH).record
    assert record is not None and record.trust == "hub" and record.original_sha256 == sha(content)
    assert (record.source, record.date[:2]) == ("modelscope:iic/gpen/faces/我的.pth", "20")
    assert sha(content) in zoo.pin("Mine-64") and record.sha256 in zoo.pin("Mine-64")
    zoo.remove("Mine-64")
    hub.files.clear()
    hub.listings.clear()
    hub.add_modelscope("iic/gpen", "faces/我的.pth", pth(tmp_path, 1))
    assert failure(zoo)[0] == ["N12"]
    zoo.remove("Mine-64", forget=True)
    assert zoo.download("Mine-64", WISH).fresh


def test_hub_that_sends_other_bytes_than_it_lists(hub: Hub, content: bytes) -> None:
    hub.add_modelscope("iic/gpen", "faces/我的.pth", content)
    hub.faults = [faults.other_bytes] * 5
    assert failure(Zoo(entries=(entry_of(None, MS),)))[0] == ["N16"]


def test_head_without_lfs_headers_falls_back_to_the_listing(hub: Hub, content: bytes) -> None:
    hub.lfs_headers = False
    hub.add_hugging_face("a/gpen", "sub/mine.pth", content)
    record = Zoo(entries=(entry_of(None, HF),)).download("Mine-64", WISH).record
    assert record is not None and record.trust == "hub"
    assert any(seen.path.startswith("/api/models/a/gpen/revision/") for seen in hub.seen)


def test_nothing_vouches_unless_the_user_does(hub: Hub, content: bytes, tmp_path: Path) -> None:
    source = plain(hub, content)
    hub.add_modelscope("iic/gpen", "faces/我的.pth", content, digest=False)
    zoo = Zoo(entries=(entry_of(None, source, MS),))
    found, text = failure(zoo)
    assert found == ["N11", "N11"] and hub.bodies() == [] and "--accept-unpinned" in text
    record = zoo.download("Mine-64", TRUSTING).record
    assert record is not None and record.trust == "user"
    zoo.remove("Mine-64")
    hub.add_plain("mine.pth", pth(tmp_path, 1))
    done = zoo.download("Mine-64", WISH)  # bound by what was accepted first, and no further word needed
    assert codes(done.tried) == ["N16"] and done.record is not None and done.record.source.startswith("modelscope:")


def test_user_cannot_accept_a_wrong_network(hub: Hub, tmp_path: Path) -> None:
    source = plain(hub, pth(tmp_path, size=128))
    assert failure(Zoo(entries=(entry_of(None, source),)), TRUSTING)[0] == ["W05"]


def test_token_is_for_the_official_host_only(hub: Hub, content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    hub.add_hugging_face("a/gpen", "sub/mine.pth", content)
    hub.lfs_headers = False  # so that the listing is asked too
    zoo = Zoo(entries=(entry_of(content, HF, MS),))
    zoo.download("Mine-64", WISH)
    assert hub.seen and not any("hf_secret" in value for seen in hub.seen for value in seen.headers.values())
    zoo.remove("Mine-64")
    hub.seen.clear()
    monkeypatch.setattr(sources, "HUGGING_FACE", hub.url)
    zoo.download("Mine-64", WISH)
    told = {seen.host.split(":")[0] for seen in hub.seen if "authorization" in {name.lower() for name in seen.headers}}
    assert told == {"127.0.0.1"} and {seen.host.split(":")[0] for seen in hub.seen} == {"127.0.0.1", "localhost"}


def test_explicit_endpoint_wins_over_the_environment(hub: Hub, content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    hub.add_hugging_face("a/gpen", "sub/mine.pth", content)
    zoo = Zoo(entries=(entry_of(content, HF),))
    assert failure(zoo)[0] == ["N17"]
    assert zoo.download("Mine-64", replace(WISH, endpoint=hub.url + "/")).fresh


def test_offline_asks_nobody(hub: Hub, content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    zoo = Zoo(entries=(entry_of(content, HF, plain(hub, content)),))
    with pytest.raises(FetchFailed) as caught:
        zoo.download("Mine-64", WISH)
    assert caught.value.code == "N02" and sha(content) in str(caught.value) and hub.seen == []
    local = Source(kind="local", path=str(tmp_path / "made.pth"))
    assert Zoo(entries=(entry_of(content, HF, local),)).download("Mine-64", WISH).fresh and hub.seen == []


def test_one_source_can_be_forced(hub: Hub, content: bytes) -> None:
    hub.add_modelscope("iic/gpen", "faces/我的.pth", content)
    hub.add_hugging_face("a/gpen", "sub/mine.pth", content)
    zoo = Zoo(entries=(entry_of(content, HF, MS),))
    for choice in ("modelscope", "2", "iic/gpen"):
        record = zoo.download("Mine-64", replace(WISH, source=choice)).record
        assert record is not None and record.source.startswith("modelscope:")
        zoo.remove("Mine-64")
    with pytest.raises(FetchFailed) as caught:
        zoo.download("Mine-64", replace(WISH, source="3"))
    assert caught.value.code == "N15" and "a/gpen" in str(caught.value)


def test_local_source_with_wrong_bytes(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "bad.pth").write_bytes(content[:-1])
    bad = Source(kind="local", path=str(tmp_path / "bad.pth"))
    gone = Source(kind="local", path=str(tmp_path / "gone.pth"))
    assert failure(Zoo(entries=(entry_of(content, bad, gone),)))[0] == ["N06", "N14"]


def test_conversion_published_by_somebody_is_taken_by_its_own_digest(hub: Hub, content: bytes, tmp_path: Path) -> None:
    first = Zoo(tmp_path / "other", (entry_of(content, plain(hub, content)),))
    made = first.download("Mine-64", WISH).path.read_bytes()
    source = Source(kind="huggingface", repo="me/gpen", file="Mine-64.safetensors", revision="main")
    hub.add_hugging_face("me/gpen", "Mine-64.safetensors", made)
    entry = entry_of(content, source, converted=Digest(bytes=len(made), sha256=sha(made)))
    done = Zoo(entries=(entry,)).download("Mine-64", WISH)
    assert done.path.read_bytes() == made and done.record is not None and done.record.sha256 == sha(made)
    assert failure(Zoo(tmp_path / "third", (replace(entry, converted=Digest(bytes=len(made), sha256="0" * 64)),)))[
        0
    ] == ["N12"]


def test_damaged_installation_is_set_aside_and_replaced(hub: Hub, content: bytes, zoo_home: Path) -> None:
    zoo = Zoo(entries=(entry_of(content, plain(hub, content)),))
    path = zoo.download("Mine-64", WISH).path
    good = path.read_bytes()
    path.write_bytes(good[:-1] + b"\xff")
    with pytest.raises(WeightCorrupt):
        zoo.locate("Mine-64")
    assert zoo.download("Mine-64", WISH).fresh and path.read_bytes() == good


def test_half_size_copy_comes_from_the_installed_file(hub: Hub, content: bytes) -> None:
    zoo = Zoo(entries=(entry_of(content, plain(hub, content)),))
    full = zoo.download("Mine-64", WISH).path.stat().st_size
    half = zoo.download("Mine-64", replace(WISH, dtype="float16"))
    assert half.fresh and half.path.stat().st_size < 0.6 * full and len(hub.bodies()) == 1
    assert {line.entry.name: line.dtype for line in zoo.listing()} == {"Mine-64": "float16"}
    assert not zoo.download("Mine-64", replace(WISH, dtype="float16")).fresh
    assert zoo.download("Mine-64", WISH).path.stat().st_size == full and len(hub.bodies()) == 2


def test_cancel_and_continue(hub: Hub, content: bytes, zoo_home: Path) -> None:
    hub.piece, hub.pause = 20_000, 0.01
    zoo = Zoo(entries=(entry_of(content, plain(hub, content)),))
    done: list[int] = []
    wish = replace(WISH, report=lambda p: done.append(p.done), cancelled=lambda: bool(done) and done[-1] > 60_000)
    with pytest.raises(Cancelled):
        zoo.download("Mine-64", wish)
    assert list((zoo_home / WORK).glob("*.part"))
    zoo.download("Mine-64", WISH)
    assert hub.bodies()[-1].headers["Range"].startswith("bytes=")


def test_disk_too_full_stops_at_once(hub: Hub, content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    import shutil

    usage = shutil.disk_usage("/")
    monkeypatch.setattr("gpen_zoo.fetch.shutil.disk_usage", lambda path: usage._replace(free=1))
    zoo = Zoo(entries=(entry_of(content, plain(hub, content), plain(hub, content, "b.pth")),))
    with pytest.raises(FetchFailed) as caught:
        zoo.download("Mine-64", WISH)
    assert caught.value.code == "N08" and hub.bodies() == []


def test_disk_that_is_full_for_the_conversion(
    hub: Hub, content: bytes, zoo_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The part fits, the converted file does not: nothing half-written stays, and the part serves the next try."""
    zoo = Zoo(entries=(entry_of(content, plain(hub, content)),))

    def full(target: Path, *arguments: Any) -> None:
        target.write_bytes(b"a beginning")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target))

    with monkeypatch.context() as patch:
        patch.setattr("gpen_zoo.convert.write", full)
        with pytest.raises(OSError, match="free space"):
            zoo.download("Mine-64", WISH)
    assert not list(zoo_home.rglob("*.safetensors")) and not list(zoo_home.rglob("*.new"))
    assert zoo.download("Mine-64", WISH).fresh and len(hub.bodies()) == 1


@pytest.mark.skipif(os.name != "posix", reason="POSIX permissions")
def test_folder_that_cannot_be_written(hub: Hub, content: bytes, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    zoo = Zoo(tmp_path / "file" / "zoo", (entry_of(content, plain(hub, content)),))
    with pytest.raises(OSError, match="cannot be written"):
        zoo.download("Mine-64", WISH)


def test_onnx_is_kept_as_it_is(hub: Hub) -> None:
    content = b"\x08\x07\x12\x07pytorch" + os.urandom(5000)
    entry = entry_of(
        content, plain(hub, content, "net.onnx"), name="Net", file="net.onnx", role="detector", branch=None
    )
    zoo = Zoo(entries=(replace(entry, architecture=manifest.Architecture(family="YuNet", params={})),))
    assert zoo.download("Net", WISH).path.read_bytes() == content and zoo.locate("Net").suffix == ".onnx"


def test_export_makes_another_installation_use_it(hub: Hub, content: bytes, tmp_path: Path) -> None:
    zoo = Zoo(entries=(entry_of(content, plain(hub, content)),))
    zoo.download("Mine-64", WISH)
    files = {path.name: path for path in zoo.export("Mine-64", tmp_path / "出口")}
    assert set(files) == {"Mine-64.safetensors", "README.md", "SHA256SUMS", "weights_manifest.yaml"}
    card = files["README.md"].read_text("utf-8")
    assert "license: unknown" in card and "for academic and non-commercial use only" in card and sha(content) in card
    assert "仅供学术与非商业用途" in card
    digest, name = files["SHA256SUMS"].read_text().split()
    assert (digest, name) == (weightfile.sha256_of(files[name]), "Mine-64.safetensors")
    block = tmp_path / "block.yaml"
    block.write_text(files["weights_manifest.yaml"].read_text("utf-8").replace("OWNER", "me"), "utf-8")
    hub.add_hugging_face("me/Mine-64", "Mine-64.safetensors", files[name].read_bytes())
    other = Zoo(tmp_path / "other", manifest.load(block))
    done = other.download("Mine-64", WISH)
    assert done.path.read_bytes() == files[name].read_bytes() and done.entry.alignment is not None


def test_inventory(hub: Hub, content: bytes, zoo_home: Path) -> None:
    zoo = Zoo(
        entries=(
            manifest.load()[0],
            entry_of(content, plain(hub, content)),
            entry_of(None, MS, name="B-64", file="b.pth"),
        )
    )
    assert [line.status for line in zoo.listing()] == ["bundled", "missing", "unpinned"] and zoo.disk_use() == 0
    zoo.download("Mine-64", WISH)
    line = zoo.listing()[1]
    assert line.trust == "pinned" and line.bytes == zoo.path_of(line.entry).stat().st_size
    assert zoo.disk_use() >= line.bytes and json.dumps([line.as_dict() for line in zoo.listing()])
    assert zoo.verify("Mine-64").params["bytes"] == line.bytes
    assert zoo.remove("Mine-64") >= line.bytes and zoo.listing()[1].status == "missing"
    with pytest.raises(ValueError, match="ships with the project"):
        zoo.remove("gpen-demo-256")
    assert zoo.verify("gpen-demo-256").code == "W35" and not zoo.download("gpen-demo-256", WISH).fresh
