"""Entry point of the Hugging Face Space and of `python app.py`: the page on whatever weights are in the zoo."""

from __future__ import annotations

import os

if os.environ.get("SPACES_ZERO_GPU"):
    import spaces  # noqa: F401 - on ZeroGPU it has to come before anything that may touch the graphics card

from gpen_zoo.page import build
from gpen_zoo.preload import settle

settle()
page = build()
demo = page.blocks

if __name__ == "__main__":
    demo.launch(**page.launch_options)
