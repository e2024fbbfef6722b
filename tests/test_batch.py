"""Many photos through one restorer: order, faults, deadlines, bounds, names, the journal."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
from skimage import data

import gpen_zoo as gz
from gpen_zoo import batch
from gpen_zoo.batch import run
from gpen_zoo.batch_types import Done, Job, Settings
from gpen_zoo.deadline import Deadline
from gpen_zoo.detection_cache import DetectionCache
from gpen_zoo.errors import GpenError, ImageUnreadable, InferenceTimeoutError, OptionsInvalid
from gpen_zoo.hints import note
from gpen_zoo.inputs import find_inputs
from gpen_zoo.isolated import IsolatedReader, Readers
from gpen_zoo.journal import Journal
from gpen_zoo.lanes import Closed, Lane, Window
from gpen_zoo.outputs import Names, put_file, sweep
from gpen_zoo.restore import Restorer
from gpen_zoo.sizing import nearest_branch_side, resized_image, with_long_side
from gpen_zoo.timeline import Timeline
from gpen_zoo.types import Image, Options, RawFaces, Verdict
from tests.test_restore import Planted, branch, found, restorer, tiny_engine

__all__ = ["found"]  # a fixture
ASTRONAUT = data.astronaut()[::2, ::2].copy()
THREE = ((50, 50, 30), (125, 125, 50), (200, 190, 100))


@pytest.fixture
def photos(tmp_path: Path) -> list[Path]:
    """Five photos that differ in brightness, and a web page in the middle."""
    paths = []
    for number in range(6):
        path = tmp_path / "in" / f"{number}.png"
        gz.write(Image(pixels=(ASTRONAUT // (1 + number)).astype(np.uint8)), path)
        paths.append(path)
    paths[2].write_bytes(b"<html></html>")
    return paths


def jobs(paths: list[Path], folder: Path | None) -> list[Job]:
    return [Job(label=p.name, source=p, target=folder / f"{p.stem}_restored" if folder else None) for p in paths]


@pytest.mark.usefixtures("found")
def test_results_are_those_of_one_photo_at_a_time_in_order(photos: list[Path], tmp_path: Path) -> None:
    tiny = restorer(*THREE)
    timeline = Timeline()
    done = list(run(jobs(photos, tmp_path / "out"), tiny, Settings(workers=3), timeline=timeline))
    assert [d.job.label for d in done] == [p.name for p in photos]
    assert [d.number for d in done] == [1, 2, 3, 4, 5, 6]
    assert [d.error.code if d.error else None for d in done] == [None, None, "I01", None, None, None]
    for path, one in zip(photos, done, strict=True):
        if one.result is None:
            continue
        alone = tiny(gz.read(path))
        assert np.array_equal(one.result.image.pixels, alone.image.pixels)
        assert [f.verdict for f in one.result.faces] == [f.verdict for f in alone.faces]
        assert one.written == (tmp_path / "out" / f"{path.stem}_restored.png",)
        assert np.array_equal(gz.read(one.written[0]).pixels, alone.image.pixels)
        assert {stage for stage, _ in one.result.timings} == {
            *("read", "detect", "align", "network", "paste", "encode", "write")
        }
    laps = {lap.stage: lap for lap in timeline.laps()}
    assert laps["network"].photos == 5
    assert laps["network"].wait_ms > 0
    assert laps["read"].photos == 6
    events = timeline.chrome_trace()["traceEvents"]
    assert {e["ph"] for e in events} == {"M", "X"}
    assert {e["args"]["photo"] for e in events if e["ph"] == "X"} == {1, 2, 3, 4, 5, 6}


@pytest.mark.usefixtures("found")
def test_faces_of_several_photos_share_the_engines_batches(photos: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    engine, sizes, gate = tiny_engine(64), [], threading.Event()
    genuine = engine.restore

    def restore(crops: np.ndarray, **more: object) -> object:
        if not sizes:
            gate.wait(20)  # until the other photos have queued up behind the first
        sizes.append(len(crops))
        return genuine(crops, **more)

    monkeypatch.setattr(engine, "restore", restore)
    photo = Restorer(branches=(branch(64, build=lambda: engine),), detector=Planted((100, 100, 60)))
    del photos[2]
    answers = run(jobs(photos, None), photo, Settings(workers=1))
    threading.Timer(1.0, gate.set).start()
    assert all(d.error is None for d in answers)
    assert sizes == [1, 4]


@pytest.mark.usefixtures("found")
def test_a_fault_of_the_engine_is_told_for_each_photo_and_the_run_goes_on(photos: list[Path]) -> None:
    def broken() -> object:
        raise ImageUnreadable("I05", format="weights", reason="gone")

    two = Restorer(
        branches=(branch(32, build=broken), branch(128)),  # type: ignore[arg-type]
        detector=Planted((100, 100, 30)),
    )
    codes = [d.error.code if d.error else None for d in run(jobs(photos, None), two)]
    assert codes == ["I05", "I05", "I01", "I05", "I05", "I05"]
    nan = Restorer(branches=(branch(64, build=lambda: tiny_engine(64, broken=True)),), detector=Planted((99, 99, 60)))
    first = next(run(jobs(photos[:1], None), nan))
    assert first.result is not None
    assert first.result.faces[0].verdict is Verdict.FAILED


@pytest.mark.usefixtures("found")
def test_a_wrong_option_is_told_at_once() -> None:
    with pytest.raises(OptionsInvalid):
        run([], restorer(), Settings(options=Options(strength=3)))


def test_what_is_under_way_is_bounded(photos: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "AHEAD", 2)
    taken: list[int] = []

    def endless() -> Iterator[Job]:
        for number in range(10_000):
            taken.append(number)
            yield Job(label=str(number), source=photos[2])  # fails quickly

    answers = run(endless(), restorer(), Settings(workers=2))
    for number in range(20):
        assert next(answers).number == number + 1
        time.sleep(0.01)
        assert len(taken) <= number + 1 + 2 + 2 + 1
    answers.close()
    count = len(taken)
    time.sleep(0.1)
    assert len(taken) == count
    assert not [t for t in threading.enumerate() if t.name.startswith(("read-", "network-", "write-"))]


def test_a_window_lets_the_oldest_through_whatever_it_weighs() -> None:
    window = Window(2, 10.0)
    window.enter(0)
    window.weigh(0, 99.0)
    window.enter(1)
    entered = threading.Event()

    def second() -> None:
        window.weigh(1, 1.0)
        entered.set()

    thread = threading.Thread(target=second)
    thread.start()
    assert not entered.wait(0.1)
    window.leave(0)
    assert entered.wait(5)
    thread.join()
    window.close()
    with pytest.raises(Closed):
        window.enter(9)


def test_a_lane_ends_or_closes() -> None:
    lane: Lane[int] = Lane(5)
    for number in range(5):
        lane.put(number)
    assert lane.take(lambda taken: sum(taken) >= 3) == [0, 1, 2]
    lane.end()
    assert lane.take() == [3]
    assert lane.take() == [4]
    assert lane.take() == []
    lane.close()
    with pytest.raises(Closed):
        lane.put(1)
    with pytest.raises(Closed):
        lane.take()


# --- deadlines --------------------------------------------------------------------------------------------------


def outcome(answers: Iterator[Done]) -> list[str]:
    """Code and stage of every failure, `ok` for the others."""
    return [
        "ok" if d.error is None else f"{d.error.code} {getattr(d.error.params.get('stage'), 'code', '')}"
        for d in answers
    ]


class Slow(Planted):
    """Takes its time over dark photos, tile by tile."""

    def __call__(self, pixels: np.ndarray) -> RawFaces:
        if pixels.max() == 255 // 2:
            time.sleep(0.6)
        return super().__call__(pixels)


@pytest.mark.usefixtures("found")
def test_time_is_up_while_looking_for_faces(photos: list[Path], tmp_path: Path) -> None:
    slow = Restorer(branches=(branch(64),), detector=Slow((100, 100, 60)))
    answers = run(jobs(photos, tmp_path / "out"), slow, Settings(workers=1, timeout=0.55))
    assert outcome(answers) == ["ok", "T01 stage.detect", "I01 ", "ok", "ok", "ok"]
    assert len(list((tmp_path / "out").iterdir())) == 4


@pytest.mark.usefixtures("found")
@pytest.mark.parametrize(("place", "stage"), [("finish", "paste"), ("encode", "encode")])
def test_time_is_up_while_pasting_or_encoding(
    photos: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, stage: str
) -> None:
    owner = Restorer if place == "finish" else batch
    genuine = getattr(owner, place)
    slow = iter([True])

    def slept(*args: object, **more: object) -> object:
        if next(slow, False):
            time.sleep(0.7)
        return genuine(*args, **more)

    monkeypatch.setattr(owner, place, slept)
    some = jobs(photos[:2], tmp_path / "out")
    answers = run(some, restorer((100, 100, 60)), Settings(workers=1, timeout=0.6))
    assert outcome(answers) == [f"T01 stage.{stage}", "ok"]
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["1_restored.png"]


@pytest.mark.usefixtures("found")
def test_time_is_up_in_the_network_for_one_of_the_photos_that_share_it(
    photos: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = tiny_engine(64)
    calls: list[int] = []

    def restore(crops: np.ndarray, *, on_crop: object) -> object:
        calls.append(len(crops))
        if len(crops) == 3:
            time.sleep(0.7)
            on_crop(1, 3)  # type: ignore[operator]
        return genuine(crops)

    genuine = engine.restore
    monkeypatch.setattr(engine, "restore", restore)
    crowd = Restorer(branches=(branch(64, build=lambda: engine),), detector=Planted(*[(99, 99, 60)] * 3))
    only = [Options(), Options(faces=(1,))]
    answers = [outcome(run(jobs(photos[:1], None), crowd, Settings(workers=1, timeout=0.6, options=o))) for o in only]
    assert answers == [["T01 stage.network"], ["ok"]]
    assert calls == [3, 1], "the engine was left in order"


HANG = """
import time
from PIL import PngImagePlugin
genuine = PngImagePlugin.PngImageFile.load_prepare
def load_prepare(self):
    if self.size == (41, 41):
        time.sleep(600)
    if self.size == (43, 43):
        import os
        os.abort()
    return genuine(self)
