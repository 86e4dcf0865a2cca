"""Shows the arms of a cell whose metric is a projection, from the slowest to the fastest, each step a factor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.analysis.arms import ArmRow, share_of
from bench.analysis.cells import CellReport
from bench.analysis.number_format import label, ratio, scale_for, with_interval
from bench.model import Metric
from bench.reports import tables
from bench.reports.document import CellView, Section
from bench.reports.tables import Table


def sections(view: CellView) -> Iterator[Section]:
    """One for each topology."""
    for title, table in step_tables(view.cell, view.topologies):
        yield Section(title=title, table=table, source=f"one value an invocation of each arm, in {view.record}")


def step_tables(cell: CellReport, topologies: Sequence[str]) -> Iterator[tuple[str, Table]]:
    """A title and a table for each topology where two arms or more have a projection."""
    for metric in [row.metric for row in cell.rows if row.metric.means == "projection"]:
        for topology in topologies:
            rows = [each for each in cell.arms if (each.metric, each.topology) == (metric.name, topology)]
            if len(rows) > 1:
                yield f"Step by step on {topology}: {label(metric)}. {metric.help}", _steps_table(metric, rows)


def _steps_table(metric: Metric, rows: Sequence[ArmRow]) -> Table:
    """Factors are paired by the blocks that have both arms, as shares are."""
    steps = sorted(rows, key=_value, reverse=True)
    scale = scale_for(metric, map(_value, steps))
    lines = []
    for before, after in zip([None, *steps], steps, strict=False):
        value = with_interval(after.side.estimate, scale) if after.side.estimate else ""
        of_step, of_all = (_times(metric, each, after) if before else "" for each in (before, steps[0]))
        lines.append(tables.row([after.arm.name, value, of_step, of_all]))
    heads = [("arm", False), (scale.unit, True), ("times as fast as above", True), ("as the first", True)]
    return tables.table(heads, lines)


def _value(row: ArmRow) -> float:
    return row.side.estimate.value if row.side.estimate else 0.0


def _times(metric: Metric, slower: ArmRow | None, faster: ArmRow) -> str:
    """How many times as fast; nothing where no block has both."""
    if slower is None:
        return ""
    share = share_of(metric, faster.side, slower.side)
    return "" if share is None else ratio(share)
