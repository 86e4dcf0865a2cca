"""Compares two topologies, or two cells: one value per invocation, paired by block, a ratio with an interval, and a verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from bench.analysis.number_format import percent
from bench.analysis.stats import estimates, power
from bench.analysis.stats.estimates import Estimate, Spread
from bench.counts import plural
from bench.model import Metric, Run

MARGIN = 0.02
EXCLUDED = "excluded for interference"  # of a block; the report states the interference in one place
NOT_MEASURED = "not measured"
Verdict = Literal["faster", "slower", "differs", "equivalent", "below margin", "undecided"]
Outcome = float | str
"""A value, or the reason why there is none."""


@dataclass(frozen=True, kw_only=True)
class Side:
    """One metric of one arm in one cell on one topology: the median over invocations, and the values behind it."""

    estimate: Estimate | None  # the median and its order-statistic interval; None if there are no values
    spread: Spread | None
    values: Mapping[int, float]  # of the invocations, by block
    missing: Mapping[int, str]  # the reason for each block without a value
    outliers: tuple[int, ...] = ()  # blocks; marked, never dropped
    like_idle: bool = False  # an amount beyond the idle baseline that is not distinguishable from idle traffic


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """candidate / baseline over the blocks that have both, with the verdict."""

    baseline: str
    candidate: str
    pairs: int
    missing: Mapping[int, str]  # the reason for each block without a pair
    ratio: Estimate | None = None  # Hodges-Lehmann, signed-rank interval
    cross_check: Estimate | None = None  # geometric mean, Student's interval
    skewed: bool = False  # ratio and cross-check differ by more than half of the wider interval
    p: float | None = None
    p_adjusted: float | None = None
    adjustment: str | None = None
    smallest_effect: float | None = None  # detected by this many pairs in 4 of 5 sessions; 0.05 is 5 %
    pairs_needed: int | None = None  # to detect a difference as large as the margin
    outliers: tuple[int, ...] = ()
    verdict: Verdict | None = None
    refused: bool = False  # a caveat blocks the verdict
    why: str = ""  # the basis of the verdict, or the reason why there is none


def not_usable(run: Run) -> str:
    """Return in one line why a run's samples must not be used."""
    reasons = "; ".join(run.reasons)
    return reasons if reasons == EXCLUDED else f"{run.status}: {reasons}" if reasons else run.status


def attempts_that_count(runs: Sequence[Run]) -> dict[str, Run]:
    """Return for each Spec the last attempt that is ok, or else the last attempt."""
    chosen: dict[str, Run] = {}
    for run in sorted(runs, key=lambda run: (run.status == "ok", run.spec.attempt)):
        chosen[run.spec.id] = run
    return chosen


def side(outcomes: Mapping[int, Outcome]) -> Side:
    """Summarise outcomes by block: the median with its interval, the spread and the outliers."""
    values = {block: value for block, value in outcomes.items() if not isinstance(value, str)}
    missing = {block: reason for block, reason in outcomes.items() if isinstance(reason, str)}
    ordered = sorted(values.values())
    return Side(
        estimate=estimates.median_with_interval(ordered) if ordered else None,
        spread=estimates.spread(ordered) if ordered else None,
        values=values,
        missing=missing,
        outliers=estimates.outliers(values),
    )


