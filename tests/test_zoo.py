"""The zoo folder: good files are handed out, and no damaged, foreign or unvouched file ever is."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from gpen_zoo import lock, manifest, weightfile
from gpen_zoo.errors import WeightCorrupt, WeightMissing, WeightWrongKind
from gpen_zoo.manifest import Entry
from gpen_zoo.network import GPEN
from gpen_zoo.zoo import Zoo, default_home

SMALL = {"size": 64, "style_dim": 16, "n_mlp": 2, "channel_multiplier": 1, "narrow": 0.0625}
DEMO, TEMPLATE = manifest.load()[0], manifest.load()[2]


def make(path: Path, seed: int = 0, **changes: Any) -> Path:
    torch.manual_seed(seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file(GPEN(**{**SMALL, **changes}).state_dict(), path)
    return path


def entry_for(path: Path, name: str = "Mine-64", **changes: Any) -> Entry:
    """A pinned entry whose author published safetensors."""
    facts: dict[str, Any] = {
        "name": name,
        "branch": 64,
        "file": f"{name}.safetensors",
        "architecture": manifest.Architecture(family="GPEN", params=MappingProxyType(SMALL)),
        "bytes": path.stat().st_size,
        "sha256": weightfile.sha256_of(path),
    }
    return replace(TEMPLATE, **{**facts, **changes})


@pytest.fixture
def stored(zoo_home: Path) -> tuple[Zoo, Path]:
    """A zoo with one small pinned weight in place, and its path."""
    path = make(zoo_home / "Mine-64.safetensors")
    return Zoo(entries=(DEMO, entry_for(path))), path


def test_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GPEN_ZOO_HOME", str(tmp_path / "权重"))
    assert Zoo().home == tmp_path / "权重"
    monkeypatch.delenv("GPEN_ZOO_HOME")
    if os.name == "posix":
        monkeypatch.setattr("sys.platform", "linux")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        assert default_home() == tmp_path / "gpen-zoo"
        monkeypatch.setenv("XDG_CACHE_HOME", "relative")
        assert default_home() == Path.home() / ".cache" / "gpen-zoo"


def test_empty_zoo_offers_the_bundled_demo_and_creates_nothing(zoo_home: Path) -> None:
    zoo = Zoo()
    assert [entry.name for entry in zoo.restorers()] == ["gpen-demo-256"]
    assert zoo.status(zoo.entry("gpen-demo-256")) == "bundled"
    assert weightfile.read_state_dict(zoo.locate("gpen-demo-256"))
    assert zoo.status(zoo.entry("GPEN-BFR-512")) == "missing"
    assert zoo.status(zoo.entry("GPEN-BFR-1024")) == "unpinned"
    assert [entry.branch for entry in zoo.branches()] == [256, 512, 1024, 2048]
    assert not zoo_home.exists()


def test_missing_says_what_where_and_from_whom(zoo_home: Path) -> None:
    with pytest.raises(WeightMissing) as caught:
        Zoo().locate("GPEN-BFR-512.pth")
    for part in ("GPEN-BFR-512.pth", str(zoo_home), "f1002c41add95b0d", "akhaliq/GPEN-BFR-512"):
        assert part in str(caught.value)
    with pytest.raises(WeightMissing, match="no weight called GPEN-BFR-513.*GPEN-BFR-512"):
        Zoo().locate("GPEN-BFR-513")


def test_good_file_is_located_by_any_of_its_names(stored: tuple[Zoo, Path]) -> None:
    zoo, path = stored
    assert zoo.status(zoo.entry("Mine-64")) == "unverified"
    time.sleep(0.15)
    assert zoo.locate("mine-64") == zoo.locate("Mine-64.safetensors") == path
    assert zoo.status(zoo.entry("Mine-64")) == "installed"
    assert [entry.name for entry in zoo.restorers()] == ["Mine-64"] and zoo.problems() == ()


def test_second_load_hashes_nothing_and_a_change_is_always_seen(
    stored: tuple[Zoo, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    zoo, path = stored
    time.sleep(0.15)  # a stamp is kept only for a file whose times have settled
    zoo.locate("Mine-64")
    hashed: list[Path] = []
    true_hash = weightfile.sha256_of
    monkeypatch.setattr(weightfile, "sha256_of", lambda p, *a: hashed.append(p) or true_hash(p, *a))
    Zoo(entries=zoo.entries).locate("Mine-64")  # as another process would
    assert hashed == []
    info = path.stat()
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))  # same size, same mtime: only the change time tells
    for again in (zoo, Zoo(entries=zoo.entries)):
        with pytest.raises(WeightCorrupt) as caught:
            again.locate("Mine-64")
        assert caught.value.code == "W04"
    assert hashed


def test_every_single_flipped_byte_of_a_sample_is_refused(stored: tuple[Zoo, Path]) -> None:
    zoo, path = stored
    good = path.read_bytes()
    for position in [0, 3, 8, 20, 200, *range(1000, len(good), len(good) // 12), len(good) - 1]:
        bad = bytearray(good)
        bad[position] ^= 0x10
        path.write_bytes(bad)
        with pytest.raises((WeightCorrupt, WeightWrongKind)):
            zoo.locate("Mine-64")
        assert [entry.name for entry in zoo.restorers()] == ["gpen-demo-256"]
        (problem,) = zoo.problems()
        assert problem.code.startswith("W")
    path.write_bytes(good)
    assert zoo.locate("Mine-64") == path


@pytest.mark.parametrize("keep", [0, 4, 100, 0.5, -1])
def test_truncated(stored: tuple[Zoo, Path], keep: float) -> None:
    zoo, path = stored
    good = path.read_bytes()
    path.write_bytes(good[: int(len(good) * keep) if 0 < keep < 1 else int(keep)])
    with pytest.raises(WeightCorrupt):
        zoo.locate("Mine-64")
    assert zoo.status(zoo.entry("Mine-64")) == "corrupt"


def test_wrong_branch_and_foreign_files(stored: tuple[Zoo, Path]) -> None:
    zoo, path = stored
    make(path, size=128)
    with pytest.raises(WeightWrongKind, match="GPEN 128"):
        zoo.locate("Mine-64")
    path.write_bytes(b"<!DOCTYPE html><html><body>Sign in to the network</body></html>")
    with pytest.raises(WeightCorrupt, match="web page"):
        zoo.locate("Mine-64")
    torch.save(GPEN(**SMALL).state_dict(), path)  # type: ignore[arg-type]
    with pytest.raises(WeightWrongKind, match="pickle"):
        zoo.locate("Mine-64")


def test_right_shapes_are_not_enough(stored: tuple[Zoo, Path]) -> None:
    """Another training run has the same names, shapes and size, and is still not the file that was pinned."""
    zoo, path = stored
    make(path, seed=1)
    with pytest.raises(WeightCorrupt) as caught:
        zoo.locate("Mine-64")
    assert caught.value.code == "W04"


def record_for(path: Path, **changes: Any) -> lock.Record:
    facts: dict[str, Any] = {
        "file": path.name,
        "bytes": path.stat().st_size,
        "sha256": weightfile.sha256_of(path),
        "original_file": "mine.pth",
        "original_bytes": 1,
        "original_sha256": "b" * 64,
        "trust": "pinned",
        "source": "https://example.org/mine.pth",
        "date": "2026-01-01T00:00:00Z",
    }
    return lock.Record(**{**facts, **changes})


def test_converted_file_is_vouched_for_by_its_record_only(zoo_home: Path) -> None:
    path = make(zoo_home / "Mine-64.safetensors")
    entry = entry_for(path, file="mine.pth", bytes=1, sha256="b" * 64)
    zoo = Zoo(entries=(DEMO, entry))
    assert zoo.status(entry) == "unverified"
    with pytest.raises(WeightCorrupt) as caught:
        zoo.locate("Mine-64")
    assert caught.value.code == "W17"
    digest = manifest.Digest(bytes=path.stat().st_size, sha256=weightfile.sha256_of(path))
    assert Zoo(entries=(replace(entry, converted=digest),)).locate("Mine-64") == path
    lock.write_records(zoo_home, {"Mine-64": record_for(path)})
    time.sleep(0.15)
    assert zoo.locate("Mine-64") == path and zoo.status(entry) == "installed"
    make(path, seed=1)
    with pytest.raises(WeightCorrupt, match="digest"):
        zoo.locate("Mine-64")


def test_record_from_another_original_than_the_pinned_one(zoo_home: Path) -> None:
    path = make(zoo_home / "Mine-64.safetensors")
    lock.write_records(zoo_home, {"Mine-64": record_for(path, original_sha256="c" * 64)})
    entry = entry_for(path, file="mine.pth", bytes=1, sha256="b" * 64)
    zoo = Zoo(entries=(entry,))
    with pytest.raises(WeightCorrupt) as caught:
        zoo.locate("Mine-64")
    assert caught.value.code == "W27" and zoo.status(entry) == "corrupt"
    assert Zoo(entries=(replace(entry, sha256=None),)).locate("Mine-64") == path  # unpinned: the record binds


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"version": 1, "weights": {"a": {}}}', '{"version": 9, "weights": {}}']
)
def test_damaged_record_file_vouches_for_nothing(stored: tuple[Zoo, Path], zoo_home: Path, text: str) -> None:
    (zoo_home / lock.LOCK_FILE).write_text(text)
    with pytest.raises(WeightCorrupt, match=r"weights\.lock\.json"):
        stored[0].locate("Mine-64")


def test_damaged_stamps_cost_a_hash_and_nothing_else(stored: tuple[Zoo, Path], zoo_home: Path) -> None:
    zoo, path = stored
    time.sleep(0.15)
    zoo.locate("Mine-64")
    for text in ("", "[1]", '{"Mine-64.safetensors": 3}'):
        (zoo_home / lock.STAMP_FILE).write_text(text)
        assert Zoo(entries=zoo.entries).locate("Mine-64") == path


def test_official_branches_come_sorted_and_push_the_demo_out(zoo_home: Path) -> None:
    large = make(zoo_home / "Large-128.safetensors", size=128)
    small = make(zoo_home / "Small-64.safetensors")
    entries = (
        DEMO,
        entry_for(
            large,
            "Large-128",
            branch=128,
            architecture=manifest.Architecture(family="GPEN", params=MappingProxyType({**SMALL, "size": 128})),
        ),
        entry_for(small, "Small-64"),
        entry_for(small, "Paint-64", role="inpainter"),
    )
    assert [entry.name for entry in Zoo(entries=entries).restorers()] == ["Small-64", "Large-128"]
    large.write_bytes(b"")
    assert [entry.name for entry in Zoo(entries=entries).restorers()] == ["Small-64"]


def test_retinaface_round_trip_through_facexlibs_own_module(zoo_home: Path) -> None:
    from facexlib.detection.retinaface import RetinaFace

    path = zoo_home / "RetinaFace-R50.safetensors"
    zoo_home.mkdir()
    module = RetinaFace("mobile0.25", device="cpu")
    save_file({name: value.contiguous() for name, value in module.state_dict().items()}, path)
    official = next(e for e in manifest.load() if e.name == "RetinaFace-R50")
    facts = {"file": path.name, "bytes": path.stat().st_size, "sha256": weightfile.sha256_of(path)}
    with pytest.raises(WeightWrongKind, match="mobile"):
        Zoo(entries=(replace(official, **facts),)).locate("RetinaFace-R50")
    small = manifest.Architecture(family="RetinaFace", params=MappingProxyType({"backbone": "mobile0.25"}))
    zoo = Zoo(entries=(replace(official, architecture=small, **facts),))
    module.load_state_dict(weightfile.read_state_dict(zoo.locate("RetinaFace-R50.pth")), strict=True)
