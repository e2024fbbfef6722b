"""The service over real sockets: probes, numbers, limits, many callers at once, an orderly end."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import gradio as gr
import httpx
import numpy as np
import pytest
import uvicorn
from fastapi import FastAPI
from PIL import Image as pil
from prometheus_client.parser import text_string_to_metric_families
from skimage import data

import gpen_zoo as gz
from gpen_zoo.batch_desk import Batch, BatchDesk
from gpen_zoo.desk import Desk
from gpen_zoo.errors import Cancelled, InferenceTimeoutError
from gpen_zoo.page import Page
from gpen_zoo.restore import Restorer
from gpen_zoo.service import Limits, Service, create
from gpen_zoo.sessions import Sessions
from gpen_zoo.types import Image, Options, RawFaces
from gpen_zoo.watch import Pulse
from tests.test_restore import Planted, branch, found, restorer

__all__ = ["found"]  # a fixture
PHOTO = Image(pixels=data.astronaut()[::2, ::2].copy())
FACE = (125, 60, 60)
ROOT = Path(__file__).parents[1]


class Slow(Planted):
    """Steps of a tenth of a second."""

    steps = 8

    def __call__(self, pixels: np.ndarray) -> RawFaces:
        time.sleep(0.1 * self.steps)
        return super().__call__(pixels)


def app_of(tiny: Restorer, folder: Path, limits: Limits | None = None) -> FastAPI:
    with gr.Blocks(analytics_enabled=False) as blocks:
        gr.Markdown("the page")
    return create(limits=limits, page=Page(blocks, {}, Desk(tiny, Sessions(folder))))


@contextmanager
def served(app: FastAPI) -> Iterator[httpx.Client]:
    """A client of `app` on a real server."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, timeout_graceful_shutdown=5))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            yield client
    finally:
        server.should_exit = True
        thread.join()


