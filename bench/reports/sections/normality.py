"""Draws how the log-ratios of the pairs are distributed, beside a normal distribution. No verdict rests on it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from bench.analysis.comparison import Comparison, log_ratios
from bench.analysis.number_format import label
from bench.analysis.stats.quantiles import FEWEST, Quantiles, correlation, quantiles
from bench.counts import plural
from bench.reports.document import CellView
from bench.reports.drawing.axes import Axis
from bench.reports.drawing.picture import Look, Picture, upper
from bench.reports.drawing.svg import LEFT, RIGHT, Canvas

_TOP, _BOTTOM = 34, 250


def pictures(view: CellView) -> Iterator[Picture]:
    """The headline's pairs, where there are enough for a shape to show."""
    row = view.cell.headline
    if row is None or row.comparison is None or row.comparison.ratio is None:
        return
    found = row.comparison
    logs = log_ratios(row.sides[found.baseline].values, row.sides[found.candidate].values)
    if len(logs) >= FEWEST and len(set(logs.values())) > 1:
        yield _picture(view, found, logs)


def _picture(view: CellView, found: Comparison, logs: Mapping[int, float]) -> Picture:
    shown = quantiles(logs)
    what = label(view.cell.headline.metric) if view.cell.headline else ""
    head = f"{found.candidate}/{found.baseline}"
    title = f"{upper(what)}, {head}: how the pairs are distributed"
    far = [str(point.block) for point in shown.points if point.block in found.outliers]
    likeness = correlation(shown)
    says = (
        f"{plural(len(logs), 'pair')}, from {math.exp(shown.points[0].value):.3g} to {math.exp(shown.points[-1].value):.3g};"
        f" correlation with a normal distribution {0.0 if likeness is None else likeness:.3f}"
        + (f"; outliers: block {', '.join(far)}." if far else "; no outliers.")
    )
    return Picture(
        title=title,
        canvas=_drawn(shown, found, view.look, head),
        name=view.name("normality"),
        says=says,
        reads=(
            "A mark is the ratio of one pair; from left to right, where a normal distribution would have it; the line goes"
            " through the quartiles. Marks along the line: normal. Ends that bend away from it: stalls, or a long tail. An arc:"
            " skewed. Two steps: two kinds of blocks. The verdict does not need it: its interval rests on ranks."
        ),
        source=f"log-ratios of the headline's pairs, in {view.runs_of()}",
    )


def _drawn(shown: Quantiles, found: Comparison, look: Look, head: str) -> Canvas:
    canvas = Canvas(height=304)
    across = Axis.around([point.z for point in shown.points], LEFT + 8, RIGHT - 8)
    up = Axis.around([math.exp(point.value) for point in shown.points], _BOTTOM, _TOP, is_log=True)
    canvas.words(LEFT, 20, head)
    canvas.left_axis(up, lambda value: f"{value:.4g}", right=RIGHT)
    canvas.bottom_axis(across, lambda value: f"{value:g}", top=_TOP, bottom=_BOTTOM)
    canvas.words((LEFT + RIGHT) / 2, 294, "standard deviations of a normal distribution", anchor="middle")
    canvas.line(_inside(shown, across, up), kind="one")
    for point in shown.points:
        canvas.mark(
            across.at(point.z),
            up.at(math.exp(point.value)),
            look.shape(found.candidate),
            colour=look.colour(found.candidate),
            size=5,
            kind="mark outlier" if point.block in found.outliers else "mark",
        )
    return canvas


def _inside(shown: Quantiles, across: Axis, up: Axis) -> list[tuple[float, float]]:
    """The line through the quartiles, as far as it lies inside the picture; it is straight, as the axis is logarithmic."""
    least, most = math.log(up.low), math.log(up.high)
    ends = [across.low, across.high]
    if shown.slope > 0:
        ends = [max(ends[0], (least - shown.centre) / shown.slope), min(ends[1], (most - shown.centre) / shown.slope)]
    return [(across.at(z), up.at(math.exp(shown.line(z)))) for z in ends]
