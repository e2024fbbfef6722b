"""Terms that a visitor accepts before weights which are not for every use work for the first time, on whichever tab.

What was accepted is kept in the visitor's browser, so that the server need not know who anybody is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import gradio as gr

from gpen_zoo.manifest import Entry
from gpen_zoo.page_labels import Labels

# Names of weights → those of them whose terms have to be accepted.
Restricted: TypeAlias = Callable[[Sequence[str]], Sequence[Entry]]

ACCEPTED = "JSON.parse(localStorage.getItem('gpen_zoo_terms') || '[]')"


class Terms:
    """The checkbox of one tab, shown only while there is something to accept.

    status: id of the place where `page_panels.terms` is shown. button: id of the one that asked for them, pressed once
    more when they are accepted. `none` is a first input for handlers, in whose place the browser tells what is accepted
    (`told`).
    """

    def __init__(self, labels: Labels, restricted: Restricted, *, status: str, button: str, name: str) -> None:
        self._restricted = restricted
        self.none = gr.JSON(visible=False)
        self.box = labels(gr.Checkbox, label="ui.w_consent", visible=False, interactive=True, elem_id=name)
        accept = f"""() => {{
  const keys = document.querySelector('#{status} [data-terms]').dataset.terms.split(' ');
  localStorage.setItem('gpen_zoo_terms', JSON.stringify([...new Set([...{ACCEPTED}, ...keys])]));
  setTimeout(() => document.querySelector('#{button}').click(), 100);
  return {{__type__: 'update', visible: false, value: false}};
}}"""
        self.box.input(None, None, self.box, js=accept, api_visibility="private", show_progress="hidden")

    @staticmethod
    def told(before: str = "") -> str:
        """JavaScript for the event whose handler has `none` as its first input. before: what else it does."""
        return f"(_, ...all) => {{ {before} return [{ACCEPTED}, ...all] }}"

    def missing(self, names: Sequence[str], accepted: Sequence[str]) -> list[Entry]:
        """Of the weights of these names, those whose terms are not among the accepted."""
        return [entry for entry in self._restricted(names) if entry.licence.key not in accepted]
