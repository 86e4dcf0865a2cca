"""Shows the network breakdown: from one topology's seconds to the other's, part by part."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from bench.analysis.breakdown.network import MEASURED, NetworkBreakdown
from bench.analysis.number_format import Scale, percent, plain, scale_for, with_interval
from bench.analysis.stats.estimates import Estimate
from bench.counts import plural
from bench.model import Metric
from bench.reports import tables
from bench.reports.document import CellView, Section, Short
from bench.reports.drawing import colours
from bench.reports.drawing.axes import Axis, ticks
from bench.reports.drawing.picture import Look, Picture
from bench.reports.drawing.svg import LEFT, RIGHT, Canvas
from bench.reports.tables import Cell, Column, Table

_ROW = 34
_BEGIN = 2 * LEFT + 24  # names of parts are longer than numbers


def sections(view: CellView) -> Iterator[Section]:
    """Where both topologies were measured."""
    cell, found = view.cell, view.cell.network_breakdown
    if found is None:
        return
    has_pairs = bool(cell.headline and cell.headline.comparison and cell.headline.comparison.pairs)
    remarks = tuple(notes(found)) if has_pairs else ()
    if found.gap:
        yield Section(
            title=title(found),
            table=table(found),
            notes=remarks,
            source="the blocks that have both topologies; what each part rests on is in its row",
            draw=partial(pictures, found, view),
            short=short(view, found) if view.is_shown_first else None,
        )
    elif remarks:
        yield Section(notes=remarks)


def short(view: CellView, breakdown: NetworkBreakdown) -> Short:
    """The same table without what its rows rest on."""
    full = table(breakdown)
    unmeasured = [part.name for part in breakdown.parts if part.seconds is None]
    rows = [tables.row(row.cells[:-1]) for row in full.rows[:-1]]
    if unmeasured:
        names = ", ".join(unmeasured) if len(unmeasured) < 3 else f"{len(unmeasured)} of {len(MEASURED)} parts"
        words = f"+ unexplained ({names} not measured)"
        rows[-2] = tables.row([words, *rows[-2].cells[1:]])
    heads = [Column(""), *full.columns[1:-1]]
    return Short(title=f"Where the time goes{view.short_name}", table=tables.table(heads, rows))


def title(breakdown: NetworkBreakdown) -> str:
    """What the table is, and how near to each other the nodes are."""
    where = {True: "all nodes on one machine", False: "nodes on several machines", None: "hosts unknown"}
    return (
        f"Network breakdown: what {breakdown.candidate} takes longer, means of {plural(len(breakdown.blocks), 'block')}"
        f" ({breakdown.link or 'link unknown'}, {where[breakdown.same_host]})"
    )


def table(breakdown: NetworkBreakdown) -> Table:
    """The one topology, the parts of the gap, the other topology; the parts add up to the gap."""
    scale = _scale(breakdown)
    base = breakdown.seconds[breakdown.baseline].value
    lines = [tables.row([breakdown.baseline, with_interval(breakdown.seconds[breakdown.baseline], scale)])]
    lines += [
        tables.row(
            [
                f"+ {part.title}",
                with_interval(part.seconds, scale),
                percent(part.seconds.value / base),
                part.rests_on,
            ]
        )
        for part in breakdown.parts
        if part.seconds
    ]
    candidate = with_interval(breakdown.seconds[breakdown.candidate], scale)
    lines.append(tables.row([Cell(breakdown.candidate, "strong"), candidate]))
    if breakdown.gap:
        gap = with_interval(breakdown.gap, scale)
        lines.append(tables.row(["the gap", gap, percent(breakdown.gap.value / base), "the sum of the parts"]))
    heads = [("seconds", False), (scale.unit, True), (f"of {breakdown.baseline}", True), ("rests on", False)]
    return tables.table(heads, lines)


def notes(breakdown: NetworkBreakdown) -> Iterator[str]:
    """What was not measured, and why; blocks that are not in it."""
    reasons: dict[str, list[str]] = {}
    for part in breakdown.parts:
        if part.seconds is None:
            reasons.setdefault(part.rests_on, []).append(part.name)
    if reasons:
        parts = "; ".join(f"{', '.join(names)} ({why})" for why, names in reasons.items())
        yield f"not measured, so that what is unexplained has it: {parts}. docs/reports.md says what each part needs"
    by_reason: dict[str, list[str]] = {}
    for block, why in breakdown.missing.items():
        by_reason.setdefault(why, []).append(str(block))
    for why, blocks in by_reason.items():
        yield f"not in the network breakdown: block {', '.join(blocks)} ({why})"


def _scale(breakdown: NetworkBreakdown) -> Scale:
    """The prefix that fits the seconds of both topologies."""
    metric = Metric(name="seconds", unit=f"s/{breakdown.unit}", better="lower", kind="time")
    return scale_for(metric, [estimate.value for estimate in breakdown.seconds.values()])


def pictures(breakdown: NetworkBreakdown, view: CellView) -> Iterator[Picture]:
    """Each part where the one before it ended."""
    scale = _scale(breakdown)
    steps = list(_steps(breakdown, view.look))
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
    parts = ", ".join(
        f"{part.name} {with_interval(part.seconds, scale)} ({percent(part.seconds.value / base)})"
        for part in breakdown.parts
        if part.seconds
    )
    gap = with_interval(breakdown.gap, scale) if breakdown.gap else ""
    words = f"{breakdown.candidate} takes {gap} {scale.unit} longer than {breakdown.baseline}: {parts}"
    yield Picture(
        title=title(breakdown),
        canvas=canvas,
        name=view.name("breakdown"),
        says=f"{words}.",
        reads=(
            "Each bar begins where the one above it ended, so that together they lead from the one topology to the other;"
            " a bar to the left takes time off. Thin lines are 95 % intervals. Unexplained is what the parts leave; parts"
            " that went on at the same time are counted twice, and make it less, or less than 0."
        ),
        source=f"the arms of {view.cell.experiment}, block by block, in {view.runs_of()}; means",
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
