"""The page behind a real server: health, numbers, an address for programs, limits, and an orderly end.

    /            the page                     /v1/restore  POST a photo, get it back restored
    /healthz     alive, engine not stuck      /metrics     for Prometheus
    /readyz      weights verified and tried       /gradio_api/mcp/  the page's endpoints for assistants

Every answer carries `X-Request-Id`, the caller's own where it sent a sound one; log lines of the request name it.
"""

from __future__ import annotations

import errno
import logging
import re
import signal
import socket
import threading
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

import gradio as gr
import numpy as np
import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gpen_zoo import __version__, service_mcp
from gpen_zoo.branches import Branch
from gpen_zoo.deadline import Deadline
from gpen_zoo.errors import GpenError, guarded
from gpen_zoo.hints import Note, note
from gpen_zoo.isolated import Readers
from gpen_zoo.logs import request_id
from gpen_zoo.metrics import Metrics, State
from gpen_zoo.options import options_from_json
from gpen_zoo.page import Page, build
from gpen_zoo.same_origin import SameOrigin
from gpen_zoo.service_api import answer, refusal
from gpen_zoo.types import RestoreResult
from gpen_zoo.waiting import Line, Stopped
from gpen_zoo.watch import Pulse, Watch, watched
from gpen_zoo.zoo import Zoo

log = logging.getLogger(__name__)

_SOUND_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
FAREWELL = 2.0  # seconds in which those who wait for a stuck engine get their answers before the process ends
_OWN_ROUTES = ("/healthz", "/readyz", "/metrics", "/v1/restore")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """timeout: seconds a photo may take. requests: of `/v1/restore` at once, others are refused. body_mb: of a photo.
    silence: seconds without progress after which the engine counts as stuck. grace: seconds that running work may
    still take when the server is asked to stop; then it is stopped at its next step and says so."""

    timeout: float | None = 300.0
    requests: int = 16
    body_mb: int = 100
    silence: float = 600.0
    grace: float = 20.0


class _CountedLine(Line):
    """The page's line of waiting people, which API callers join; knows how many there are, the one served included."""

    def __init__(self) -> None:
        super().__init__()
        self.length = 0
        self._counting = threading.Lock()

    @contextmanager
    def turn(self, stopped: Stopped | None = None, waiting: Callable[[int], None] | None = None) -> Iterator[None]:
        self._count(1)
        try:
            with super().turn(stopped, waiting):
                yield
        finally:
            self._count(-1)

    def _count(self, more: int) -> None:
        with self._counting:
            self.length += more


