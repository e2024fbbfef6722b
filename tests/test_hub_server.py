"""The local hosts are believable: the hubs' own clients download from them, through redirects and cut connections."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import hub_server as faults
from tests.hub_server import Hub

CONTENT = os.urandom(300_000)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    with faults.running() as server:
        yield server


def test_hugging_faces_own_download(hub: Hub, tmp_path: Path) -> None:
    import huggingface_hub

    hub.add_hugging_face("a/gpen", "sub/mine.pth", CONTENT)
    hub.faults = [faults.cut(100_000)]
    path = huggingface_hub.hf_hub_download("a/gpen", "sub/mine.pth", endpoint=hub.url, local_dir=tmp_path, token=False)
    assert Path(path).read_bytes() == CONTENT
    assert len(hub.bodies()) == 2
    info = huggingface_hub.HfApi(endpoint=hub.url, token=False).model_info("a/gpen", files_metadata=True)
    assert info.siblings is not None and info.siblings[0].size == len(CONTENT)
    with pytest.raises(huggingface_hub.errors.EntryNotFoundError):
        huggingface_hub.hf_hub_download("a/gpen", "absent.pth", endpoint=hub.url, local_dir=tmp_path, token=False)


def test_modelscopes_own_download(hub: Hub, tmp_path: Path) -> None:
    modelscope_hub = pytest.importorskip("modelscope_hub")
    hub.add_modelscope("iic/gpen", "faces/我的.pth", CONTENT)
    client = modelscope_hub.HubApi(endpoint=hub.url)
    assert [file.sha256 for file in client.list_repo_files("iic/gpen", repo_type="model")]
    path = client.download_file("iic/gpen", "model", "faces/我的.pth", local_dir=tmp_path)
    assert Path(path).read_bytes() == CONTENT