def numbers(client: httpx.Client) -> dict[str, float]:
    """Every sample by name and labels, as Prometheus itself would read it."""
    return {
        sample.name + "".join(f" {v}" for _, v in sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(client.get("/metrics").text)
        for sample in family.samples
    }


def ready(client: httpx.Client) -> httpx.Response:
    """The answer of /readyz once it is no longer starting."""
    until = time.monotonic() + 30
    while (answer := client.get("/readyz")).status_code != 200 and time.monotonic() < until:
        time.sleep(0.05)
    return answer


@pytest.mark.usefixtures("found")
def test_probes_numbers_and_a_photo(tmp_path: Path) -> None:
    tiny = restorer(FACE, sizes=(32, 64))
    app = app_of(tiny, tmp_path)
    with served(app) as client:
        assert client.get("/healthz").json()["status"] == "alive"
        assert client.head("/healthz").status_code == 200
        assert ready(client).json()["weights"] == ["tiny-32", "tiny-64"]
        assert "the page" in client.get("/").text
        given = client.get("/healthz", headers={"X-Request-Id": "abc-1"}).headers["x-request-id"]
        assert given == "abc-1"
        made = client.get("/healthz", headers={"X-Request-Id": "no good;" * 20}).headers["x-request-id"]
        assert len(made) == 32

        body = gz.encode(PHOTO, format="PNG")
        answer = client.post("/v1/restore?strength=0.5&name=me.png", content=body)
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "image/png"
        assert answer.headers["x-gpen-faces"] == "1"
        expected = tiny(PHOTO, Options(strength=0.5)).image.pixels
        assert np.array_equal(gz.decode(answer.content).pixels, expected)
        moving = io.BytesIO()
        pil.fromarray(PHOTO.pixels).save(moving, "GIF")
        changed = client.post("/v1/restore", content=moving.getvalue())
        assert changed.headers["content-type"] == "image/png"
        assert "I15" in changed.headers["x-gpen-notes"], "a format that had to change is told"
        report = client.post("/v1/restore?faces=2", content=body, headers={"Accept": "application/json"}).json()
        assert report["report"]["faces"][0]["note"]["code"] == "F05"
        assert report["name"] == "photo_restored.png"

        session = app.state.service.desk.restore("visitor", str(picture(tmp_path)), Options())
        assert not isinstance(session, gz.Note)

        read = numbers(client)
        assert read["gpen_photos_total"] == 4
        assert read["gpen_faces_total restored"] == 3
        assert read["gpen_faces_total skipped"] == 1
        assert read["gpen_requests_total /v1/restore 200"] == 3
        assert read["gpen_stage_seconds_count network"] == 4
        assert read["gpen_stage_seconds_count read"] == 3
        assert read["gpen_ready"] == read["gpen_healthy"] == 1
        assert read["gpen_queue_length"] == read["gpen_in_flight"] == 0
        assert read["gpen_model_loaded tiny-32"] == read["gpen_model_loaded tiny-64"] == 1
        if sys.platform == "linux":
            assert read["process_resident_memory_bytes"] > 1e7


def picture(folder: Path) -> Path:
    path = folder / "visitor.png"
    gz.write(PHOTO, path)
    return path


@pytest.mark.usefixtures("found")
def test_refusals_say_what_and_have_the_right_status(tmp_path: Path) -> None:
    app = app_of(restorer(FACE, sizes=(64,)), tmp_path, Limits(body_mb=1))
    with served(app) as client:
        body = gz.encode(PHOTO, format="PNG")

        def refused(query: str, content: object = body) -> tuple[int, str]:
            answer = client.post(f"/v1/restore{query}", content=content)
            error = answer.json()
            assert error["request_id"] == answer.headers["x-request-id"]
            assert error["error"]["zh"]
            return answer.status_code, error["error"]["code"]

        assert refused("?strength=2") == (400, "U01")
        assert refused("?strength=x") == (400, "U01")
        assert refused("?faces=1,x") == (400, "U04")
        assert refused("?aligned=perhaps") == (400, "U06")
        assert refused("?colour=1") == (400, "U03")
        assert refused("?options=[1]") == refused("?options={") == (400, "U02")
        assert refused('?options={"mask":"all"}') == (400, "F63")
        assert refused("?scale=3") == refused("?scale=two") == (400, "F63")
        assert refused("?scale=2&background=nobody") == (400, "F63")
        assert refused("", b"<html></html>") == (422, "I01")
        assert refused("", b"") == (422, "I01")
        assert refused("", b"x" * (1 << 20) + b"y") == (413, "I25")
        elsewhere = client.post("/v1/restore", content=body, headers={"Origin": "https://elsewhere.example"})
        assert elsewhere.status_code == 403, "a page of another site uses nobody's browser to work here"

        def endless() -> Iterator[bytes]:
            for _ in range(64):
                yield b"x" * 65536

        assert refused("", endless()) == (413, "I25"), "a body without a length is cut off too"
        read = numbers(client)
        assert read["gpen_failures_total I25"] == 2
        assert read["gpen_failures_total I01"] == 2


@pytest.mark.usefixtures("found")
def test_a_form_serves_too_and_a_wrong_method_is_told_the_right_one(tmp_path: Path) -> None:
    tiny = restorer(FACE, sizes=(64,))
    with served(app_of(tiny, tmp_path)) as client:
        files = {"file": ("祖母.png", gz.encode(PHOTO, format="PNG"), "image/png")}
        answer = client.post("/v1/restore", files=files, data={"strength": "0.5"}, headers={"Accept": "text/html"})
        expected = tiny(PHOTO, Options(strength=0.5)).image.pixels
        assert np.array_equal(gz.decode(answer.content).pixels, expected)
        json_answer = client.post("/v1/restore?strength=1", files=files, headers={"Accept": "application/json"}).json()
        assert json_answer["name"] == "祖母_restored.png"

        def refused(answer: httpx.Response) -> tuple[int, str]:
            return answer.status_code, answer.json()["error"]["code"]

        assert refused(client.post("/v1/restore", files={"strength": (None, "1")})) == (400, "T24")
        two = [("file", ("a.png", b"x")), ("file", ("b.png", b"y"))]
        assert refused(client.post("/v1/restore", files=two)) == (400, "T25"), "not one served and one dropped"
        absent = client.post("/v1/restore", files=files, data={"faces": "9"})
        assert absent.status_code == 200 and "F09" in absent.headers["x-gpen-notes"].split(",")
        cut = client.post("/v1/restore", content=b"x", headers={"Content-Type": "multipart/form-data"})
        assert refused(cut) == (400, "T24")
        for method in ("GET", "PUT"):
            wrong = client.request(method, "/v1/restore")
            assert refused(wrong) == (405, "T23")
            assert wrong.headers["allow"] == "POST"
        assert client.head("/v1/restore").status_code == 405


@pytest.mark.usefixtures("found")
def test_300_callers_at_a_limited_host_are_served_or_refused_and_never_mixed(tmp_path: Path) -> None:
    limits = Limits(requests=6)
    tiny = restorer((48, 44, 64), sizes=(32,))
    random = np.random.default_rng(3)
    photos = [Image(pixels=random.integers(0, 256, (96, 96, 3), dtype=np.uint8)) for _ in range(300)]
    bodies = [gz.encode(photo, format="PNG") for photo in photos]

    async def everybody(base: httpx.URL) -> list[httpx.Response]:
        unlimited = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(base_url=base, timeout=60, limits=unlimited) as client:
            return await asyncio.gather(*(client.post("/v1/restore?strength=0.5", content=body) for body in bodies))

    with served(app_of(tiny, tmp_path, limits)) as client:
        assert ready(client).status_code == 200
        # In a thread of its own: a browser that other tests keep open leaves its event loop in this one.
        with ThreadPoolExecutor(1) as one:
            answers = one.submit(asyncio.run, everybody(client.base_url)).result()
        codes = [a.status_code for a in answers]
        assert set(codes) == {200, 503}, "the limit was never reached, or nobody was served"
        assert codes.count(200) >= limits.requests
        for photo, answer in zip(photos, answers, strict=True):
            if answer.status_code == 503:
                assert answer.json()["error"]["code"] == "T04"
                assert answer.headers["retry-after"]
                continue
            expected = tiny(photo, Options(strength=0.5)).image.pixels
            assert not np.array_equal(expected, photo.pixels)
            assert np.array_equal(gz.decode(answer.content).pixels, expected)
        read = numbers(client)
        assert read["gpen_photos_total"] == codes.count(200)
        assert read["gpen_failures_total T04"] == codes.count(503)
        assert read["gpen_in_flight"] == read["gpen_queue_length"] == 0
        assert client.get("/healthz").status_code == 200


@pytest.mark.usefixtures("found")
def test_a_late_photo_is_given_up_for_caller_and_visitor(tmp_path: Path) -> None:
    slow = Restorer(branches=(branch(64),), detector=Slow(FACE))
    app = app_of(slow, tmp_path, Limits(timeout=0.5))
    with served(app) as client:
        assert ready(client).status_code == 200
        answer = client.post("/v1/restore", content=gz.encode(PHOTO, format="PNG"))
        assert (answer.status_code, answer.json()["error"]["code"]) == (504, "T01")
        with pytest.raises(InferenceTimeoutError):  # what the page calls
            app.state.service.desk.restorer(PHOTO)
        assert numbers(client)["gpen_failures_total T01"] == 2
        Slow.steps = 0
        try:
            assert client.post("/v1/restore", content=gz.encode(PHOTO, format="PNG")).status_code == 200
        finally:
            Slow.steps = 8


def test_a_stuck_engine_turns_the_probe_red(tmp_path: Path) -> None:
    app = app_of(restorer(FACE, sizes=(64,)), tmp_path, Limits(silence=1))
    service: Service = app.state.service
    with served(app) as client:
        assert ready(client).status_code == 200, "the trial of the weights is watched too"
        key = service.pulse.start()
        assert client.get("/healthz").status_code == 200
        time.sleep(1.1)
        stuck = client.get("/healthz")
        assert (stuck.status_code, stuck.json()["error"]["code"]) == (503, "T06")
        assert numbers(client)["gpen_healthy"] == 0
        service.pulse.beat(key)
        assert client.get("/healthz").status_code == 200
        service.stopping.set()
        assert client.get("/readyz").json()["error"]["code"] == "T05"
        assert client.post("/v1/restore", content=b"x").status_code == 503


@pytest.mark.usefixtures("found")
def test_a_folder_on_the_page_is_watched_like_a_photo(tmp_path: Path) -> None:
    slow = Restorer(branches=(branch(64),), detector=Slow(FACE))
    app = app_of(slow, tmp_path / "served", Limits(timeout=0.5))
    service: Service = app.state.service
    batches = BatchDesk(service.desk)

    def rows() -> list[str | None]:
        answer = batches.restore("visitor", [str(picture(tmp_path))], Options())
        assert isinstance(answer, Batch)
        return [row.error.code if row.error else None for row in answer.rows]

    assert rows() == ["T01"], "the service's limit holds for each photo"
    Slow.steps = 0
    try:
        assert rows() == [None]
    finally:
        Slow.steps = 8
    assert b"gpen_photos_total 1.0" in service.metrics.text()
    assert not service.pulse.wedged


@pytest.mark.usefixtures("found")
def test_an_engine_that_hangs_is_noticed_whoever_uses_it(tmp_path: Path) -> None:
    service: Service = app_of(restorer(FACE, sizes=(64,)), tmp_path, Limits(silence=0.3)).state.service
    let_go = threading.Event()

    class Hung:
        size = 64

        def restore(self, crops: np.ndarray, *, on_crop: object = None) -> tuple[()]:
            let_go.wait(30)
            return ()

    fresh = Restorer(branches=(branch(64, "fresh", lambda: Hung()),), detector=Planted(FACE))  # type: ignore[arg-type, return-value]
    service.desk.use(fresh, "fresh")
    (one,) = service.desk.restorer.branches
    with ThreadPoolExecutor(1) as pool:
        hung = pool.submit(one.engine.restore, np.zeros((1, 64, 64, 3), np.uint8))
        until = time.monotonic() + 10
        while not service.pulse.wedged and time.monotonic() < until:
            time.sleep(0.05)
        assert service.pulse.wedged
        let_go.set()
        hung.result()
    assert not service.pulse.wedged


@pytest.mark.usefixtures("found")
def test_faces_asked_for_later_have_a_deadline_too(tmp_path: Path) -> None:
    service: Service = app_of(restorer(FACE, sizes=(64,)), tmp_path).state.service
    watching = service.desk.restorer
    result = watching(PHOTO, Options(faces=()))
    found = watching.prepare(PHOTO, Options()).found
    assert watching.complete(result, Options(), found=found).faces[0].plan is not None
    service.stopped.set()
    with pytest.raises(Cancelled):
        watching.complete(result, Options(), found=found)


def test_a_pulse() -> None:
    pulse = Pulse(0.1)
    assert not pulse.wedged
    one, two = pulse.start(), pulse.start()
    time.sleep(0.15)
    pulse.beat(one)
    assert pulse.wedged
    pulse.stop(two)
    assert not pulse.wedged


CHILD = """
import sys
from pathlib import Path
from gpen_zoo import logs
from gpen_zoo.service import Limits, serve
from tests.test_service import FACE, Slow, app_of, branch
from gpen_zoo.restore import Restorer
from gpen_zoo import restore
from gpen_zoo.detect import Found

def find(image, detector, **more):
    for _ in range(int(sys.argv[3])):  # as a large photo, tile by tile
        detector(image.pixels)
    return Found(faces=(), detector=detector.name)

restore.find_faces = find
Slow.steps = 1
logs.set_up("info", as_json=True)
app = app_of(Restorer(branches=(branch(64),), detector=Slow(FACE)), Path(sys.argv[1]), Limits(grace=float(sys.argv[2])))
serve(app, host="127.0.0.1", port=0, ready=lambda port: print(port, flush=True))
"""


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
@pytest.mark.parametrize(("grace", "steps", "status"), [(20.0, 10, 200), (0.5, 200, 503)])
def test_asked_to_stop_it_finishes_what_runs_or_says_that_it_could_not(
    tmp_path: Path, grace: float, steps: int, status: int
) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(tmp_path), str(grace), str(steps)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    address = f"http://127.0.0.1:{int(child.stdout.readline())}"
    body = gz.encode(PHOTO, format="PNG")
    with httpx.Client(base_url=address, timeout=60) as client, ThreadPoolExecutor(1) as pool:
        assert ready(client).status_code == 200
        running = pool.submit(client.post, "/v1/restore", content=body, headers={"X-Request-Id": "last"})
        until = time.monotonic() + 30
        while numbers(client)["gpen_queue_length"] == 0 and time.monotonic() < until:
            time.sleep(0.05)
        start = time.monotonic()
        child.send_signal(signal.SIGTERM)
        answer = running.result(timeout=60)
    assert answer.status_code == status
    if status == 503:
        assert answer.json()["error"]["code"] == "T03"
    _, err = child.communicate(timeout=30)
    assert child.returncode == 0, err
    assert time.monotonic() - start < 15
    lines = [json.loads(line) for line in err.splitlines() if line.startswith("{")]
    (told,) = [line for line in lines if line.get("request") == "last" and line["message"] == "request"]
    assert told["status"] == status


STUCK = """
import sys, threading, time
from gpen_zoo import cli, restore
restore.find_faces = lambda *_, **__: threading.Event().wait()
words = ["serve", "--port", "0", "--lang", "en", "--silence", "4", *sys.argv[1:]]
sys.exit(cli.main(words))
"""


@pytest.mark.parametrize("flag", [True, False])
def test_a_stuck_engine_ends_the_process_where_that_was_asked_for(tmp_path: Path, flag: bool) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", STUCK, *(["--exit-when-wedged"] if flag else [])],
        cwd=ROOT,
        env={**os.environ, "GRADIO_TEMP_DIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    address = child.stdout.readline().split()[2].rstrip(";")
    body = gz.encode(PHOTO, format="PNG")
    try:
        with httpx.Client(base_url=address, timeout=60) as client, ThreadPoolExecutor(2) as pool:
            assert ready(client).status_code == 200
            stuck = pool.submit(client.post, "/v1/restore", content=body)
            while numbers(client)["gpen_queue_length"] < 1:
                time.sleep(0.05)
            if flag:
                waiting = pool.submit(client.post, "/v1/restore", content=body)
                assert waiting.result(timeout=30).json()["error"]["code"] == "S05", "who waits is told"
                assert child.wait(timeout=30) == 1
                with pytest.raises(httpx.TransportError):
                    stuck.result(timeout=30)
            else:
                while client.get("/healthz").status_code == 200:
                    time.sleep(0.05)
                time.sleep(3)
                assert child.poll() is None
                child.kill()  # else the pool waits for answers that never come
    finally:
        child.kill()
        _, err = child.communicate(timeout=60)
    assert ("[T06]" in err) == flag


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_the_command_serves_the_page_and_ends_when_asked(tmp_path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-m", "gpen_zoo", "serve", "--port", "0", "--lang", "en", "--grace", "0"],
        cwd=ROOT,
        env={**os.environ, "GRADIO_TEMP_DIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    told = child.stdout.readline()
    try:
        address = told.split()[2].rstrip(";")
        with httpx.Client(base_url=address, timeout=60) as client:
            assert client.get("/healthz").status_code == 200
            assert "GPEN Zoo" in client.get("/").text
            assert "gpen-demo-256" in client.get("/metrics").text
    finally:
        child.send_signal(signal.SIGTERM)
        _, err = child.communicate(timeout=60)
    assert child.returncode == 0, err
    assert "Traceback" not in err
