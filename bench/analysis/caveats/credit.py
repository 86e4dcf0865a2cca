"""Whether the headline and what the nodes were credited with are the same work: counted by the driver, and by who did it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import groupby

from bench.analysis.caveats.evidence import Caveat, Evidence, about
from bench.analysis.numbers import percent, plural
from bench.model import WORK_TOLERANCE, Metric, Run


def credit_differs(evidence: Evidence) -> Iterator[Caveat]:
    """A rate times its seconds that is not the work done on the nodes in that time: one of the two counts is wrong."""
    for cell in evidence.cells:
        headline = cell.headline.metric if cell.headline else None
        if headline is None or headline.kind != "rate" or not headline.unit.endswith("/s"):
            continue
        empty = {arm.name for arm in evidence.session.arms.get(cell.experiment, ()) if arm.role == "calls"}
        found = [
            each for run in evidence.usable_of(cell) for each in shares(run, headline) if each[0] not in empty
        ]  # calls without the work are credited with none
        for arm, those in groupby(sorted(found), key=lambda each: each[0]):
            every = [share for _, share in those]
            apart = [share for share in every if abs(share - 1) > WORK_TOLERANCE]
            if apart:
                text = (
                    f"{arm}: in {plural(len(apart), 'sample')} of {len(every)} the nodes were credited with other work than"
                    f" {headline.name} times its seconds, by up to {percent(max(abs(share - 1) for share in apart))}:"
                    " a count is wrong, and so is what is said for a unit of work."
                )
                yield Caveat(severity="weakens", about=about(cell), text=text)


def shares(run: Run, headline: Metric) -> Iterator[tuple[str, float]]:
    """By arm, of each of its timed intervals that counts: the work credited to all nodes by what the headline says was done.

    A node that was lost, or that joined, has no word on what it did: nothing is said of that interval.
    """
    if run.spec.faults:
        return
    credited: dict[tuple[str, float, float], list[float]] = {}
    for row in run.usage:
        if row.work is not None and not row.warmup and not row.point:
            credited.setdefault((row.arm, row.interval.begin, row.interval.end), []).append(row.work)
    for (name, arm, node, point), samples in run.values.items():
        if name == headline.name and node is None and not point:
            for sample in samples:
                begin, end = sample.interval.begin, sample.interval.end
                by_node = credited.get((arm, begin, end), ())
                done = (sample.value or 0.0) * (end - begin)
                if len(by_node) == run.spec.topology.nodes and done > 0:
                    yield arm, math.fsum(by_node) / done
