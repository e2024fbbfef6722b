"""What the page does on a click, without a browser: results, blends, files, forgetting, refusals."""

from __future__ import annotations

import shlex
import struct
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as pil
from skimage import data

import gpen_zoo as gz
from gpen_zoo.cli import parser
from gpen_zoo.desk import Desk, Stage
from gpen_zoo.examples import make_examples
from gpen_zoo.hints import Note, note
from gpen_zoo.pace import Pace
from gpen_zoo.page_panels import command_line, finished, working
from gpen_zoo.previews import LONGEST, THUMBNAIL, face_after, fit, write_preview
from gpen_zoo.sessions import OLD_PREVIEWS, Session, Sessions
from gpen_zoo.sizing import resized_image
from gpen_zoo.types import Enlarged, Image, Options
from gpen_zoo.waiting import Done, Line, watched
from tests.test_restore import counted


@pytest.fixture(scope="module")
def restorer() -> gz.Restorer:
    return gz.load()


@pytest.fixture
def desk(tmp_path: Path, restorer: gz.Restorer) -> Desk:
    return Desk(restorer, Sessions(tmp_path / "served", limit=3))


@pytest.fixture
def photo(tmp_path: Path) -> str:
    """The astronaut as somebody's JPEG with a Chinese name."""
    image = Image(pixels=data.astronaut()[::2, ::2].copy())
    return str(gz.write(image, tmp_path / "奶奶 1965.jpg", quality=80))


@pytest.fixture
def couple(tmp_path: Path) -> str:
    """The same face twice."""
    half = data.astronaut()[:300, 100:400]
    return str(gz.write(Image(pixels=np.hstack([half, half[:, ::-1]]).copy()), tmp_path / "couple.png"))


def restored(desk: Desk, photo: str, key: str = "anna", options: Options | None = None) -> Session:
    session = desk.restore(key, photo, options or Options())
    assert isinstance(session, Session)
    assert session.result is not None
    return session


def pixels(path: Path | None) -> np.ndarray:
    assert path is not None
    return gz.read(path).pixels


def strength(value: float) -> Callable[[Options], Options]:
    return lambda options: replace(options, strength=value)


def ticks(*numbers: int) -> Callable[[Options], Options]:
    return lambda options: replace(options, faces=numbers)


def test_a_photo_is_looked_at_before_the_work_starts(desk: Desk, couple: str) -> None:
    session = desk.look("anna", couple, Options())
    assert isinstance(session, Session)
    assert (len(session.faces), session.result, session.after, session.seconds) == (2, None, None, None)
    assert pixels(session.thumbnails[2].before).shape == (THUMBNAIL, THUMBNAIL, 3)
    restored(desk, couple, "ben")
    again = desk.look("carl", couple, Options())
    assert isinstance(again, Session)
    assert again.seconds is not None
    assert 0 < again.seconds < 60


