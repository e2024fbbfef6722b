"""Local servers that behave like the hosts weights come from: a hub, its content host, ModelScope, plain files.

Hugging Face: HEAD and GET of `/{repo}/resolve/{revision}/{file}` answer 302 with X-Repo-Commit, X-Linked-Etag and
X-Linked-Size and send the client to another host, which serves ranges; `/api/models/…/revision/…` lists files.
ModelScope: `/api/v1/models/{id}/repo/files` lists, `/api/v1/models/{id}/repo?FilePath=` serves. `/files/{name}`: plain.
Faults are queued and used up one for each request of a body.
"""

from __future__ import annotations

import hashlib
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

COMMIT = "e" * 40


@dataclass
class Seen:
    """One request as it arrived. body: whether it asked for the bytes of a file."""

    host: str
    method: str
    path: str
    headers: dict[str, str]
    body: bool = False


Fault = Callable[["Handler", bytes, str], bool]  # True: the fault has answered


@dataclass
class Hub:
    """The state of both servers. pause: seconds before each piece of `piece` bytes, to make downloads slow."""

    files: dict[str, bytes] = field(default_factory=dict)
    listings: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    etags: dict[str, str] = field(default_factory=dict)
    url: str = ""
    content_url: str = ""
    piece: int = 1 << 16
    pause: float = 0.0
    lfs_headers: bool = True

    def add_hugging_face(self, repo: str, file: str, content: bytes, *, kind: str = "models") -> None:
        self.files[f"hf/{kind}/{repo}/{file}"] = content
        digest = hashlib.sha256(content).hexdigest()
        entry = {"rfilename": file, "size": len(content), "blobId": "0" * 40}
        entry["lfs"] = {"sha256": digest, "size": len(content), "pointerSize": 134}
        self.listings.setdefault(f"hf/{kind}/{repo}", []).append(entry)

    def add_modelscope(self, repo: str, file: str, content: bytes, *, digest: bool = True) -> None:
        self.files[f"ms/{repo}/{file}"] = content
        entry: dict[str, Any] = {"Path": file, "Name": file, "Type": "blob", "Size": len(content)}
        if digest:
            entry["Sha256"] = hashlib.sha256(content).hexdigest()
        self.listings.setdefault(f"ms/{repo}", []).append(entry)

    def add_plain(self, name: str, content: bytes) -> str:
        self.files[f"files/{name}"] = content
        return f"{self.url}/files/{name}"

    def bodies(self) -> list[Seen]:
        """Requests for file content, the redirects to it not counted."""
        return [seen for seen in self.seen if seen.body]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def do_HEAD(self) -> None:
        self.route()

    def do_GET(self) -> None:
        self.route()

    def route(self) -> None:
        parts = urlsplit(self.path)
        path, query = unquote(parts.path), parse_qs(parts.query)
        self.record = Seen(self.headers["Host"], self.command, self.path, dict(self.headers.items()))
        self.hub.seen.append(self.record)
        if path.startswith("/api/v1/models/"):
            self.modelscope(path.removeprefix("/api/v1/models/"), query)
        elif path.startswith("/api/"):
            kind, owner, name = path.split("/")[2:5]
            listing = self.hub.listings.get(f"hf/{kind}/{owner}/{name}")
            self.json({"id": f"{owner}/{name}", "sha": COMMIT, "siblings": listing}) if listing else self.plain(404)
        elif "/resolve/" in path:
            self.resolve(path.strip("/"))
        else:
            self.content(path.strip("/"))

    def resolve(self, path: str) -> None:
        before, after = path.split("/resolve/")
        kind, repo = ("spaces", before[7:]) if before.startswith("spaces/") else ("models", before)
        key = f"hf/{kind}/{repo}/{after.split('/', 1)[1]}"
        content = self.hub.files.get(key)
        if content is None:
            self.plain(404, {"X-Error-Code": "EntryNotFound"})
            return
        headers = {"X-Repo-Commit": COMMIT, "Location": f"{self.hub.content_url}/{quote(key)}?signature=1"}
        if self.hub.lfs_headers:
            headers["X-Linked-Etag"] = f'"{hashlib.sha256(content).hexdigest()}"'
            headers["X-Linked-Size"] = str(len(content))
        self.plain(302, headers)

    def modelscope(self, path: str, query: dict[str, list[str]]) -> None:
        repo, _, rest = path.partition("/repo")
        if rest == "/files":
            files = self.hub.listings.get(f"ms/{repo}")
            answer = {"Code": 200, "Data": {"Files": files}, "Success": True} if files else {"Code": 10010205}
            self.json(answer)
        else:
            self.content(f"ms/{repo}/{query['FilePath'][0]}")

    def content(self, key: str) -> None:
        content = self.hub.files.get(key)
        if content is None:
            self.plain(404)
            return
        etag = self.hub.etags.get(key) or f'"{hashlib.md5(content).hexdigest()}"'
        if self.command == "GET":
            self.record.body = True
            if self.hub.faults and self.hub.faults.pop(0)(self, content, etag):
                self.close_connection = True
                return
        self.serve(content, etag)

    def serve(self, content: bytes, etag: str, *, ranges: bool = True, stop: int | None = None) -> None:
        """A correct answer; `stop` breaks the connection after that many bytes of it."""
        first, wanted = 0, self.headers.get("Range")
        fresh = self.headers.get("If-Range") in (None, etag)
        if wanted and ranges and fresh:
            first = int(wanted.removeprefix("bytes=").rstrip("-"))
            if first >= len(content):
                self.plain(416, {"Content-Range": f"bytes */{len(content)}"})
                return
        self.send_response(206 if first else 200)
        self.send_header("ETag", etag)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(len(content) - first))
        if first:
            self.send_header("Content-Range", f"bytes {first}-{len(content) - 1}/{len(content)}")
        self.end_headers()
        if self.command == "GET":
            self.send(content[first:], stop)

    def send(self, content: bytes, stop: int | None = None) -> None:
        try:
            for start in range(0, len(content[:stop]), self.hub.piece):
                time.sleep(self.hub.pause)
                self.wfile.write(content[:stop][start : start + self.hub.piece])
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the client was killed, which is what the tests do to it

    def plain(self, status: int, headers: dict[str, str] | None = None, body: bytes = b"") -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if not (headers and "Content-Length" in headers):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.send(body)

    def json(self, data: Any) -> None:
        self.plain(200, {"Content-Type": "application/json"}, json.dumps(data).encode())

    def log_message(self, *args: Any) -> None:
        return


