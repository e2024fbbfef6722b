"""HTTP as the zoo wants it: separate time-outs for connecting and reading, redirects judged one by one, no leaks.

On the standard library alone, because it is the one client that every environment has in the same version.
"""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import urljoin, urlsplit

from gpen_zoo.errors import FetchFailed

REDIRECTS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Seconds, except attempts: how often in a row a source may fail without a single new byte. deadline: of one
    address, all attempts together. pause: before the second attempt, doubling."""

    connect: float = 10.0
    read: float = 30.0
    deadline: float = 7200.0
    attempts: int = 4
    pause: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where to read. token: sent as a bearer token to the host of `url` and to no other."""

    url: str
    token: str | None = field(default=None, repr=False)

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc


def read_json(address: Address, limits: Limits | None = None, most: int = 8 << 20) -> Any:
    """A JSON document of at most `most` bytes. Raises FetchFailed."""
    limits = limits or Limits()
    try:
        with open_address(address, {"Accept": "application/json"}, limits) as response:
            if response.status != 200:
                raise FetchFailed("N03", host=address.host, status=response.status)
            return json.loads(response.read(most))
    except TimeoutError:
        raise FetchFailed("N01", host=address.host) from None
    except urllib.error.URLError as error:
        raise not_reached(address.host, error) from error
    except (http.client.HTTPException, ConnectionError, ValueError, RecursionError) as error:
        if isinstance(error, FetchFailed):
            raise
        raise FetchFailed("N04", host=address.host, reason=type(error).__name__) from error


def not_reached(host: str, error: urllib.error.URLError) -> FetchFailed:
    """What urllib wraps happened before an answer began: no name, no way, no certificate (N17), or no sign (N01)."""
    if isinstance(error.reason, TimeoutError):
        return FetchFailed("N01", host=host)
    return FetchFailed("N17", host=host, reason=getattr(error.reason, "strerror", None) or error.reason)


class _Connection(http.client.HTTPConnection):
    """`timeout` governs connecting; reading has its own."""

    def __init__(self, *args: Any, read: float, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.read = read

    def connect(self) -> None:
        super().connect()
        self.sock.settimeout(self.read)


class _SecureConnection(http.client.HTTPSConnection):
    def __init__(self, *args: Any, read: float, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.read = read

    def connect(self) -> None:
        super().connect()
        self.sock.settimeout(self.read)


class _Http(urllib.request.HTTPHandler):
    def __init__(self, read: float) -> None:
        super().__init__()
        self.read = read

    def http_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(partial(_Connection, read=self.read), request)


class _Https(urllib.request.HTTPSHandler):
    def __init__(self, read: float) -> None:
        super().__init__()
        self.read = read

    def https_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(partial(_SecureConnection, read=self.read), request)


class _AnyStatus(urllib.request.HTTPErrorProcessor):
    """Hands every answer back instead of raising or following, so that redirects can be judged one by one."""

    def http_response(self, request: urllib.request.Request, response: Any) -> Any:
        return response

    https_response = http_response


def open_address(address: Address, headers: Mapping[str, str], limits: Limits) -> http.client.HTTPResponse:
    """The first answer that is no redirect. The token goes to the first host alone; HTTPS never falls back to HTTP."""
    opener = urllib.request.build_opener(_Http(limits.read), _Https(limits.read), _AnyStatus())
    url = address.url
    for _ in range(REDIRECTS + 1):
        request = urllib.request.Request(url, headers={"User-Agent": "gpen-zoo", "Accept-Encoding": "identity"})
        for name, value in headers.items():
            request.add_header(name, value)
        if address.token and _origin(url) == _origin(address.url):
            request.add_header("Authorization", f"Bearer {address.token}")
        response: http.client.HTTPResponse = opener.open(request, timeout=limits.connect)
        if response.status not in (301, 302, 303, 307, 308):
            return response
        response.close()
        target = urljoin(url, response.headers.get("Location", ""))
        scheme = urlsplit(target).scheme
        if scheme not in ("http", "https") or (urlsplit(url).scheme == "https" and scheme == "http"):
            raise FetchFailed("N09", host=address.host, target=target[:120])
        url = target
    raise FetchFailed("N09", host=address.host, target=url[:120])


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port
