"""Whether the headline and what the nodes were credited with are the same work: counted by the driver, and by who did it."""

from __future__ import annotations

from collections.abc import Iterator

from bench.analysis.caveats.evidence import Caveat, Evidence, about
from bench.analysis.number_format import percent, plural
from bench.analysis.table import Groups, Selection, numbered
from bench.model import WORK_TOLERANCE


def credit_differs(evidence: Evidence) -> Iterator[Caveat]:
    """A rate times its seconds that is not the work done on the nodes in that time: one of the two counts is wrong."""
    for cell in evidence.cells:
        headline = cell.headline.metric if cell.headline else None
        if headline is None or headline.kind != "rate" or not headline.unit.endswith("/s"):
            continue
        for arm in sorted(evidence.session.arms.get(cell.experiment, ()), key=lambda arm: arm.name):
            if arm.role == "calls":
                continue  # calls without the work are credited with none
            every = shares(evidence.usable_of(cell), headline.name, arm.name)
            apart = [share for share in every if abs(share - 1) > WORK_TOLERANCE]
            if apart:
                text = (
                    f"{arm.name}: in {plural(len(apart), 'sample')} of {len(every)} the nodes were credited with other work"
                    f" than {headline.name} times its seconds, by up to {percent(max(abs(share - 1) for share in apart))}:"
                    " a count is wrong, and so is what is said for a unit of work."
                )
                yield Caveat(severity="weakens", about=about(cell), text=text)


def shares(those: Selection, headline: str, arm: str) -> list[float]:
    """Of each timed interval of an arm: the work credited to all nodes by what the headline says was done.

    A node that was lost, or that joined, has no word on what it did: nothing is said of that interval.
    """
    import numpy as np

    table, usage, samples = those.table, those.table.usage, those.table.samples
    nodes = np.zeros(len(table.runs))
    nodes[list(those.at)] = [0 if run.spec.faults else run.spec.topology.nodes for run in those.runs]
    rows = those.usage[usage.named(those.usage, arm=arm, point="")]
    rows = rows[~(np.isnan(usage.read("work")[rows]) | table.warm_usage[rows])]
    timed = those.samples[table.timed(headline, arm, those.samples) & samples.named(those.samples, point="")]
    done = samples.read("value")[timed] * samples.seconds[timed]
    timed, done = timed[done > 0], done[done > 0]
    run, begin, end = (
        np.concatenate([one[rows], other[timed]])
        for one, other in ((usage.run, samples.run), (usage.begin, samples.begin), (usage.end, samples.end))
    )
    interval = numbered(end, begin, run)
    credited = Groups(interval[: len(rows)], len(interval))
    of_timed = interval[len(rows) :]
    is_whole = (credited.sizes[of_timed] == nodes[samples.run[timed]]) & (credited.sizes[of_timed] > 0)
    found = credited.sums(usage.read("work")[rows])[of_timed].astype(float)[is_whole] / done[is_whole]
    return [float(share) for share in found]
