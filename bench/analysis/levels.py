"""Where the variance is, and how often to repeat what: Kalibera and Jones, "Rigorous benchmarking in reasonable time".

Level 1 is the sample, level 2 the invocation. Their level 3, a new cluster, is no level of its own here: every block has a
fresh cluster and one invocation of each cell in it, so that what clusters differ in is part of what invocations differ in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from bench.analysis.stats import estimates
from bench.analysis.table import Selection, Table
from bench.model import Interval, Metric, Run, Session, Spec

MOST_SAMPLES = 100  # an invocation: where invocations add no variance that shows, there is no best number


@dataclass(frozen=True, kw_only=True)
class Levels:
    """Variances by level, the innermost first, in the square of the values' unit."""

    repetitions: tuple[int, ...]  # r_i
    of_means: tuple[float, ...]  # S_i^2: of the means at level i about the mean above, which holds the levels below too
    added: tuple[float, ...]  # T_i^2: what level i adds by itself; below 0 where none shows


def levels(values: Sequence[object]) -> Levels:
    """The variances in nested `values`: the outermost sequence is the highest level, and all of a level are equally long.

    T_i^2 = S_i^2 - S_{i-1}^2 / r_{i-1}, as the authors' erratum has it. Raises ValueError below 2 repeats at any level.
    """
    import numpy as np

    means = np.asarray(values, dtype=float)
    repetitions = means.shape[::-1]
    if min(repetitions) < 2:
        raise ValueError(f"{repetitions} repeats, and a variance needs 2 at every level")
    of_means: list[float] = []
    for _ in repetitions:
        of_means.append(float(np.mean(np.var(means, axis=-1, ddof=1))))
        means = means.mean(axis=-1)
    below = (0.0, *(s / r for s, r in zip(of_means, repetitions, strict=True)))
    return Levels(
        repetitions=repetitions,
        of_means=tuple(of_means),
        added=tuple(s - b for s, b in zip(of_means, below, strict=False)),
    )


def half_width(found: Levels, level: float = estimates.LEVEL) -> float:
    """Half of Student's interval of the mean of all: it rests on the means of the highest level alone."""
    n = found.repetitions[-1]
    return estimates.student_quantile(n - 1, level) * math.sqrt(found.of_means[-1] / n)


def best_repetitions(found: Levels, costs: Sequence[float]) -> tuple[float, ...]:
    """How often to repeat each level but the highest, not rounded: sqrt(c_{i+1}/c_i x T_i^2/T_{i+1}^2).

    `costs`: of one more repeat at each level, the innermost first, in any one unit. Infinite where the level above
    adds nothing that shows: then more of this one does as well as more of the next, and costs less.
    """
    return tuple(
        math.inf if above <= 0 else math.sqrt(costs[i + 1] / costs[i] * max(here, 0.0) / above)
        for i, (here, above) in enumerate(zip(found.added, found.added[1:], strict=False))
    )


@dataclass(frozen=True, kw_only=True)
class Allocation:
    """Of the headline's log-ratio: where its variance is, what a repeat costs, and how many samples are best.

    Its level 1 is a sample on each topology, its level 2 a pair of invocations. A variance of 0.0001 is a SD of 1 %.
    """

    pairs: int
    samples: int  # in each invocation, that count
    of_samples: float  # variance of the log-ratio of two samples inside a pair
    of_pairs: float  # variance that pairs add; 0 where none shows
    half_width: float  # of the interval of the mean log-ratio: 0.03 is 3 % either way
    sample_seconds: float  # of a turn on both topologies: all arms have their go in it
    pair_seconds: float | None  # of two invocations, but for turns that count; None: the record does not say
    best_samples: int | None  # in each invocation; None: without costs there is none

    @property
    def share_of_pairs(self) -> float:
        """How much of the variance of an invocation's log-ratio more samples could not take away: 0 to 1."""
        total = self.of_pairs + self.of_samples / self.samples
        return self.of_pairs / total if total > 0 else 0.0

    def deviation(self, samples: int) -> float:
        """SD of a pair's log-ratio, were there so many samples in each invocation."""
        return math.sqrt(self.of_pairs + self.of_samples / samples)

    def seconds(self, pairs: int, samples: int) -> float | None:
        """How long so many pairs of so many samples take."""
        return None if self.pair_seconds is None else pairs * (self.pair_seconds + samples * self.sample_seconds)


