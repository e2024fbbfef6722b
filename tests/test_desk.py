"""What the page does on a click, without a browser: results, blends, files, forgetting, refusals."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from skimage import data

import gpen_zoo as gz
from gpen_zoo.desk import OLD_PREVIEWS, Desk
from gpen_zoo.examples import make_examples
from gpen_zoo.hints import Note, note
from gpen_zoo.previews import LONGEST, THUMBNAIL, face_pair, fit, write_preview
from gpen_zoo.sessions import Session, Sessions
from gpen_zoo.types import Image, Options, RestoredCrop


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(gz.load(), Sessions(tmp_path / "served", limit=3))


@pytest.fixture
def photo(tmp_path: Path) -> str:
    """The astronaut as somebody's JPEG with a Chinese name."""
    image = Image(pixels=data.astronaut())
    return str(gz.write(image, tmp_path / "奶奶 1965.jpg", quality=80))


def restored(desk: Desk, photo: str, key: str = "anna", options: Options | None = None) -> Session:
    session = desk.restore(key, photo, options or Options())
    assert isinstance(session, Session)
    return session


def test_a_result_has_everything_the_page_shows(desk: Desk, photo: str) -> None:
    stages: list[str] = []
    session = desk.restore("anna", photo, Options(), lambda stage, done, total: stages.append(stage))
    assert isinstance(session, Session)
    before, after = gz.read(session.before), gz.read(session.after)
    assert before.pixels.shape == after.pixels.shape == (512, 512, 3)
    assert not np.array_equal(before.pixels, after.pixels)
    assert [number for number, _ in session.pairs] == [1]
    assert gz.read(session.pairs[0][1]).pixels.shape == (THUMBNAIL, 2 * THUMBNAIL, 3)
    assert list(dict.fromkeys(stages)) == ["read", "faces", "restore", "paste"]


def test_the_file_to_download_is_the_whole_photo_under_its_own_name(desk: Desk, photo: str) -> None:
    session = restored(desk, photo)
    path = desk.finished_file("anna")
    assert isinstance(path, Path)
    assert path.name == "奶奶 1965_restored.jpg"
    assert path.read_bytes() == gz.encode(session.result.image)


def test_blending_changes_picture_file_and_report_without_the_network(desk: Desk, photo: str) -> None:
    first = restored(desk, photo)
    desk.restorer.branches[0]._engine = None
    desk.restorer.branches[0]._build = lambda: pytest.fail("the network was asked for")
    half = desk.blend("anna", Options(strength=0.5))
    none = desk.blend("anna", Options(faces=()))
    assert isinstance(half, Session)
    assert isinstance(none, Session)
    assert len({first.after, half.after, none.after}) == 3, "a new address, or the browser shows the old picture"
    assert np.array_equal(none.result.image.pixels, none.result.original.pixels)
    path = desk.finished_file("anna")
    assert isinstance(path, Path)
    assert path.read_bytes() == gz.encode(none.result.image)


def test_old_previews_do_not_pile_up(desk: Desk, photo: str) -> None:
    session = restored(desk, photo)
    for i in range(12):
        desk.blend("anna", Options(strength=i / 12))
    assert len(list(session.folder.glob("after-*"))) <= OLD_PREVIEWS


def test_a_face_unticked_at_the_start_can_be_ticked_later(desk: Desk, photo: str) -> None:
    session = restored(desk, photo, options=Options(faces=()))
    assert np.array_equal(session.result.image.pixels, session.result.original.pixels)
    ticked = desk.blend("anna", Options(faces=(1,)))
    assert isinstance(ticked, Session)
    assert not np.array_equal(ticked.result.image.pixels, ticked.result.original.pixels)


def test_refusals_are_notes(desk: Desk, tmp_path: Path) -> None:
    empty, page = tmp_path / "empty.jpg", tmp_path / "page.jpg"
    empty.write_bytes(b"")
    page.write_bytes(b"<!doctype html><html></html>")
    assert desk.restore("anna", None, Options()) == note("S01")
    for path in (empty, page, tmp_path / "absent.jpg"):
        answer = desk.restore("anna", str(path), Options())
        assert isinstance(answer, Note)
        assert answer.code.startswith("I")
    assert desk.blend("anna", Options()) == note("S02")
    assert desk.finished_file("anna") == note("S02")


