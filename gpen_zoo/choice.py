"""Which faces the user asked for: by number, by drawn box, by size, or only the largest."""

from __future__ import annotations

from collections.abc import Sequence

from gpen_zoo.hints import Note, note
from gpen_zoo.types import FaceReport, Options


def left_out(reports: Sequence[FaceReport], options: Options) -> dict[int, Note]:
    """Numbers of the faces that `options` leave alone, each with the reason.

    Numbers and boxes name faces and add up; without either all are named. Of those, faces below `min_size` drop out,
    and with `largest` all but the largest of the rest.
    """
    reasons: dict[int, Note] = {}
    named = options.faces is not None or bool(options.boxes)
    for report in reports:
        asked = report.index in (options.faces or ()) or any(_inside(report, box) for box in options.boxes)
        if named and not asked:
            reasons[report.index] = note("F05")
        elif report.longest < options.min_size:
            reasons[report.index] = note("F41", px=round(report.longest), least=f"{options.min_size:g}")
    rest = [r for r in reports if r.index not in reasons]
    if options.largest and rest:
        largest = max(rest, key=lambda r: r.longest)
        reasons |= {r.index: note("F42", index=largest.index) for r in rest if r is not largest}
    return reasons


def _inside(report: FaceReport, box: tuple[float, float, float, float]) -> bool:
    """Whether the centre of a face lies in a box given as x, y, width, height."""
    x, y = (report.box[0] + report.box[2]) / 2, (report.box[1] + report.box[3]) / 2
    return box[0] <= x <= box[0] + box[2] and box[1] <= y <= box[1] + box[3]
