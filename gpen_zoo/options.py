"""What the user chose, checked: from JSON to `Options`, and every value inside its range."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from gpen_zoo.errors import OptionsInvalid
from gpen_zoo.types import Options

# The JSON form of each option, as the API, the report and the error message name it.
FIELDS = ("strength", "aligned", "faces", "strengths")


def options_from_json(given: Mapping[str, Any] | None) -> Options:
    """Options from a JSON object such as `{"strength": 0.8, "faces": [1, 3], "strengths": {"2": 0.5}}`.

    Fields left out keep their defaults. OptionsInvalid for unknown fields, wrong types and values out of range.
    """
    given = given or {}
    if not isinstance(given, Mapping):
        raise OptionsInvalid("U02", fields=", ".join(FIELDS))
    unknown = sorted(str(k) for k in given if k not in FIELDS)
    if unknown:
        raise OptionsInvalid("U03", unknown=", ".join(unknown), fields=", ".join(FIELDS))
    faces, strengths = given.get("faces"), given.get("strengths", {})
    if faces is not None and not isinstance(faces, (list, tuple)):
        raise OptionsInvalid("U04", value=faces)
    if not isinstance(strengths, Mapping):
        raise OptionsInvalid("U05", value=strengths)
    try:
        own = tuple((int(k), v) for k, v in strengths.items())
    except (TypeError, ValueError):
        raise OptionsInvalid("U05", value=dict(strengths)) from None
    options = Options(
        strength=given.get("strength", 1.0),
        aligned=given.get("aligned", False),
        faces=None if faces is None else tuple(faces),
        strengths=own,
    )
    check_options(options)
    return options


def check_options(options: Options) -> None:
    """OptionsInvalid unless strengths lie in 0-1 and face numbers count from 1."""
    for strength in (options.strength, *(s for _, s in options.strengths)):
        if not _is_number(strength) or not 0 <= strength <= 1:
            raise OptionsInvalid("U01", value=strength)
    if not isinstance(options.aligned, bool):
        raise OptionsInvalid("U06", value=options.aligned)
    for number in (*(options.faces or ()), *(i for i, _ in options.strengths)):
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise OptionsInvalid("U04", value=number)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
