"""Draws what each change brought: the factor of the headline on each topology, with its interval."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.analysis import Report
from bench.analysis.contrasts import Contrast
from bench.analysis.number_format import noun, percent, ratio
from bench.analysis.stats.estimates import Estimate
from bench.reports.document import name_of
from bench.reports.drawing.axes import Axis
from bench.reports.drawing.picture import Look, Picture, better, upper
from bench.reports.drawing.svg import RIGHT, Canvas

MOST_ROWS = 24  # of one picture
_ROW, _TOP, _APART = 30, 30, 9


def factors(report: Report, contrasts: Sequence[Contrast]) -> Iterator[Picture]:
    """A row a change, with a mark and an interval a topology."""
    shown = [each for each in contrasts if any(_ratios(each).values())]
    for number in range(0, len(shown), MOST_ROWS):
        yield _factors(shown[number : number + MOST_ROWS], Look.of(report), report.margin)


def _ratios(contrast: Contrast) -> dict[str, Estimate]:
    """Of the headline, by topology."""
    rows = contrast.headline.rows if contrast.headline else {}
    return {name: row.comparison.ratio for name, row in rows.items() if row.comparison and row.comparison.ratio}


def _factors(shown: Sequence[Contrast], look: Look, margin: float) -> Picture:
    names = {id(each): each.title + (f", {each.where}" if each.where else "") for each in shown}
    room = min(20 + 6.4 * max(map(len, names.values())), 330)
    ends = [
        end for each in shown for found in _ratios(each).values() for end in (found.value, found.low, found.high) if end
    ]
    bottom = _TOP + _ROW * len(shown) + 8
    across = Axis.around(ends, room, RIGHT - 12, is_log=True, holds=(0.95, 1.05))
    canvas = Canvas(height=bottom + 44)
    canvas.legend(look.legend())
    canvas.box(across.at(1 / (1 + margin)), _TOP, across.at(1 + margin) - across.at(1 / (1 + margin)), bottom - _TOP)
    canvas.bottom_axis(across, lambda value: f"{value:.4g}", top=_TOP, bottom=bottom)
    canvas.line([(across.at(1), _TOP), (across.at(1), bottom)], kind="one")
    sentences = []
    for number, each in enumerate(shown):
        middle = _TOP + _ROW * (number + 0.5) + 4
        canvas.words(room - 8, middle + 4, names[id(each)], anchor="end")
        found = _ratios(each)
        for place, (topology, factor) in enumerate(found.items()):
            y = middle + _APART * (place - (len(found) - 1) / 2)
            if factor.low and factor.high:
                canvas.line(
                    [(across.at(factor.low), y), (across.at(factor.high), y)],
                    kind="interval",
                    colour=look.colour(topology),
                )
            canvas.mark(across.at(factor.value), y, look.shape(topology), colour=look.colour(topology), size=4)
        factors_said = " and ".join(f"{ratio(factor)} on {topology}" for topology, factor in found.items())
        sentences.append(f"{names[id(each)]}: {factors_said}")
    metrics = [each.headline.metric for each in shown if each.headline]
    what, direction = noun(metrics[0]), better(metrics[0]) if all(each.better for each in metrics) else ""
    canvas.words((across.begin + across.end) / 2, bottom + 36, f"factor of {what}, 1 is no change", anchor="middle")
    first = shown[0]
    return Picture(
        title=f"Factor of {what} by what was changed",
        canvas=canvas,
        name=name_of(f"contrasts-{first.experiment}-{first.baseline}-{first.candidate}"),
        says=f"{upper('; '.join(sentences))}.",
        reads=(
            "A mark is the factor of the headline that a change of a parameter brings on one topology, the bar its 95 %"
            f" interval. In the band of {percent(margin)} a change is too small to matter. A bar that crosses 1 has shown no"
            f" difference; bars of two topologies that lie apart show that the change brings more on one.{direction}"
        ),
        source="pairs of cells in one block; Hodges-Lehmann on their log-ratios, signed-rank interval",
    )
