"""What became of a face, put into its report with the reason: before the network, after it, and after every blend."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gpen_zoo.hints import Note, note
from gpen_zoo.strength import default_strength
from gpen_zoo.types import FaceReport, Options, RestoredCrop, Verdict

if TYPE_CHECKING:
    from gpen_zoo.engine import Outcome

TOO_SMALL = 16  # longest side of a face box in pixels below which nothing of the person is left to restore
MOSTLY_INVENTED = 24  # below this most detail comes from the network's memory, not from the photo


def left_alone(report: FaceReport, why: Note) -> FaceReport:
    """Skipped before the network; a face skipped already keeps its first reason."""
    if report.verdict is Verdict.SKIPPED:
        return report
    return replace(report, verdict=Verdict.SKIPPED, note=why, branch=None, branch_note=None)


def too_small(report: FaceReport) -> FaceReport | None:
    """The report of a face with too few pixels to restore anything, None for others."""
    if report.longest >= TOO_SMALL:
        return None
    return left_alone(report, note("F03", px=round(report.longest), least=TOO_SMALL))


def with_outcome(report: FaceReport, outcome: Outcome, crop: RestoredCrop | None) -> FaceReport:
    """The report of a face the network has seen. crop: what it made, None when it failed."""
    told = replace(report, plan=str(outcome.plan), attempts=outcome.attempts, ms=outcome.ms)
    if crop is None:
        return replace(told, verdict=Verdict.FAILED, note=note("F07"))
    if report.origin == "picture":
        return told  # who hands over an aligned crop wants to see what the network makes of it
    strength, why = default_strength(crop, report.yaw)
    return replace(told, default_strength=strength, strength_note=why)


def blended(
    report: FaceReport, crop: RestoredCrop, options: Options, left: Note | None, *, whole: bool = False
) -> FaceReport:
    """The report of a face with a kept crop under these options. left: why they leave it alone, or None."""
    given = options.strength_of(report.index)
    strength = report.default_strength if given is None else given
    if left is None and strength == 0:
        left = note("F08")
    if left is not None:
        return replace(report, verdict=Verdict.SKIPPED, note=left, strength=0.0, mask="")
    size = crop.after.shape[0]
    if report.origin == "drawn":
        told = note("F40")
    elif report.longest < MOSTLY_INVENTED:
        told = note("F02", px=round(report.longest))
    elif given is None and report.strength_note is not None:
        told = report.strength_note
    elif report.side * options.scale > size:
        told = note("F06", side=round(report.side * options.scale), size=size)
    else:
        told = note("F04", branch=report.branch)
    if whole:
        mask = "whole"
    elif options.mask == "crop":
        mask = "crop"
    else:
        mask = "landmarks" if crop.regions is None else "parsing"
    return replace(report, verdict=Verdict.RESTORED, note=told, strength=strength, mask=mask)
