"""The network ledger in the report for a terminal: from one topology's seconds to the other's, part by part."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from bench.analysis.network_ledger import Ledger
from bench.analysis.numbers import Scale, percent, plural, scale_for, with_interval
from bench.model import Metric
from bench.reports import tables

if TYPE_CHECKING:
    from rich.console import RenderableType


def title(ledger: Ledger) -> str:
    """What the table is, and how near to each other the nodes are."""
    where = {True: "all nodes on one machine", False: "nodes on several machines", None: "hosts unknown"}
    return (
        f"Network ledger: what {ledger.candidate} takes longer, means of {plural(len(ledger.blocks), 'block')}"
        f" ({ledger.link or 'link unknown'}, {where[ledger.same_host]})"
    )


def table(ledger: Ledger) -> RenderableType:
    """The one topology, the parts of the gap, the other topology; the parts add up to the gap."""
    from rich.text import Text

    scale = _scale(ledger)
    found = tables.blank(("seconds", False), (scale.unit, True), (f"of {ledger.baseline}", True), ("rests on", False))
    base = ledger.seconds[ledger.baseline].value
    found.add_row(Text(f"  {ledger.baseline}"), Text(with_interval(ledger.seconds[ledger.baseline], scale)))
    for part in ledger.parts:
        if part.seconds:
            found.add_row(
                Text(f"  + {part.title}"),
                Text(with_interval(part.seconds, scale)),
                Text(percent(part.seconds.value / base)),
                Text(part.rests_on),
            )
    found.add_row(
        Text(f"  {ledger.candidate}", style="bold"), Text(with_interval(ledger.seconds[ledger.candidate], scale))
    )
    if ledger.gap:
        gap = Text(with_interval(ledger.gap, scale))
        found.add_row(Text("  the gap"), gap, Text(percent(ledger.gap.value / base)), Text("the sum of the parts"))
    return found


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


def _scale(ledger: Ledger) -> Scale:
    metric = Metric(name="seconds", unit=f"s/{ledger.unit}", better="lower", kind="time")
    return scale_for(metric, [estimate.value for estimate in ledger.seconds.values()])