def status(code: int, **headers: str) -> Fault:
    def fault(handler: Handler, content: bytes, etag: str) -> bool:
        handler.plain(code, {name.replace("_", "-"): value for name, value in headers.items()})
        return True

    return fault


def cut(after: int) -> Fault:
    """Announces everything, sends `after` bytes, closes."""

    def fault(handler: Handler, content: bytes, etag: str) -> bool:
        handler.serve(content, etag, stop=after)
        return True

    return fault


def stall(seconds: float, after: int = 0) -> Fault:
    """Sends `after` bytes and then nothing."""

    def fault(handler: Handler, content: bytes, etag: str) -> bool:
        handler.serve(content, etag, stop=after)
        time.sleep(seconds)
        return True

    return fault


def no_ranges(handler: Handler, content: bytes, etag: str) -> bool:
    handler.serve(content, etag, ranges=False)
    return True


def captive_portal(handler: Handler, content: bytes, etag: str) -> bool:
    handler.plain(200, {"Content-Type": "text/html; charset=utf-8"}, b"<html>Please sign in</html>" * 50)
    return True


def disguised_page(handler: Handler, content: bytes, etag: str) -> bool:
    """HTML of exactly the right length and a binary content type."""
    page = (b"<!DOCTYPE html><html>" + b" " * len(content))[: len(content)]
    handler.plain(200, {"Content-Type": "application/octet-stream", "ETag": etag}, page)
    return True


def other_bytes(handler: Handler, content: bytes, etag: str) -> bool:
    """A mirror with other content under the same ETag and length."""
    handler.serve(content[:-1] + bytes([content[-1] ^ 1]), etag)
    return True


def wrong_length(length: int) -> Fault:
    """The right bytes under a wrong Content-Length."""

    def fault(handler: Handler, content: bytes, etag: str) -> bool:
        handler.plain(200, {"Content-Length": str(length), "ETag": etag}, content)
        return True

    return fault


def no_length(handler: Handler, content: bytes, etag: str) -> bool:
    """HTTP/1.0 manner: the end of the connection is the end of the file."""
    handler.send_response(200)
    handler.send_header("Connection", "close")
    handler.end_headers()
    handler.send(content)
    return True


def redirect(target: str) -> Fault:
    return status(302, Location=target)


@contextmanager
def serving(hub: Hub, context: ssl.SSLContext | None = None) -> Iterator[int]:
    """One more server for the files of `hub`, on a port of the system's choosing; with TLS where a context is given."""
    handler = type("HubHandler", (Handler,), {"hub": hub})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a refused handshake is expected here
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def running() -> Iterator[Hub]:
    """Hub and content host, the latter under another name (localhost)."""
    hub = Hub()
    with serving(hub) as first, serving(hub) as second:
        hub.url, hub.content_url = f"http://127.0.0.1:{first}", f"http://localhost:{second}"
        yield hub
