"""The catalogue is complete in both languages, and code and catalogue agree."""

from __future__ import annotations

import ast
import re
import string
from pathlib import Path

import pytest

from gpen_zoo import errors
from gpen_zoo.errors import FetchFailed, GpenError, WeightMissing, guarded
from gpen_zoo.hints import CATALOGUE, Note, note, pick_language, say

ROOT = Path(__file__).parents[1]
SOURCES = [*(ROOT / "gpen_zoo").glob("*.py"), ROOT / "app.py"]
DTYPES = {"F16", "F32", "F64", "I16", "I32", "I64", "U16", "U32", "U64"}  # safetensors' names look like codes
KEY = re.compile(r"^([A-Z]\d{2}|[a-z]+\.[a-z0-9_]+)$")


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


@pytest.mark.parametrize("code", CATALOGUE)
def test_both_languages_say_the_same(code: str) -> None:
    zh, en = CATALOGUE[code]
    assert zh.strip() and en.strip()
    assert placeholders(zh) == placeholders(en)
    words = re.sub(r"\{[^}]*\}", "", en)
    assert re.search(r"[\u4e00-\u9fff]", zh) or not re.search(r"[A-Za-z]{3}", words)
    assert not re.search(r"[\u4e00-\u9fff]", en)


@pytest.mark.parametrize("code", [c for c in CATALOGUE if re.match(r"^[A-Z]\d\d$", c)])
def test_messages_are_whole_sentences(code: str) -> None:
    zh, en = CATALOGUE[code]
    assert zh[-1] in "。！？）}", zh
    assert en[-1] in ".!?)}", en


def keys_in_code() -> tuple[set[str], set[str]]:
    """Keys written out in full, and the fixed beginnings of keys put together with an f-string or a plus."""
    whole, begun = set(), set()
    families = {c.split(".")[0] + "." for c in CATALOGUE if "." in c}
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
                continue
            if path.name == "hints.py" and node.value in CATALOGUE:
                continue  # the entries themselves
            if node.value.endswith("_") or node.value in DTYPES - CATALOGUE.keys():
                pass
            elif KEY.match(node.value) and (node.value[0].isupper() or node.value.split(".")[0] + "." in families):
                whole.add(node.value)
            if any(node.value.startswith(f) for f in families) and re.fullmatch(r"[a-z]+\.([a-z_]*_)?", node.value):
                begun.add(node.value)
    return whole, begun


def test_every_code_used_exists_and_every_entry_is_used() -> None:
    whole, begun = keys_in_code()
    assert sorted(whole - CATALOGUE.keys()) == []
    unused = [c for c in CATALOGUE if c not in whole and not any(c.startswith(b) for b in begun)]
    assert unused == []


def test_a_note_says_itself_and_goes_to_json() -> None:
    said = note("F02", px=17)
    assert "17" in say(said, "zh")
    assert "17" in say(said, "en")
    assert said.as_dict() == {"code": "F02", "params": {"px": 17}, "zh": say(said, "zh"), "en": say(said)}
    with pytest.raises(KeyError):
        note("Z99")


@pytest.mark.parametrize("tag", ["zh", "zh-CN", "zh_TW.UTF-8", "zh-Hans-SG", "ZH"])
def test_every_chinese_is_chinese(tag: str) -> None:
    assert pick_language(tag) == "zh"


@pytest.mark.parametrize("tag", [None, "", "C", "en_US.UTF-8", "fr"])
def test_everything_else_is_english(tag: str | None) -> None:
    assert pick_language(tag) == "en"


def test_errors_are_what_a_caller_would_try_to_catch() -> None:
    kinds = [
        k for k in vars(errors).values() if isinstance(k, type) and issubclass(k, GpenError) and k is not GpenError
    ]
    for kind in kinds:
        error = kind("F01")
        assert str(error) == say("F01", "en")
        assert kind.__name__ in (errors.__doc__ or ""), "the tree at the top of errors.py is complete"
    assert issubclass(WeightMissing, FileNotFoundError)
    assert issubclass(FetchFailed, ConnectionError)


def test_an_error_survives_the_way_between_processes() -> None:
    import pickle

    error = pickle.loads(pickle.dumps(WeightMissing("F02", px=5)))
    assert type(error) is WeightMissing
    assert error.note == Note("F02", {"px": 5})


def test_guarded_turns_both_kinds_of_errors_into_notes(caplog: pytest.LogCaptureFixture) -> None:
    def refuse() -> int:
        raise GpenError("F01")

    def break_down() -> int:
        return 1 // 0

    caplog.set_level("ERROR")  # whatever level a test of the command line has left behind
    assert guarded(lambda: 3) == 3
    assert guarded(refuse) == note("F01")
    assert guarded(break_down) == note("S03", kind="ZeroDivisionError")
    assert "Traceback" in caplog.text
