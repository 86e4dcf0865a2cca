"""Timelines that no probe has read, for runs that were never run: seeded, so that each is always the same."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from bench.model import Interval, NodeUsage, Run
from bench.timeline import QUANTITIES, Timeline


def with_timelines(run: Run, *, readings: int = 400) -> Run:
    """A run of as many nodes as it has, busy in its turns and idle between them, with a pause of ten readings."""
    span = run.covered
    assert span
    names = list(dict.fromkeys(row.node for row in run.usage))
    return replace(run, timelines=tuple(a_timeline(run, name, span, readings) for name in names))


def a_timeline(run: Run, node: str, span: Interval, readings: int) -> Timeline:
    """The timeline of one node, from five seconds before the first interval to one after the last."""
    draw = random.Random(f"{run.spec.id}/{node}")
    begin, seconds = span.begin - 5.0, (span.seconds + 6.0) / readings
    busy = busy_intervals(run.usage)
    made = Timeline(node=node)
    for number in range(readings):
        end = begin + (number + 1) * seconds
        if readings // 2 <= number < readings // 2 + 10:
            continue
        load = draw.uniform(0.8, 1.0) if any(a <= end <= b for a, b in busy) else draw.uniform(0.0, 0.1)
        amounts = (
            load * run.spec.topology.cpus_per_node,
            2**28 + load * 2**27,
            1e6 * load,
            4e5 * load,
            0.0,
            5e4 * load,
        )
        made.add(end, seconds, dict(zip(QUANTITIES, amounts, strict=True)))
    return made.whole()


def busy_intervals(usage: Sequence[NodeUsage]) -> list[tuple[float, float]]:
    """When turns went."""
    return [(row.interval.begin, row.interval.end) for row in usage if row.turn > 0]
