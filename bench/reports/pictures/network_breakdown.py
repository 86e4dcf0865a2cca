"""The network breakdown as a picture: from one topology's seconds to the other's, each part where the one before it ended."""

from __future__ import annotations

from collections.abc import Iterator

from bench.analysis.breakdown.network import NetworkBreakdown
from bench.analysis.cells import CellReport
from bench.analysis.numbers import percent, plain, with_interval
from bench.analysis.stats.estimates import Estimate
from bench.reports.pictures import colours
from bench.reports.pictures.session import RIGHT, Look, Picture, name_of, runs_of, ticks
from bench.reports.pictures.svg import LEFT, Axis, Canvas
from bench.reports.sections.network_breakdown import scale_of, title

_ROW = 34
_BEGIN = 2 * LEFT + 24  # names of parts are longer than numbers


def of_cell(cell: CellReport, look: Look) -> Iterator[Picture]:
    """The breakdown of a cell that has one with a gap in it."""
    if cell.network_breakdown and cell.network_breakdown.gap:
        yield _picture(cell.network_breakdown, cell, look)


def _picture(breakdown: NetworkBreakdown, cell: CellReport, look: Look) -> Picture:
    scale = scale_of(breakdown)
    steps = list(_steps(breakdown, look))
    ends = [
        begin + end
        for _, begin, value, _ in steps
        for end in (0.0, value.value, value.low, value.high)
        if end is not None
    ]
    along = Axis.around(ends, _BEGIN, RIGHT - 60, holds=(0.0,))
    bottom = 12 + _ROW * len(steps)
    canvas = Canvas(height=bottom + 44)
    canvas.bottom_axis(along, ticks(scale), top=6, bottom=bottom, divisor=scale.divisor)
    for number, (name, begin, value, colour) in enumerate(steps):
        y = 12 + _ROW * number
        near, far = sorted((along.at(begin), along.at(begin + value.value)))
        is_part = number not in (0, len(steps) - 1)
        canvas.words(_BEGIN - 8, y + 16, name, anchor="end", kind="t" if is_part else "t strong")
        canvas.box(near, y + 2, max(far - near, 1.5), 20, kind="part", colour=colour)
        after = far
        if value.low is not None and value.high is not None:
            after = max(far, along.at(begin + value.high))  # beyond the interval, which would strike the number out
            reach = [(along.at(begin + value.low), y + 12), (along.at(begin + value.high), y + 12)]
            canvas.line(reach, kind="one")
        if number < len(steps) - 1:
            end = along.at(begin + value.value)
            canvas.line([(end, y + 2), (end, y + _ROW + 22)], kind="thin")
        canvas.words(after + 8, y + 16, plain(value.value / scale.divisor))
    canvas.words((_BEGIN + RIGHT) / 2, bottom + 36, scale.unit, anchor="middle")
    base = breakdown.seconds[breakdown.baseline].value
    said = ", ".join(
        f"{part.name} {with_interval(part.seconds, scale)} ({percent(part.seconds.value / base)})"
        for part in breakdown.parts
        if part.seconds
    )
    gap = with_interval(breakdown.gap, scale) if breakdown.gap else ""
    words = f"{breakdown.candidate} takes {gap} {scale.unit} longer than {breakdown.baseline}: {said}"
    return Picture(
        title=title(breakdown),
        svg=canvas.drawn(name_of("breakdown", cell), f"{title(breakdown)}. {words}."),
        says=f"{words}.",
        reads=(
            "Each bar begins where the one above it ended, so that together they lead from the one topology to the other;"
            " a bar to the left takes time off. Thin lines are 95 % intervals. Unexplained is what the parts leave; parts"
            " that went on at the same time are counted twice, and make it less, or less than 0."
        ),
        source=f"the arms of {cell.experiment}, block by block, in {runs_of(cell, look.topologies)}; means",
    )


def _steps(breakdown: NetworkBreakdown, look: Look) -> Iterator[tuple[str, float, Estimate, str]]:
    """Each bar: its name, where it begins, how long it is, its colour."""
    first, last = breakdown.seconds[breakdown.baseline], breakdown.seconds[breakdown.candidate]
    yield breakdown.baseline, 0.0, first, look.colour(breakdown.baseline)
    reached = first.value
    for part in breakdown.parts:
        if part.seconds:
            colour = colours.ALARM if part.name == "unexplained" else colours.NEUTRAL
            yield f"+ {part.name}", reached, part.seconds, colour
            reached += part.seconds.value
    yield breakdown.candidate, 0.0, last, look.colour(breakdown.candidate)