def allocation(
    one: Selection, other: Selection, metric: Metric, arm: str, outside_seconds: float | None
) -> Allocation | None:
    """What the pairs of `one` and `other` say; None below 2 pairs of 2 samples. `outside_seconds`: see there."""
    there, here = (
        dict(zip(side.blocks, zip(_times(side), side.series(metric, arm), strict=True), strict=True))
        for side in (one, other)
    )
    both = [(there[block], here[block]) for block in there if block in here]
    found_in = [((a, b), logs) for (a, at_a), (b, at_b) in both if (logs := _log_ratios(at_a, at_b))]
    ratios = [each for _, each in found_in]
    samples = min((len(each) for each in ratios), default=0)
    if len(ratios) < 2 or samples < 2:
        return None
    found = levels([each[:samples] for each in ratios])
    turn = median(math.fsum(time.turn for time in pair) for pair, _ in found_in)
    before = median(math.fsum(time.before for time in pair) for pair, _ in found_in)
    whole = None if outside_seconds is None else before + 2 * outside_seconds
    best = None if whole is None or turn <= 0 else best_repetitions(found, (turn, whole))[0]
    return Allocation(
        pairs=len(ratios),
        samples=samples,
        of_samples=found.added[0],
        of_pairs=max(found.added[1], 0.0),
        half_width=half_width(found),
        sample_seconds=turn,
        pair_seconds=whole,
        best_samples=None if best is None else math.ceil(min(max(best, 1), MOST_SAMPLES)),
    )


def _log_ratios(one: Sequence[float], other: Sequence[float]) -> list[float]:
    """Of the n-th sample there and here; they are independent, so which stands beside which does not matter."""
    return [math.log(b / a) for a, b in zip(one, other, strict=False) if a > 0 and b > 0]


@dataclass(frozen=True)
class _Times:
    before: float  # from the first interval to the first turn that counts: idle, start-up, warm-ups
    turn: float  # of one turn that counts, with what lies between it and the next


def _times(those: Selection) -> list[_Times]:
    """Of each run."""
    table = those.table
    nothing = Interval(0.0, 0.0)
    found = [(table.covered.get(run.spec.id, nothing), table.counted.get(run.spec.id, nothing)) for run in those.runs]
    return [
        _Times(before=counted.begin - covered.begin, turn=counted.seconds / max(table.counted_turns[at], 1))
        for at, (covered, counted) in zip(those.at, found, strict=True)
    ]


def outside_seconds(session: Session, table: Table) -> float | None:
    """What an invocation costs beside what it times: jobs and its share of clusters that start and end, in seconds.

    The gaps between runs that follow each other, by the monotonic clock that all processes of one machine share. Gaps
    with a new cluster in them and those without are told apart; of each the median, so that a session that slept for a
    night does not count. None where drivers ran on several machines, or nothing follows anything.
    """
    clocks = {run.spec.id: _clock(run) for run in table.runs}
    gaps: dict[bool, list[float]] = {}
    for one, other in zip(session.specs, session.specs[1:], strict=False):
        before, after = table.covered.get(one.id), table.covered.get(other.id)
        if before and after and clocks[one.id] == clocks[other.id] is not None and after.begin > before.end:
            gaps.setdefault(_cluster(one) != _cluster(other), []).append(after.begin - before.end)
    several = math.fsum(len(each) * median(each) for each in gaps.values())
    return several / sum(map(len, gaps.values())) if gaps else None


def _clock(run: Run) -> str | None:
    """Whose monotonic clock the driver read: that of the head's machine, since it started."""
    return run.facts.nodes[0].boot_id if run.facts and run.facts.nodes else None


def _cluster(spec: Spec) -> tuple[int, str]:
    return spec.block, spec.topology.name
