"""Shows each arm beside the subject, and what measuring itself costs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from bench.analysis.arms import ArmRow, cost_of_measuring
from bench.analysis.cells import CellReport
from bench.analysis.number_format import Scale, label, noun, plain, ratio, scale_for, with_interval
from bench.reports import tables
from bench.reports.document import CellView, Section, Short
from bench.reports.sections import multiple_comparison
from bench.reports.tables import NOTHING, Table

MOST_PEERS = 5  # of the short form
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
            short=short(view),
        )


def short(view: CellView) -> Short | None:
    """Peers and ceilings of the cell that is shown first, those that do best first, and what the subject does beside them."""
    cell = view.cell
    headline = cell.rows[0].metric
    rows = [row for row in cell.arms if row.metric == headline.name and row.arm.role in ("peer", "ceiling")]
    if not view.is_shown_first or not rows:
        return None
    scale, last = _scale(cell), view.topologies[-1]
    on_last = {row.arm.name: row for row in rows if row.topology == last}
    roles = {row.arm.name: row.arm.role for row in rows}
    names = sorted(roles, key=lambda name: (roles[name] == "ceiling", _share(on_last.get(name))))
    lines = []
    for name in names:
        those = {row.topology: row for row in rows if row.arm.name == name}
        values = [
            plain(side.estimate.value / scale.divisor)
            if (side := those[each].side if each in those else None) and side.estimate
            else NOTHING
            for each in view.topologies
        ]
        share = on_last[name].share if name in on_last else None
        lines.append(tables.row([name, roles[name], *values, ratio(share) if share else NOTHING]))
    heads = [("", False), ("role", False), *((each, True) for each in view.topologies)]
    found = tables.table([*heads, (f"{cell.subject}/arm on {last}", True)], lines)
    title = f"Peers{view.short_name}, {scale.unit}"
    return Short(title=title, table=tables.at_most(found, MOST_PEERS))


def _share(row: ArmRow | None) -> float:
    return row.share.value if row and row.share else math.inf


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
        yield (f"measuring itself costs this much of the {noun(cell.rows[0].metric)}: {', '.join(parts)}")
