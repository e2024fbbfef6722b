"""Faces that a visitor of the page drew: put into their session, taken out again, named in their options."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from gpen_zoo.align import frame_of_face
from gpen_zoo.drawn import drawn_faces
from gpen_zoo.errors import OptionsInvalid
from gpen_zoo.options import check_options
from gpen_zoo.previews import face_before, write_preview
from gpen_zoo.restore import Restorer
from gpen_zoo.sessions import Box, Session, Thumbnail
from gpen_zoo.types import Options

T = TypeVar("T")


def with_face(session: Session, restorer: Restorer, box: Box) -> Session:
    """The session with one more face, ticked, not restored yet.

    Raises OptionsInvalid: F60 for a box without extent, F61 for one outside the photo, F65 for one that holds a face
    already; and what the detector raises.
    """
    check_options(Options(boxes=(box,)))
    template = restorer.branches[0].template
    drawn = drawn_faces(session.image, restorer.detector, template, (box,), session.found.faces)
    if not drawn:
        raise OptionsInvalid("F65")
    number = session.last + 1
    face = replace(drawn[0], index=number)
    frame = frame_of_face(face.points, template)
    before = write_preview(face_before(session.image, frame), session.folder / f"face-{number}")
    known = session.options.faces
    ticked = tuple(f.index for f in session.found.faces) if known is None else known
    return replace(
        session,
        found=replace(session.found, faces=(*session.found.faces, face)),
        options=replace(session.options, faces=(*ticked, number)),
        drawn={**session.drawn, number: box},
        last=number,
        thumbnails={**session.thumbnails, number: Thumbnail(before=before)},
    )


def without_face(session: Session, number: int) -> Session:
    """The session without the drawn face of this number; as it was when there is none."""
    if number not in session.drawn:
        return session
    options = session.options

    def rest(items: dict[int, T]) -> dict[int, T]:
        return {n: item for n, item in items.items() if n != number}

    ticked = options.faces and tuple(n for n in options.faces if n != number)
    return replace(
        session,
        found=replace(session.found, faces=tuple(f for f in session.found.faces if f.index != number)),
        options=replace(options, faces=ticked, strengths=tuple(rest(dict(options.strengths)).items())),
        drawn=rest(session.drawn),
        thumbnails=rest(session.thumbnails),
    )


def with_boxes(options: Options, session: Session) -> Options:
    """The options with the boxes of the drawn faces that are ticked: a box names its face, whatever the ticks say."""
    ticked = options.faces
    return replace(options, boxes=tuple(box for n, box in session.drawn.items() if ticked is None or n in ticked))
