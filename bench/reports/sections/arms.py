"""Shows each arm beside the subject, and what measuring itself costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.analysis.arms import ArmRow, cost_of_measuring
from bench.analysis.cells import CellReport
from bench.analysis.number_format import Scale, label, ratio, scale_for, with_interval
from bench.reports import tables
from bench.reports.document import CellView, Section
from bench.reports.sections import multiple_comparison
from bench.reports.tables import NOTHING, Table

_PERCENT = Scale(0.01, "")


def sections(view: CellView) -> Iterator[Section]:
    """Where a cell has several arms."""
    cell = view.cell
    if len({row.arm.name for row in cell.arms}) > 1:
        unit = f"{label(cell.rows[0].metric)} in {_scale(cell).unit}"
        yield Section(
            title=f"{cell.subject} beside the other arms, in the same invocations: {unit}",
            table=table(cell, view.topologies),
            notes=(*cost_of_measuring_lines(cell), *multiple_comparison.of_arms(view.report, cell)),
            source=f"one value an invocation of each arm, in {view.record}",
        )


def table(cell: CellReport, topologies: Sequence[str]) -> Table:
    """Each arm's value of the headline, and the subject's share of it."""
    rows = [row for row in cell.arms if row.metric == cell.rows[0].metric.name]
    scale = _scale(cell)
    heads = [column for name in topologies for column in ((name, True), ("share", True))]
    lines = []
    for name in dict.fromkeys(row.arm.name for row in rows):
        those = {row.topology: row for row in rows if row.arm.name == name}
        role = next(iter(those.values())).arm.role
        values = [words for topology in topologies for words in _arm(those.get(topology), scale)]
        lines.append(tables.row([name, role, *values]))
    return tables.table([("arm", False), ("role", False), *heads], lines)


def _scale(cell: CellReport) -> Scale:
    metric = cell.rows[0].metric
    rows = [row for row in cell.arms if row.metric == metric.name]
    return scale_for(metric, [row.side.estimate.value for row in rows if row.side.estimate])


def _arm(row: ArmRow | None, scale: Scale) -> tuple[str, str]:
    if row is None or row.side.estimate is None:
        return NOTHING, ""
    return with_interval(row.side.estimate, scale), "" if row.share is None else ratio(row.share)


def cost_of_measuring_lines(cell: CellReport) -> Iterator[str]:
    """What watching costs, where the same work was also done unwatched."""
    costs = {
        row.topology: cost
        for row in cell.arms
        if row.arm.role == "control" and row.metric == cell.rows[0].metric.name and (cost := cost_of_measuring(row))
    }
    if costs:
        parts = (f"{with_interval(cost, _PERCENT)} % on {topology}" for topology, cost in costs.items())
        yield (f"measuring itself costs this much {label(cell.rows[0].metric)}: {', '.join(parts)}")
