"""Shows values along the steps of long work: a line of small bars a curve, and a picture a metric."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby

from bench.analysis.curves import Curve
from bench.analysis.number_format import label, quantity, scale_for
from bench.model import Metric
from bench.reports import tables
from bench.reports.document import CellView, Section
from bench.reports.drawing.axes import Axis, log_note, ticks, value_axis
from bench.reports.drawing.picture import Picture, better, upper
from bench.reports.drawing.svg import DASHES, LEFT, MOST_ARMS, RIGHT, Canvas
from bench.reports.tables import Column, Table

BARS = "▁▂▃▄▅▆▇█"
BARS_WIDE = 24
MOST_CURVES = 12  # of one metric; the JSON has all


def sections(view: CellView) -> Iterator[Section]:
    """One for each metric that is a curve."""
    for metric in dict.fromkeys(curve.metric for curve in view.cell.curves):
        those = [curve for curve in view.cell.curves if curve.metric == metric]
        yield Section(
            title=f"{label(metric)} along {metric.axis}, median of the invocations",
            table=_table(metric, those),
            source=f"one value an invocation and point, in {view.record}",
            draw=partial(pictures, view, those),
        )


def _table(metric: Metric, found: Sequence[Curve]) -> Table:
    lines = [
        tables.row(
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
        lines.append(tables.row([f"and {len(found) - MOST_CURVES} more"]))
    columns = [
        Column("topology"),
        Column("arm"),
        Column("curve", is_picture=True),
        *(Column(head, is_number=True) for head in ("from", "to", metric.axis)),
    ]
    return tables.table(columns, lines)


def bars(values: Sequence[float]) -> str:
    """Values as small bars, from the least to the greatest of them."""
    shown = [values[round(i * (len(values) - 1) / (BARS_WIDE - 1))] for i in range(min(BARS_WIDE, len(values)))]
    shown = list(values) if len(values) <= BARS_WIDE else shown
    low, high = min(shown), max(shown)
    span = high - low or 1.0
    return "".join(BARS[round((value - low) / span * (len(BARS) - 1))] for value in shown)


def pictures(view: CellView, curves: Sequence[Curve]) -> Iterator[Picture]:
    """A picture a point of one metric; where there are more arms than dashes, several, of which one is chosen."""
    shown = sorted((curve for curve in curves if len(curve.steps) > 1), key=lambda curve: curve.point)
    for _, those in groupby(shown, key=lambda curve: curve.point):
        found = list(those)
        arms = list(dict.fromkeys(curve.arm for curve in found))
        for number in range(0, len(arms), MOST_ARMS):
            some = arms[number : number + MOST_ARMS]
            picture = _picture([curve for curve in found if curve.arm in some], some, view)
            yield (
                picture
                if len(arms) <= MOST_ARMS
                else replace(
                    picture,
                    name=f"{picture.name}-{number}",
                    group=picture.name,
                    choice=", ".join(some),
                )
            )


def _picture(drawn: Sequence[Curve], arms: Sequence[str], view: CellView) -> Picture:
    metric, point = drawn[0].metric, drawn[0].point
    values = [value for curve in drawn for value in (*curve.low, *curve.high)]
    scale, up = (
        scale_for(metric, values),
        value_axis(values, 250, 56, can_be_log=metric.kind != "ratio" and metric.unit != "%"),
    )
    along = Axis(min(c.steps[0] for c in drawn), max(c.steps[-1] for c in drawn), LEFT + 8, RIGHT - 8)
    canvas = Canvas(height=304)
    canvas.left_axis(up, ticks(scale), right=RIGHT, divisor=scale.divisor)
    canvas.bottom_axis(along, lambda value: f"{value:g}", top=56, bottom=250)
    canvas.words((LEFT + RIGHT) / 2, 294, metric.axis, anchor="middle")
    canvas.legend(view.look.legend())
    canvas.legend_of_arms(arms)
    sentences = []
    for curve in drawn:
        colour, dash = view.look.colour(curve.topology), DASHES[arms.index(curve.arm)]
        ends = zip(curve.steps, curve.low, curve.high, strict=True)
        canvas.range([(along.at(x), up.at(low), up.at(high)) for x, low, high in ends], colour=colour)
        middle = [(along.at(x), up.at(y)) for x, y in zip(curve.steps, curve.middle, strict=True)]
        canvas.line(middle, kind=f"l{dash}", colour=colour)
        sentences.append(
            f"{curve.arm} on {curve.topology} from {quantity(metric, curve.middle[0])} to"
            f" {quantity(metric, curve.middle[-1])} at {curve.steps[-1]:g}"
        )
    title = f"{upper(label(metric))} along {metric.axis}" + (f", {point}" if point else "")
    words = "; ".join(sentences)
    return Picture(
        title=title,
        canvas=canvas,
        name=view.name("curve", f"{metric.name} {point}"),
        says=f"{words}.",
        reads=(
            "The line is the median over invocations, the band reaches from the least to the greatest."
            f"{better(metric)}{log_note(up)}"
        ),
        source=f"{metric.name} in {view.runs_of()}",
    )
