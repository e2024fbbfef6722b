"""What this machine can do, asked of torch and the system: devices, 16-bit arithmetic that pays, free memory."""

from __future__ import annotations

import ctypes
import logging
import os
import sys
import time
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F

from gpen_zoo.budget import GB, Facts
from gpen_zoo.errors import OptionsInvalid

log = logging.getLogger(__name__)

WORTH = 1.25  # times that bfloat16 convolutions must be faster than float32 ones to be used
CROWDED = 0.85  # share of a device's memory in use above which cached blocks are given back
UNKNOWN_FREE = 2 * GB  # assumed where a system does not tell


def pick_device(device: str) -> str:
    """`auto` → the best of cuda:0, mps, cpu; anything else is taken as it is."""
    if device != "auto":
        return "cuda:0" if device == "cuda" else device
    if torch.cuda.is_available():
        return "cuda:0"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def check_device(device: str) -> None:
    """OptionsInvalid (M07) unless torch can put a tensor on `device` (or chooses it itself: `auto`)."""
    try:
        torch.empty(1, device=pick_device(device))
    except (RuntimeError, AssertionError) as error:  # AssertionError: a torch built without that kind of device
        cards = [f"cuda:{i}" for i in range(torch.cuda.device_count())]
        mps = ["mps"] if torch.backends.mps.is_available() else []
        raise OptionsInvalid("M07", device=device, known=", ".join(["cpu", *cards, *mps])) from error


def facts_of(device: str) -> Facts:
    """The device as the ladder of plans sees it, at this moment. RuntimeError when torch lacks the device."""
    cpu_half, cpu_free = ("bfloat16" if bfloat16_pays() else None), host_free_bytes()
    if device.startswith("cuda"):
        free, _ = torch.cuda.mem_get_info(device)
        # Blocks that torch's allocator holds but does not use are free to us.
        free += torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        half = None if "GTX 16" in torch.cuda.get_device_name(device) else "float16"  # those give NaN in float16
        return Facts(device=device, half=half, free=free, cpu_half=cpu_half, cpu_free=cpu_free)
    if device == "mps":
        free = torch.mps.recommended_max_memory() - torch.mps.driver_allocated_memory()
        return Facts(device=device, half="float16", free=free, cpu_half=cpu_half, cpu_free=cpu_free)
    return Facts(device=device, half=cpu_half, free=cpu_free, cpu_half=cpu_half, cpu_free=cpu_free)


@lru_cache(maxsize=1)
def bfloat16_pays() -> bool:
    """Whether bfloat16 convolutions are really faster on this CPU: measured once, about 0.1 s.

    A flag is not enough: torch runs bfloat16 everywhere, several times slower than float32 where it is emulated.
    """
    start = time.perf_counter()
    seconds = {dtype: _convolution_seconds(dtype) for dtype in (torch.float32, torch.bfloat16)}
    ratio = seconds[torch.float32] / seconds[torch.bfloat16]
    log.info("bfloat16 is %.2f times as fast as float32 (probe took %.2f s)", ratio, time.perf_counter() - start)
    return ratio >= WORTH


@torch.inference_mode()
def _convolution_seconds(dtype: torch.dtype) -> float:
    """Best of several runs of one convolution of the kind the network spends its time on."""
    x = torch.ones(1, 128, 48, 48, dtype=dtype).contiguous(memory_format=torch.channels_last)
    weight = torch.ones(128, 128, 3, 3, dtype=dtype).contiguous(memory_format=torch.channels_last)
    best = float("inf")
    give_up = time.perf_counter() + 0.5  # emulation can be very slow; one run then says enough
    for _ in range(5):
        start = time.perf_counter()
        F.conv2d(x, weight, padding=1)
        best = min(best, time.perf_counter() - start)
        if time.perf_counter() > give_up:
            break
    return best


def host_free_bytes() -> int:
    """Bytes that this process can still take: the system's free memory, or less where a container sets a limit."""
    return min(_system_free(), _container_free())


def _system_free() -> int:
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        for line in meminfo.read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    if sys.platform == "win32":
        return _windows_free()
    if "SC_PHYS_PAGES" in os.sysconf_names:  # macOS has no count of available pages here; half is rarely wrong
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    return UNKNOWN_FREE


def _container_free(root: Path = Path("/sys/fs/cgroup")) -> int:
    for limit, used in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        try:
            return max(0, int((root / limit).read_text()) - int((root / used).read_text()))
        except (OSError, ValueError):  # no such hierarchy, or the word "max"
            continue
    return sys.maxsize


def _windows_free() -> int:
    class Status(ctypes.Structure):
        _fields_ = (
            ("length", ctypes.c_ulong),
            ("load", ctypes.c_ulong),
            *((name, ctypes.c_ulonglong) for name in ("total", "free", "t1", "f1", "t2", "f2", "extended")),
        )

    status = Status()
    status.length = ctypes.sizeof(Status)
    kernel = ctypes.windll.kernel32  # type: ignore[attr-defined, unused-ignore]
    return int(status.free) if kernel.GlobalMemoryStatusEx(ctypes.byref(status)) else UNKNOWN_FREE


def used_share(device: str) -> float:
    """Share of the device's memory in use by anyone, 0 to 1; 0 on a CPU, whose allocator keeps no cache."""
    if device.startswith("cuda"):
        free, total = torch.cuda.mem_get_info(device)
        return 1 - free / total
    if device == "mps":
        return torch.mps.driver_allocated_memory() / torch.mps.recommended_max_memory()
    return 0.0


def relieve(device: str) -> None:
    """Give cached blocks back when memory is crowded. Emptying is slow, so only then, and only with more to come."""
    if used_share(device) <= CROWDED:
        return
    log.info("%s is crowded, emptying the cache", device)
    if device.startswith("cuda"):
        torch.cuda.empty_cache()
    else:
        torch.mps.empty_cache()


def onto(x: Tensor, device: str) -> Tensor:
    """x on the device. To a graphics card it goes from locked pages, so that the host need not wait for the copy."""
    return x.pin_memory().to(device, non_blocking=True) if device.startswith("cuda") else x.to(device)


def out_of_memory(error: BaseException) -> bool:
    """Whether an error of torch or numpy says that memory ran out. torch's CPU allocator has no class of its own."""
    text = str(error).lower()
    return isinstance(error, MemoryError) or any(
        words in text for words in ("out of memory", "can't allocate memory", "not enough memory", "alloc_failed")
    )


def first_line(error: BaseException) -> str:
    """What an error says, short enough for a report; its class where it says nothing."""
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
