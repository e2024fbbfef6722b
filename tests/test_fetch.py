"""One address into one part: every failure of a real server either ends in the right bytes or leaves a beginning."""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpen_zoo import fetch as module
from gpen_zoo.errors import Cancelled, FetchFailed
from gpen_zoo.fetch import Progress, fetch
from gpen_zoo.transport import REDIRECTS, Address, Limits, read_json
from tests import hub_server as faults
from tests.hub_server import Hub

CONTENT = os.urandom(700_001)
QUICK = Limits(connect=5, read=5, deadline=60, attempts=3, pause=0.01)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    with faults.running() as server:
        yield server


@pytest.fixture
def part(tmp_path: Path) -> Path:
    return tmp_path / "w.part"


def get(hub: Hub, part: Path, content: bytes = CONTENT, **options: Any) -> None:
    url = hub.add_plain("w.pth", content)
    fetch(Address(url=url), part, **{"expected_bytes": len(content), "limits": QUICK, **options})


def code_of(hub: Hub, part: Path, **options: Any) -> str:
    with pytest.raises(FetchFailed) as caught:
        get(hub, part, **options)
    return caught.value.code


def ranges(hub: Hub) -> list[str | None]:
    return [seen.headers.get("Range") for seen in hub.bodies()]


def test_whole_file_with_progress(hub: Hub, part: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.pause = 0.03
    reports: list[Progress] = []
    get(hub, part, report=reports.append)
    assert part.read_bytes() == CONTENT
    assert [r.done for r in reports] == sorted(r.done for r in reports) and len(reports) >= 3
    assert reports[-1].done == reports[-1].total == len(CONTENT) and reports[-1].speed > 0
    assert reports[0].seconds_left is not None and reports[0].seconds_left > 0
    assert hub.bodies()[0].headers["Accept-Encoding"] == "identity"


def test_cut_connection_continues_where_it_broke(hub: Hub, part: Path) -> None:
    hub.faults = [faults.cut(100_000), faults.cut(200_000)]
    get(hub, part)
    assert part.read_bytes() == CONTENT
    assert ranges(hub) == [None, "bytes=100000-", "bytes=300000-"]
    assert all(seen.headers.get("If-Range") for seen in hub.bodies()[1:])


def test_a_server_that_cuts_often_is_followed_to_the_end(hub: Hub, part: Path) -> None:
    """Attempts are counted in a row without a new byte, so ten cuts are no failure."""
    hub.faults = [faults.cut(60_000)] * 10
    get(hub, part)
    assert part.read_bytes() == CONTENT and len(hub.bodies()) == 11


def test_next_run_continues(hub: Hub, part: Path) -> None:
    hub.faults = [faults.cut(250_000), *[faults.status(404)] * 2]
    assert code_of(hub, part, limits=Limits(read=5, attempts=1)) == "N04"
    assert code_of(hub, part) == "N03"
    assert part.read_bytes() == CONTENT[:250_000]
    hub.faults = []
    get(hub, part)
    assert part.read_bytes() == CONTENT and ranges(hub)[-1] == "bytes=250000-"


def test_finished_part_needs_no_request(hub: Hub, part: Path) -> None:
    get(hub, part)
    get(hub, part)
    assert len(hub.bodies()) == 1


@pytest.mark.parametrize("honest", [True, False])
def test_new_version_under_the_same_address_starts_anew(hub: Hub, part: Path, honest: bool) -> None:
    """An honest server answers If-Range with the whole new file; another sends a range of it under a new ETag."""
    hub.faults = [faults.cut(250_000)]
    code_of(hub, part, limits=Limits(read=5, attempts=1))
    new = os.urandom(len(CONTENT))
    if not honest:
        hub.faults = [lambda h, c, e: h.headers.replace_header("If-Range", e) or False]
    get(hub, part, new)
    assert part.read_bytes() == new


def test_416_starts_anew(hub: Hub, part: Path) -> None:
    hub.faults = [faults.cut(250_000), faults.status(416)]
    get(hub, part)
    assert part.read_bytes() == CONTENT and ranges(hub) == [None, "bytes=250000-", None]


def test_endless_416_ends(hub: Hub, part: Path) -> None:
    hub.faults = [faults.status(416)] * 9
    assert code_of(hub, part) == "N04" and len(hub.bodies()) == 3


def test_server_without_ranges_sends_all_again(hub: Hub, part: Path) -> None:
    hub.faults = [faults.cut(250_000), faults.no_ranges]
    get(hub, part)
    assert part.read_bytes() == CONTENT


def test_range_that_does_not_fit_is_not_appended(hub: Hub, part: Path) -> None:
    def shifted(handler: faults.Handler, content: bytes, etag: str) -> bool:
        headers = {"Content-Range": f"bytes 5-{len(content) - 1}/{len(content)}", "ETag": etag}
        handler.plain(206, headers, content[5:])
        return True

    hub.faults = [faults.cut(250_000), shifted]
    get(hub, part)
    assert part.read_bytes() == CONTENT


def test_part_without_its_note_or_from_another_address_is_not_continued(hub: Hub, part: Path) -> None:
    part.write_bytes(b"x" * 1000)
    get(hub, part)
    assert part.read_bytes() == CONTENT and ranges(hub) == [None]
    part.write_bytes(
        b"x" * 1000
    )  # beside the note of the right address but with the wrong bytes: not for fetch to tell
    other = hub.add_plain("other.pth", CONTENT)
    fetch(Address(url=other), part, expected_bytes=len(CONTENT), limits=QUICK)
    assert part.read_bytes() == CONTENT


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_passing_failures_are_retried_with_back_off(hub: Hub, part: Path, status: int) -> None:
    hub.faults = [faults.status(status)] * 2
    get(hub, part)
    assert part.read_bytes() == CONTENT
    hub.faults = [faults.status(status)] * 3
    part.unlink()
    assert code_of(hub, part) == "N03" and len(hub.bodies()) == 6


def test_retry_after_is_waited_for_unless_it_is_too_long(hub: Hub, part: Path) -> None:
    hub.faults = [faults.status(429, Retry_After="1")]
    began = time.monotonic()
    get(hub, part)
    assert 1 <= time.monotonic() - began < 10
    part.unlink()
    hub.faults = [faults.status(503, Retry_After="3600")]
    assert code_of(hub, part) == "N03"
    assert module._retry_after("Wed, 21 Oct 2015 07:28:00 GMT") == 0 and module._retry_after("soon") == 0


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 451])
def test_final_refusals_are_not_retried(hub: Hub, part: Path, status: int) -> None:
    hub.faults = [faults.status(status)] * 3
    assert code_of(hub, part) == "N03" and len(hub.bodies()) == 1


