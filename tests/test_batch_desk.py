"""Many photos of one visitor, without a browser: zips in and out, bad files among good ones, limits, stopping."""

from __future__ import annotations

import errno
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from skimage import data

import gpen_zoo as gz
from gpen_zoo.archive import name_of, pack, unpack
from gpen_zoo.batch_desk import Batch, BatchDesk
from gpen_zoo.desk import Desk
from gpen_zoo.hints import Note, note
from gpen_zoo.sessions import Sessions
from gpen_zoo.types import Image, Options


@pytest.fixture(scope="module")
def restorer() -> gz.Restorer:
    return gz.load()


@pytest.fixture
def desk(tmp_path: Path, restorer: gz.Restorer) -> BatchDesk:
    return BatchDesk(Desk(restorer, Sessions(tmp_path / "served")))


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    return gz.write(Image(pixels=data.astronaut()[:220, 120:340].copy()), tmp_path / "奶奶.jpg", quality=80)


def done(desk: BatchDesk, *files: Path, key: str = "anna", told: list[Batch] | None = None) -> Batch:
    answer = desk.restore(key, [str(f) for f in files], Options(strength=1.0), tell=(told or []).append)
    assert isinstance(answer, Batch)
    assert answer.archive is not None
    return answer


def names(batch: Batch) -> list[str]:
    assert batch.archive is not None
    with zipfile.ZipFile(batch.archive) as opened:
        assert opened.testzip() is None
        return opened.namelist()


