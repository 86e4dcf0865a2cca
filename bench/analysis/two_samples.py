"""Compares one value in two sessions: the ratio of two independent samples with its interval and verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bench.analysis.comparison import Verdict, judge
from bench.analysis.number_format import percent
from bench.analysis.stats import estimates, unpaired
from bench.analysis.stats.estimates import Estimate
from bench.counts import plural
from bench.model import Metric


@dataclass(frozen=True, kw_only=True)
class TwoSamples:
    """candidate / baseline, from one value per invocation of each session."""

    baseline: Estimate  # the median and its order-statistic interval
    candidate: Estimate
    ratio: Estimate | None = None  # Hodges-Lehmann, Mann-Whitney interval; n is the size of the smaller sample
    cross_check: Estimate | None = None  # geometric means, Welch's interval
    skewed: bool = False  # ratio and cross-check differ by more than half of the wider interval
    p: float | None = None
    p_adjusted: float | None = None
    smallest_effect: float | None = None  # detected by this many values in 4 of 5 sessions; 0.05 is 5 %
    needed: int | None = None  # values per session, to detect a difference as large as the margin
    verdict: Verdict | None = None
    why: str = ""


def two_samples(
    metric: Metric,
    baseline: Sequence[float],
    candidate: Sequence[float],
    *,
    margin: float,
    level: float = estimates.LEVEL,
) -> TwoSamples:
    """Compare two samples, neither of which is empty."""
    sides = TwoSamples(
        baseline=estimates.median_with_interval(baseline), candidate=estimates.median_with_interval(candidate)
    )
    if min(*baseline, *candidate) <= 0:
        return replace(sides, why="a value that is not above zero has no ratio")
    one, other = ([math.log(value) for value in values] for values in (baseline, candidate))
    shift, cross_check = unpaired.hodges_lehmann(one, other, level), unpaired.welch(one, other, level)
    deviation = unpaired.pooled_deviation(one, other)
    smallest = None if deviation is None else unpaired.smallest_effect(deviation, len(one), len(other))
    needed = None
    if deviation is not None:
        needed = max(unpaired.needed(deviation, margin), estimates.FEWEST_FOR_VERDICT)
    ratio = estimates.exponential(shift)
    verdict, why = judge(ratio, metric, margin=margin)
    if verdict is None:
        sizes = f"{len(one)} and {plural(len(other), 'invocation')}"
        why = f"{sizes}, and a verdict needs {estimates.FEWEST_FOR_VERDICT} of each session"
    if verdict == "undecided" and smallest is not None and needed is not None:
        why = (
            f"so many invocations would have found a difference of {percent(smallest)} in 4 of 5 cases; "
            f"for one of {percent(margin)} it takes {needed:,} of each session"
        )
    return replace(
        sides,
        ratio=ratio,
        cross_check=estimates.exponential(cross_check),
        skewed=estimates.disagree(shift, cross_check),
        p=unpaired.mann_whitney_p(one, other),
        smallest_effect=smallest,
        needed=needed,
        verdict=verdict,
        why=why,
    )
