"""A face before any network ran: its place, and the branch that fits its size in the result."""

from __future__ import annotations

from collections.abc import Sequence

from gpen_zoo.align import frame_of_face, frame_of_picture, side_of, yaw_of
from gpen_zoo.branches import Branch, pick_branch
from gpen_zoo.hints import Note, note
from gpen_zoo.types import Face, FaceReport, Image, Scale, Verdict
from gpen_zoo.verdicts import too_small


def plan_face(face: Face, branches: Sequence[Branch], scale: Scale) -> FaceReport:
    """The report of a face in a photo that is to be enlarged by `scale`; skipped where it has too few pixels."""
    branch, why = _picked(scale * side_of(frame_of_face(face.points, branches[0].template)), branches)
    frame = frame_of_face(face.points, branch.template)
    report = FaceReport(
        index=face.index,
        verdict=Verdict.RESTORED,
        note=note("F04", branch=branch.name),
        box=face.box,
        score=face.score,
        side=side_of(frame),
        roll=face.roll,
        yaw=yaw_of(face.points),
        origin=face.origin,
        frame=frame,
        branch=branch.name,
        branch_note=why,
    )
    return too_small(report) or report


def plan_picture(image: Image, branches: Sequence[Branch], scale: Scale) -> FaceReport:
    """The report of a picture that is one aligned crop."""
    frame = frame_of_picture(image.width, image.height, scale)
    branch, why = _picked(scale * side_of(frame), branches)
    return FaceReport(
        index=1,
        verdict=Verdict.RESTORED,
        note=note("F04", branch=branch.name),
        box=(0.0, 0.0, float(image.width), float(image.height)),
        score=1.0,
        side=side_of(frame),
        roll=0.0,
        origin="picture",
        frame=frame,
        branch=branch.name,
        branch_note=why,
    )


def _picked(side: float, branches: Sequence[Branch]) -> tuple[Branch, Note]:
    branch = pick_branch(side, branches)
    if len(branches) == 1:
        return branch, note("B01", branch=branch.name)
    code = "B02" if branch.size >= side else "B03"
    return branch, note(code, branch=branch.name, size=branch.size, side=round(side))
