"""The Weights tab as HTML: the table, the card of one weight, progress, and the plans by memory."""

from __future__ import annotations

from functools import cache

from gpen_zoo.budget import Facts, Plan, Row
from gpen_zoo.device import facts_of, pick_device
from gpen_zoo.fetch import Progress
from gpen_zoo.page_labels import both, words
from gpen_zoo.page_panels import cell, tag
from gpen_zoo.weights_desk import WeightsDesk

MB = 1e6
GOOD, BAD = ("bundled", "installed"), ("corrupt",)


def table(desk: WeightsDesk, chosen: str = "") -> str:
    """Every weight of the manifest in a row."""
    keys = ("ui.w_name", "ui.w_role", "ui.w_size", "ui.w_status", "ui.w_licence")
    head = tag("tr", *(tag("th", words(key), scope="col") for key in keys))
    body, in_use = [], desk.in_use()
    for line in desk.zoo.listing():
        entry = line.entry
        name = tag("button", cell(entry.name), type="button", cls="pick", data_name=entry.name)
        kind = "good" if line.status in GOOD else "bad" if line.status in BAD else ""
        state = tag("span", words(f"cli.{line.status}"), cls=f"badge {kind}".strip())
        if entry.name in in_use:
            state += " " + tag("span", words("ui.w_in_use"), cls="badge")
        cells = [
            tag("td", name),
            tag("td", words(f"ui.role_{entry.role}")),
            tag("td", size(line.bytes), cls="num"),
            tag("td", state),
            tag("td", words("ui.w_no_licence") if entry.licence.spdx == "NOASSERTION" else cell(entry.licence.spdx)),
        ]
        body.append(tag("tr", *cells, cls="chosen" if entry.name == chosen else ""))
    used = f"{desk.zoo.disk_use() / MB:.0f}"
    # Strangers need not know where things lie on a public server.
    about = words("ui.w_disk_public", mb=used) if desk.locked else words("ui.w_disk", home=desk.zoo.home, mb=used)
    return tag("p", about, cls="quiet") + tag("div", tag("table", head, *body, cls="gz-table weights"), cls="gz-scroll")


def size(count: int | None) -> str:
    """Bytes as people read them."""
    return (
        words("ui.w_unknown") if count is None else f"{count / MB:.0f} MB" if count >= MB else f"{count / 1e3:.0f} KB"
    )


def card(desk: WeightsDesk, name: str) -> str:
    """All that is known about one weight, its terms in full."""
    entry = desk.zoo.entry(name)
    line = next(line for line in desk.zoo.listing() if line.entry.name == entry.name)
    params = ", ".join(f"{key} {value}" for key, value in entry.architecture.params.items())
    facts = [
        (words("ui.w_terms"), both(lambda lang: cell(entry.licence.zh if lang == "zh" else entry.licence.en))),
        (
            words("ui.w_file"),
            f"{cell(entry.file)} · {size(line.bytes)} · {cell(entry.architecture.family)} {cell(params)}",
        ),
        (words("ui.w_digest"), cell(entry.sha256) if entry.sha256 else words("ui.w_no_digest")),
        (
            words("ui.w_sources"),
            "<br>".join(cell(source) for source in entry.sources)
            or words("ui.w_bundled" if entry.bundled else "ui.w_no_sources"),
        ),
    ]
    if line.source:
        facts.append((words("ui.w_from"), f"{cell(line.source)} ({cell(line.trust)}, {cell(line.dtype)})"))
    if entry.name in desk.branches():
        facts.append((words("ui.w_plan"), plan_words(desk.plans_here(_facts())[entry.name])))
    inner = (tag("dt", key) + tag("dd", value) for key, value in facts)
    return tag("div", tag("h3", cell(entry.name)), tag("dl", *inner), cls="gz-card")


def asking() -> str:
    """Before the first byte."""
    return tag("div", tag("p", words("ui.w_asking")), tag("progress"), cls="gz-panel working", role="status")


def progress(now: Progress) -> str:
    """How far a download is."""
    text = words(
        "ui.w_progress",
        host=now.host,
        done=f"{now.done / MB:.1f}",
        total=f"{now.total / MB:.1f}" if now.total else "?",
        speed=f"{now.speed / MB:.1f}",
    )
    bar = tag("progress", value=now.done, max=now.total) if now.total else tag("progress")
    return tag("div", tag("p", text), bar, cls="gz-panel working", role="status")


def plans(desk: WeightsDesk) -> str:
    """What a machine with so much memory would do, by the engine's own arithmetic."""
    tables = (
        tag("h3", words(title)) + _plans_table(desk.table(device))
        for device, title in (("cuda", "ui.w_graphics"), ("cpu", "ui.w_host"))
    )
    return tag("p", words("ui.w_plans_about"), cls="quiet") + "".join(tables)


def _plans_table(rows: tuple[Row, ...]) -> str:
    sizes = sorted({row.gigabytes for row in rows})
    names = list(dict.fromkeys(row.branch for row in rows))
    found = {(row.branch, row.gigabytes): row for row in rows}
    head = tag("tr", tag("th", words("ui.w_name"), scope="col"), *(tag("th", f"{gb} GB", scope="col") for gb in sizes))
    body = [
        tag("tr", tag("th", cell(name), scope="row"), *(tag("td", _plan_cell(found[name, gb])) for gb in sizes))
        for name in names
    ]
    return tag("div", tag("table", head, *body, cls="gz-table"), cls="gz-scroll")


def _plan_cell(row: Row) -> str:
    return f"{plan_words(row.plan)}<br><small>{row.bytes / 2**30:.1f} GB</small>"


def plan_words(plan: Plan) -> str:
    """A plan in few words."""
    parts = [cell(plan.dtype)]
    if plan.device.startswith("cpu"):
        parts.insert(0, "CPU")
    if plan.batch > 1:
        parts.append(words("ui.w_batch", n=plan.batch))
    if plan.tile:
        parts.append(words("ui.w_tile", px=plan.tile))
    return " · ".join(parts)


@cache
def _facts() -> Facts:
    """The machine at the start: asked once, since it costs a measurement."""
    return facts_of(pick_device("auto"))
