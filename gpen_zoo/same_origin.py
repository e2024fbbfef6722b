"""Other sites keep out: a page elsewhere must not use a visitor's browser to press buttons here."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

SAFE = ("GET", "HEAD", "OPTIONS")


class SameOrigin:
    """ASGI middleware: a request that changes something and names another origin than this host is refused (403).

    Gradio withholds the answer from such a page, but would do the work. Programs send no Origin and are let through.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] not in SAFE and foreign(Headers(scope=scope)):
            await PlainTextResponse("foreign origin", 403)(scope, receive, send)
            return
        await self.app(scope, receive, send)


def foreign(headers: Headers) -> bool:
    """Whether a browser says that the request comes from another site's page."""
    origin = headers.get("origin")
    if origin is None:
        return False
    # Behind a proxy the visitor's own host is the forwarded one.
    forwarded = headers.get("x-forwarded-host", "").split(",")
    here = {host.strip() for host in (headers.get("host", ""), *forwarded) if host.strip()}
    return urlsplit(origin).netloc not in here
