"""Which way of running a branch fits which machine: arithmetic on bytes, no torch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One way to run the network.

    device: torch's name (`cpu`, `cuda:0`, `mps`). dtype: `float32`, `float16` or `bfloat16`. batch: faces at once.
    tile: side in pixels of the tiles in which the last stages run, 0 for the whole picture at once.
    """

    device: str
    dtype: str
    batch: int = 1
    tile: int = 0

    def __str__(self) -> str:
        tile = f", tiles of {self.tile} px" if self.tile else ""
        return f"{self.device} {self.dtype}, batch {self.batch}{tile}"
