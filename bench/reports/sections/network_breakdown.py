"""The network breakdown in a report: from one topology's seconds to the other's, part by part."""

from __future__ import annotations

from collections.abc import Iterator

from bench.analysis.breakdown.network import NetworkBreakdown
from bench.analysis.numbers import Scale, percent, plural, scale_for, with_interval
from bench.model import Metric
from bench.reports.sections import grid
from bench.reports.sections.grid import Cell, Table


def title(breakdown: NetworkBreakdown) -> str:
    """What the table is, and how near to each other the nodes are."""
    where = {True: "all nodes on one machine", False: "nodes on several machines", None: "hosts unknown"}
    return (
        f"Network breakdown: what {breakdown.candidate} takes longer, means of {plural(len(breakdown.blocks), 'block')}"
        f" ({breakdown.link or 'link unknown'}, {where[breakdown.same_host]})"
    )


def table(breakdown: NetworkBreakdown) -> Table:
    """The one topology, the parts of the gap, the other topology; the parts add up to the gap."""
    scale = scale_of(breakdown)
    base = breakdown.seconds[breakdown.baseline].value
    lines = [grid.row([breakdown.baseline, with_interval(breakdown.seconds[breakdown.baseline], scale)])]
    lines += [
        grid.row(
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
    lines.append(grid.row([Cell(breakdown.candidate, "strong"), candidate]))
    if breakdown.gap:
        gap = with_interval(breakdown.gap, scale)
        lines.append(grid.row(["the gap", gap, percent(breakdown.gap.value / base), "the sum of the parts"]))
    heads = [("seconds", False), (scale.unit, True), (f"of {breakdown.baseline}", True), ("rests on", False)]
    return grid.table(heads, lines)


def notes(breakdown: NetworkBreakdown) -> Iterator[str]:
    """What was not measured, and why; blocks that are not in it."""
    reasons: dict[str, list[str]] = {}
    for part in breakdown.parts:
        if part.seconds is None:
            reasons.setdefault(part.rests_on, []).append(part.name)
    if reasons:
        parts = "; ".join(f"{', '.join(names)} ({why})" for why, names in reasons.items())
        yield f"not measured, so that what is unexplained has it: {parts}"
    by_reason: dict[str, list[str]] = {}
    for block, why in breakdown.missing.items():
        by_reason.setdefault(why, []).append(str(block))
    for why, blocks in by_reason.items():
        yield f"not in the network breakdown: block {', '.join(blocks)} ({why})"


def scale_of(breakdown: NetworkBreakdown) -> Scale:
    """The prefix that fits the seconds of both topologies."""
    metric = Metric(name="seconds", unit=f"s/{breakdown.unit}", better="lower", kind="time")
    return scale_for(metric, [estimate.value for estimate in breakdown.seconds.values()])
