"""Draws the headline of every invocation, with the most that the CPUs could do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.analysis.cells import CellReport
from bench.analysis.number_format import Scale, label, plain
from bench.analysis.rows import MetricRow
from bench.reports import tables
from bench.reports.document import CellView
from bench.reports.drawing.axes import REACH, Axis, spread_out, ticks
from bench.reports.drawing.picture import Look, Picture, better, upper
from bench.reports.drawing.svg import LEFT, RIGHT, Canvas

_HALF = 70  # of a line's width


def pictures(view: CellView) -> Iterator[Picture]:
    """The headline of every invocation: a line a block from one topology to the next, and each median's interval."""
    row = view.cell.headline
    values = [v for side in row.sides.values() for v in side.values.values()] if row else []
    if row is None or not values:
        return
    scale = tables.row_scale(row)
    canvas = Canvas(height=300)
    ceilings = bounds_of(view.cell)
    up = Axis.around([*values, *_in_reach(ceilings, values)], 250, 40)
    canvas.left_axis(up, ticks(scale), right=RIGHT, divisor=scale.divisor)
    places = spread_out(view.topologies, LEFT, RIGHT)
    _draw_bounds(canvas, up, places, ceilings, scale)
    for block in sorted({block for side in row.sides.values() for block in side.values}):
        there = [
            (places[t], up.at(row.sides[t].values[block])) for t in view.topologies if block in row.sides[t].values
        ]
        if len(there) > 1:
            canvas.line(there, kind="thin")
    for topology in view.topologies:
        _side(canvas, row, topology, places[topology], up, view.look)
        canvas.words(places[topology], 274, topology, anchor="middle", kind="t strong")
    canvas.words(LEFT, 14, f"{label(row.metric)}, {scale.unit}" if scale.unit else label(row.metric))
    medians = ", ".join(f"{t} {tables.format_side(row.sides[t], scale, row)} {scale.unit}" for t in view.topologies)
    title = f"{upper(label(row.metric))} of every invocation"
    is_paired = len(view.topologies) > 1
    yield Picture(
        title=title,
        canvas=canvas,
        name=view.name("pairs"),
        says=f"Medians with their intervals: {medians}.{_describe(ceilings, scale)}",
        reads=(
            "Each small mark is one invocation; the large one is the median, and its bar the 95 % interval."
            + (
                " A line joins the two of one block: lines that all lean the same way are a difference."
                if is_paired
                else ""
            )
            + f"{better(row.metric)} The axis does not begin at 0."
        ),
        source=f"{row.metric.name} of arm {row.arm} in {view.runs_of()}, one value an invocation",
    )


def _side(canvas: Canvas, row: MetricRow, topology: str, x: float, up: Axis, look: Look) -> None:
    side, colour = row.sides[topology], look.colour(topology)
    for block, value in side.values.items():
        kind = "mark outlier" if block in side.outliers else "mark faint"
        canvas.mark(x, up.at(value), look.shape(topology), colour=colour, size=4, kind=kind)
    if side.estimate is None:
        return
    away = -46 if topology == look.topologies[0] else 46
    if side.estimate.low is not None and side.estimate.high is not None:
        ends = (up.at(side.estimate.low), up.at(side.estimate.high))
        canvas.line([(x + away, ends[0]), (x + away, ends[1])], kind="interval", colour=colour)
    canvas.mark(x + away, up.at(side.estimate.value), look.shape(topology), colour=colour, size=7)


@dataclass(frozen=True, kw_only=True)
class Bound:
    """The median of a ceiling on one topology, in the unit of the headline."""

    topology: str
    arm: str
    value: float


def bounds_of(cell: CellReport) -> tuple[Bound, ...]:
    """Those that were measured in the headline's metric."""
    return tuple(
        Bound(topology=row.topology, arm=row.arm.name, value=row.side.estimate.value)
        for row in cell.ceilings
        if row.side.estimate
    )


def _in_reach(bounds: Sequence[Bound], values: Sequence[float]) -> list[float]:
    """Those that a picture of `values` has room for."""
    least, most = min(values) / REACH, max(values) * REACH
    return [bound.value for bound in bounds if least <= bound.value <= most]


def _draw_bounds(canvas: Canvas, up: Axis, places: Mapping[str, float], bounds: Sequence[Bound], scale: Scale) -> None:
    """A dotted line a bound, over the column of its topology; at the edge, with an arrow, where it lies beyond."""
    for bound in bounds:
        x, y = places[bound.topology], up.at(bound.value)
        canvas.line([(x - _HALF, y), (x + _HALF, y)], kind="reach")
        away = "↑ " if bound.value > up.high else "↓ " if bound.value < up.low else ""
        canvas.words(x, y - 5, f"{away}{bound.arm} {plain(bound.value, scale)}", anchor="middle")


def _describe(bounds: Sequence[Bound], scale: Scale) -> str:
    """What they are, in a sentence; nothing where no ceiling was measured."""
    if not bounds:
        return ""
    ceilings = ", ".join(f"{bound.arm} {plain(bound.value, scale)} on {bound.topology}" for bound in bounds)
    return f" The most that the CPUs can do, dotted: {ceilings}."