PngImagePlugin.PngImageFile.load_prepare = load_prepare
"""


def test_a_decoder_that_hangs_or_crashes_costs_its_own_photo_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(HANG)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    paths = []
    for side in (40, 41, 42, 43, 44):
        paths.append(tmp_path / f"{side}.png")
        gz.write(Image(pixels=np.full((side, side, 3), 99, np.uint8)), paths[-1])
    everybody = Readers(1)
    try:
        with pytest.raises(InferenceTimeoutError):
            everybody.read(paths[1], seconds=0.5)
        assert everybody.read(paths[0], seconds=60).width == 40
        unwanted = threading.Event()
        threading.Timer(0.5, unwanted.set).start()
        with pytest.raises(gz.Cancelled):
            everybody.read(paths[1], seconds=60, stopped=unwanted)
    finally:
        everybody.close()
    with IsolatedReader() as reader:
        start = time.monotonic()
        answers = []
        for path in paths:
            try:
                answers.append(str(reader.read(path, seconds=2).width))
            except GpenError as error:
                answers.append(error.code)
        assert answers == ["40", "T01", "42", "T02", "44"]
        assert time.monotonic() - start < 60
        with pytest.raises(InferenceTimeoutError) as late:
            reader.decode(paths[1].read_bytes(), name="x", seconds=0.3, limit=7)
        assert "7 s" in str(late.value)
        with pytest.raises(GpenError) as absent:
            reader.read(tmp_path / "absent.png", seconds=30)
        assert absent.value.code == "I19"


def test_a_decoder_whose_parent_is_gone_ends_without_a_word() -> None:
    here, there = os.pipe()
    os.close(here)
    started = [sys.executable, "-m", "gpen_zoo.isolated"]
    child = subprocess.run(
        started, stdin=subprocess.DEVNULL, stdout=there, stderr=subprocess.PIPE, cwd=Path(__file__).parents[1]
    )
    os.close(there)
    assert (child.returncode, child.stderr) == (0, b"")


def test_waiting_is_not_held_against_a_photo() -> None:
    deadline = Deadline(0.05)
    with deadline.working("read"):
        pass
    time.sleep(0.1)
    with deadline.working("detect"):
        pass
    with pytest.raises(InferenceTimeoutError), deadline.working("paste"):
        time.sleep(0.1)
    with pytest.raises(TimeoutError):
        deadline.check("encode")
    Deadline(None).check("read", 1e9)


@pytest.mark.usefixtures("found")
def test_stopping_ends_at_the_next_step_and_leaves_nothing_behind(photos: list[Path], tmp_path: Path) -> None:
    class Endless(Planted):
        def __call__(self, pixels: np.ndarray) -> RawFaces:
            time.sleep(0.2)
            return super().__call__(pixels)

    many = jobs([photos[0]] * 50, None)
    targets = [replace(j, target=tmp_path / "out" / str(n)) for n, j in enumerate(many)]
    slow = Restorer(branches=(branch(64),), detector=Endless((100, 100, 60)))
    answers = run(targets, slow, Settings(workers=2), cache=DetectionCache(limit=0))
    next(answers)
    start = time.monotonic()
    answers.close()
    assert time.monotonic() - start < 10
    for path in (tmp_path / "out").iterdir():
        assert gz.read(path).pixels.shape == (256, 256, 3)
    assert len(list((tmp_path / "out").iterdir())) < 20


# --- sizes, faces, formats --------------------------------------------------------------------------------------


@pytest.mark.usefixtures("found")
def test_sizes_faces_and_formats(photos: list[Path], tmp_path: Path) -> None:
    tiny = restorer((100, 100, 60), (150, 150, 90))
    more = Settings(format="jpg", save_faces=True, long_side=300, quality=90)
    (done,) = run(jobs(photos[:1], tmp_path / "out"), tiny, more)
    assert [p.name for p in done.written] == ["0_restored.jpg", "0_restored_face01.png", "0_restored_face02.png"]
    assert gz.read(done.written[0]).width == 300
    assert done.result is not None
    for path, crop in zip(done.written[1:], done.result.crops, strict=True):
        assert path.stem.endswith(f"_face{crop.index:02d}")
        assert np.array_equal(gz.read(path).pixels, np.hstack((crop.before, crop.after)))
    back = Settings(options=Options(aligned=True), auto_resize=True)
    small = tmp_path / "small.png"
    gz.write(Image(pixels=data.astronaut()[:300, :400]), small)
    (done,) = run([Job(label="x", source=small.read_bytes(), target=tmp_path / "a.webp", exact=True)], tiny, back)
    assert done.result is not None
    assert done.result.original.width == 512
    assert gz.read(tmp_path / "a.webp").pixels.shape == (300, 400, 3)
    (done,) = run([Job(label="x", source=small, target=small, exact=True)], tiny)
    assert done.error is not None
    assert done.error.code == "U07"


def test_sizing() -> None:
    image = Image(pixels=data.astronaut()[:200], alpha=np.full((200, 512), 9, np.uint8))
    assert resized_image(image, 512, 200) is image
    larger = with_long_side(image, 1024)
    assert larger.pixels.shape == (400, 1024, 3)
    assert larger.alpha is not None
    assert larger.alpha.shape == (400, 1024)
    assert [nearest_branch_side(with_long_side(image, side)) for side in (64, 720, 740, 1500, 9000)] == [
        *(512, 512, 1024, 2048, 2048)
    ]


# --- the cache ----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("found")
def test_a_photo_is_searched_once_whatever_the_settings(photos: list[Path], tmp_path: Path) -> None:
    class Counting(Planted):
        calls = 0

        def __call__(self, pixels: np.ndarray) -> RawFaces:
            Counting.calls += 1
            return super().__call__(pixels)

    tiny = Restorer(branches=(branch(64),), detector=Counting((100, 100, 60)))
    results = []
    for strength in (1.0, 0.5):
        cache = DetectionCache(tmp_path / "faces")
        settings = Settings(options=Options(strength=strength), workers=1)
        results += [d.result for d in run(jobs(photos[:2] * 2, None), tiny, settings, cache=cache)]
    assert Counting.calls == 2
    first, last = results[0], results[-2]
    assert first is not None
    assert last is not None
    assert np.array_equal(first.faces[0].frame, last.faces[0].frame)
    for entry in (tmp_path / "faces").iterdir():
        entry.write_text('{"faces": 3}')  # not ours: looked for anew
    list(run(jobs(photos[:1], None), tiny, cache=DetectionCache(tmp_path / "faces")))
    assert Counting.calls == 3
    bounded = DetectionCache(limit=2)
    prepared = tiny.prepare(Image(pixels=ASTRONAUT))
    for key in "abc":
        bounded.put(key, prepared.found)
    assert [bounded.get(key) is not None for key in "abc"] == [False, True, True]


# --- names, files, inputs, journal --------------------------------------------------------------------------------


def test_names() -> None:
    now = datetime(2026, 1, 31, 23, 59, 59)
    names = Names("{stem}_{time}_{n:03d}", now)
    assert names.stem(Path("a"), "奶奶", 7) == "奶奶_20260131-235959_007"
    plain = Names()
    assert [plain.stem(Path("a"), s, 1) for s in ("me", "ME", "me")] == [
        "me_restored",
        "ME_restored_2",
        "me_restored_3",
    ]
    assert plain.stem(Path("b"), "me", 1) == "me_restored"
    for wrong in ("{nonsense}", "{stem", "{0}", "{}", "", "{stem.x}", "{n!z}"):
        with pytest.raises(OptionsInvalid):
            Names(wrong)


def test_files_are_whole_or_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_file(b"x", tmp_path / "new" / "a.png")
    assert [p.name for p in (tmp_path / "new").iterdir()] == ["a.png"]
    with pytest.raises(GpenError) as error:
        put_file(b"x", tmp_path / "new" / "a.png" / "b.png")
    assert error.value.code == "I22"

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.raises(GpenError) as error:
            put_file(b"later", tmp_path / "new" / "a.png")
    assert error.value.code == "U17"
    assert (tmp_path / "new" / "a.png").read_bytes() == b"x", "the earlier file is untouched"
    assert [p.name for p in (tmp_path / "new").iterdir()] == ["a.png"]
    old, young = tmp_path / "new" / ".a.png.1.gpen-part", tmp_path / ".b.png.1.gpen-part"
    old.write_bytes(b"")
    young.write_bytes(b"")
    os.utime(old, (1, 1))
    assert sweep(tmp_path) == 1
    assert young.exists()
    assert not old.exists()


def test_inputs(tmp_path: Path, photos: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    folder = photos[0].parent
    deep = folder / "b" / "c"
    deep.mkdir(parents=True)
    (folder / "notes.txt").write_text("hello")
    (deep / "no_suffix").write_bytes(photos[0].read_bytes())
    (deep / "odd[1].JPG").write_bytes(photos[0].read_bytes())
    (folder / ".hidden.png").write_bytes(photos[0].read_bytes())
    flat = find_inputs([str(folder)])
    assert [i.path for i in flat.photos] == photos
    assert flat.passed_over == 1
    everything = find_inputs([str(folder)], recursive=True)
    assert [i.below.as_posix() for i in everything.photos] == [".", ".", ".", ".", ".", ".", "b/c", "b/c"]
    assert find_inputs([str(folder)], recursive=True, without=[deep.resolve()]).photos == flat.photos
    assert find_inputs([str(folder / "*.png"), str(photos[1])]).photos == flat.photos
    assert [i.path for i in find_inputs([str(folder / "**" / "*.JPG")]).photos] == [deep / "odd[1].JPG"]
    assert [i.path for i in find_inputs([str(deep / "odd[1].JPG")]).photos] == [deep / "odd[1].JPG"]
    assert find_inputs(["-", "-"]).photos == (find_inputs(["-"]).photos[0],)
    absent = find_inputs([str(folder / "absent.jpg")])
    assert len(absent.photos) == 1
    (tmp_path / "empty").mkdir()
    wrong = find_inputs([str(tmp_path / "empty"), str(folder / "*.tif")])
    assert [n.code for _, n in wrong.problems] == ["U19", "U20"]


def test_the_journal_knows_what_is_done(tmp_path: Path, photos: list[Path]) -> None:
    out = tmp_path / "out"
    targets = [out / p.stem for p in photos]
    journal = Journal(out)
    result = out / "0.png"
    put_file(photos[0].read_bytes(), result)
    journal.record(photos[0], (result,), None)
    journal.record(photos[1], (), note("F01"))
    put_file(b"", out / "3.jpg")  # a result whose line was lost
    with (out / ".gpen_zoo_run.jsonl").open("a") as stream:
        stream.write('{"version": 1, "inp')  # cut short by a kill
    again = Journal(out)
    assert [again.finished(p, t) for p, t in zip(photos, targets, strict=True)] == [
        *(True, False, False, True, False, False)
    ]
    assert again.outputs == {result.resolve()}
    photos[0].write_bytes(photos[4].read_bytes())
    assert not Journal(out).finished(photos[0], targets[0]), "the photo has changed"
    result.unlink()
    journal.record(photos[0], (result,), None)
    assert not Journal(out).finished(photos[0], targets[0]), "the result has gone"
