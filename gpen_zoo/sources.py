"""Where a file can be had right now: a manifest's source → address, size and digest as its host lists them.

`HF_ENDPOINT` (or an explicit endpoint), `HF_TOKEN`, `HF_HUB_OFFLINE` and `MODELSCOPE_ENDPOINT` are read when asked,
not at import. A token goes to the official Hugging Face host and nowhere else: a mirror is somebody else's machine.
The bytes themselves come over plain HTTPS from the `resolve` address, so that Xet's data path, which does not follow
`HF_ENDPOINT`, is never used.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from gpen_zoo import transport
from gpen_zoo.errors import FetchFailed
from gpen_zoo.manifest import SHA256, Source
from gpen_zoo.transport import Address, Limits

HUGGING_FACE = "https://huggingface.co"
MODELSCOPE = "https://modelscope.cn"


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One file at one host. path is set for a local file instead of address. sha256: as the host lists it, None when
    it lists none. revision: the commit it belongs to, where the host names it."""

    address: Address | None = None
    path: Path | None = None
    bytes: int | None = None
    sha256: str | None = None
    revision: str = ""


def offline() -> bool:
    """True when `HF_HUB_OFFLINE` asks for no network at all."""
    return os.environ.get("HF_HUB_OFFLINE", "").strip().upper() in ("1", "ON", "YES", "TRUE")


def offer_of(source: Source, *, endpoint: str | None = None, limits: Limits | None = None) -> Offer:
    """Ask the host of `source`. endpoint: replaces `HF_ENDPOINT` for Hugging Face sources. Raises FetchFailed."""
    limits = limits or Limits()
    if source.kind == "local":
        path = Path(source.path).expanduser()
        if not path.is_file():
            raise FetchFailed("N14", file=path)
        return Offer(path=path, bytes=path.stat().st_size)
    if source.kind == "https":
        return Offer(address=Address(url=source.url))
    if source.kind == "modelscope":
        return _modelscope(source, limits)
    return _hugging_face(source, (endpoint or os.environ.get("HF_ENDPOINT") or HUGGING_FACE).rstrip("/"), limits)


def _hugging_face(source: Source, endpoint: str, limits: Limits) -> Offer:
    import huggingface_hub
    from huggingface_hub.errors import HfHubHTTPError

    official = endpoint == HUGGING_FACE
    token = (os.environ.get("HF_TOKEN") or huggingface_hub.get_token()) if official else None
    host = urlsplit(endpoint).netloc
    url = huggingface_hub.hf_hub_url(
        source.repo, source.file, repo_type=source.repo_type, revision=source.revision, endpoint=endpoint
    )
    try:
        # token=False, not None: None would let the client pick up the stored one.
        found = huggingface_hub.get_hf_file_metadata(
            url, token=token or False, timeout=limits.connect, endpoint=endpoint
        )
        digest, size = _sha256(found.etag), found.size
        if digest is None:
            digest, size = _listed(source, endpoint, token, limits) or (None, size)
    except HfHubHTTPError as error:
        response = getattr(error, "response", None)
        status = getattr(response, "status_code", None) or type(error).__name__
        raise FetchFailed("N03", host=host, status=status) from error
    except Exception as error:
        # The client's own network errors: httpx in 1.x, httpx2 in 2.x, with no common ancestor but Exception.
        if "Timeout" in type(error).__name__:
            raise FetchFailed("N01", host=host) from error
        raise FetchFailed("N17", host=host, reason=f"{type(error).__name__}: {error}"[:200]) from error
    return Offer(
        address=Address(url=url, token=token), bytes=size, sha256=digest, revision=found.commit_hash or source.revision
    )


def _listed(source: Source, endpoint: str, token: str | None, limits: Limits) -> tuple[str, int] | None:
    """sha256 and size from the repository's listing, for hosts whose HEAD answer lacks the LFS headers."""
    from huggingface_hub import HfApi

    info = HfApi(endpoint=endpoint, token=token or False).repo_info(
        source.repo, repo_type=source.repo_type, revision=source.revision, timeout=limits.connect, files_metadata=True
    )
    for file in getattr(info, "siblings", None) or ():
        if file.rfilename == source.file and file.lfs is not None and _sha256(file.lfs.sha256):
            return file.lfs.sha256, file.lfs.size
    return None


def _modelscope(source: Source, limits: Limits) -> Offer:
    endpoint = os.environ.get("MODELSCOPE_ENDPOINT", "").rstrip("/") or MODELSCOPE
    if "://" not in endpoint:
        endpoint = f"https://{endpoint}"  # ModelScope's own client takes a bare host name
    base = f"{endpoint}/api/v1/models/{source.repo}/repo"
    listing = Address(url=f"{base}/files?{urlencode({'Revision': source.revision, 'Recursive': 'True'})}")
    for file in _modelscope_files(listing, transport.read_json(listing, limits)):
        if file.get("Path") == source.file:
            query = urlencode({"Revision": source.revision, "FilePath": source.file}, quote_via=quote)
            size = file.get("Size")
            return Offer(
                address=Address(url=f"{base}?{query}"),
                bytes=size if type(size) is int and size > 0 else None,
                sha256=_sha256(file.get("Sha256")),
                revision=source.revision,
            )
    raise FetchFailed("N03", host=listing.host, status=404)


def _modelscope_files(listing: Address, answer: Any) -> list[dict[str, Any]]:
    data = answer.get("Data") if isinstance(answer, dict) else None
    files = data.get("Files") if isinstance(data, dict) else data  # both forms are in use
    if not isinstance(files, list):
        code = answer.get("Code", "?") if isinstance(answer, dict) else "?"
        raise FetchFailed("N03", host=listing.host, status=code)
    return [file for file in files if isinstance(file, dict)]


def _sha256(value: Any) -> str | None:
    """The value when it is a sha256; a git blob id (40 digits) or a Xet hash under another name is not one."""
    text = value.strip('"').lower() if isinstance(value, str) else ""
    return text if re.fullmatch(SHA256, text) else None