def test_one_bad_file_never_stops_the_rest(desk: BatchDesk, photo: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.jpg"
    page.write_bytes(b"<!doctype html><html></html>")
    told: list[Batch] = []
    answer = desk.restore("anna", [str(photo), str(page), str(photo)], Options(strength=1.0), tell=told.append)
    assert isinstance(answer, Batch)
    assert [len(batch.rows) for batch in told] == [0, 1, 2, 3]
    assert [row.error.code if row.error else None for row in answer.rows] == [None, "I01", None]
    assert (answer.rows[0].found, answer.rows[0].restored) == (1, 1)
    assert answer.rows[0].thumbnail is not None
    assert gz.read(answer.rows[0].thumbnail).width <= 192
    assert names(answer) == ["奶奶_restored.jpg", "奶奶_restored_2.jpg", "report.json", "errors.txt"]
    assert answer.archive is not None
    with zipfile.ZipFile(answer.archive) as opened:
        assert not np.array_equal(gz.decode(opened.read("奶奶_restored.jpg")).pixels, gz.read(photo).pixels)
        log = opened.read("errors.txt").decode()
        report = json.loads(opened.read("report.json"))
    assert "page.jpg" in log
    assert "I01" in log
    assert report["results"][1]["error"]["code"] == "I01"
    assert report["results"][0]["faces"][0]["verdict"] == "restored"
    assert (report["results"][0]["width"], report["results"][0]["height"]) == (
        gz.read(photo).width,
        gz.read(photo).height,
    )


def test_a_zip_keeps_its_folders_and_what_is_no_picture_is_passed_over(
    desk: BatchDesk, photo: Path, tmp_path: Path
) -> None:
    packed = tmp_path / "album.zip"
    with zipfile.ZipFile(packed, "w") as made:
        made.write(photo, "1965/夏天/奶奶.jpg")
        made.write(photo, "../../escape.jpg")
        made.writestr("notes.txt", "not a picture")
        made.writestr("__MACOSX/._奶奶.jpg", "junk")
        made.writestr("broken.jpg", b"")
    answer = done(desk, packed)
    assert [row.name for row in answer.rows] == ["1965/夏天/奶奶.jpg", "escape.jpg", "broken.jpg"]
    assert names(answer)[:2] == ["1965/夏天/奶奶_restored.jpg", "escape_restored.jpg"]
    assert not list(tmp_path.glob("escape*"))


def test_names_of_a_zip_from_chinese_windows() -> None:
    info = zipfile.ZipInfo("奶奶.jpg".encode("gbk").decode("cp437"))
    assert name_of(info) == "奶奶.jpg"
    utf8 = zipfile.ZipInfo("奶奶.jpg")
    utf8.flag_bits |= 0x800
    assert name_of(utf8) == "奶奶.jpg"


def test_limits_hold_whatever_a_zip_claims(photo: Path, tmp_path: Path) -> None:
    packed = tmp_path / "bomb.zip"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("bomb.bmp", b"BM" + bytes(3_000_000))
    with pytest.raises(gz.GpenError) as refused:
        list(unpack(packed, tmp_path / "a", most_files=10, most_bytes=1_000_000))
    assert refused.value.code == "S12"
    with zipfile.ZipFile(packed, "w") as made:
        for number in range(3):
            made.write(photo, f"{number}.jpg")
    with pytest.raises(gz.GpenError) as refused:
        list(unpack(packed, tmp_path / "b", most_files=2, most_bytes=1_000_000_000))
    assert refused.value.code == "S12"


def test_a_disk_that_is_full_when_the_zip_is_made(photo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(zipfile.ZipFile, "write", full)
    with pytest.raises(gz.GpenError) as refused:
        pack([(photo, "a.jpg")], [], tmp_path / "results.zip")
    assert refused.value.code == "U17"


def test_refusals_are_notes_and_leave_no_files(desk: BatchDesk, tmp_path: Path) -> None:
    assert desk.restore("anna", [], Options()) == note("S10")
    empty = packed(tmp_path / "empty.zip", "notes.txt", b"nothing")
    answer = desk.restore("anna", [str(empty)], Options())
    assert isinstance(answer, Note)
    assert answer.code == "S14"
    assert list((tmp_path / "served").iterdir()) == []


def packed(path: Path, name: str, content: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as made:
        made.writestr(name, content)
    return path


def test_a_zip_that_cannot_be_unpacked_never_stops_the_rest(desk: BatchDesk, photo: Path, tmp_path: Path) -> None:
    damaged = packed(tmp_path / "damaged.zip", "a.jpg", photo.read_bytes())
    damaged.write_bytes(damaged.read_bytes()[:-30])
    locked = packed(tmp_path / "locked.zip", "photo.jpg", b"secret")
    raw = bytearray(locked.read_bytes())
    raw[6] |= 1
    raw[raw.index(b"PK\x01\x02") + 8] |= 1
    locked.write_bytes(raw)
    half = tmp_path / "half.zip"
    with zipfile.ZipFile(half, "w") as made:
        made.write(photo, "whole.jpg")
        made.write(photo, "broken.jpg")
    raw = bytearray(half.read_bytes())
    raw[raw.rindex(b"PK\x01\x02") - 100] ^= 1
    half.write_bytes(raw)
    answer = done(desk, damaged, photo, half, locked)
    expected = [
        ("damaged.zip", "S11"),
        ("奶奶.jpg", None),
        ("whole.jpg", None),
        ("half.zip", "S11"),
        ("locked.zip", "S13"),
    ]
    assert [(row.name, row.error.code if row.error else None) for row in answer.rows] == expected
    assert [row.number for row in answer.rows] == [1, 2, 3, 4, 5]
    assert not answer.stopped
    assert names(answer) == ["奶奶_restored.jpg", "whole_restored.jpg", "report.json", "errors.txt"]
    assert [row.error.code for row in done(desk, damaged).rows if row.error] == ["S11"]


def test_a_stopped_batch_gives_what_is_done(desk: BatchDesk, photo: Path) -> None:
    def tell(batch: Batch) -> None:
        if batch.rows:
            desk.stop("anna")

    answer = desk.restore("anna", [str(photo)] * 6, Options(strength=1.0), tell=tell)
    assert isinstance(answer, Batch)
    assert answer.stopped
    assert len(answer.rows) == 1
    assert names(answer) == ["奶奶_restored.jpg", "report.json"]


def test_who_leaves_takes_the_zip_along(desk: BatchDesk, photo: Path) -> None:
    answer = done(desk, photo)
    desk.leave("anna")
    assert not answer.folder.exists()
