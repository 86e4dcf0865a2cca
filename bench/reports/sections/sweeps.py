"""Sweeps and curves in a report: a table a metric, or of several that share one, and a line of small bars a curve."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.analysis.cells import CellReport
from bench.analysis.curves import Curve
from bench.analysis.numbers import Scale, label, quantity, scale_for, with_interval
from bench.analysis.rows import MetricRow
from bench.model import Metric
from bench.reports.sections import grid, tables
from bench.reports.sections.grid import Cell, Column, Table

BARS = "▁▂▃▄▅▆▇█"
BARS_WIDE = 24
MOST_POINTS = 4  # named in a note
MOST_CURVES = 12  # of one metric; the JSON has all


def sweeps(cell: CellReport, topologies: Sequence[str]) -> Iterator[tuple[str, Table]]:
    """A title and a table for each metric that was measured at several points, and for those that share a table."""
    for title in dict.fromkeys(row.metric.table for row in cell.sweeps if row.metric.table):
        yield title, _side_by_side([row for row in cell.sweeps if row.metric.table == title], topologies)
    for name in dict.fromkeys(row.metric.name for row in cell.sweeps if _has_values(row) and not row.metric.table):
        rows = [row for row in cell.sweeps if row.metric.name == name and _has_values(row)]
        about = f": {rows[0].metric.help}" if rows[0].metric.help else ""
        yield f"{label(rows[0].metric)}, point by point{about}", _sweep(rows, topologies)


def notes(cell: CellReport) -> Iterator[str]:
    """A line a metric that has no value at some point on some topology: where, and the first reason."""
    found: dict[str, dict[str, str]] = {}  # metric: point: reason
    counted = {row.metric.name for row in cell.usage}  # what cannot be counted is said with the costs
    for row in cell.sweeps:
        reasons = [why for side in row.sides.values() if not side.values for why in side.missing.values()]
        if reasons and row.metric.name not in counted:
            found.setdefault(label(row.metric), {}).setdefault(row.point, reasons[0])
    for name, points in found.items():
        where = ", ".join(list(points)[:MOST_POINTS]) + (", ..." if len(points) > MOST_POINTS else "")
        yield f"not all topologies have {name} at {where}: {next(iter(points.values()))}"


def _has_values(row: MetricRow) -> bool:
    return any(side.values for side in row.sides.values())


def _sweep(rows: Sequence[MetricRow], topologies: Sequence[str]) -> Table:
    compared = next((row.comparison for row in rows if row.comparison), None)
    heads = [(tables.ratio_head(compared), True), ("verdict", False)] if compared else []
    lines, before = [], ""
    for row in rows:
        scale = tables.row_scale(row)
        cells: list[Cell | str] = [row.point if row.point != before else "", row.arm, scale.unit]
        cells += [tables.side_in_words(row.sides.get(name), scale, row) for name in topologies]
        lines.append(grid.row(cells + (tables.ratio_and_verdict(row) if compared else [])))
        before = row.point
    columns = [("point", False), ("arm", False), ("unit", False), *((name, True) for name in topologies), *heads]
    return grid.table(columns, lines)


def _side_by_side(rows: Sequence[MetricRow], topologies: Sequence[str]) -> Table:
    """A row a point, arm and topology, in the order in which they were measured; a column a metric."""
    found = {(row.point, row.arm, row.metric): row for row in rows}
    scales = {metric: _scale(metric, rows) for metric in dict.fromkeys(row.metric for row in rows)}
    lines = []
    for point, arm in dict.fromkeys((row.point, row.arm) for row in rows):
        for topology in topologies:
            values = [_value(found.get((point, arm, metric)), topology, scale) for metric, scale in scales.items()]
            lines.append(grid.row([point, arm, topology, *values]))
    heads = [_head(label(metric), scale.unit) for metric, scale in scales.items()]
    return grid.table([("point", False), ("arm", False), ("topology", False), *((head, True) for head in heads)], lines)


def _head(name: str, unit: str) -> str:
    return f"{name}, {unit}" if unit and unit not in name.split() else name


def _scale(metric: Metric, rows: Sequence[MetricRow]) -> Scale:
    sides = [side for row in rows if row.metric == metric for side in row.sides.values()]
    return scale_for(metric, [side.estimate.value for side in sides if side.estimate])


def _value(row: MetricRow | None, topology: str, scale: Scale) -> str:
    side = row.sides.get(topology) if row else None
    return with_interval(side.estimate, scale) if side and side.estimate else tables.NOTHING


def curves(cell: CellReport) -> Iterator[tuple[str, Table]]:
    """A title and a table of small bars for each metric that is a curve."""
    for metric in dict.fromkeys(curve.metric for curve in cell.curves):
        those = [curve for curve in cell.curves if curve.metric == metric]
        yield f"{label(metric)} along {metric.axis}, median of the invocations", _curves(metric, those)


def _curves(metric: Metric, found: Sequence[Curve]) -> Table:
    lines = [
        grid.row(
            [
                curve.topology,
                f"{curve.arm} {curve.point}".strip(),
                bars(curve.middle),
                quantity(metric, curve.middle[0]),
                quantity(metric, curve.middle[-1]),
                f"{curve.steps[-1]:g}",
            ]
        )
        for curve in found[:MOST_CURVES]
    ]
    if len(found) > MOST_CURVES:
        lines.append(grid.row([f"and {len(found) - MOST_CURVES} more"]))
    columns = [
        Column("topology"),
        Column("arm"),
        Column("curve", is_picture=True),
        *(Column(head, is_number=True) for head in ("from", "to", metric.axis)),
    ]
    return grid.table(columns, lines)


def bars(values: Sequence[float]) -> str:
    """Values as small bars, from the least to the greatest of them."""
    shown = [values[round(i * (len(values) - 1) / (BARS_WIDE - 1))] for i in range(min(BARS_WIDE, len(values)))]
    shown = list(values) if len(values) <= BARS_WIDE else shown
    low, high = min(shown), max(shown)
    span = high - low or 1.0
    return "".join(BARS[round((value - low) / span * (len(BARS) - 1))] for value in shown)