class Service:
    """What the routes share. Create it with `create`."""

    def __init__(self, page: Page, limits: Limits) -> None:
        self.limits, self.desk = limits, page.desk
        self.blocks = page.blocks
        self.stopping = threading.Event()  # takes nothing new
        self.stopped = threading.Event()  # ends what runs
        self.ready = threading.Event()
        self.pulse = Pulse(limits.silence)
        self.in_flight = 0
        self.desk.line = line = _CountedLine()
        state = State(
            queue_length=lambda: line.length,
            in_flight=lambda: self.in_flight,
            ready=self.ready.is_set,
            healthy=lambda: not self.pulse.wedged,
            branches=self.desk.in_use,
        )
        self.metrics = Metrics(state, __version__)
        self._readers = Readers(limits.requests)
        self.desk.restorer = watched(
            self.desk.restorer,
            Watch(
                timeout=limits.timeout,
                stopped=self.stopped,
                pulse=self.pulse,
                restored=self.metrics.photo,
                failed=self.metrics.failure,
            ),
        )

    def try_weights(self) -> None:
        """One crop through the smallest branch; then the service is ready."""
        key = self.pulse.start()  # a graphics card that hangs does so here first
        try:
            self._try(self.desk.restorer.branches[0])
        finally:
            self.pulse.stop(key)

    def _try(self, branch: Branch) -> None:
        slope = np.linspace(0, 255, branch.size, dtype=np.uint8)
        crop = np.broadcast_to(slope[:, None, None], (1, branch.size, branch.size, 3)).copy()
        answer = guarded(lambda: branch.engine.restore(crop))
        if isinstance(answer, Note) or answer[0].pixels is None:
            log.error("the weights %s do not run: %s", branch.name, answer)
            return
        self.metrics.loaded(branch.name)
        self.ready.set()

    def restore(self, data: bytes, name: str, options: dict[str, Any]) -> RestoreResult:
        """A photo's bytes to its result. Decoded in a process of its own, then restored in turn."""
        start = time.perf_counter()
        chosen = options_from_json(options)
        deadline = Deadline(self.limits.timeout, self.stopped)
        try:
            with self._readers.lent() as reader:
                deadline.start()
                image = reader.decode(data, name=name, seconds=deadline.left, limit=self.limits.timeout)
        except GpenError as error:
            self.metrics.failure(error.code)
            raise
        self.metrics.stage("read", time.perf_counter() - start)
        with self.desk.line.turn(self.stopped.is_set):
            return self.desk.restorer(image, chosen)

    def wait_until_wedged(self) -> None:
        """Return when the engine is stuck and everybody who waits has been told that the service ends."""
        while not self.pulse.wedged:
            time.sleep(min(1.0, self.limits.silence / 4))
        log.error("no progress for more than %g s, ending", self.limits.silence)
        self.stopping.set()
        self.stopped.set()
        time.sleep(FAREWELL)

    def close(self) -> None:
        """End what runs and the decoders."""
        self.stopping.set()
        self.stopped.set()
        self._readers.close()


def create(
    zoo: Zoo | None = None, limits: Limits | None = None, page: Page | None = None, *, mcp: bool = False
) -> FastAPI:
    """The application; its `state.service` is the `Service`. mcp: the page's endpoints are tools for assistants too.
    Raises as `page.build` and `service_mcp.settle` do."""
    page = page or build(zoo)
    service = Service(page, limits or Limits())

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        threading.Thread(target=service.try_weights, daemon=True).start()
        try:
            yield
        finally:
            service.close()

    app = FastAPI(lifespan=lifespan, openapi_url=None, docs_url=None, redoc_url=None)
    app.state.service = service
    app.add_middleware(SameOrigin)  # inside the next one, so that refusals are counted too
    app.add_middleware(_Told, service=service)

    # HEAD too: probes use it, and it would fall through to the page, which knows no such address.
    @app.api_route("/healthz", methods=["GET", "HEAD"])
    async def healthz() -> Response:
        if service.pulse.wedged:
            return refusal(note("T06", seconds=f"{service.limits.silence:g}"), 503)
        return JSONResponse({"status": "alive", "version": __version__})

    @app.api_route("/readyz", methods=["GET", "HEAD"])
    async def readyz() -> Response:
        if service.stopping.is_set():
            return refusal(note("T05"), 503)
        if not service.ready.is_set():
            return refusal(note("T07"), 503)
        detector = service.desk.restorer.detector.name
        return JSONResponse({"status": "ready", "weights": list(service.desk.in_use), "detector": detector})

    @app.api_route("/metrics", methods=["GET", "HEAD"])
    def metrics() -> Response:
        return Response(service.metrics.text(), media_type=CONTENT_TYPE_LATEST)

    @app.post("/v1/restore")
    async def restore(request: Request) -> Response:
        return await answer(service, request)

    # Else the page would answer: it is mounted below every address, and knows no such one.
    @app.api_route("/v1/restore", methods=["GET", "HEAD", "PUT", "PATCH", "DELETE"])
    async def not_so(request: Request) -> Response:
        told = refusal(note("T23", method=request.method), 405)
        told.headers["Allow"] = "POST"
        return told

    if mcp:
        service_mcp.require(login="auth" in page.launch_options)
    options = {k: v for k, v in page.launch_options.items() if k in _MOUNTABLE}
    gr.mount_gradio_app(app, page.blocks, path="/", mcp_server=mcp, **options)
    if mcp:
        service_mcp.settle(page.blocks)
    return app


