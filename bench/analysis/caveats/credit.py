"""Compares the headline, which the driver counts, with the work that the nodes were credited with."""

from __future__ import annotations

from collections.abc import Iterator

from bench.analysis.caveats.evidence import Caveat, Evidence, about
from bench.analysis.number_format import percent
from bench.analysis.table import Groups, Selection, numbered
from bench.counts import plural
from bench.model import WORK_TOLERANCE


def credit_differs(evidence: Evidence) -> Iterator[Caveat]:
    """A rate times its seconds that differs from the work done on the nodes in that time: one of the two counts is wrong."""
    for cell in evidence.cells:
        headline = cell.headline.metric if cell.headline else None
        if headline is None or headline.kind != "rate" or not headline.unit.endswith("/s"):
            continue
        for arm in sorted(evidence.session.arms.get(cell.experiment, ()), key=lambda arm: arm.name):
            if arm.role == "calls":
                continue  # empty calls are credited with no work
            all_shares = shares(evidence.usable_of(cell), headline.name, arm.name)
            deviating = [share for share in all_shares if abs(share - 1) > WORK_TOLERANCE]
            if deviating:
                text = (
                    f"{arm.name}: in {plural(len(deviating), 'sample')} of {len(all_shares)} the nodes were credited with other work"
                    f" than {headline.name} times its seconds, by up to {percent(max(abs(share - 1) for share in deviating))}:"
                    " one count is wrong, and with it every figure per unit of work."
                )
                yield Caveat(severity="weakens", about=about(cell), text=text)


def shares(usable: Selection, headline: str, arm: str) -> list[float]:
    """Return, for each timed interval of an arm, the work credited to all nodes divided by the headline's work.

    Intervals in which a node was lost or joined are left out, because its work is unknown.
    """
    import numpy as np

    table, usage, samples = usable.table, usable.table.usage, usable.table.samples
    nodes = np.zeros(len(table.runs))
    nodes[list(usable.at)] = [0 if run.spec.faults else run.spec.topology.nodes for run in usable.runs]
    rows = usable.usage[usage.named(usable.usage, arm=arm, point="")]
    rows = rows[~(np.isnan(usage.read("work")[rows]) | table.warm_usage[rows])]
    timed = usable.samples[table.timed(headline, arm, usable.samples) & samples.named(usable.samples, point="")]
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
    result = credited.sums(usage.read("work")[rows])[of_timed].astype(float)[is_whole] / done[is_whole]
    return [float(share) for share in result]
