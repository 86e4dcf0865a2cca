"""Splits the variance into levels, and recommends repetitions: Kalibera and Jones, "Rigorous benchmarking in reasonable time".

Level 1 is the sample, level 2 the invocation. The authors' level 3, a new cluster, is no separate level here: every block has a fresh
cluster and one invocation of each cell, so that differences between clusters are part of those between invocations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from bench.analysis.stats import estimates
from bench.analysis.table import Selection, Table
from bench.model import Interval, Metric, Run, Session, Spec

MOST_SAMPLES = 100  # per invocation: if invocations add no visible variance, there is no optimum


@dataclass(frozen=True, kw_only=True)
class Levels:
    """Variances by level, the innermost first, in the square of the values' unit."""

    repetitions: tuple[int, ...]  # r_i
    of_means: tuple[float, ...]  # S_i^2: of the means at level i about the mean above, which includes the levels below
    added: tuple[float, ...]  # T_i^2: added by level i itself; may be below 0


def levels(values: Sequence[object]) -> Levels:
    """Return the variances in nested `values`: the outermost sequence is the highest level; all of one level are equally long.

    T_i^2 = S_i^2 - S_{i-1}^2 / r_{i-1}, as in the authors' erratum. Raises ValueError for fewer than 2 repetitions at any level.
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


def half_width(variances: Levels, level: float = estimates.LEVEL) -> float:
    """Return half of Student's interval of the overall mean, which depends on the means of the highest level only."""
    n = variances.repetitions[-1]
    return estimates.student_quantile(n - 1, level) * math.sqrt(variances.of_means[-1] / n)


def best_repetitions(variances: Levels, costs: Sequence[float]) -> tuple[float, ...]:
    """Return the best repetitions of each level but the highest, not rounded: sqrt(c_{i+1}/c_i x T_i^2/T_{i+1}^2).

    `costs`: of one more repetition at each level, the innermost first, in any unit. Infinite if the level above adds no variance: then
    repetitions of this level are as good as those of the next, and cheaper.
    """
    return tuple(
        math.inf if above <= 0 else math.sqrt(costs[i + 1] / costs[i] * max(here, 0.0) / above)
        for i, (here, above) in enumerate(zip(variances.added, variances.added[1:], strict=False))
    )


@dataclass(frozen=True, kw_only=True)
class Allocation:
    """The variance of the headline's log-ratio, the costs of repetitions, and the best number of samples.

    Level 1 is a sample on each topology, level 2 a pair of invocations. A variance of 0.0001 is a standard deviation of 1 %.
    """

    pairs: int
    samples: int  # that count, in each invocation
    of_samples: float  # variance of the log-ratio of two samples within a pair
    of_pairs: float  # variance that pairs add; 0 if none is visible
    half_width: float  # of the interval of the mean log-ratio; 0.03 is 3 % in each direction
    sample_seconds: float  # of a turn on both topologies, with all arms
    pair_seconds: float | None  # of two invocations without the turns that count; None if unknown
    best_samples: int | None  # in each invocation; None if the costs are unknown

    @property
    def share_of_pairs(self) -> float:
        """The share of the variance of an invocation's log-ratio that more samples could not reduce, from 0 to 1."""
        total = self.of_pairs + self.of_samples / self.samples
        return self.of_pairs / total if total > 0 else 0.0

    def deviation(self, samples: int) -> float:
        """Return the standard deviation of a pair's log-ratio for a number of samples in each invocation."""
        return math.sqrt(self.of_pairs + self.of_samples / samples)

    def seconds(self, pairs: int, samples: int) -> float | None:
        """Return the duration of a number of pairs with a number of samples each; None if unknown."""
        return None if self.pair_seconds is None else pairs * (self.pair_seconds + samples * self.sample_seconds)


def allocation(
    one: Selection, other: Selection, metric: Metric, arm: str, outside_seconds: float | None
) -> Allocation | None:
    """Return the allocation for the pairs of `one` and `other`; None for fewer than 2 pairs of 2 samples."""
    there, here = (
        dict(zip(side.blocks, zip(_times(side), side.series(metric, arm), strict=True), strict=True))
        for side in (one, other)
    )
    both = [(there[block], here[block]) for block in there if block in here]
    times_and_logs = [((a, b), logs) for (a, at_a), (b, at_b) in both if (logs := _log_ratios(at_a, at_b))]
    ratios = [logs for _, logs in times_and_logs]
    samples = min(map(len, ratios), default=0)
    if len(ratios) < 2 or samples < 2:
        return None
    variances = levels([logs[:samples] for logs in ratios])
    turn = median(math.fsum(time.turn for time in pair) for pair, _ in times_and_logs)
    before = median(math.fsum(time.before for time in pair) for pair, _ in times_and_logs)
    whole = None if outside_seconds is None else before + 2 * outside_seconds
    best = None if whole is None or turn <= 0 else best_repetitions(variances, (turn, whole))[0]
    return Allocation(
        pairs=len(ratios),
        samples=samples,
        of_samples=variances.added[0],
        of_pairs=max(variances.added[1], 0.0),
        half_width=half_width(variances),
        sample_seconds=turn,
        pair_seconds=whole,
        best_samples=None if best is None else math.ceil(min(max(best, 1), MOST_SAMPLES)),
    )


def _log_ratios(one: Sequence[float], other: Sequence[float]) -> list[float]:
    """Return the log-ratios of the n-th samples of both; samples are independent, so their order does not matter."""
    return [math.log(b / a) for a, b in zip(one, other, strict=False) if a > 0 and b > 0]


@dataclass(frozen=True)
class _Times:
    before: float  # from the first interval to the first turn that counts: idle, start, warm-ups
    turn: float  # of one turn that counts, including the time until the next


def _times(selection: Selection) -> list[_Times]:
    """Return the times of each run."""
    table = selection.table
    nothing = Interval(0.0, 0.0)
    intervals = [
        (table.covered.get(run.spec.id, nothing), table.counted.get(run.spec.id, nothing)) for run in selection.runs
    ]
    return [
        _Times(before=counted.begin - covered.begin, turn=counted.seconds / max(table.counted_turns[at], 1))
        for at, (covered, counted) in zip(selection.at, intervals, strict=True)
    ]


def outside_seconds(session: Session, table: Table) -> float | None:
    """Return the seconds that an invocation needs beside what it times: its job, and its share of starting clusters.

    These are the gaps between consecutive runs, on the monotonic clock that all processes of a machine share. The median is taken
    separately of gaps with a new cluster and without, so that a session that was interrupted for a night has no effect. None if the
    drivers ran on several machines, or no runs are consecutive.
    """
    clocks = {run.spec.id: _clock(run) for run in table.runs}
    gaps: dict[bool, list[float]] = {}
    for one, other in zip(session.specs, session.specs[1:], strict=False):
        before, after = table.covered.get(one.id), table.covered.get(other.id)
        if before and after and clocks[one.id] == clocks[other.id] is not None and after.begin > before.end:
            gaps.setdefault(_cluster(one) != _cluster(other), []).append(after.begin - before.end)
    total = math.fsum(len(of_kind) * median(of_kind) for of_kind in gaps.values())
    return total / sum(map(len, gaps.values())) if gaps else None


def _clock(run: Run) -> str | None:
    """Return the id of the monotonic clock that the driver used: the boot of the head's machine."""
    return run.facts.nodes[0].boot_id if run.facts and run.facts.nodes else None


def _cluster(spec: Spec) -> tuple[int, str]:
    return spec.block, spec.topology.name
