"""Shows what was measured at several points: a table a metric, or of several that share one, and a picture a metric."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from bench.analysis.cells import CellReport
from bench.analysis.number_format import Scale, label, percent, scale_for, with_interval
from bench.analysis.rows import MetricRow
from bench.analysis.stats.estimates import LEVEL
from bench.counts import plural
from bench.model import Metric
from bench.reports import tables
from bench.reports.document import CellView, Section
from bench.reports.drawing.axes import Axis, log_note, spread_out, ticks, value_axis
from bench.reports.drawing.picture import Look, Picture, better, upper
from bench.reports.drawing.svg import DASHES, LEFT, MOST_ARMS, RIGHT, Canvas
from bench.reports.tables import NOTHING, Cell, Table

MOST_POINTS = 4  # named in a note


def sections(view: CellView) -> Iterator[Section]:
    """One for those that share a table, and one for each other metric."""
    for title, rows in _of_tables(view.cell):
        found = _side_by_side(rows, view.topologies) if rows[0].metric.table else _sweep(rows, view.topologies)
        source = f"one value an invocation and point, in {view.record}"
        yield Section(title=title, table=found, source=source, draw=partial(pictures, view, rows))


def missing_points(view: CellView) -> Iterator[Section]:
    """Where points have no value."""
    if remarks := tuple(notes(view.cell)):
        yield Section(notes=remarks)


def _of_tables(cell: CellReport) -> Iterator[tuple[str, list[MetricRow]]]:
    for title in dict.fromkeys(row.metric.table for row in cell.sweeps if row.metric.table):
        yield title, [row for row in cell.sweeps if row.metric.table == title]
    for name in dict.fromkeys(row.metric.name for row in cell.sweeps if _has_values(row) and not row.metric.table):
        rows = [row for row in cell.sweeps if row.metric.name == name and _has_values(row)]
        about = f": {rows[0].metric.help}" if rows[0].metric.help else ""
        yield f"{label(rows[0].metric)}, point by point{about}", rows


def notes(cell: CellReport) -> Iterator[str]:
    """A line a metric that has no value at some point on some topology: where, and the first reason."""
    found: dict[str, dict[str, str]] = {}  # metric: point: reason
    counted = {row.metric.name for row in cell.usage}  # what cannot be counted is noted with the costs
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
        cells += [tables.format_side(row.sides.get(name), scale, row) for name in topologies]
        lines.append(tables.row(cells + (tables.ratio_and_verdict(row) if compared else [])))
        before = row.point
    columns = [("point", False), ("arm", False), ("unit", False), *((name, True) for name in topologies), *heads]
    return tables.table(columns, lines)


def _side_by_side(rows: Sequence[MetricRow], topologies: Sequence[str]) -> Table:
    """A row a point, arm and topology, in the order in which they were measured; a column a metric."""
    found = {(row.point, row.arm, row.metric): row for row in rows}
    scales = {metric: _scale(metric, rows) for metric in dict.fromkeys(row.metric for row in rows)}
    lines = []
    for point, arm in dict.fromkeys((row.point, row.arm) for row in rows):
        for topology in topologies:
            values = [_value(found.get((point, arm, metric)), topology, scale) for metric, scale in scales.items()]
            lines.append(tables.row([point, arm, topology, *values]))
    heads = [_head(label(metric), scale.unit) for metric, scale in scales.items()]
    return tables.table(
        [("point", False), ("arm", False), ("topology", False), *((head, True) for head in heads)], lines
    )


def _head(name: str, unit: str) -> str:
    return f"{name}, {unit}" if unit and unit not in name.split() else name


def _scale(metric: Metric, rows: Sequence[MetricRow]) -> Scale:
    sides = [side for row in rows if row.metric == metric for side in row.sides.values()]
    return scale_for(metric, [side.estimate.value for side in sides if side.estimate])


def _value(row: MetricRow | None, topology: str, scale: Scale) -> str:
    side = row.sides.get(topology) if row else None
    return with_interval(side.estimate, scale) if side and side.estimate else NOTHING


def pictures(view: CellView, rows: Sequence[MetricRow]) -> Iterator[Picture]:
    """A picture a metric that was measured at several points."""
    for name in dict.fromkeys(row.metric.name for row in rows):
        those = [row for row in rows if row.metric.name == name and _values([row])]
        points = list(dict.fromkeys(row.point for row in those))
        if len(points) > 1:
            yield _picture(those, points, view)


def _values(rows: Sequence[MetricRow]) -> list[float]:
    return [side.estimate.value for row in rows for side in row.sides.values() if side.estimate]


def _picture(rows: Sequence[MetricRow], points: Sequence[str], view: CellView) -> Picture:
    metric = rows[0].metric
    arms = list(dict.fromkeys(row.arm for row in rows))
    kept = sorted(arms, key=lambda arm: arm != view.cell.subject)[:MOST_ARMS]
    drawn = [row for row in rows if row.arm in kept]
    values = _values(drawn)
    ends = [end for row in drawn for band in row.bands.values() for end in (band.low, band.high) if end is not None]
    scale, up = scale_for(metric, values), value_axis([*values, *ends], 250, 56, can_be_log=metric.kind != "ratio")
    canvas = Canvas(height=300)
    canvas.left_axis(up, ticks(scale), right=RIGHT, divisor=scale.divisor)
    canvas.legend(view.look.legend())
    canvas.legend_of_arms(kept)
    place = spread_out(points, LEFT, RIGHT)
    every = -(-len(points) * 60 // int(RIGHT - LEFT)) or 1
    for number, point in enumerate(points):
        if number % every == 0:
            canvas.words(
                place[point], 272 + (12 * (number // every % 2) if len(points) > 6 else 0), point[:16], anchor="middle"
            )
    for arm, dash in zip(kept, DASHES, strict=False):
        for topology in view.topologies:
            found = [
                (place[row.point], up.at(side.estimate.value))
                for row in drawn
                if row.arm == arm and (side := row.sides.get(topology)) and side.estimate
            ]
            _band(canvas, [row for row in drawn if row.arm == arm], topology, place, up, view.look)
            if len(found) > 1:
                canvas.line(found, kind=f"l{dash}", colour=view.look.colour(topology))
            for x, y in found:
                canvas.mark(x, y, view.look.shape(topology), colour=view.look.colour(topology), size=4)
    title = f"{upper(label(metric))} point by point"
    of_subject = [row for row in drawn if row.arm == kept[0]]
    sentence = "; ".join(
        f"{row.point}: " + ", ".join(f"{t} {tables.format_side(row.sides.get(t), scale, row)}" for t in view.topologies)
        for row in (of_subject[0], of_subject[-1])
    )
    left_out = f" {plural(len(arms) - len(kept), 'arm')} left out; the table has all." if len(arms) > len(kept) else ""
    return Picture(
        title=f"{title}, {scale.unit}" if scale.unit else title,
        canvas=canvas,
        name=view.name("sweep", metric.name),
        says=f"{kept[0]} in {scale.unit or 'its unit'}, first and last point: {sentence}.{left_out}",
        reads=f"A mark is a median over invocations, a line one arm on one topology.{_of_bands(drawn)}{better(metric)}{log_note(up)}",
        source=f"{metric.name} in {view.runs_of()}",
    )


def _band(
    canvas: Canvas, rows: Sequence[MetricRow], topology: str, place: Mapping[str, float], up: Axis, look: Look
) -> None:
    """The simultaneous intervals of an arm's points, joined."""
    found = [
        (place[row.point], up.at(band.low), up.at(band.high))
        for row in rows
        if (band := row.bands.get(topology)) and band.low is not None and band.high is not None
    ]
    if len(found) > 1:
        canvas.range(found, colour=look.colour(topology))


def _of_bands(rows: Sequence[MetricRow]) -> str:
    """What the bands promise; less where there are too few invocations for it."""
    levels = [band.level for row in rows for band in row.bands.values() if band.level is not None]
    if not levels:
        return ""
    points = len({row.point for row in rows})
    whole = 1 - points * (1 - min(levels))
    promise = "95 %" if whole >= LEVEL - 1e-9 else f"{percent(max(0.0, whole))}, of so few invocations"
    return f" In a band the medians of all {plural(points, 'point')} lie at once, with {promise} (Bonferroni)."
