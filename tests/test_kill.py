"""Processes that are really killed, and processes that really run at once.

A launcher process imports everything once and then forks a child for each line it reads, so that a hundred downloads
can be killed in seconds. `GPEN_ZOO_LONG=1` kills a hundred instead of thirty.
"""

from __future__ import annotations

import base64
import json
import os
import pickle
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpen_zoo import lock, mutex, weightfile
from gpen_zoo.errors import Cancelled, FetchFailed, GpenError
from gpen_zoo.manifest import Entry
from gpen_zoo.obtain import WORK, Wish
from gpen_zoo.zoo import Zoo
from tests import hub_server as faults
from tests.hub_server import Hub
from tests.test_download import QUICK, entry_of, plain, pth

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

KILLS = 100 if os.environ.get("GPEN_ZOO_LONG") else 30

LAUNCHER = """
import base64, os, pickle, sys, torch
torch.set_num_threads(1)
sys.path.insert(0, sys.argv[1])
import gpen_zoo.network, safetensors.torch
from gpen_zoo.zoo import Zoo
from tests.test_download import entry_of, WISH
print("ready", flush=True)
for line in sys.stdin:
    if line.startswith("wait "):
        print(os.waitpid(int(line[5:]), 0)[1], flush=True)
        continue
    home, places, content = pickle.loads(base64.b64decode(line))
    child = os.fork()
    if child == 0:
        code = 1
        try:
            done = Zoo(home, (entry_of(content, *places),)).download("Mine-64", WISH)
            code = 0 if done.fresh else 2
        finally:
            os._exit(code)
    print(child, flush=True)
"""


class Launcher:
    """Starts children that download Mine-64 into a folder."""

    def __init__(self) -> None:
        arguments = [sys.executable, "-c", LAUNCHER, str(Path(__file__).parents[1])]
        self.process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def order(self, text: str) -> int:
        assert self.process.stdin is not None
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()
        return int(self.line())

    def start(self, home: Path, entry: Entry, content: bytes) -> int:
        """Process number of the new child."""
        return self.order(base64.b64encode(pickle.dumps((home, entry.sources, content))).decode())

    def wait(self, child: int) -> int:
        """Exit code: 0 fetched, 2 found in place, negative when killed. Until then the number stays the child's."""
        return os.waitstatus_to_exitcode(self.order(f"wait {child}"))


@pytest.fixture(scope="module")
def launchers() -> Iterator[tuple[Launcher, Launcher]]:
    both = Launcher(), Launcher()
    assert [launcher.line() for launcher in both] == ["ready", "ready"]
    yield both
    for launcher in both:
        launcher.process.kill()
        launcher.process.communicate()


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    with faults.running() as server:
        yield server


def test_killed_at_random_points(hub: Hub, launchers: tuple[Launcher, Launcher], tmp_path: Path) -> None:
    """After every kill: no weight, or the right one; the part a true beginning; and the next run finishes the work."""
    content, chance, outcomes = pth(tmp_path), random.Random(11), Counter[str]()
    hub.piece, hub.pause = 16_384, 0.003
    entry = entry_of(content, plain(hub, content))
    reference = Zoo(tmp_path / "reference", (entry,)).download("Mine-64", Wish(limits=QUICK)).path.read_bytes()
    span, resumed = 0.0, 0
    for number in range(KILLS + 1):
        home = tmp_path / f"zoo{number // 4}"  # several kills in a row in one folder, then a new folder
        began = time.monotonic()
        child = launchers[0].start(home, entry, content)
        if number == 0:
            assert launchers[0].wait(child) == 0
            span = time.monotonic() - began  # how long an undisturbed run takes
            continue
        time.sleep(chance.uniform(0, span))
        os.kill(child, signal.SIGKILL)
        ended = launchers[0].wait(child)
        if number % 4 == 3:  # look only sometimes: looking must not be what repairs
            continue
        zoo = Zoo(home, (entry,))
        for part in (home / WORK).glob("*.part"):
            kept = part.read_bytes()
            assert content.startswith(kept)
            resumed += bool(kept) and len(kept) < len(content)
        try:
            assert zoo.locate("Mine-64").read_bytes() == reference
            outcomes["installed" if ended == 0 else "killed, installed"] += 1
        except GpenError as error:
            assert error.code == "W16", error  # missing, and never anything worse
            outcomes["killed, missing"] += 1
    for home in sorted(tmp_path.glob("zoo*")):
        zoo = Zoo(home, (entry,))
        zoo.download("Mine-64", Wish(limits=QUICK))
        assert zoo.locate("Mine-64").read_bytes() == reference
        assert not list((home / WORK).glob("*.part*"))
    print(f"{KILLS} kills within {span:.2f} s: {dict(outcomes)}; {resumed} parts continued")
    assert outcomes["killed, missing"] and resumed


