"""One command from a fresh checkout to the running demo, or to the finished tests. Needs Python 3.10+ and nothing else.

    python3 start.py                 make .venv, install, open the demo in the browser
    python3 start.py test            make .venv, install, run formatting, lint, types and tests
    python3 start.py demo --port 80  words after the task go to `gpen-zoo serve`, or to pytest

Run again, it installs nothing unless the requirements have changed. On Windows: `py start.py`.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = Path(os.environ.get("GPEN_ZOO_VENV", str(ROOT / ".venv")))
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

# basicsr's build script asks for torch, cython and numpy. Installed first and with build isolation off, pip finds them
# here; otherwise it would fetch all of torch a second time, for a build environment that it throws away.
FIRST = ("torch", "torchvision", "numpy")
BUILD_TOOLS = ("cython", "setuptools", "wheel")


def main(words: list[str]) -> int:
    if sys.version_info < (3, 10):
        print("需要 Python 3.10 或更高版本 / Python 3.10 or newer is needed; this is " + sys.version.split()[0])
        return 2
    task, rest = (words[0], words[1:]) if words and not words[0].startswith("-") else ("demo", words)
    if task not in ("demo", "test"):
        print(__doc__)
        return 2
    if not install(task):
        return 1
    if task == "demo":
        return call(PYTHON, "-m", "gpen_zoo", "serve", "--open", *rest)
    checks: list[list[str]] = [
        ["ruff", "format", "--check", "."],
        ["ruff", "check", "."],
        ["mypy"],
        ["pytest", *rest],
    ]
    results = [call(PYTHON, "-m", *check) for check in checks]
    return max(results)


def install(task: str) -> bool:
    """Everything the task needs in the virtual environment; at once true when it is there already."""
    stamp = VENV / f".ready-for-{task}"
    wanted = fingerprint()
    if stamp.is_file() and stamp.read_text() == wanted:
        return True
    if not PYTHON.is_file() and call(sys.executable, "-m", "venv", VENV) != 0:
        print("无法创建虚拟环境；Debian/Ubuntu 请先安装 python3-venv。")
        print("The virtual environment could not be made; on Debian and Ubuntu install python3-venv first.")
        return False
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    first = [line for line in lines if line.startswith(FIRST)]
    pip = (PYTHON, "-m", "pip", "install", "--disable-pip-version-check")
    package = f"{ROOT}[test]" if task == "test" else str(ROOT)
    for step in ((*pip, *first, *BUILD_TOOLS), (*pip, "--no-build-isolation", "--editable", package)):
        if call(*step) != 0:
            print("安装失败，原因见上方 pip 的输出；修正后重新运行即可继续。")
            print("Installation failed, see pip's output above; run the same command again once that is mended.")
            return False
    stamp.write_text(wanted)
    return True


def fingerprint() -> str:
    """Changes whenever the installation has to be looked at again."""
    parts = [sys.version.encode(), str(ROOT).encode()]
    parts += [(ROOT / name).read_bytes() for name in ("requirements.txt", "pyproject.toml")]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def call(*words: object) -> int:
    """Run a command in the project's folder and return its exit code."""
    try:
        return subprocess.call([str(word) for word in words], cwd=ROOT)
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