def test_a_photo_that_was_looked_at_is_not_searched_again(
    desk: Desk, photo: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.look("anna", photo, Options())
    monkeypatch.setattr("gpen_zoo.restore.find_faces", lambda *given, **named: pytest.fail("searched again"))
    session = restored(desk, photo)
    assert len(session.faces) == 1


@pytest.fixture
def every_face(monkeypatch: pytest.MonkeyPatch) -> None:
    """A picture for every face, however quick they are."""
    monkeypatch.setattr("gpen_zoo.unfolding.EVERY", 0.0)
    monkeypatch.setattr("gpen_zoo.unfolding.SHARE", 1e9)


@pytest.mark.usefixtures("every_face")
def test_a_result_has_everything_the_page_shows(desk: Desk, couple: str) -> None:
    stages: list[str] = []
    partial: list[Session] = []

    def tell(news: Stage | Session) -> None:
        stages.append(news.name) if isinstance(news, Stage) else partial.append(news)

    session = desk.restore("anna", couple, Options(), tell)
    assert isinstance(session, Session)
    assert pixels(session.before).shape == pixels(session.after).shape == (300, 600, 3)
    assert not np.array_equal(pixels(session.before), pixels(session.after))
    assert pixels(session.thumbnails[1].after).shape == (THUMBNAIL, THUMBNAIL, 3)
    assert list(dict.fromkeys(stages)) == ["read", "faces", "restore", "paste"]
    assert [sorted(n for n, t in p.thumbnails.items() if t.after) for p in partial] == [[1], [1, 2]]


@pytest.mark.usefixtures("every_face")
def test_faces_appear_one_by_one_where_they_will_stay(desk: Desk, couple: str) -> None:
    shown: list[np.ndarray] = []
    session = desk.restore(
        "anna",
        couple,
        Options(strength=1.0),
        lambda n: shown.append(pixels(n.after)) if isinstance(n, Session) else None,
    )
    assert isinstance(session, Session)
    before, after = pixels(session.before).astype(int), pixels(session.after).astype(int)
    changed = [np.abs(s.astype(int) - before).mean(axis=(0, 2)) for s in shown]
    assert changed[0][:300].max() > 1
    assert changed[0][300:].max() < 0.5
    assert changed[1][300:].max() > 1
    assert np.abs(shown[-1].astype(int) - after).mean() < 0.5, "the last partial picture is the result, nearly"


def test_the_file_to_download_is_the_whole_photo_under_its_own_name(desk: Desk, photo: str) -> None:
    session = restored(desk, photo)
    path = desk.finished_file("anna")
    assert isinstance(path, Path)
    assert path.name == "奶奶 1965_restored.jpg"
    assert session.result is not None
    assert path.read_bytes() == gz.encode(session.result.image)


def test_blending_changes_picture_file_and_report_without_the_network(
    desk: Desk, photo: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = restored(desk, photo)
    monkeypatch.setattr(desk.restorer.branches[0], "_engine", None)
    monkeypatch.setattr(desk.restorer.branches[0], "_build", lambda: pytest.fail("the network was asked for"))
    half = desk.blend("anna", strength(0.5))
    none = desk.blend("anna", ticks())
    assert isinstance(half, Session)
    assert isinstance(none, Session)
    assert len({first.after, half.after, none.after}) == 3, "a new address, or the browser shows the old picture"
    assert none.result is not None
    assert none.options == Options(strength=0.5, faces=())
    assert np.array_equal(none.result.image.pixels, none.result.original.pixels)
    path = desk.finished_file("anna")
    assert isinstance(path, Path)
    assert path.read_bytes() == gz.encode(none.result.image)


def test_old_previews_do_not_pile_up(desk: Desk, photo: str) -> None:
    session = restored(desk, photo)
    for i in range(12):
        desk.blend("anna", strength(i / 12))
    assert len(list(session.folder.glob("after-*"))) <= OLD_PREVIEWS


def test_a_face_unticked_before_the_work_can_be_ticked_later(desk: Desk, photo: str) -> None:
    desk.look("anna", photo, Options())
    left = desk.blend("anna", ticks())
    assert isinstance(left, Session)
    session = restored(desk, photo, options=left.options)
    assert session.result is not None
    assert np.array_equal(session.result.image.pixels, session.result.original.pixels)
    ticked = desk.blend("anna", ticks(1))
    assert isinstance(ticked, Session)
    assert ticked.result is not None
    assert not np.array_equal(ticked.result.image.pixels, ticked.result.original.pixels)


@pytest.fixture
def seen(restorer: gz.Restorer, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by the number of crops in each call of the network."""
    return counted(restorer, monkeypatch)


def test_faces_that_are_not_ticked_are_spared_until_they_are(desk: Desk, couple: str, seen: list[int]) -> None:
    desk.look("anna", couple, Options())
    left = desk.blend("anna", ticks(2))
    assert isinstance(left, Session)
    assert left.faces[0].note.code == "F05"
    session = restored(desk, couple, options=left.options)
    assert seen == [1]
    assert [t.after is not None for t in session.thumbnails.values()] == [False, True]
    told: list[str] = []
    both = desk.blend("anna", ticks(1, 2), lambda news: told.append(news.name) if isinstance(news, Stage) else None)
    assert isinstance(both, Session)
    assert seen == [1, 1]
    assert "restore" in told
    assert all(t.after is not None for t in both.thumbnails.values())
    assert both.result is not None
    whole = restored(desk, couple, "ben").result
    assert whole is not None
    assert np.array_equal(both.result.image.pixels, whole.image.pixels)
    seen.clear()
    desk.blend("anna", ticks(1))
    assert seen == []


def test_a_face_ticked_later_can_be_stopped_and_is_remembered(desk: Desk, couple: str) -> None:
    restored(desk, couple, options=Options(faces=(2,)))
    assert desk.blend("anna", ticks(1, 2), lambda news: desk.stop("anna")) == note("S05")
    session = desk.sessions.get("anna")
    assert session is not None
    assert session.options.faces == (1, 2)
    assert session.result is not None
    assert len(session.result.crops) == 1


def test_a_picture_is_shown_only_as_often_as_it_is_worth(
    desk: Desk, couple: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpen_zoo.unfolding.EVERY", 1e9)
    shown: list[Session] = []
    desk.restore("anna", couple, Options(), lambda n: shown.append(n) if isinstance(n, Session) else None)
    assert [sorted(n for n, t in s.thumbnails.items() if t.after) for s in shown] == [[1]]


def test_a_face_is_drawn_restored_unticked_and_erased(desk: Desk, couple: str, seen: list[int]) -> None:
    restored(desk, couple)
    seen.clear()
    session = desk.draw("anna", (5.0, 220.0, 60.0, 70.0))
    assert isinstance(session, Session)
    assert session.result is not None
    assert seen == [1]
    assert [(f.index, f.origin, f.verdict.value) for f in session.faces][2] == (3, "drawn", "restored")
    assert session.thumbnails[3].after is not None
    assert session.result.options.boxes == ((5.0, 220.0, 60.0, 70.0),)
    assert command_line(session).endswith("--faces 1,2 --box 5,220,60,70")
    without = desk.blend("anna", ticks(1, 2))
    assert isinstance(without, Session)
    assert without.result is not None
    assert (without.faces[2].note.code, without.result.options.boxes) == ("F05", ())
    assert "--" not in command_line(without).partition("restored/")[2]
    only = desk.blend("anna", ticks(3))
    assert isinstance(only, Session)
    assert command_line(only).endswith(" restored/ --box 5,220,60,70")
    gone = desk.erase("anna", 3)
    assert isinstance(gone, Session)
    assert gone.result is not None
    assert len(gone.faces) == len(gone.thumbnails) == len(gone.result.crops) == 2
    again = desk.draw("anna", (5.0, 220.0, 60.0, 70.0))
    assert isinstance(again, Session)
    assert again.faces[2].index == 4, "a number is not given twice, nor are its pictures"
    assert seen == [1, 1]


def test_a_drawn_face_waits_for_restore_and_is_in_the_api_too(desk: Desk, couple: str) -> None:
    desk.look("anna", couple, Options())
    planned = desk.draw("anna", (5.0, 220.0, 60.0, 70.0))
    assert isinstance(planned, Session)
    assert planned.result is None
    assert planned.options.faces == (1, 2, 3)
    session = restored(desk, couple, options=planned.options)
    assert [f.verdict.value for f in session.faces] == ["restored"] * 3
    answer = desk.serve(couple, {"faces": [1, 2], "boxes": [[5, 220, 60, 70]]})
    assert not isinstance(answer, Note)
    assert [f["origin"] for f in answer[1]["faces"]] == ["found", "found", "drawn"]


@pytest.mark.parametrize(
    ("box", "code"),
    [((60.0, 0.0, 200.0, 250.0), "F65"), ((900.0, 0.0, 50.0, 50.0), "F61"), ((9.0, 9.0, 0.0, 50.0), "F60")],
)
def test_a_box_that_is_of_no_use_is_explained(
    desk: Desk, couple: str, box: tuple[float, float, float, float], code: str
) -> None:
    assert desk.draw("anna", box) == note("S02")
    desk.look("anna", couple, Options())
    answer = desk.draw("anna", box)
    assert isinstance(answer, Note)
    assert answer.code == code


def test_another_branch_or_size_keeps_photo_faces_and_ticks(
    desk: Desk, couple: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.look("anna", couple, Options())
    desk.blend("anna", ticks(2))
    monkeypatch.setattr("gpen_zoo.desk.read", lambda *given: pytest.fail("read again"))
    monkeypatch.setattr("gpen_zoo.restore.find_faces", lambda *given, **named: pytest.fail("searched again"))
    session = desk.look("anna", couple, Options(scale=2), "gpen-demo-256")
    assert isinstance(session, Session)
    assert [f.note.code for f in session.faces] == ["F05", "F04"]
    done = restored(desk, couple, options=session.options)
    assert pixels(done.after).shape == (600, 1200, 3)


def test_reading_is_told_before_it_is_done_and_can_be_stopped(desk: Desk, photo: str) -> None:
    told: list[str] = []
    desk.look("anna", photo, Options(), tell=lambda news: told.append(news.name) if isinstance(news, Stage) else None)
    assert told == ["read", "faces"]
    assert desk.look("ben", photo, Options(), tell=lambda news: desk.stop("ben")) == note("S05")
    assert desk.sessions.get("ben") is None


def test_work_stops_at_the_next_face(desk: Desk, couple: str) -> None:
    done: list[int] = []

    def tell(news: Stage | Session) -> None:
        if isinstance(news, Session):
            done.append(len(done) + 1)
            desk.stop("anna")

    assert desk.restore("anna", couple, Options(), tell) == note("S05")
    assert done == [1]
    session = desk.sessions.get("anna")
    assert session is not None
    assert session.result is None
    restored(desk, couple)


def test_who_leaves_in_the_middle_leaves_nothing_behind(desk: Desk, couple: str) -> None:
    desk.restore("anna", couple, Options(), lambda news: desk.leave("anna") if isinstance(news, Session) else None)
    assert desk.sessions.get("anna") is None


def test_refusals_are_notes(desk: Desk, tmp_path: Path) -> None:
    empty, page = tmp_path / "empty.jpg", tmp_path / "page.jpg"
    empty.write_bytes(b"")
    page.write_bytes(b"<!doctype html><html></html>")
    assert desk.restore("anna", None, Options()) == note("S01")
    for path in (empty, page, tmp_path / "absent.jpg"):
        for answer in (desk.look("anna", str(path), Options()), desk.restore("anna", str(path), Options())):
            assert isinstance(answer, Note)
            assert answer.code.startswith("I")
    assert desk.blend("anna", strength(1)) == note("S02")
    assert desk.finished_file("anna") == note("S02")
    assert desk.full_size("anna") == note("S02")


def test_after_a_refusal_the_photo_before_is_not_offered_any_more(desk: Desk, photo: str, tmp_path: Path) -> None:
    session = restored(desk, photo)
    desk.restore("anna", str(tmp_path / "absent.jpg"), Options())
    assert desk.finished_file("anna") == note("S02")
    assert not session.folder.exists()


def test_visitors_do_not_meet(desk: Desk, photo: str, tmp_path: Path) -> None:
    flipped = str(gz.write(Image(pixels=data.astronaut()[::2, ::-2].copy()), tmp_path / "b.png"))
    with ThreadPoolExecutor(2) as pool:
        anna, ben = pool.map(lambda kp: restored(desk, kp[1], kp[0]), [("anna", photo), ("ben", flipped)])
    assert anna.folder != ben.folder
    assert anna.image.source.name == "奶奶 1965.jpg"
    assert ben.image.source.name == "b.png"
    path = desk.finished_file("ben")
    assert isinstance(path, Path)
    assert path.name == "b_restored.png"


def test_what_leaves_is_deleted(desk: Desk, photo: str) -> None:
    folders = [restored(desk, photo, key).folder for key in ("a", "b", "c", "d")]
    assert [f.exists() for f in folders] == [False, True, True, True], "the store is bounded"
    desk.leave("d")
    desk.leave("d")
    assert not folders[3].exists()
    assert desk.sessions.get("d") is None


def test_a_view_at_full_size_has_every_pixel(desk: Desk, photo: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpen_zoo.previews.LONGEST", 100)
    monkeypatch.setattr("gpen_zoo.desk.LONGEST", 100)
    monkeypatch.setattr(write_preview, "__defaults__", (100,))
    session = restored(desk, photo)
    assert pixels(session.after).shape == (100, 100, 3)
    answer = desk.full_size("anna")
    assert not isinstance(answer, Note)
    assert session.result is not None
    assert np.abs(pixels(answer[1]).astype(int) - session.result.image.pixels).mean() < 3


def test_an_example_is_there_at_once(desk: Desk, photo: str) -> None:
    desk.prepare_samples((Path(photo),))
    session = desk.try_sample("anna", photo)
    other = desk.try_sample("ben", photo)
    assert isinstance(session, Session)
    assert isinstance(other, Session)
    assert session.result is not None
    desk.leave("ben")
    assert not other.folder.exists()
    assert pixels(session.after).shape == (256, 256, 3)
    blended = desk.blend("anna", strength(0.0))
    assert isinstance(blended, Session)
    assert isinstance(desk.try_sample("carl", photo), Session)


def test_examples_made_with_other_weights_leave_nothing_behind(desk: Desk, photo: str, restorer: gz.Restorer) -> None:
    desk.prepare_samples((Path(photo),))
    mine = desk.try_sample("anna", photo)
    assert isinstance(mine, Session)
    old = set(desk.sessions.root.iterdir())
    assert len(old) == 2
    desk.use(restorer, "gpen-demo-256")
    for _ in range(600):
        if desk.samples_ready:
            break
        time.sleep(0.05)
    now = set(desk.sessions.root.iterdir())
    assert len(now) == 2
    assert now & old == {mine.folder}, "the visitor's copy stays"


def test_the_background_is_told_with_its_time(
    desk: Desk, photo: str, restorer: gz.Restorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    estimate = note("B23", name="tiny", seconds=9, tiles=2)

    def enlarge(image: Image, scale: int, *_: object, on_tile: Any, on_note: Any, **__: object) -> Enlarged:
        on_note(estimate)
        on_tile(1, 2)
        return Enlarged(image=resized_image(image, image.width * 2, image.height * 2), method="lanczos", scale=2)

    monkeypatch.setattr("gpen_zoo.restore.enlarge", enlarge)
    told: list[Stage] = []
    desk.restore("anna", photo, Options(scale=2), lambda n: told.append(n) if isinstance(n, Stage) else None)
    assert Stage(name="background", done=1, total=2, told=estimate) in told
    assert 'class="code">B23<' in working(told[[t.name for t in told].index("background") + 1])


def test_an_example_that_is_not_ready_is_looked_at(desk: Desk, photo: str) -> None:
    session = desk.try_sample("anna", photo)
    assert isinstance(session, Session)
    assert session.result is None


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


@pytest.mark.parametrize(("numbers", "meant"), [((), (None, "0")), ((2,), ("2", "auto")), ((1, 2), (None, "auto"))])
def test_the_command_line_shown_is_understood(
    desk: Desk, couple: str, numbers: tuple[int, ...], meant: tuple[str | None, str]
) -> None:
    desk.look("anna", couple, Options())
    session = desk.blend("anna", ticks(*numbers))
    assert isinstance(session, Session)
    args = parser("en").parse_args(shlex.split(command_line(session))[1:])
    assert (args.faces, args.strength) == meant


@pytest.mark.parametrize(("name", "code"), [("old.gif", "I15"), ("clear.bmp", "I28")])
def test_a_result_in_another_format_is_told(desk: Desk, tmp_path: Path, name: str, code: str) -> None:
    pixels = data.astronaut()[:200, 120:340]
    photo = tmp_path / name
    if name.endswith("gif"):
        pil.fromarray(pixels).save(photo)
    else:
        header = b"BM" + struct.pack("<IHHI", 122 + pixels.size, 0, 0, 122)
        masks = (0xFF0000, 0xFF00, 0xFF, 0xFF000000)
        info = struct.pack("<IiiHHIIiiII4I", 108, 220, -200, 1, 32, 3, 0, 0, 0, 0, 0, *masks) + bytes(52)
        alpha = np.full((200, 220, 1), 128, np.uint8)
        photo.write_bytes(header + info + np.concatenate([pixels[..., ::-1], alpha], axis=2).tobytes())
    session = restored(desk, str(photo))
    assert session.result is not None
    assert code in [n.code for n in session.result.notes]
    milder = desk.blend("anna", strength(0.5))
    assert isinstance(milder, Session)
    assert milder.result is not None
    assert [n["code"] for n in milder.result.as_dict()["notes"]].count(code) == 1
    assert f'class="code">{code}<' in finished(milder)
    path = desk.finished_file("anna")
    assert isinstance(path, Path)
    assert path.suffix == ".png"
    answer = desk.serve(str(photo), {})
    assert not isinstance(answer, Note)
    assert answer[0].suffix == ".png"
    assert [n["code"] for n in answer[1]["notes"]].count(code) == 1


def test_everybody_in_line_knows_their_place() -> None:
    line, told, inside = Line(longest=2), [], threading.Event()
    done = threading.Event()

    def first() -> None:
        with line.turn():
            inside.set()
            done.wait(10)

    def second() -> None:
        with line.turn(waiting=told.append):
            pass

    with ThreadPoolExecutor(2) as pool:
        pool.submit(first)
        assert inside.wait(10)
        waiting = pool.submit(second)
        with pytest.raises(gz.Cancelled), line.turn(stopped=lambda: True):
            pass
        done.set()
        waiting.result(10)
    assert told == [1]


def test_a_full_line_is_said() -> None:
    line = Line(longest=0)
    with line.turn(), pytest.raises(gz.GpenError) as refused, line.turn():
        pass
    assert refused.value.code == "S04"


def test_work_that_nobody_watches_any_more_is_stopped() -> None:
    stopped = threading.Event()

    def work(tell: Callable[[int], None]) -> str:
        tell(1)
        assert stopped.wait(10)
        return "end"

    news = watched(work, stopped.set)
    assert next(news) == 1
    news.close()
    assert stopped.is_set()
    assert list(watched(lambda tell: "value", lambda: pytest.fail("stopped"))) == [Done("value")]


def test_the_newest_news_of_each_kind_is_kept() -> None:
    def work(tell: Callable[[int | str], None]) -> str:
        for news in (1, "a", 2, "b", 3):
            tell(news)
        ready.set()
        assert seen.wait(10)
        return "end"

    ready, seen = threading.Event(), threading.Event()
    news = watched(work, lambda: None)
    told = [next(news)]
    assert ready.wait(10)
    told += [next(news), next(news)] if told == [1] else [next(news)]
    seen.set()
    told += list(news)
    assert [n for n in told if n in ("b", 3)] == ["b", 3]
    assert told[-1] == Done("end")


def test_pace_is_measured_and_carried_over_to_other_branches(desk: Desk, photo: str) -> None:
    face = replace(restored(desk, photo).faces[0], branch="small", ms=200.0)
    pace, sizes = Pace(), {"small": 256, "large": 512}
    assert pace.seconds([face], sizes) is None
    pace.learn([replace(face, ms=9000.0), face, face], sizes)
    assert pace.seconds([face, face], sizes) == pytest.approx(0.4)
    assert pace.seconds([replace(face, branch="large")], sizes) == pytest.approx(0.8)


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


def test_a_face_of_a_grey_photo_is_shown_grey() -> None:
    crop = data.astronaut()[:256, :256]
    assert np.ptp(face_after(crop, "grey").pixels, axis=2).max() == 0
    assert np.ptp(face_after(crop, "colour").pixels, axis=2).max() > 0


def test_examples_are_photos_with_faces(tmp_path: Path, restorer: gz.Restorer) -> None:
    made = make_examples(tmp_path / "examples")
    assert [p.name for p in made] == ["chat-photo.jpg", "old-print.jpg", "noisy-evening.jpg"]
    for path in made:
        assert len(restorer.prepare(gz.read(path)).reports) == 1, path.name
    assert gz.read(made[1]).tone == "toned"
