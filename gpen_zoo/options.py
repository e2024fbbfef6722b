"""What the user chose, checked: from JSON to `Options`, and every value inside its range."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, get_args

from gpen_zoo.errors import OptionsInvalid
from gpen_zoo.types import Mask, Options, Scale, ToneChoice

# The JSON form of each option, as the API, the report and the error message name it.
FIELDS = (
    "strength",
    "aligned",
    "faces",
    "strengths",
    "boxes",
    "min_size",
    "largest",
    "mask",
    "tone",
    "grain",
    "scale",
    "background",
)
MASKS: tuple[Mask, ...] = get_args(Mask)
TONES: tuple[ToneChoice, ...] = get_args(ToneChoice)
SCALES: tuple[Scale, ...] = get_args(Scale)


def options_from_json(given: Mapping[str, Any] | None) -> Options:
    """Options from a JSON object such as `{"strength": 0.8, "faces": [1, 3], "strengths": {"2": 0.5}}`.

    `"strength": "auto"` or null is what suits each face. Fields left out keep their defaults.
    OptionsInvalid for unknown fields, wrong types and values out of range.
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
    boxes = given.get("boxes", ())
    if not isinstance(boxes, (list, tuple)) or not all(isinstance(b, (list, tuple)) for b in boxes):
        raise OptionsInvalid("F60", value=boxes)
    strength = given.get("strength")
    options = Options(
        strength=None if strength == "auto" else strength,
        faces=None if faces is None else tuple(faces),
        strengths=own,
        boxes=tuple(tuple(b) for b in boxes),
        **{k: v for k, v in given.items() if k not in ("strength", "faces", "strengths", "boxes")},
    )
    check_options(options)
    return options


def check_options(options: Options) -> None:
    """OptionsInvalid unless every value is of its type and in its range."""
    for strength in (options.strength, *(s for _, s in options.strengths)):
        if strength is not None and (not _is_number(strength) or not 0 <= strength <= 1):
            raise OptionsInvalid("U01", value=strength)
    if not isinstance(options.aligned, bool):
        raise OptionsInvalid("U06", value=options.aligned)
    for number in (*(options.faces or ()), *(i for i, _ in options.strengths)):
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise OptionsInvalid("U04", value=number)
    for box in options.boxes:
        if len(box) != 4 or not all(map(_is_number, box)) or box[2] <= 0 or box[3] <= 0:
            raise OptionsInvalid("F60", value=box)
    if not _is_number(options.min_size) or options.min_size < 0:
        raise OptionsInvalid("F62", value=options.min_size)
    for name, value, known in (("mask", options.mask, MASKS), ("tone", options.tone, TONES)):
        if value not in known:
            raise OptionsInvalid("F63", field=name, known=", ".join(known), value=value)
    if isinstance(options.scale, bool) or not isinstance(options.scale, int) or options.scale not in SCALES:
        raise OptionsInvalid("F63", field="scale", known=", ".join(map(str, SCALES)), value=options.scale)
    if not isinstance(options.background, str) or not options.background:
        raise OptionsInvalid("B28", value=options.background)
    for name, switch in (("largest", options.largest), ("grain", options.grain)):
        if not isinstance(switch, bool):
            raise OptionsInvalid("F64", field=name, value=switch)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
