"""Draws latency by percentile, for a cell that has such metrics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.analysis.number_format import plain, scale_for
from bench.analysis.rows import MetricRow
from bench.reports.document import CellView
from bench.reports.drawing.axes import Axis, spread_out, ticks
from bench.reports.drawing.picture import Picture, upper
from bench.reports.drawing.svg import LEFT, RIGHT, Canvas


def pictures(view: CellView) -> Iterator[Picture]:
    """Latency by percentile, for an experiment that has such metrics."""
    found: dict[str, list[tuple[float, MetricRow]]] = {}
    for row in view.cell.rows:
        percentile = row.metric.percentile
        if percentile is not None and any(side.estimate for side in row.sides.values()):
            found.setdefault(row.metric.distribution, []).append((percentile, row))
    for distribution, rows in found.items():
        if len(rows) > 1:
            yield _percentiles(distribution, sorted(rows, key=lambda pair: pair[0]), view)


def _percentiles(distribution: str, rows: Sequence[tuple[float, MetricRow]], view: CellView) -> Picture:
    estimates = [side.estimate for _, row in rows for side in row.sides.values() if side.estimate]
    values = [v for e in estimates for v in (e.value, e.low, e.high) if v is not None and v > 0]
    scale = scale_for(rows[0][1].metric, values)
    up = Axis.around(values, 250, 40, is_log=True)
    canvas = Canvas(height=290)
    canvas.left_axis(up, ticks(scale), right=RIGHT, divisor=scale.divisor)
    canvas.legend(view.look.legend())
    canvas.words(RIGHT, 14, f"{distribution}, {scale.unit}", anchor="end")
    places = {
        percentile: x
        for (percentile, _), x in zip(rows, spread_out([str(p) for p, _ in rows], LEFT, RIGHT).values(), strict=True)
    }
    sentences = []
    for topology in view.topologies:
        aside = 8 * (view.topologies.index(topology) - (len(view.topologies) - 1) / 2)
        line = []
        for percentile, row in rows:
            estimate = row.sides[topology].estimate
            if estimate is None or estimate.value <= 0:
                continue
            x, y = places[percentile] + aside, up.at(estimate.value)
            line.append((x, y))
            if estimate.low and estimate.high:
                ends = [(x, up.at(estimate.low)), (x, up.at(estimate.high))]
                canvas.line(ends, kind="interval", colour=view.look.colour(topology))
            canvas.mark(x, y, view.look.shape(topology), colour=view.look.colour(topology))
            sentences.append(f"p{percentile:g} on {topology} {plain(estimate.value, scale)}")
        if len(line) > 1:
            canvas.line(line, kind="l", colour=view.look.colour(topology))
    for percentile, x in places.items():
        canvas.words(x, 272, f"p{percentile:g}", anchor="middle")
    title = f"{upper(distribution)} by percentile"
    words = ", ".join(sentences)
    return Picture(
        title=title,
        canvas=canvas,
        name=view.name("percentiles", distribution.replace(" ", "_")),
        says=f"{words}.",
        reads=(
            "p99 is what 99 of 100 calls stay below. A line that bends upwards has a long tail. Bars are 95 % intervals of"
            " the median over invocations; the axis is logarithmic. A percentile that too few calls can show is left out."
        ),
        source=f"{', '.join(row.metric.name for _, row in rows)} in {view.runs_of()}",
    )
