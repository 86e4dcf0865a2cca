"""Shows what a cell used of network, CPU, memory and disk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from bench.analysis.cells import CellReport
from bench.analysis.comparison import Side
from bench.analysis.number_format import label, percent
from bench.analysis.rows import MetricRow
from bench.analysis.usage import LIKE_IDLE
from bench.reports import tables
from bench.reports.document import CellView, Section
from bench.reports.tables import Table

LEAST_LONGER = 0.02  # than the intervals: what is less does not change a figure of two digits


def sections(view: CellView) -> Iterator[Section]:
    """Where anything was used."""
    if found := table(view.cell, view.topologies):
        yield Section(
            title=f"What {view.cell.subject} used for it",
            table=found,
            notes=(*counted_longer(view.cell), *not_counted(view.cell)),
            source=f"counted on each node at both ends of every interval that counts, in {view.record}",
        )


def is_used(row: MetricRow) -> bool:
    """Whether anything but 0 was counted."""
    return any(any(side.values.values()) for side in row.sides.values())


def table(cell: CellReport, topologies: Sequence[str]) -> Table | None:
    """What was used of network, CPU, memory and disk, where anything was; payload beside what went over the wire."""
    rows = [row for row in cell.usage if is_used(row)]
    if not rows:
        return None
    payload = [row for row in cell.rows if row.metric.means == "payload"]
    compared = next((row.comparison for row in rows if row.comparison), None)
    heads = [(tables.ratio_head(compared), True), ("verdict", False)] if compared else []
    lines = []
    for row in [*payload, *rows]:
        scale = tables.row_scale(row)
        values = [tables.format_side(row.sides.get(name), scale, row) for name in topologies]
        ratio_cells = tables.ratio_and_verdict(row) if row.comparison and row in rows else []
        lines.append(tables.row([label(row.metric), scale.unit, *values, *ratio_cells]))
    return tables.table([("used", False), ("unit", False), *((name, True) for name in topologies), *heads], lines)


def counted_longer(cell: CellReport) -> Iterator[str]:
    """By how much more time than the intervals the counters cover, where it is enough to be seen in what they say."""
    if any(longer >= LEAST_LONGER for longer in cell.counted_longer.values()):
        parts = [f"{percent(round(longer, 2))} more time on {name}" for name, longer in cell.counted_longer.items()]
        yield (
            f"counters of CPU, bytes and disk cover {' and '.join(parts)} than the timed intervals: what nodes did in that"
            " time is in them, and is a smaller part of longer samples"
        )


def not_counted(cell: CellReport) -> Iterator[str]:
    """The names of what was 0, of what could not be counted, and of what idle traffic hides."""
    zero = [row for row in cell.usage if _counted(row.sides) and not is_used(row)]
    unknown = [row for row in cell.usage if not _counted(row.sides)]
    for words, rows in (("zero", zero), ("not counted here", unknown)):
        if rows:
            yield (f"{words}: {', '.join(label(row.metric) for row in rows)}")
    like_idle = [row for row in cell.usage if any(side.like_idle for side in row.sides.values())]
    if like_idle:
        yield f"like idle, {LIKE_IDLE}: {', '.join(label(row.metric) for row in like_idle)}"


def _counted(sides: Mapping[str, Side]) -> bool:
    return any(side.values for side in sides.values())