_MOUNTABLE = {
    *("i18n", "theme", "css", "show_error", "run_history", "enable_monitoring", "footer_links", "max_file_size"),
    *("auth", "auth_message", "allowed_paths", "blocked_paths", "js", "head", "favicon_path"),
}


class _Told:
    """Middleware: gives every request its id, and tells log and metrics how it ended."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app, self._service = app, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        sent = dict(scope["headers"]).get(b"x-request-id", b"").decode("latin-1")
        own = sent if _SOUND_ID.fullmatch(sent) else uuid.uuid4().hex
        token = request_id.set(own)
        start, status = time.perf_counter(), 500

        async def told(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["X-Request-Id"] = own
            await send(message)

        try:
            await self._app(scope, receive, told)
        finally:
            seconds = time.perf_counter() - start
            # The page has too many addresses, and everybody can make up new ones.
            route = scope["path"] if scope["path"] in _OWN_ROUTES else "page"
            self._service.metrics.request(route, status, seconds)
            fields = {"method": scope["method"], "path": scope["path"], "status": status, "seconds": round(seconds, 4)}
            log.log(logging.DEBUG if route == "page" else logging.INFO, "request", extra={"fields": fields})
            request_id.reset(token)


class _Server(uvicorn.Server):
    """A server that, asked to stop, lets running work finish for a while, then tells it to end at its next step."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        log.info("asked to stop")
        self._service.stopping.set()
        timer = threading.Timer(self._service.limits.grace, self._service.stopped.set)
        timer.daemon = True
        timer.start()
        super().handle_exit(sig, frame)


def visible(host: str) -> str:
    """The host part of an address at which a server that listens on `host` is reached from its own machine."""
    here = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"[{here}]" if ":" in here else here


def bind(host: str, port: int) -> socket.socket:
    """A listening socket, taken before anything is loaded, so that a busy port is told at once. GpenError (T20)."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        raise GpenError("T20", host=host, port=port, reason=_why(error)) from error


def _why(error: OSError | OverflowError) -> Note | str:
    """Why an address cannot be had; in the user's language where it is one of the usual reasons."""
    if isinstance(error, OverflowError):
        return note("cli.port_range")
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        return note("cli.host_unknown")
    usual = {errno.EADDRINUSE: "cli.port_taken", errno.EACCES: "cli.port_denied"}
    return note(usual[error.errno]) if error.errno in usual else error.strerror or str(error)


def serve(
    app: FastAPI,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    listening: socket.socket | None = None,
    ready: Callable[[int], None] | None = None,
    wedged: Callable[[], None] | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM. listening: from `bind`, instead of host and port. ready: told the port when
    connections are taken; port 0 picks a free one. wedged: called when the engine is stuck, to end the process: a
    thread inside torch can be ended in no other way."""
    service: Service = app.state.service
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        # A page that is open holds an endless connection; without a limit it would keep the server for ever.
        timeout_graceful_shutdown=int(service.limits.grace) + 5,
    )
    server = _Server(config, service)

    def watch() -> None:
        while not server.started:
            if server.should_exit:
                return
            time.sleep(0.05)
        bound, taken = server.servers[0].sockets[0].getsockname()[:2]
        if service.blocks.mcp_server:
            service_mcp.reach(service.blocks, f"http://{visible(bound)}:{taken}/")
        if ready is not None:
            ready(taken)
        if wedged is not None:
            service.wait_until_wedged()
            wedged()

    threading.Thread(target=watch, daemon=True).start()
    before = {}
    if threading.current_thread() is threading.main_thread():
        # uvicorn raises the signal once more when all is over; having been asked to stop is no failure.
        before = {which: signal.signal(which, lambda *_: None) for which in (signal.SIGINT, signal.SIGTERM)}
    try:
        server.run(sockets=None if listening is None else [listening])
    finally:
        for which, handler in before.items():
            signal.signal(which, handler)
