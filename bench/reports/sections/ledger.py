"""The network ledger in a report: from one topology's seconds to the other's, part by part."""

from __future__ import annotations

from collections.abc import Iterator

from bench.analysis.breakdown.network import Ledger
from bench.analysis.numbers import Scale, percent, plural, scale_for, with_interval
from bench.model import Metric
from bench.reports.sections import grid
from bench.reports.sections.grid import Cell, Table


def title(ledger: Ledger) -> str:
    """What the table is, and how near to each other the nodes are."""
    where = {True: "all nodes on one machine", False: "nodes on several machines", None: "hosts unknown"}
    return (
        f"Network ledger: what {ledger.candidate} takes longer, means of {plural(len(ledger.blocks), 'block')}"
        f" ({ledger.link or 'link unknown'}, {where[ledger.same_host]})"
    )


def table(ledger: Ledger) -> Table:
    """The one topology, the parts of the gap, the other topology; the parts add up to the gap."""
    scale = scale_of(ledger)
    base = ledger.seconds[ledger.baseline].value
    lines = [grid.row([ledger.baseline, with_interval(ledger.seconds[ledger.baseline], scale)])]
    lines += [
        grid.row(
            [
                f"+ {part.title}",
                with_interval(part.seconds, scale),
                percent(part.seconds.value / base),
                part.rests_on,
            ]
        )
        for part in ledger.parts
        if part.seconds
    ]
    candidate = with_interval(ledger.seconds[ledger.candidate], scale)
    lines.append(grid.row([Cell(ledger.candidate, "strong"), candidate]))
    if ledger.gap:
        gap = with_interval(ledger.gap, scale)
        lines.append(grid.row(["the gap", gap, percent(ledger.gap.value / base), "the sum of the parts"]))
    heads = [("seconds", False), (scale.unit, True), (f"of {ledger.baseline}", True), ("rests on", False)]
    return grid.table(heads, lines)


def notes(ledger: Ledger) -> Iterator[str]:
    """What was not measured, and why; blocks that are not in it."""
    reasons: dict[str, list[str]] = {}
    for part in ledger.parts:
        if part.seconds is None:
            reasons.setdefault(part.rests_on, []).append(part.name)
    if reasons:
        parts = "; ".join(f"{', '.join(names)} ({why})" for why, names in reasons.items())
        yield f"not measured, so that what is unexplained has it: {parts}"
    by_reason: dict[str, list[str]] = {}
    for block, why in ledger.missing.items():
        by_reason.setdefault(why, []).append(str(block))
    for why, blocks in by_reason.items():
        yield f"not in the network ledger: block {', '.join(blocks)} ({why})"


def scale_of(ledger: Ledger) -> Scale:
    """The prefix that fits the seconds of both topologies."""
    metric = Metric(name="seconds", unit=f"s/{ledger.unit}", better="lower", kind="time")
    return scale_for(metric, [estimate.value for estimate in ledger.seconds.values()])
