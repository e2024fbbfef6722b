"""Files that are already here: found by digest whatever their name, copied or converted, refused with the reason."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from gpen_zoo import adopt, lock, manifest, weightfile
from gpen_zoo.errors import PathInaccessible, WeightCorrupt, WeightMissing, WeightWrongKind
from gpen_zoo.network import GPEN
from gpen_zoo.zoo import Zoo
from tests.test_download import SMALL, entry_of, pth


@pytest.fixture
def content(tmp_path: Path) -> bytes:
    return pth(tmp_path)


def test_file_under_any_name_is_known_by_its_digest(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "下载 (3).bin"
    path.write_bytes(content)
    zoo = Zoo(entries=(manifest.load()[0], entry_of(content)))
    (done,) = zoo.adopt(path)
    assert done.fresh and done.entry.name == "Mine-64" and path.read_bytes() == content
    assert done.record is not None and done.record.trust == "pinned" and done.record.original_file == path.name
    assert not zoo.adopt(path)[0].fresh


def test_same_original_from_two_places_gives_the_same_file(content: bytes, tmp_path: Path) -> None:
    """The record says where it came from; the file does not, so that it can be compared and shared."""
    made = []
    for name in ("a.pth", "b.pt"):
        (tmp_path / name).write_bytes(content)
        (done,) = Zoo(tmp_path / f"zoo-{name}", (entry_of(content),)).adopt(tmp_path / name)
        made.append(done.path.read_bytes())
    assert made[0] == made[1]


def test_folder_and_hub_cache_are_scanned(content: bytes, tmp_path: Path) -> None:
    blobs = tmp_path / "hub" / "models--a--b" / "blobs"
    blobs.mkdir(parents=True)
    (blobs / "f1002c41").write_bytes(content)  # a cache names its blobs by digest, without a suffix
    (tmp_path / "hub" / "notes.txt").write_bytes(content)
    (tmp_path / "hub" / "unreadable.pth").symlink_to(tmp_path / "gone")
    zoo = Zoo(entries=(entry_of(content),))
    assert [match.path.name for match in zoo.find((tmp_path / "hub",))] == ["f1002c41"]
    (done,) = zoo.adopt(tmp_path / "hub")
    assert done.fresh and zoo.locate("Mine-64") == done.path


def test_likely_places_are_those_that_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    for name in ("HF_HOME", "HF_HUB_CACHE", "MODELSCOPE_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    expected = [
        tmp_path / "weights",
        tmp_path / "home/.cache/huggingface/hub",
        tmp_path / "home/.cache/modelscope",
        tmp_path / "ComfyUI/models/facerestore_models",
        tmp_path / "home/stable-diffusion-webui/models/GFPGAN",
    ]
    assert adopt.likely_places() == ()
    for place in expected:
        place.mkdir(parents=True)
    assert set(adopt.likely_places()) == set(expected)


def test_scan_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path.joinpath(*"abcdefghijkl")
    deep.mkdir(parents=True)
    (deep / "w.pth").write_bytes(b"x")
    for number in range(30):
        (tmp_path / f"{number:02}.pth").write_bytes(b"x")
    (tmp_path / "loop").symlink_to(tmp_path)
    monkeypatch.setattr(adopt, "MOST", 20)
    assert len(list(adopt.files_below(tmp_path))) == 20
    monkeypatch.setattr(adopt, "MOST", 100)
    assert len(list(adopt.files_below(tmp_path))) == 30


def test_strangers_are_refused_by_what_they_are(content: bytes, tmp_path: Path) -> None:
    zoo = Zoo(entries=(entry_of(content),))
    path = tmp_path / "GPEN.pth"
    for data, inner in ((b"", "W01"), (b"<html>", "W02"), (pth(tmp_path, 5), "W41"), (content[:-9], "W28")):
        path.write_bytes(data)
        with pytest.raises(WeightWrongKind) as caught:
            zoo.adopt(path)
        assert caught.value.code == "W37" and caught.value.note.params["what"].code == inner
    for look in (zoo.adopt, zoo.inspect):
        with pytest.raises(PathInaccessible):
            look(tmp_path / "absent.pth")


def test_users_word_counts_only_where_no_digest_is_known(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "g.pth"
    path.write_bytes(content)
    unpinned = Zoo(entries=(entry_of(None),))
    with pytest.raises(WeightWrongKind):
        unpinned.adopt(path, name="Mine-64")
    (done,) = unpinned.adopt(path, name="Mine-64", accept_unpinned=True)
    assert done.record is not None and done.record.trust == "user"
    path.write_bytes(pth(tmp_path, 1))
    unpinned.remove("Mine-64")
    pinned = Zoo(tmp_path / "pinned", (entry_of(content),))
    for zoo, code in ((unpinned, "W36"), (pinned, "W39")):
        with pytest.raises(WeightWrongKind) as caught:
            zoo.adopt(path, name="Mine-64", accept_unpinned=True)
        assert caught.value.code == code
    path.write_bytes(pth(tmp_path, 1, size=128))
    with pytest.raises(WeightWrongKind) as caught:
        Zoo(tmp_path / "third", (entry_of(None),)).adopt(path, name="Mine-64", accept_unpinned=True)
    assert caught.value.code == "W05"


def test_training_checkpoint_is_adopted_by_its_average(tmp_path: Path) -> None:
    torch.manual_seed(3)
    mean = GPEN(**SMALL).state_dict()  # type: ignore[arg-type]
    torch.save({"g": GPEN(**SMALL).state_dict(), "g_ema": mean, "d": {"x": torch.zeros(1)}}, tmp_path / "c.pth")  # type: ignore[arg-type]
    (done,) = Zoo(entries=(entry_of(None),)).adopt(tmp_path / "c.pth", name="Mine-64", accept_unpinned=True)
    assert torch.equal(weightfile.read_state_dict(done.path)["ecd0.0.0.weight"], mean["ecd0.0.0.weight"])


def test_authors_file_dropped_into_the_zoo_folder_is_taken_in(content: bytes, zoo_home: Path) -> None:
    zoo_home.mkdir()
    (zoo_home / "mine.pth").write_bytes(content)
    zoo = Zoo(entries=(manifest.load()[0], entry_of(content)))
    assert [entry.name for entry in zoo.restorers()] == ["Mine-64"]
    assert lock.read_records(zoo_home)["Mine-64"].trust == "pinned"
    assert (zoo_home / "mine.pth").read_bytes() == content


def test_dropped_in_file_that_nothing_confirms(content: bytes, zoo_home: Path, tmp_path: Path) -> None:
    zoo_home.mkdir()
    (zoo_home / "mine.pth").write_bytes(content)
    with pytest.raises(WeightMissing, match="--accept-unpinned"):
        Zoo(entries=(entry_of(None),)).locate("Mine-64")
    (zoo_home / "mine.pth").write_bytes(pth(tmp_path, 1))
    with pytest.raises(WeightWrongKind) as caught:
        Zoo(entries=(entry_of(content),)).locate("Mine-64")
    assert caught.value.code == "W37"
    (zoo_home / "mine.pth").write_bytes(b"<html>")
    for pinned in (None, content):
        with pytest.raises((WeightWrongKind, WeightCorrupt)):
            Zoo(entries=(entry_of(pinned),)).locate("Mine-64")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_read_only_zoo_still_serves(content: bytes, zoo_home: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.pth").write_bytes(content)
    zoo = Zoo(entries=(entry_of(content),))
    zoo.adopt(tmp_path / "mine.pth")
    zoo_home.chmod(0o555)
    assert Zoo(entries=zoo.entries).locate("Mine-64").is_file()
