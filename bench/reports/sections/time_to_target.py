"""Shows how many trainings reached the target, and when."""

from __future__ import annotations

from collections.abc import Iterator

from bench.analysis.number_format import percent, quantity
from bench.analysis.time_to_target import TimeToTarget
from bench.metrics import seconds
from bench.reports import tables
from bench.reports.document import CellView, Section

TITLE = "Trainings that reached the target; the others count as longer than they were watched"
SOURCE = "Kaplan and Meier's median; of the share, Clopper and Pearson's 95 % interval"
HEADS = (("topology", False), ("arm", False), ("reached", True), ("share", True), ("median time", True))
_SECONDS = seconds("reached")


def sections(view: CellView) -> Iterator[Section]:
    """A row an arm and topology."""
    if reached := view.cell.times_to_target:
        yield Section(
            title=TITLE, table=tables.table(HEADS, [tables.row(_cells(each)) for each in reached]), source=SOURCE
        )


def _cells(each: TimeToTarget) -> list[str]:
    if each.median_seconds is not None:
        median = quantity(_SECONDS, each.median_seconds)
    else:
        median = f"over {quantity(_SECONDS, each.censored_seconds)}"
    share = f"{percent(each.low)} to {percent(each.high)}"
    return [each.topology, each.arm, f"{each.reached} of {each.runs}", share, median]
