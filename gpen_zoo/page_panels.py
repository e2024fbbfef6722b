"""Parts of the page as HTML: messages, before/after, the faces. Strings in, strings out."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import quote

from gpen_zoo.desk import Stage
from gpen_zoo.hints import Note
from gpen_zoo.manifest import Entry, Licence
from gpen_zoo.page_labels import both, told, words
from gpen_zoo.sessions import Session, Thumbnail
from gpen_zoo.types import FaceReport, Options, Verdict

MB = 1e6
LEFT_OUT = ("F05", "F08", "F41", "F42")  # reasons that the visitor gave and can take back


def tag(name: str, *content: str, cls: str = "", **attributes: object) -> str:
    """An HTML element. Content is HTML already; attributes are escaped, False leaves one out, `_` stands for `-`."""
    given = {"class": cls or False, **attributes}
    text = "".join(
        f" {key.strip('_').replace('_', '-')}" + ("" if value is True else f'="{html.escape(str(value))}"')
        for key, value in given.items()
        if value is not False and value is not None
    )
    return f"<{name}{text}>" if name in ("img", "input") else f"<{name}{text}>{''.join(content)}</{name}>"


def address(path: Path | str) -> str:
    """Where the browser gets a file from; relative, so that it holds behind a proxy too."""
    return f"gradio_api/file={quote(str(path))}"


def panel(lines: Iterable[str], notes: Iterable[Note] = (), kind: str = "") -> str:
    """Sentences as paragraphs, then notices as a list."""
    items = [tag("li", told(note)) for note in notes]
    body = [*(tag("p", line) for line in lines), tag("ul", *items) if items else ""]
    return tag("div", *body, cls=f"gz-panel {kind}".strip(), role="status")


def problem(note: Note) -> str:
    """Why there is no result, and what to do."""
    return tag("div", tag("p", told(note)), cls="gz-panel problem", role="alert")


def working(stage: Stage) -> str:
    """What is being done right now."""
    text = tag("p", words(f"ui.stage_{stage.name}", done=stage.done, total=stage.total))
    if stage.told is not None:
        text += tag("p", told(stage.told))
    measured = stage.name in ("restore", "background") and stage.total > 0
    bar = tag("progress", value=stage.done if measured else None, max=stage.total if measured else None)
    return tag("div", text, bar, cls="gz-panel working", role="status")


def looked_at(session: Session, device: str) -> str:
    """What is known about a photo before the work starts."""
    image, source = session.image, session.image.source
    mp = f"{image.width * image.height / MB:.1f}"
    facts = words(
        "ui.facts", name=source.name, format=source.format or "-", width=image.width, height=image.height, mp=mp
    )
    todo = [face for face in session.faces if face.verdict is Verdict.RESTORED]
    if not todo:
        found = words("ui.found_none")
    elif session.options.aligned:
        found = words("ui.found_aligned", branch=todo[0].branch)
    else:
        found = words("ui.found", found=len(session.faces), todo=len(todo))
    if todo and session.seconds is not None:
        found += " " + words("ui.estimate", seconds=duration(session.seconds), device=device)
    lines = [facts, found]
    nobody = [Note("F01")] if not session.faces else []
    return panel(lines, [*image.notes, *session.found.notes, *nobody])


def finished(session: Session) -> str:
    """What was done in a line, then every notice with its code."""
    assert session.result is not None
    result = session.result
    restored = sum(1 for face in result.faces if face.verdict is Verdict.RESTORED)
    seconds = duration(sum(ms for _, ms in result.timings) / 1000)
    summary = words("ui.summary", found=len(result.faces), restored=restored, seconds=seconds)
    return panel([summary], result.notes, "done")


def duration(seconds: float) -> str:
    """Seconds with as many digits as they are worth."""
    return f"{seconds:.1f}" if seconds < 10 else f"{seconds:.0f}"


def empty() -> str:
    """In place of before/after, while there is nothing to compare."""
    return tag("div", tag("p", words("ui.idle")), cls="gz-empty quiet")


def examples(photos: Sequence[Path]) -> str:
    """A row of photos to try."""
    buttons = (
        tag(
            "button",
            tag("img", src=address(path), alt=""),
            tag("span", words("ui.example", number=place + 1), cls="unseen"),
            type="button",
            data_place=place,
        )
        for place, path in enumerate(photos)
    )
    return tag("p", words("ui.examples"), cls="gz-heading") + tag("div", *buttons, cls="examples")


def compare(
    before: Path,
    after: Path,
    *,
    full: bool,
    name: str = "divider",
    texts: tuple[str, str, str] = ("ui.divider", "ui.before", "ui.after"),
) -> str:
    """Both pictures in one place. full: they have all the photo's pixels. name: of the divider, one a page. texts: keys
    of what the divider and both sides are called."""
    divider, left, right = texts
    pair = tag(
        "div",
        *(tag("img", cls=side, src=address(path), alt="", aria_hidden="true") for side, path in _sides(before, after)),
        tag("label", words(divider), cls="unseen", for_=name),
        tag("input", id=name, type="range", min=0, max=100, step=0.5, value=50),
        tag("div", cls="edge"),
        tag("span", words(left), cls="tag left"),
        tag("span", words(right), cls="tag right"),
        cls="pair",
    )
    buttons = [
        tag("button", words(key), type="button", data_do=do)
        for do, key in (("actual", "ui.actual"), ("screen", "ui.screen"))
    ]
    return tag("div", tag("div", pair, cls="stage"), tag("div", *buttons, cls="bar"), cls="compare", data_full=full)


def _sides(before: Path, after: Path) -> tuple[tuple[str, Path], tuple[str, Path]]:
    return ("before", before), ("after", after)


def strip(session: Session) -> str:
    """All faces of a photo: number, before and after, tick, what became of it, strength."""
    if not session.faces:
        return ""
    items = (_face(face, session) for face in session.faces)
    return tag("p", words("ui.faces"), cls="gz-heading") + tag(
        "ul", *items, cls="strip", data_photo=session.folder.name
    )


def _face(face: FaceReport, session: Session) -> str:
    options, number = session.options, face.index
    chosen, possible = options.faces is None or number in options.faces, can_be_restored(face)
    own, given = number in dict(options.strengths), options.strength_of(number)
    strength = (face.strength if session.result else 1.0) if given is None else given
    tick = tag("input", type="checkbox", data_face=number, checked=chosen and possible, disabled=not possible)
    slider = tag(
        "div",
        tag("label", words("ui.own_strength", index=number), cls="unseen", for_=f"own-{number}"),
        tag("input", id=f"own-{number}", type="range", min=0, max=1, step=0.05, data_at=strength, data_face=number),
        tag("span", f"{strength:.2f}", cls="value"),
        tag("button", "↺", tag("span", words("ui.own_reset"), cls="unseen"), type="button", cls="reset"),
        cls="own",
    )
    state = [*(["personal"] if own else []), *([] if chosen and face.verdict is Verdict.RESTORED else ["left-out"])]
    return tag(
        "li",
        tag("label", tick, tag("span", words("ui.face_number", index=number)), cls="pick"),
        _thumbnail(session.thumbnails.get(number), number),
        _told_of(face, planned=session.result is None and possible),
        slider if possible else "",
        _eraser(number) if number in session.drawn else "",
        cls=" ".join(state),
    )


def _told_of(face: FaceReport, *, planned: bool) -> str:
    """What became of a face; while it is only planned, what there is to say beforehand."""
    if not planned:
        return tag("p", told(face.note))
    if face.note.code == "F05":
        return tag("p", words("ui.face_unticked"))
    why = face.branch_note or face.note
    return "" if why.code == "B01" else tag("p", told(why))  # there is no other branch, so nothing was chosen


def _eraser(number: int) -> str:
    return tag("button", words("ui.erase", index=number), type="button", cls="small", data_erase=number)


def drawing(session: Session | None) -> str:
    """The photo with the boxes of its faces, to draw one more on."""
    if session is None or session.options.aligned:
        return tag("p", words("ui.draw_later"), cls="quiet")
    width, height = session.image.width, session.image.height
    known = (tag("span", str(face.index), cls="known", style=_place(face.box, width, height)) for face in session.faces)
    canvas = tag(
        "div",
        tag("img", src=address(session.before), alt="", draggable="false"),
        *known,
        tag("span", cls="draft", hidden=True),
        cls="canvas",
        data_width=width,
        data_height=height,
    )
    fields = (
        tag("label", words(f"ui.box_{side}"), tag("input", type="number", min=0, step=1, value=0, data_side=side))
        for side in ("x", "y", "w", "h")
    )
    add = tag("button", words("ui.draw_add"), type="button", data_do="add", cls="small", disabled=True)
    about = tag("p", words("ui.draw_info"), cls="quiet")
    return tag("div", about, canvas, tag("div", *fields, add, cls="sides"), cls="draw", data_photo=session.folder.name)


def _place(box: tuple[float, float, float, float], width: int, height: int) -> str:
    x0, y0, x1, y1 = box
    return (
        f"left:{100 * x0 / width:.3f}%;top:{100 * y0 / height:.3f}%;"
        f"width:{100 * (x1 - x0) / width:.3f}%;height:{100 * (y1 - y0) / height:.3f}%"
    )


def terms(entries: Sequence[Entry]) -> str:
    """What has to be accepted before these weights are used, with the keys of the terms for the browser to keep."""
    licences = {entry.licence.key: entry.licence for entry in entries}

    def text(licence: Licence) -> str:
        return tag("p", both(lambda lang: cell(licence.zh if lang == "zh" else licence.en)))

    texts = [text(licence) for licence in licences.values()]
    head = tag("p", words("ui.terms", names=", ".join(entry.name for entry in entries)), cls="gz-heading")
    return tag("div", head, *texts, cls="gz-panel", role="alert", data_terms=" ".join(licences))


def can_be_restored(face: FaceReport) -> bool:
    """False for a face left alone for a reason of its own, not because the visitor said so."""
    return face.verdict is Verdict.RESTORED or face.note.code in LEFT_OUT


def _thumbnail(pictures: Thumbnail | None, number: int) -> str:
    if pictures is None:
        return ""
    if pictures.after is None:
        return tag("div", tag("img", src=address(pictures.before), alt=""), cls="thumb")
    return tag(
        "button",
        *(tag("img", cls=n, src=address(p), alt="") for n, p in _sides(pictures.before, pictures.after)),
        tag("span", words("ui.thumb", index=number), cls="unseen"),
        tag("span", words("ui.after"), cls="state when-after", aria_hidden="true"),
        tag("span", words("ui.before"), cls="state when-before", aria_hidden="true"),
        type="button",
        cls="thumb",
        aria_pressed="false",
    )


def command_line(session: Session) -> str:
    """The equivalent `gpen-zoo restore …`, quoted for a shell."""
    options, usual = session.options, Options()
    words = ["gpen-zoo restore", f"-i {_quoted(session.image.source.name)}", "-o restored/"]
    possible = {face.index for face in session.faces if can_be_restored(face)}
    ticked = possible if options.faces is None else possible & set(options.faces)
    found = possible - set(session.drawn)
    # A box names one face, so all others have to be named too.
    if ticked & found and (options.boxes or ticked & found != found):
        words.append(f"--faces {','.join(map(str, sorted(ticked & found)))}")
    words += [f"--box {','.join(f'{side:g}' for side in box)}" for box in options.boxes]
    # There is no list of no faces.
    strength = 0.0 if possible and not ticked else options.strength
    for flag, given, default in (
        ("--strength", strength, usual.strength),
        ("--mask", options.mask, usual.mask),
        ("--tone", options.tone, usual.tone),
        ("--min-face", options.min_size, usual.min_size),
        ("--scale", options.scale, usual.scale),
        ("--background", options.background, usual.background),
        ("--model", session.branch, ""),
    ):
        if given != default:
            words.append(f"{flag} {given:g}" if isinstance(given, float) else f"{flag} {given}")
    switches = ("--aligned", options.aligned), ("--largest", options.largest), ("--grain", options.grain)
    return " ".join([*words, *(flag for flag, on in switches if on)])


def _quoted(word: str) -> str:
    """In double quotes, which every shell takes; what a POSIX shell would expand is escaped."""
    return '"' + "".join("\\" + c if c in '"\\$`' else c for c in word) + '"'


def cell(text: object) -> str:
    """Plain text for a table."""
    return html.escape(str(text), quote=False)
