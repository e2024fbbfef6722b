"""What needs a process of its own: memory peaks, drift, first results. `python -m benchmarks.jobs JOB '{…}'` → JSON."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import partial

START = time.perf_counter()


def peak(size: int, form: str, dtype: str = "float32", tile: int = 0) -> dict[str, float]:
    """MB above the weights at the worst moment of one pass, and its seconds."""
    import torch

    from benchmarks.measure import faces, forget_peak, random_net, resident
    from benchmarks.plain import AuthorStyle
    from gpen_zoo.network_fast import prepare

    net, x = random_net(size), faces(size)
    if form == "plain":
        run: Callable[[torch.Tensor], torch.Tensor] = AuthorStyle(net.state_dict())
    else:
        run = partial(prepare(net, device=torch.device("cpu"), dtype=getattr(torch, dtype)), tile=tile)
    del net

    before, _ = resident()
    forget_peak()
    start = time.perf_counter()
    run(x)
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "mb": (resident()[1] - before) / 1e6}


def drift(crops: int) -> dict[str, float]:
    """MB resident after the first ten and after all crops, on the bundled weights in micro-batches of 10."""
    import numpy as np

    from benchmarks.measure import resident
    from gpen_zoo.engine import load_engine

    engine = load_engine(BUNDLED, device="cpu")
    pictures = np.random.default_rng(0).integers(0, 256, (10, 256, 256, 3), dtype=np.uint8)
    sizes = []
    for _ in range(crops // 10):
        engine.restore(pictures)
        sizes.append(resident()[0] / 1e6)
    return {"first": sizes[0], "last": sizes[-1], "largest": max(sizes)}


def load(path: str) -> dict[str, float]:
    """Seconds from a file to tensors ready to be folded, every page touched."""
    from pathlib import Path

    import torch

    from gpen_zoo.engine import load_engine
    from gpen_zoo.network import GPEN, Config

    start = time.perf_counter()
    if path.endswith(".pth"):  # as the author's code and its descendants load
        state = torch.load(path, map_location="cpu", weights_only=True)
        net = GPEN.from_config(Config.from_state_dict(state)).eval()
        net.load_state_dict(state, strict=True)
        tensors = net.state_dict()
    else:
        tensors = load_engine(Path(path), device="cpu").weights.state_dict()
    sum(float(value.flatten()[::1024].sum()) for value in tensors.values())
    return {"seconds": time.perf_counter() - start}


def first_result(path: str, precision: str) -> dict[str, float]:
    """Seconds of each step from a started interpreter to the first restored face."""
    from pathlib import Path

    import gpen_zoo  # noqa: F401 - its own import is one of the figures

    door = time.perf_counter()
    from gpen_zoo.engine import load_engine

    imported = time.perf_counter()
    import numpy as np

    engine = load_engine(Path(path), device="cpu", precision=precision)
    crops = np.random.default_rng(0).integers(0, 256, (1, engine.size, engine.size, 3), dtype=np.uint8)
    loaded = time.perf_counter()
    engine.restore(crops)
    first = time.perf_counter()
    engine.restore(crops)
    return {
        "door": door - START,
        "torch": imported - door,
        "load": loaded - imported,
        "first": first - loaded,
        "second": time.perf_counter() - first,
    }


JOBS = {job.__name__: job for job in (peak, drift, load, first_result)}

if __name__ == "__main__":
    from pathlib import Path

    BUNDLED = Path(__file__).parents[1] / "gpen_zoo" / "assets" / "gpen-demo-256.safetensors"
    print(json.dumps(JOBS[sys.argv[1]](**json.loads(sys.argv[2]))))
