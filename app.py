"""Entry point of the Hugging Face Space and of `python app.py`: the page on whatever weights are in the zoo."""

from __future__ import annotations

from gpen_zoo.page import build

page = build()
demo = page.blocks

if __name__ == "__main__":
    demo.launch(**page.launch_options)
