"""The service in numbers, for Prometheus. One registry for each service, so that two in one process do not mix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, ProcessCollector, generate_latest

from gpen_zoo.types import RestoreResult

SECONDS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300)


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What is looked up whenever the numbers are asked for, and the names of the branches."""

    queue_length: Callable[[], int]
    in_flight: Callable[[], int]
    ready: Callable[[], bool]
    healthy: Callable[[], bool]
    branches: tuple[str, ...]


class Metrics:
    """Counts what happens; safe from several threads."""

    def __init__(self, state: State, version: str) -> None:
        self.registry = CollectorRegistry()
        on = self.registry
        self._requests = Counter("gpen_requests", "HTTP requests answered", ["route", "status"], registry=on)
        self._request_seconds = Histogram(
            "gpen_request_seconds", "Time from request to answer", ["route"], buckets=SECONDS, registry=on
        )
        self._photos = Counter("gpen_photos", "Photos restored", registry=on)
        self._faces = Counter("gpen_faces", "Faces by verdict", ["verdict"], registry=on)
        self._failures = Counter("gpen_failures", "Photos that were refused or failed, by code", ["code"], registry=on)
        self._stages = Histogram("gpen_stage_seconds", "Work by stage", ["stage"], buckets=SECONDS, registry=on)
        Info("gpen_build", "Version", registry=on).info({"version": version})
        for name, words, value in (
            ("gpen_queue_length", "Photos waiting for their turn or being restored", state.queue_length),
            ("gpen_in_flight", "Requests of the API under way", state.in_flight),
            ("gpen_ready", "1 when weights are verified and a crop has been run", state.ready),
            ("gpen_healthy", "0 when the engine has shown no progress for too long", state.healthy),
        ):
            Gauge(name, words, registry=on).set_function(_number(value))
        self._loaded = Gauge(
            "gpen_model_loaded", "1 when the network of a branch is in memory", ["branch"], registry=on
        )
        for branch in state.branches:
            self._loaded.labels(branch).set(0)
        ProcessCollector(registry=self.registry)  # process_resident_memory_bytes and others, where the system tells

    def request(self, route: str, status: int, seconds: float) -> None:
        """An HTTP request was answered."""
        self._requests.labels(route, str(status)).inc()
        self._request_seconds.labels(route).observe(seconds)

    def photo(self, result: RestoreResult) -> None:
        """A photo was restored."""
        self._photos.inc()
        for face in result.faces:
            self._faces.labels(face.verdict.value).inc()
        for branch in result.weights:
            self.loaded(branch)
        for stage, ms in result.timings:
            self.stage(stage, ms / 1000)

    def failure(self, code: str) -> None:
        """A photo was refused or failed."""
        self._failures.labels(code).inc()

    def loaded(self, branch: str) -> None:
        """The network of a branch has run, and stays in memory."""
        self._loaded.labels(branch).set(1)

    def stage(self, stage: str, seconds: float) -> None:
        """A stage that the restorer does not time."""
        self._stages.labels(stage).observe(seconds)

    def text(self) -> bytes:
        """All of it in Prometheus' text format 0.0.4."""
        return generate_latest(self.registry)


def _number(value: Callable[[], int]) -> Callable[[], float]:
    return lambda: float(value())