def test_silence_times_out(hub: Hub, part: Path) -> None:
    hub.faults = [faults.stall(6, after=100_000)] * 3
    began = time.monotonic()
    assert code_of(hub, part, limits=Limits(read=0.5, attempts=1)) == "N01"
    assert time.monotonic() - began < 4 and part.read_bytes() == CONTENT[:100_000]


def test_nobody_listens(part: Path) -> None:
    with pytest.raises(FetchFailed) as caught:
        fetch(Address(url="http://127.0.0.1:9/w"), part, limits=QUICK)
    assert caught.value.code == "N17" and not part.exists()


def test_no_name_service(part: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(FetchFailed) as caught:
        fetch(Address(url="http://hub.example/w"), part, limits=QUICK)
    assert caught.value.code == "N17" and "Name or service not known" in str(caught.value)
    with pytest.raises(FetchFailed) as caught:
        read_json(Address(url="http://hub.example/w"), QUICK)
    assert caught.value.code == "N17" and "hub.example" in str(caught.value)


def test_deadline_stops_a_dripping_server(hub: Hub, part: Path) -> None:
    hub.piece, hub.pause = 1000, 0.02
    began = time.monotonic()
    assert code_of(hub, part, limits=Limits(read=5, deadline=1)) == "N05"
    assert time.monotonic() - began < 8 and 0 < part.stat().st_size < len(CONTENT)


def test_wrong_announced_sizes(hub: Hub, part: Path) -> None:
    hub.faults = [faults.wrong_length(len(CONTENT) + 5)]
    assert code_of(hub, part) == "N06" and not part.exists()
    before = len(hub.bodies())
    hub.faults = [faults.wrong_length(len(CONTENT) + 5)] * 9
    assert code_of(hub, part, expected_bytes=None) == "N04"
    assert len(hub.bodies()) - before == QUICK.attempts  # the same bytes over and over are no progress
    hub.faults = []
    assert code_of(hub, part, expected_bytes=None, limit_bytes=1000) == "N06"


def test_file_without_length_is_taken_up_to_the_expected_size(hub: Hub, part: Path) -> None:
    hub.faults = [faults.no_length]
    get(hub, part)
    assert part.read_bytes() == CONTENT
    part.unlink()
    hub.faults = [faults.no_length]
    assert code_of(hub, part, expected_bytes=None, limit_bytes=1000) == "N06"


def test_web_page_and_compressed_answers_are_refused(hub: Hub, part: Path) -> None:
    hub.faults = [faults.captive_portal]
    assert code_of(hub, part) == "N07" and not part.exists()
    hub.faults = [faults.status(200, Content_Encoding="gzip")]
    assert code_of(hub, part) == "N04"


def test_token_goes_to_the_first_host_only(hub: Hub, part: Path) -> None:
    hub.add_hugging_face("a/b", "w.pth", CONTENT)
    address = Address(url=f"{hub.url}/a/b/resolve/main/w.pth", token="secret")
    assert "secret" not in repr(address)
    fetch(address, part, expected_bytes=len(CONTENT), limits=QUICK)
    first, second = hub.seen
    assert first.headers["Authorization"] == "Bearer secret" and second.host.startswith("localhost")
    assert "Authorization" not in second.headers and part.read_bytes() == CONTENT


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://127.0.0.1/x", "data:,x", "javascript:1"])
def test_redirects_elsewhere_are_refused(hub: Hub, part: Path, target: str) -> None:
    hub.faults = [faults.redirect(target)]
    assert code_of(hub, part) == "N09" and not part.exists()


@pytest.fixture
def secure(hub: Hub, tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """Address of the same files over TLS, and the certificate that has to be trusted for it."""
    if not shutil.which("openssl"):
        pytest.skip("no openssl to make a certificate with")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    subprocess.run([*made, "-keyout", key, "-out", certificate, *names], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with faults.serving(hub, context) as port:
        yield f"https://127.0.0.1:{port}", certificate


def test_tls_is_verified_and_never_left(
    hub: Hub, part: Path, secure: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    base, certificate = secure
    hub.add_plain("w.pth", CONTENT)
    address = Address(url=f"{base}/files/w.pth", token="secret")
    with pytest.raises(FetchFailed, match="CERTIFICATE_VERIFY_FAILED"):
        fetch(address, part, expected_bytes=len(CONTENT), limits=QUICK)
    assert hub.seen == []
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    hub.faults = [faults.cut(100_000)]
    fetch(address, part, expected_bytes=len(CONTENT), limits=QUICK)
    assert part.read_bytes() == CONTENT and ranges(hub) == [None, "bytes=100000-"]
    hub.faults = [faults.stall(4, after=1000)]
    part.unlink()
    with pytest.raises(FetchFailed) as caught:
        fetch(address, part, expected_bytes=len(CONTENT), limits=Limits(read=0.5, attempts=1))
    assert caught.value.code == "N01"
    before = len(hub.seen)
    hub.faults = [faults.redirect(f"{hub.url}/files/w.pth")]
    with pytest.raises(FetchFailed) as caught:
        fetch(address, part, expected_bytes=len(CONTENT), limits=QUICK)
    assert caught.value.code == "N09" and len(hub.seen) == before + 1  # plain HTTP was not even asked


def test_redirects_in_a_circle_end(hub: Hub, part: Path) -> None:
    hub.faults = [faults.redirect("/files/w.pth")] * 20
    assert code_of(hub, part) == "N09" and len(hub.bodies()) == REDIRECTS + 1


def test_cancel_leaves_a_part_that_continues(hub: Hub, part: Path) -> None:
    hub.pause = 0.02
    with pytest.raises(Cancelled):
        get(hub, part, cancelled=lambda: part.exists() and part.stat().st_size > 100_000)
    kept = part.stat().st_size
    assert 0 < kept < len(CONTENT) and part.read_bytes() == CONTENT[:kept]
    get(hub, part)
    assert part.read_bytes() == CONTENT and ranges(hub)[-1] == f"bytes={kept}-"


def test_too_little_space_is_seen_before_a_byte_is_read(hub: Hub, part: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = module.shutil.disk_usage(part.parent)
    monkeypatch.setattr(module.shutil, "disk_usage", lambda path: usage._replace(free=module.SPARE + 1000))
    assert code_of(hub, part) == "N08" and not part.exists()


@pytest.mark.skipif(os.name != "posix", reason="needs a limit on file size")
def test_disk_that_fills_up_meanwhile(hub: Hub, part: Path) -> None:
    """The kernel refuses to let the file grow; what arrived stays and continues when there is room again."""
    url = hub.add_plain("w.pth", CONTENT)
    script = f"""
        import resource
        from pathlib import Path
        from gpen_zoo.errors import FetchFailed
        from gpen_zoo.fetch import Address, fetch
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
        try:
            fetch(Address(url={url!r}), Path({str(part)!r}), expected_bytes={len(CONTENT)})
        except FetchFailed as error:
            print(error.code)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=30,
        cwd=Path(__file__).parents[1],
    )
    assert done.stdout.strip() == "N08", done.stderr
    kept = part.stat().st_size
    assert 0 < kept <= 300_000 and part.read_bytes() == CONTENT[:kept]
    get(hub, part)
    assert part.read_bytes() == CONTENT and ranges(hub)[-1] == f"bytes={kept}-"


def test_json_answers(hub: Hub) -> None:
    hub.add_plain("list.json", b'{"a": 1}')
    assert read_json(Address(url=f"{hub.url}/files/list.json"), QUICK) == {"a": 1}
    hub.add_plain("list.json", b"<html>")
    for url, code in ((f"{hub.url}/files/list.json", "N04"), (f"{hub.url}/none", "N03"), ("http://127.0.0.1:9", "N17")):
        with pytest.raises(FetchFailed) as caught:
            read_json(Address(url=url), QUICK)
        assert caught.value.code == code


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MB, where the system lets us mount one."""
    place = tmp_path / "tiny"
    place.mkdir()
    mounted = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    try:
        done = subprocess.run(mounted, capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("no mount command")
    if done.returncode:
        pytest.skip("may not mount a tmpfs")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_full_disk(hub: Hub, tiny_disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seen beforehand where the size is known, met on the way where it is not; the beginning is kept."""
    content, part = CONTENT + CONTENT, tiny_disk / "w.part"
    assert code_of(hub, part, expected_bytes=len(content)) == "N06"  # the server has the short one
    with pytest.raises(FetchFailed) as caught:
        get(hub, part, content)
    assert caught.value.code == "N08" and not part.exists()
    monkeypatch.setattr(module, "check_free", lambda folder, need: None)
    with pytest.raises(FetchFailed) as caught:
        get(hub, part, content)
    kept = part.read_bytes()
    assert caught.value.code == "N08" and len(kept) > 500_000 and content.startswith(kept)
    get(hub, tmp_path / "elsewhere.part", content)
    assert (tmp_path / "elsewhere.part").read_bytes() == content
