"""basicsr imports beside the installed torchvision, and nothing breaks where it is absent."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.skipif(find_spec("basicsr") is None, reason="basicsr does not install on this Python")
def test_the_shim_is_what_makes_it_importable() -> None:
    code = """
from gpen_zoo.basicsr_shim import import_basicsr
import torch
net = import_basicsr("basicsr.archs.rrdbnet_arch").RRDBNet(3, 3, scale=2, num_feat=8, num_block=1, num_grow_ch=4)
print(tuple(net(torch.zeros(1, 3, 16, 16)).shape))
print(import_basicsr("basicsr.metrics").__name__)
"""
    done = run(code)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split("\n")[:2] == ["(1, 3, 32, 32)", "basicsr.metrics"]


def test_without_basicsr_the_app_works_and_doctor_says_what_is_missing() -> None:
    code = """
import sys
sys.modules["basicsr"] = None          # as if it were not installed: every import of it fails
from gpen_zoo import doctor
doctor.find_spec = lambda name: None if name == "basicsr" else object()
print([p.code for p in doctor.examine().problems if p.code in ("E02", "E03")])
import gpen_zoo as gz, numpy as np
print(gz.load()(gz.Image(pixels=np.zeros((64, 64, 3), np.uint8))).notes[-1].code)
import gpen_zoo.page
"""
    done = run(code)
    assert done.returncode == 0, done.stderr[-2000:]
    expected = "E03" if sys.version_info >= (3, 13) else "E02"
    assert done.stdout.split("\n")[:2] == [f"['{expected}']", "F01"]