def test_after_a_refusal_the_photo_before_is_not_offered_any_more(desk: Desk, photo: str, tmp_path: Path) -> None:
    session = restored(desk, photo)
    desk.restore("anna", str(tmp_path / "absent.jpg"), Options())
    assert desk.finished_file("anna") == note("S02")
    assert not session.folder.exists()


def test_visitors_do_not_meet(desk: Desk, photo: str, tmp_path: Path) -> None:
    flipped = str(gz.write(Image(pixels=data.astronaut()[:, ::-1].copy()), tmp_path / "b.png"))
    with ThreadPoolExecutor(2) as pool:
        anna, ben = pool.map(lambda kp: restored(desk, kp[1], kp[0]), [("anna", photo), ("ben", flipped)])
    assert anna.folder != ben.folder
    assert anna.result.original.source.name == "奶奶 1965.jpg"
    assert ben.result.original.source.name == "b.png"
    path = desk.finished_file("ben")
    assert isinstance(path, Path)
    assert path.name == "b_restored.png"


def test_what_leaves_is_deleted(desk: Desk, photo: str) -> None:
    folders = [restored(desk, photo, key).folder for key in ("a", "b", "c", "d")]
    assert [f.exists() for f in folders] == [False, True, True, True], "the store is bounded"
    desk.sessions.drop("d")
    desk.sessions.drop("d")
    assert not folders[3].exists()
    assert desk.sessions.get("d") is None
    again = restored(desk, photo, "c").folder
    assert not folders[2].exists()
    assert again.exists()


def test_the_api_answers_with_file_and_report(desk: Desk, photo: str) -> None:
    answer = desk.serve(photo, {"strength": 0.5})
    assert not isinstance(answer, Note)
    path, report = answer
    assert path.name == "奶奶 1965_restored.jpg"
    assert report["faces"][0]["strength"] == 0.5
    refused = desk.serve(photo, {"strength": 5})
    assert isinstance(refused, Note)
    assert refused.code == "U01"
    assert desk.serve(None, None) == note("S01")


def test_previews_fit_a_screen_and_carry_no_metadata(tmp_path: Path) -> None:
    big = Image(pixels=np.zeros((300, LONGEST * 2, 3), np.uint8))
    assert fit(big).pixels.shape == (150, LONGEST, 3)
    assert fit(Image(pixels=data.astronaut())).pixels.shape == (512, 512, 3)
    assert fit(Image(pixels=np.zeros((1, LONGEST * 4, 3), np.uint8))).pixels.shape == (1, LONGEST, 3)
    see_through = replace(big, alpha=np.full((300, LONGEST * 2), 7, np.uint8))
    path = write_preview(see_through, tmp_path / "x")
    assert path.suffix == ".png"
    alpha = gz.read(path).alpha
    assert alpha is not None
    assert alpha.max() == alpha.min() == 7


def test_a_pair_of_a_grey_photo_is_grey() -> None:
    crop = RestoredCrop(
        index=1, frame=np.eye(2, 3), before=np.full((64, 64, 3), 90, np.uint8), after=data.astronaut()[:64, :64]
    )
    assert np.ptp(face_pair(crop, "grey").pixels, axis=2).max() == 0
    assert np.ptp(face_pair(crop, "colour").pixels, axis=2).max() > 0


def test_examples_are_photos_with_faces(tmp_path: Path) -> None:
    restorer = gz.load()
    made = make_examples(tmp_path / "examples")
    assert [p.name for p in made] == ["chat-photo.jpg", "old-print.jpg", "noisy-evening.jpg"]
    for path in made:
        result = restorer(gz.read(path))
        assert len(result.faces) == 1, path.name
    assert gz.read(made[1]).tone == "toned"