def test_killed_at_every_step_after_the_download(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between hash, conversion, record and rename: a dead process at each of them, in a child that really dies."""
    content = pth(tmp_path)
    entry = entry_of(content, plain(hub, content))
    steps = ["weightfile.sha256_of", "convert", "change_record", "os.replace"]
    for step in steps:
        for when in ("before", "after"):
            home = tmp_path / f"{step}-{when}"
            child = os.fork()
            if child == 0:
                _die_at(step, when)
                Zoo(home, (entry,)).download("Mine-64", Wish(limits=QUICK))
                os._exit(0)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL, step
            zoo = Zoo(home, (entry,))
            before = len(hub.bodies())
            if (step, when) != ("os.replace", "after"):
                with pytest.raises(GpenError) as caught:
                    zoo.locate("Mine-64")
                assert caught.value.code == "W16", step
            zoo.download("Mine-64", Wish(limits=QUICK))
            assert len(hub.bodies()) == before, step  # the part was complete: nothing is downloaded twice
            assert zoo.locate("Mine-64").is_file()


def _die_at(step: str, when: str) -> None:
    from gpen_zoo import obtain

    owner, name = (obtain, step) if "." not in step else (getattr(obtain, step.split(".")[0]), step.split(".")[1])
    true = getattr(owner, name)

    def deadly(*arguments: object, **options: object) -> object:
        if step == "os.replace" and not str(arguments[1]).endswith("Mine-64.safetensors"):
            return true(*arguments, **options)
        if when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        true(*arguments, **options)
        os.kill(os.getpid(), signal.SIGKILL)
        return None

    setattr(owner, name, deadly)


def test_two_processes_at_once_download_once(hub: Hub, launchers: tuple[Launcher, Launcher], tmp_path: Path) -> None:
    content = pth(tmp_path)
    hub.pause = 0.02
    entry = entry_of(content, plain(hub, content))
    children = [launcher.start(tmp_path / "zoo", entry, content) for launcher in launchers]
    codes = [launcher.wait(child) for launcher, child in zip(launchers, children, strict=True)]
    assert sorted(codes) == [0, 2]  # one fetched, the other found it in place
    assert len(hub.bodies()) == 1


def test_next_process_takes_over_at_once_when_the_first_is_killed(
    hub: Hub, launchers: tuple[Launcher, Launcher], tmp_path: Path
) -> None:
    content = pth(tmp_path)
    hub.piece, hub.pause = 16_384, 0.02
    home, entry = tmp_path / "zoo", entry_of(content, plain(hub, content))
    first = launchers[0].start(home, entry, content)
    while not (parts := list((home / WORK).glob("*.part"))) or parts[0].stat().st_size < 100_000:
        time.sleep(0.01)
    owner = mutex.owner_of(home / WORK / "Mine-64.lock")
    assert owner is not None and owner.pid == first and time.time() - owner.since < 30
    second = launchers[1].start(home, entry, content)
    time.sleep(0.2)
    os.kill(first, signal.SIGKILL)
    assert launchers[0].wait(first) == -signal.SIGKILL and launchers[1].wait(second) == 0
    assert len(hub.bodies()) == 2 and hub.bodies()[1].headers["Range"] > "bytes=1"


def test_readers_never_see_half_a_file(hub: Hub, launchers: tuple[Launcher, Launcher], tmp_path: Path) -> None:
    """While another process installs: missing, then right, and nothing in between."""
    content = pth(tmp_path)
    hub.piece, hub.pause = 65_536, 0.01
    home, entry = tmp_path / "zoo", entry_of(content, plain(hub, content))
    child = launchers[0].start(home, entry, content)
    seen: list[str] = []
    until = time.monotonic() + 20
    while time.monotonic() < until and (not seen or seen[-1] != "right"):
        try:
            Zoo(home, (entry,)).locate("Mine-64")
            seen.append("right")
        except GpenError as error:
            seen.append(error.code)
    assert set(seen[:-1]) <= {"W16"} and seen[-1] == "right"
    assert launchers[0].wait(child) == 0


def test_lock_excludes_reports_and_gives_up(tmp_path: Path) -> None:
    path, told = tmp_path / "w.lock", []
    with mutex.hold(path, timeout=1):
        with pytest.raises(FetchFailed, match=str(os.getpid())), mutex.hold(path, timeout=0.2, waiting=told.append):
            pass
        with pytest.raises(Cancelled), mutex.hold(path, timeout=9, cancelled=lambda: True):
            pass
    assert len(told) == 1 and told[0].pid == os.getpid()
    assert mutex.owner_of(path) is None
    with mutex.hold(path, timeout=0):
        assert json.loads(path.read_text())["pid"] == os.getpid()


def test_many_records_are_written_at_once_and_none_is_lost(tmp_path: Path) -> None:
    """Threads stand for processes: every holder opens the lock file anew."""
    import threading

    from gpen_zoo.obtain import change_record
    from tests.test_zoo import record_for

    (tmp_path / "w").write_bytes(b"x")
    record = record_for(tmp_path / "w")
    threads = [threading.Thread(target=change_record, args=(tmp_path, f"W{n}", record)) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(lock.read_records(tmp_path)) == sorted(f"W{n}" for n in range(12))


def test_no_symlinks_anywhere(hub: Hub, tmp_path: Path) -> None:
    content = pth(tmp_path)
    zoo = Zoo(tmp_path / "zoo", (entry_of(content, plain(hub, content)),))
    zoo.download("Mine-64", Wish(limits=QUICK))
    assert not [path for path in zoo.home.rglob("*") if path.is_symlink()]
    assert weightfile.sha256_of(zoo.locate("Mine-64")) == lock.read_records(zoo.home)["Mine-64"].sha256