def compare(
    metric: Metric, sides: Mapping[str, Side], *, baseline: str, candidate: str, margin: float = MARGIN
) -> Comparison:
    """Compare two sides of a metric, pair by pair."""
    pairing = _pair(sides[baseline], sides[candidate], baseline=baseline, candidate=candidate)
    logs = list(pairing.logs.values())
    comparison = Comparison(baseline=baseline, candidate=candidate, pairs=len(logs), missing=pairing.missing)
    if not logs:
        return replace(comparison, why="no block has a value of both")
    ratio = estimates.hodges_lehmann(logs)
    cross_check = estimates.mean_with_t_interval(logs)
    deviation = estimates.standard_deviation(logs)
    smallest = None if deviation is None else power.smallest_effect(deviation, len(logs))
    needed = None if deviation is None else power.pairs_needed(deviation, margin)
    verdict, why = judge(estimates.exponential(ratio), metric, margin=margin, smallest=smallest, needed=needed)
    return replace(
        comparison,
        ratio=estimates.exponential(ratio),
        cross_check=estimates.exponential(cross_check),
        skewed=estimates.disagree(ratio, cross_check),
        p=estimates.signed_rank_p(logs) if len(logs) > 1 else None,
        smallest_effect=smallest,
        pairs_needed=needed,
        outliers=estimates.outliers(pairing.logs),
        verdict=verdict,
        why=why,
    )


@dataclass(frozen=True)
class _Pairing:
    logs: dict[int, float] = field(default_factory=dict)
    missing: dict[int, str] = field(default_factory=dict)


def log_ratios(one: Mapping[int, float], other: Mapping[int, float]) -> dict[int, float]:
    """Return log(other / one) of each block with both values above zero, in the order of the blocks."""
    return {b: math.log(other[b] / one[b]) for b in sorted(one.keys() & other.keys()) if one[b] > 0 and other[b] > 0}


def _pair(one: Side, other: Side, *, baseline: str, candidate: str) -> _Pairing:
    """Return the log-ratios of the blocks that have both values, and the reasons for the others."""
    pairing = _Pairing(logs=log_ratios(one.values, other.values))
    for block in sorted({*one.values, *one.missing, *other.values, *other.missing}):
        gaps = [
            f"{name}: {side.missing.get(block, 'not planned')}"
            for name, side in ((baseline, one), (candidate, other))
            if block not in side.values
        ]
        if gaps:
            is_both = len(gaps) == 2 and one.missing.get(block) == other.missing.get(block)
            pairing.missing[block] = one.missing.get(block, gaps[0]) if is_both else ", ".join(gaps)
        elif block not in pairing.logs:
            pairing.missing[block] = "a value that is not above zero has no ratio"
    return pairing


def is_enough(estimate: Estimate | None) -> bool:
    """Whether `estimate` rests on as many pairs or invocations as a verdict needs."""
    return estimate is not None and estimate.n >= estimates.FEWEST_FOR_VERDICT


def judge(
    ratio: Estimate, metric: Metric, *, margin: float, smallest: float | None = None, needed: int | None = None
) -> tuple[Verdict | None, str]:
    """Return the verdict on a ratio, and its basis.

    The margin is the same distance in both directions on the scale of ratios: from 1/(1 + margin) to 1 + margin.
    """
    if not is_enough(ratio) or ratio.low is None or ratio.high is None:
        return None, f"{plural(ratio.n, 'pair')}, and a verdict needs {estimates.FEWEST_FOR_VERDICT}"
    inside = (1 / (1 + margin), 1 + margin)
    differs = not ratio.low <= 1 <= ratio.high
    if differs and not inside[0] <= ratio.value <= inside[1]:
        better = (ratio.value > 1) == (metric.better == "higher")
        verdict: Verdict = "differs" if metric.better is None else "faster" if better else "slower"
        return verdict, "the interval excludes 1, and the ratio is beyond the margin"
    if inside[0] <= ratio.low and ratio.high <= inside[1]:
        return "equivalent", f"the whole interval is within {percent(margin)} of 1"
    if differs:
        return "below margin", f"the interval excludes 1, but the difference is within {percent(margin)}"
    return "undecided", _undecided(margin, smallest, needed)


def _undecided(margin: float, smallest: float | None, needed: int | None) -> str:
    if smallest is None or needed is None:
        return "the interval includes 1"
    return (
        f"this session would have found a difference of {percent(smallest)} in 4 of 5 cases; "
        f"for one of {percent(margin)} it takes {needed:,} pairs"
    )
