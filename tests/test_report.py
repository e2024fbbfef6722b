"""Every kind of report obeys the documented schema, and the schema documents every field."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib import resources
from typing import Any

import jsonschema
import numpy as np
import pytest

import gpen_zoo as gz
from gpen_zoo.types import REPORT_VERSION, Image, Options, RestoreResult
from tests.test_restore import FULL, PHOTO, THREE, branch, found, restorer, tiny_engine

__all__ = ["found"]  # a fixture

SCHEMA: dict[str, Any] = json.loads((resources.files("gpen_zoo") / "assets" / "report.schema.json").read_text("utf-8"))
CHECK = jsonschema.Draft202012Validator(SCHEMA)


def checked(result: RestoreResult) -> dict[str, Any]:
    """The report after a trip through JSON; fails with the first violation."""
    report: dict[str, Any] = json.loads(json.dumps(result.as_dict(), ensure_ascii=False, allow_nan=False))
    CHECK.validate(report)
    assert report.keys() == SCHEMA["$defs"]["report"]["properties"].keys(), "nothing undocumented"
    return report


def test_the_schema_is_one_and_of_this_version() -> None:
    CHECK.check_schema(SCHEMA)
    assert SCHEMA["$defs"]["report"]["properties"]["version"]["const"] == REPORT_VERSION


def test_a_real_photo() -> None:
    report = checked(gz.load()(PHOTO, Options(mask="face+hair", strengths=((1, 0.25),), boxes=((380, 300, 60, 80),))))
    assert [f["origin"] for f in report["faces"]] == ["found", "drawn"]
    assert gz.options_from_json(report["options"]).mask == "face+hair", "options come back as they can be given"


@pytest.mark.usefixtures("found")
def test_every_verdict() -> None:
    bad = branch(64, build=lambda: tiny_engine(64, broken=True))
    broken = replace(restorer(*THREE, (60, 300, 20)), branches=(bad, branch(128)))
    report = checked(broken(PHOTO, Options(faces=(1, 2, 4))))
    assert [f["verdict"] for f in report["faces"]] == ["failed", "restored", "skipped", "skipped"]
    assert report["faces"][0]["attempts"]
    checked(gz.blend(restorer(*THREE)(PHOTO, FULL), replace(FULL, strength=0.0)))


def test_no_face_and_aligned() -> None:
    plain = Image(pixels=np.full((90, 120, 3), 128, np.uint8), tone="grey")
    assert checked(gz.load()(plain))["faces"] == []
    assert checked(restorer()(plain, Options(aligned=True)))["faces"][0]["mask"] == "whole"


@pytest.mark.parametrize(
    ("where", "wrong"),
    [
        (("version",), 2),
        (("faces", 0, "verdict"), "maybe"),
        (("faces", 0, "score"), 1.5),
        (("faces", 0, "note", "zh"), ""),
        (("faces", 0, "surprise"), 1),
        (("options", "mask"), "hat"),
        (("tone",), None),
    ],
)
def test_the_schema_refuses(where: tuple[str | int, ...], wrong: Any) -> None:
    report = restorer()(Image(pixels=PHOTO.pixels[:64, :64]), Options(aligned=True)).as_dict()
    inner = report
    for key in where[:-1]:
        inner = inner[key]
    inner[where[-1]] = wrong
    with pytest.raises(jsonschema.ValidationError):
        CHECK.validate(report)
