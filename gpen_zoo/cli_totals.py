"""What a run of `gpen-zoo restore` tells: a few lines a photo, the sum, the table of stages."""
# ruff: noqa: T201

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TextIO

from gpen_zoo.hints import Lang, say
from gpen_zoo.types import Verdict

if TYPE_CHECKING:
    from gpen_zoo.batch_types import Done
    from gpen_zoo.timeline import Timeline

QUIETLY_FINE = "F04"  # a face that was simply restored needs no line of its own
SAME_FOR_ALL = ("D01", "B20", "B22", "W")  # told for the first photo only: codes, or what they begin with


@dataclass(slots=True)
class Totals:
    """Counts of a run. faces: restored ones. started: `time.perf_counter` at the beginning."""

    done: int = 0
    failed: int = 0
    skipped: int = 0
    faces: int = 0
    started: float = field(default_factory=time.perf_counter)

    def add(self, one: Done) -> None:
        """Count a photo."""
        if one.error is not None:
            self.failed += 1
        else:
            self.done += 1
        if one.result is not None:
            self.faces += sum(1 for face in one.result.faces if face.verdict is Verdict.RESTORED)

    @property
    def count(self) -> int:
        return self.done + self.failed + self.skipped

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready. Rates are of the photos that were worked on; None without any."""
        seconds = max(time.perf_counter() - self.started, 1e-9)
        worked = self.done + self.failed
        return {
            "count": self.count,
            "done": self.done,
            "failed": self.failed,
            "skipped": self.skipped,
            "faces": self.faces,
            "seconds": round(seconds, 3),
            "mean_seconds": round(seconds / worked, 3) if worked else None,
            "photos_per_second": round(worked / seconds, 3) if worked else None,
            "faces_per_second": round(self.faces / seconds, 3) if worked else None,
        }

    def as_words(self) -> dict[str, Any]:
        """For `cli.statistics`."""
        values = self.as_dict()
        rates = ("mean_seconds", "photos_per_second", "faces_per_second")
        told = {name: "-" if values[name] is None else f"{values[name]:.2f}" for name in rates}
        return {**values, "seconds": f"{values['seconds']:.1f}", **told}


def tell_result(done: Done, lang: Lang, told: set[str], to: TextIO) -> None:
    """Lines about one photo. What is the same for every photo of a run (the demo weights, how backgrounds
    are enlarged, weights that are damaged) is told once. told: sentences so far, which grows."""
    result = done.result
    assert result is not None
    restored = sum(1 for f in result.faces if f.verdict is Verdict.RESTORED)
    for path in done.written[:1]:
        print(say("cli.done", lang, input=done.job.label, output=path), file=to)
    seconds = f"{done.seconds:.1f}"
    print("  " + say("ui.summary", lang, found=len(result.faces), restored=restored, seconds=seconds), file=to)
    for face in result.faces:
        if face.note.code != QUIETLY_FINE:
            print("  " + say("ui.face", lang, index=face.index, reason=say(face.note, lang)), file=to)
    for notice in result.notes:
        words = say(notice, lang)
        if words not in told or not notice.code.startswith(SAME_FOR_ALL):
            print(f"  {words} [{notice.code}]", file=to)
        told.add(words)


def laps_table(timeline: Timeline, lang: Lang, to: TextIO) -> None:
    """Milliseconds of each stage: for a photo, summed, and spent waiting for the stage."""
    laps = timeline.laps()
    whole = sum(lap.work_ms for lap in laps) or 1.0
    print(say("cli.profile_head", lang), file=to)
    for lap in laps:
        print(
            f"{lap.stage:<10} {lap.photos:>8} {lap.ms:>12.1f} {lap.work_ms:>12.0f} {lap.work_ms / whole:>7.1%}"
            f" {lap.wait_ms:>12.0f}",
            file=to,
        )
