"""`POST /v1/restore`: bytes in, bytes out, and what a refusal looks like."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import threading
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from typing import Any, Protocol

from fastapi import Request, Response
from fastapi.responses import JSONResponse
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from gpen_zoo.errors import (
    GpenError,
    ImageTooLarge,
    ImageUnreadable,
    InferenceTimeoutError,
    OptionsInvalid,
    WeightMissing,
)
from gpen_zoo.hints import Note, note
from gpen_zoo.image_io import encode, output_format, output_name
from gpen_zoo.image_sniff import format_of
from gpen_zoo.logs import request_id
from gpen_zoo.metrics import Metrics
from gpen_zoo.options import FIELDS
from gpen_zoo.types import RestoreResult

log = logging.getLogger(__name__)

FILES = 1000  # of a form, so that too many photos are told as that; its bytes are limited already
RETRY_AFTER = "5"  # seconds, told to those who are refused for now
_MEDIA = {"JPEG": "jpeg", "PNG": "png", "WEBP": "webp", "TIFF": "tiff", "BMP": "bmp", "AVIF": "avif"}


class ApiLimits(Protocol):
    """See `service.Limits`."""

    @property
    def requests(self) -> int: ...
    @property
    def body_mb(self) -> int: ...


class ApiDesk(Protocol):
    """What the address needs of the service."""

    metrics: Metrics
    stopping: threading.Event
    in_flight: int

    @property
    def limits(self) -> ApiLimits: ...
    def restore(self, data: bytes, name: str, options: dict[str, Any]) -> RestoreResult: ...


async def answer(desk: ApiDesk, request: Request) -> Response:
    """The body is a photo, or a form with one. Query, or fields of the form: `options` (JSON), or strength, aligned,
    faces=1,3, scale, background; and `name` of the file. `Accept: application/json` gives the report with the picture
    in base64, anything else the picture itself."""
    limits = desk.limits
    if desk.stopping.is_set():
        return refusal(note("T05"), 503)
    if desk.in_flight >= limits.requests:
        desk.metrics.failure("T04")
        return refusal(note("T04", limit=limits.requests), 503)
    desk.in_flight += 1
    try:
        data = await _body(request, limits.body_mb << 20)
        if data is None:
            desk.metrics.failure("I25")
            too_large = note("I25", mb=f">{limits.body_mb}", limit=limits.body_mb)
            return refusal(too_large, 413)
        query = dict(request.query_params)
        if request.headers.get("content-type", "").startswith("multipart/"):
            sent = await _form(request, data)
            if isinstance(sent, Note):
                desk.metrics.failure(sent.code)
                return refusal(sent, 400)
            data, fields = sent
            query = fields | query
        photo, name = data, query.pop("name", "photo")
        result = await asyncio.to_thread(lambda: _told(lambda: desk.restore(photo, name, _options(query))))
        if isinstance(result, GpenError):
            return refusal(result.note, _status(result))
        return await asyncio.to_thread(_picture, result, "application/json" in request.headers.get("accept", ""))
    finally:
        desk.in_flight -= 1


def _told(work: Callable[[], RestoreResult]) -> RestoreResult | GpenError:
    """The result or the error, the unforeseen ones logged and as S03."""
    try:
        return work()
    except GpenError as error:
        log.info("refused: %s", error)
        return error
    except Exception as error:
        log.exception("unforeseen error")
        return GpenError("S03", kind=type(error).__name__)


async def _body(request: Request, most: int) -> bytes | None:
    """The body, or None when it is larger than `most`, read no further than that."""
    if int(request.headers.get("content-length") or 0) > most:
        return None
    parts, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > most:
            return None
        parts.append(chunk)
    return b"".join(parts)


async def _form(request: Request, data: bytes) -> tuple[bytes, dict[str, str]] | Note:
    """The file of a form and its fields, `name` among them; or what is wrong with it."""

    async def whole() -> AsyncGenerator[bytes, None]:
        yield data

    try:
        form = await MultiPartParser(request.headers, whole(), max_files=FILES, max_fields=32).parse()
    except MultiPartException as error:
        log.info("form refused: %s", error.message)
        return note("T24")
    try:
        uploads = [value for _, value in form.multi_items() if isinstance(value, UploadFile)]
        files = [upload for upload in uploads if upload.filename or upload.size]  # not a browser's field left empty
        if not files:
            return note("T24")
        if len(files) > 1:
            return note("T25", count=len(files))
        fields = {name: value for name, value in form.items() if isinstance(value, str)}
        return await files[0].read(), {"name": files[0].filename or "photo"} | fields
    finally:
        await form.close()


def _options(query: dict[str, str]) -> dict[str, Any]:
    """Options as JSON has them: those in `options`, then strength, aligned, scale, background and faces for short. What
    does not read as what it should be is left for the check to refuse."""
    try:
        options = json.loads(query.pop("options", "{}"))
    except ValueError:
        options = None
    if not isinstance(options, dict):
        raise OptionsInvalid("U02", fields=", ".join(FIELDS))
    options |= query
    if "strength" in query:
        options["strength"] = _number(query["strength"])
    if "aligned" in query:
        options["aligned"] = {"true": True, "1": True, "false": False, "0": False}.get(query["aligned"].lower(), "")
    if "scale" in query:
        options["scale"] = int(query["scale"]) if query["scale"].isdecimal() else query["scale"]
    if "faces" in query:
        words = [word for word in query["faces"].split(",") if word]
        options["faces"] = [int(word) if word.isdecimal() else word for word in words]
    return options


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _picture(result: RestoreResult, as_json: bool) -> Response:
    _, why = output_format(result.image)
    if why is not None:
        result = replace(result, notes=(*result.notes, why))
    data = encode(result.image)
    name = output_name(result.image)
    if as_json:
        picture = base64.b64encode(data).decode()
        return JSONResponse({"name": name, "report": result.as_dict(), "image": picture})
    headers = {
        "X-Gpen-Faces": str(len(result.faces)),
        "X-Gpen-Notes": ",".join(n.code for n in result.notes),
    }
    media = _MEDIA[format_of(data[:64]) or "PNG"]
    return Response(data, media_type=f"image/{media}", headers=headers)


def refusal(why: Note, status: int) -> JSONResponse:
    """A code with both sentences, under an HTTP status."""
    headers = {"Retry-After": RETRY_AFTER} if status == 503 else {}
    return JSONResponse({"error": why.as_dict(), "request_id": request_id.get()}, status_code=status, headers=headers)


def _status(error: GpenError) -> int:
    if isinstance(error, (OptionsInvalid, WeightMissing)):  # the only weights that a call can name: its background's
        return 400
    if isinstance(error, ImageTooLarge):
        return 413
    if isinstance(error, ImageUnreadable):
        return 422
    if isinstance(error, InferenceTimeoutError):
        return 504
    return 503 if error.code in ("S04", "S05", "T03") else 500
