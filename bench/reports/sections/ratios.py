"""Draws the ratio of every metric of a cell, or of every headline, with what the session could have shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.analysis import Report
from bench.analysis.number_format import label, percent, ratio
from bench.analysis.rows import MetricRow
from bench.counts import plural
from bench.reports.document import CellView
from bench.reports.drawing.axes import Axis
from bench.reports.drawing.picture import Picture
from bench.reports.drawing.svg import RIGHT, Canvas
from bench.reports.tables import verdict

_REACH = (
    " The two dotted ticks are the smallest difference that this session finds in 4 of 5 cases: what lies between them it"
    " cannot tell from nothing."
)


def pictures(view: CellView) -> Iterator[Picture]:
    """Every metric that is compared."""
    cell = view.cell
    rows = [(label(row.metric), row) for row in (*cell.rows, *cell.usage) if row.comparison]
    yield from _ratios(view.name("ratios"), f"Every metric of {cell.experiment} {cell.cell}", rows, view.report)


def of_headlines(report: Report) -> Iterator[Picture]:
    """The headline of every cell."""
    rows = [(f"{cell.experiment} {cell.cell}", row) for cell in report.cells if (row := cell.headline)]
    yield from _ratios("headlines", "The headline of every cell", rows, report)


def _ratios(name: str, what: str, rows: Sequence[tuple[str, MetricRow]], report: Report) -> Iterator[Picture]:
    """A line a row: the ratio, its interval, and what this session could have shown."""
    shown = [(words, row, c) for words, row in rows if (c := row.comparison) and c.ratio and c.ratio.value > 0]
    if not shown:
        return
    ends = [e for _, _, c in shown if c.ratio for e in (c.ratio.value, c.ratio.low, c.ratio.high) if e]
    high = 34 + 26 * len(shown)
    across = Axis.around(ends, 190, RIGHT - 90, is_log=True, holds=(0.95, 1.05))
    canvas = Canvas(height=high + 44)
    inside = (across.at(1 / (1 + report.margin)), across.at(1 + report.margin))
    canvas.box(inside[0], 20, inside[1] - inside[0], high - 20)
    canvas.bottom_axis(across, lambda value: f"{value:.4g}", top=20, bottom=high)
    canvas.line([(across.at(1), 14), (across.at(1), high)], kind="one")
    for number, (words, row, found) in enumerate(shown):
        y = 34 + 26 * number
        canvas.words(182, y + 4, words, anchor="end", kind="t strong" if row.headline else "t")
        if found.smallest_effect is not None:
            reach = (across.at(1 / (1 + found.smallest_effect)), across.at(1 + found.smallest_effect))
            canvas.line([(reach[0], y + 8), (reach[0], y - 8)], kind="reach")
            canvas.line([(reach[1], y + 8), (reach[1], y - 8)], kind="reach")
        if found.ratio and found.ratio.low and found.ratio.high:
            canvas.line([(across.at(found.ratio.low), y), (across.at(found.ratio.high), y)], kind="interval")
        if found.ratio:
            canvas.mark(across.at(found.ratio.value), y, "diamond", colour="inherit", size=5)
        canvas.words(RIGHT - 82, y + 4, verdict(row.metric, found))
    first = shown[0][2]
    head = f"{first.candidate}/{first.baseline}"
    canvas.words((across.begin + across.end) / 2, high + 36, f"{head}, 1 is no difference", anchor="middle")
    sentence = "; ".join(f"{words} {ratio(c.ratio)} {verdict(row.metric, c)}" for words, row, c in shown if c.ratio)
    yield Picture(
        title=f"{what}: {head}",
        canvas=canvas,
        name=name,
        says=f"{head} of {plural(len(shown), 'comparison')}: {sentence}.",
        reads=(
            f"The diamond is the ratio, the bar its 95 % interval. In the band of {percent(report.margin)} a difference is"
            f" too small to matter.{_REACH if any(c.smallest_effect is not None for *_, c in shown) else ''}"
            " A bar that crosses 1 has shown no difference."
        ),
        source="pairs of invocations of one block; Hodges-Lehmann on their log-ratios, signed-rank interval",
    )
