"""Sweeps and curves in the report for a terminal: a table a metric, and a line of small bars a curve."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from bench.analysis.cells import CellReport
from bench.analysis.curves import Curve
from bench.analysis.numbers import label, quantity
from bench.analysis.rows import MetricRow
from bench.model import Metric
from bench.reports import tables

if TYPE_CHECKING:
    from rich.console import RenderableType

BARS = "▁▂▃▄▅▆▇█"
BARS_WIDE = 24
MOST_CURVES = 12  # of one metric; the JSON has all


def sweeps(cell: CellReport, topologies: Sequence[str]) -> Iterator[tuple[str, RenderableType]]:
    """A title and a table for each metric that was measured at several points."""
    for name in dict.fromkeys(row.metric.name for row in cell.sweeps if _has_values(row)):
        rows = [row for row in cell.sweeps if row.metric.name == name and _has_values(row)]
        about = f": {rows[0].metric.help}" if rows[0].metric.help else ""
        yield f"{label(rows[0].metric)}, point by point{about}", _sweep(rows, topologies)


def _has_values(row: MetricRow) -> bool:
    return any(side.values for side in row.sides.values())


def _sweep(rows: Sequence[MetricRow], topologies: Sequence[str]) -> RenderableType:
    from rich.text import Text

    compared = next((row.comparison for row in rows if row.comparison), None)
    heads = [(tables.ratio_head(compared), True), ("verdict", False)] if compared else []
    table = tables.blank(("point", False), ("arm", False), ("unit", False), *((t, True) for t in topologies), *heads)
    before = ""
    for row in rows:
        scale = tables.row_scale(row)
        table.add_row(
            Text(f"  {row.point if row.point != before else ''}"),
            Text(row.arm),
            Text(scale.unit),
            *(Text(tables.side_in_words(row.sides.get(name), scale, row)) for name in topologies),
            *(tables.ratio_and_verdict(row) if compared else []),
        )
        before = row.point
    return table


def curves(cell: CellReport) -> Iterator[tuple[str, RenderableType]]:
    """A title and a table of small bars for each metric that is a curve."""
    for metric in dict.fromkeys(curve.metric for curve in cell.curves):
        those = [curve for curve in cell.curves if curve.metric == metric]
        yield f"{label(metric)} along {metric.axis}, median of the invocations", _curves(metric, those)


def _curves(metric: Metric, found: Sequence[Curve]) -> RenderableType:
    from rich.text import Text

    table = tables.blank(
        ("topology", False), ("arm", False), ("curve", False), ("from", True), ("to", True), (metric.axis, True)
    )
    for curve in found[:MOST_CURVES]:
        table.add_row(
            Text(f"  {curve.topology}"),
            Text(f"{curve.arm} {curve.point}".strip()),
            Text(bars(curve.middle)),
            Text(quantity(metric, curve.middle[0])),
            Text(quantity(metric, curve.middle[-1])),
            Text(f"{curve.steps[-1]:g}"),
        )
    if len(found) > MOST_CURVES:
        table.add_row(Text(f"  and {len(found) - MOST_CURVES} more"))
    return table


def bars(values: Sequence[float]) -> str:
    """Values as small bars, from the least to the greatest of them."""
    shown = [values[round(i * (len(values) - 1) / (BARS_WIDE - 1))] for i in range(min(BARS_WIDE, len(values)))]
    shown = list(values) if len(values) <= BARS_WIDE else shown
    low, high = min(shown), max(shown)
    span = high - low or 1.0
    return "".join(BARS[round((value - low) / span * (len(BARS) - 1))] for value in shown)
