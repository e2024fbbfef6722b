"""Texts of the page in both languages at once, and the switch between them, which asks no server and keeps all work.

Labels of Gradio's components exist in one language at a time, so the browser gets a table of all of them. Everything
else on the page is HTML that carries both languages, of which the style sheet shows one.
"""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from typing import Any, TypeVar

import gradio as gr

from gpen_zoo.hints import CATALOGUE, Lang, Note, say

C = TypeVar("C")

LANGS: tuple[Lang, ...] = ("zh", "en")
MINE = "ui."
# The visitor's own choice first, then ?lang=, then the browser.
PICK_LANGUAGE = """() => {
  const l = /^zh/i.test(localStorage.getItem('gpen_zoo_lang')
    || new URLSearchParams(location.search).get('lang') || navigator.language) ? 'zh' : 'en';
  document.documentElement.dataset.gz = l;
  document.documentElement.lang = l == 'zh' ? 'zh-CN' : 'en';
  return l;
}"""


class Labels:
    """Makes components whose texts follow the language. In keyword arguments, and in lists of (text, value) choices, a
    key `ui.…` of the catalogue is such a text."""

    def __init__(self) -> None:
        # svelte-i18n reads a dot as a path into nested tables.
        texts = {_plain(key): pair for key, pair in CATALOGUE.items() if key.startswith(MINE)}
        self.i18n = gr.I18n(**{lang: {key: pair[n] for key, pair in texts.items()} for n, lang in enumerate(LANGS)})
        self._specs: list[tuple[Any, dict[str, Any]]] = []

    def __call__(self, kind: Callable[..., C], *, dynamic: tuple[str, ...] = (), **properties: Any) -> C:
        """`kind(**properties)`, its texts in the visitor's language now and after every switch. dynamic: properties
        that somebody else fills anew after a switch."""
        texts = {name: value for name, value in properties.items() if _has_text(value)}
        first = {name: _each_text(value, lambda key: self.i18n(_plain(key))) for name, value in texts.items()}
        component = kind(**{**properties, **first})
        self._specs.append((component, {name: value for name, value in texts.items() if name not in dynamic}))
        return component

    @property
    def components(self) -> list[Any]:
        return [component for component, _ in self._specs]

    def switch(self) -> str:
        """JavaScript: language → an update for each of `components`; remembers the choice."""

        def update(texts: dict[str, Any], lang: Lang) -> dict[str, Any]:
            return {name: _each_text(value, lambda key: say(key, lang)) for name, value in texts.items()}

        updates = {lang: [update(texts, lang) | {"__type__": "update"} for _, texts in self._specs] for lang in LANGS}
        table = json.dumps(updates, ensure_ascii=False).replace("</", "<\\/")
        remember = (
            "localStorage.setItem('gpen_zoo_lang', l); document.documentElement.dataset.gz = l;"
            "document.documentElement.lang = l == 'zh' ? 'zh-CN' : 'en'"
        )
        return f"l => {{{remember}; return ({table})[l]}}"


def _plain(key: str) -> str:
    return key.replace(".", "_")


def _is_key(value: Any) -> bool:
    return isinstance(value, str) and value.startswith(MINE)


def _has_text(value: Any) -> bool:
    return _is_key(value) or (isinstance(value, list) and any(isinstance(v, tuple) and _is_key(v[0]) for v in value))


def _each_text(value: Any, spoken: Callable[[str], Any]) -> Any:
    if isinstance(value, str):
        return spoken(value)
    return [(spoken(text) if _is_key(text) else text, chosen) for text, chosen in value]


def plain(value: str, **properties: Any) -> gr.HTML:
    """HTML that only our own style sheet touches."""
    return gr.HTML(value, apply_default_css=False, elem_classes="gz", **properties)


def both(write: Callable[[Lang], str]) -> str:
    """HTML that `write` gives for each language, in one piece."""
    zh, en = write("zh"), write("en")
    if zh == en:
        return zh
    return f'<span class="zh" lang="zh-CN">{zh}</span><span class="en" lang="en">{en}</span>'


def words(key: str, **params: Any) -> str:
    """A text of the catalogue in both languages, escaped."""
    return both(lambda lang: html.escape(say(key, lang, **params), quote=False))


def told(note: Note) -> str:
    """A note in both languages with its code, escaped: file names may be in it."""
    sentence = both(lambda lang: html.escape(say(note, lang), quote=False))
    return f'{sentence}<span class="code">{note.code}</span>'
