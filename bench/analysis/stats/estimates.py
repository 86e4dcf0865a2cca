"""Computes estimates and confidence intervals for few, paired, skewed values.

The unit of replication is the invocation: every function takes one value per invocation, or one log-ratio per pair.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate
from statistics import NormalDist, median
from typing import TYPE_CHECKING, Literal, TypeVar

if TYPE_CHECKING:
    import numpy as np

LEVEL = 0.95
EXACT_BELOW = 50  # values; the same limit as in R
FEWEST_FOR_VERDICT = 6  # with 5 pairs the two-sided signed-rank test cannot reach 5 %

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """An estimate, its confidence interval with the level that it reached, and the number of values.

    Fewer than 6 values cannot reach 95 %: then the interval is their range, and `level` is the level of that.
    """

    value: float
    low: float | None
    high: float | None
    level: float | None
    n: int


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Median absolute deviation, and the range from the 5th to the 95th percentile."""

    mad: float
    p05: float
    p95: float


@lru_cache(maxsize=128)
def signed_rank_counts(n: int) -> tuple[int, ...]:
    """Return how many of the 2**n sign patterns give each value of the signed-rank statistic V."""
    return _sums(tuple(range(1, n + 1)))


@lru_cache(maxsize=128)
def _sums(ranks: tuple[int, ...]) -> tuple[int, ...]:
    """Return how many subsets of `ranks` have each sum."""
    counts = [1] + [0] * sum(ranks)
    for rank in ranks:
        for total in range(len(counts) - 1, rank - 1, -1):
            counts[total] += counts[total - rank]
    return tuple(counts)


def signed_rank_cdf(value: int, n: int) -> float:
    """Return P(V <= value) for values that are symmetric about 0."""
    return float(sum(signed_rank_counts(n)[: max(value + 1, 0)]) / 2**n)


def signed_rank_quantile(probability: float, n: int) -> int:
    """Return the smallest v with P(V <= v) >= `probability`, as R's qsignrank does."""
    below = 0
    for value, count in enumerate(signed_rank_counts(n)):
        below += count
        if below / 2**n >= probability:
            return value
    return n * (n + 1) // 2


def hodges_lehmann(values: Sequence[float], level: float = LEVEL) -> Estimate:
    """Return the median of the Walsh averages, with the interval that inverts the signed-rank test. Raises ValueError without values.

    The same as R's `wilcox.test(values, conf.int = TRUE)` below 50 values without ties or zeros: with q = qsignrank(alpha/2, n), at
    least 1, the bounds are the q-th smallest and the q-th largest Walsh average. From 50 values on R solves for the shift at which the
    normal approximation, corrected for continuity, reaches z; that shift is the Walsh average used here. With ties R approximates at
    any n; here the exact order statistics are kept, which are conservative and independent of a root finder's tolerance.
    """
    import numpy as np

    n = len(values)
    if n == 0:
        raise ValueError("no values, no estimate")
    first, second = _pairs_of(n)
    array = np.asarray(values, dtype=float)
    walsh = np.sort((array[first] + array[second]) / 2)
    centre = float(walsh[(walsh.size - 1) // 2] + walsh[walsh.size // 2]) / 2
    if n == 1:
        return Estimate(value=centre, low=None, high=None, level=None, n=1)
    rank, reached = _rank_of_bound(n, level)
    return Estimate(value=centre, low=float(walsh[rank - 1]), high=float(walsh[-rank]), level=reached, n=n)


@lru_cache(maxsize=128)
def _pairs_of(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of both members of each pair of n values, including each value paired with itself."""
    import numpy as np

    first, second = np.triu_indices(n)
    return first, second


@lru_cache(maxsize=256)
def _rank_of_bound(n: int, level: float) -> tuple[int, float]:
    """Return which Walsh average, counted from an end, bounds the interval, and the level that this reaches."""
    tail = (1 - level) / 2
    if n < EXACT_BELOW:
        rank = max(signed_rank_quantile(tail, n), 1)
        return rank, 1 - 2 * signed_rank_cdf(rank - 1, n)
    sigma = math.sqrt(n * (n + 1) * (2 * n + 1) / 24)
    return math.floor(n * (n + 1) / 4 + NormalDist().inv_cdf(tail) * sigma - 0.5) + 1, level


def median_with_interval(values: Sequence[float], level: float = LEVEL) -> Estimate:
    """Return the median, with the interval between two order statistics, which assumes neither symmetry nor normality."""
    n = len(values)
    if n == 0:
        raise ValueError("no values, no estimate")
    ordered = sorted(values)
    centre = float(median(ordered))
    if n == 1:
        return Estimate(value=centre, low=None, high=None, level=None, n=1)
    rank, reached = _rank_in_order(n, level)
    return Estimate(value=centre, low=float(ordered[rank - 1]), high=float(ordered[-rank]), level=reached, n=n)


@lru_cache(maxsize=256)
def _rank_in_order(n: int, level: float) -> tuple[int, float]:
    """Return which of n ordered values, counted from an end, bounds the median's interval, and the level that this reaches."""
    below = list(accumulate(math.comb(n, k) for k in range(n + 1)))  # how many of 2**n patterns have at most k heads
    rank = max(next(k for k, count in enumerate(below) if count / 2**n >= (1 - level) / 2), 1)
    return rank, 1 - 2 * (below[rank - 1] / 2**n)


def mean_with_t_interval(values: Sequence[float], level: float = LEVEL) -> Estimate:
    """Return the mean with Student's interval. It is the cross-check, never the basis of a verdict."""
    import numpy as np

    n = len(values)
    mean = float(np.mean(values))
    if n < 2:
        return Estimate(value=mean, low=None, high=None, level=None, n=n)
    half = student_quantile(n - 1, level) * float(np.std(values, ddof=1)) / math.sqrt(n)
    return Estimate(value=mean, low=mean - half, high=mean + half, level=level, n=n)


@lru_cache(maxsize=256)
def student_quantile(freedom: int, level: float = LEVEL) -> float:
    """Return the half-width of a confidence interval at `level`, in standard errors."""
    from scipy.special import stdtrit  # scipy.stats takes a second to import

    return -float(stdtrit(freedom, (1 - level) / 2))


def exponential(estimate: Estimate) -> Estimate:
    """Transform an estimate of a log-ratio into one of the ratio."""
    return replace(
        estimate,
        value=math.exp(estimate.value),
        low=None if estimate.low is None else math.exp(estimate.low),
        high=None if estimate.high is None else math.exp(estimate.high),
    )


def inverse(estimate: Estimate) -> Estimate:
    """Transform an estimate of a/b into one of b/a."""
    return replace(
        estimate,
        value=1 / estimate.value,
        low=None if estimate.high is None else 1 / estimate.high,
        high=None if estimate.low is None else 1 / estimate.low,
    )


def disagree(one: Estimate, other: Estimate) -> bool:
    """Whether two estimates of one quantity differ by more than half of the wider interval."""
    widths = [e.high - e.low for e in (one, other) if e.low is not None and e.high is not None]
    return bool(widths) and abs(one.value - other.value) > max(widths) / 2


def standard_deviation(values: Sequence[float]) -> float | None:
    """Return the standard deviation of a sample; None for fewer than two values."""
    import numpy as np

    return float(np.std(values, ddof=1)) if len(values) > 1 else None


def signed_rank_p(values: Sequence[float]) -> float:
    """Return the two-sided p of the signed-rank test that the values are symmetric about 0. Zeros are left out.

    Exact below 50 values, also with ties: ranks of tied values are multiples of a half, so twice the ranks are whole numbers. With
    ties scipy enumerates all sign patterns, which takes 10 s for 13 values. From 50 values on it is the normal approximation, corrected
    for continuity and ties.
    """
    nonzero = [value for value in values if value != 0]
    if not nonzero:
        return 1.0
    doubled = _doubled_ranks([abs(value) for value in nonzero])
    positive = sum([rank for rank, value in zip(doubled, nonzero, strict=True) if value > 0])
    if len(nonzero) >= EXACT_BELOW:
        return _normal_p(positive / 2, len(nonzero), Counter(doubled).values())
    counts = _sums(tuple(sorted(doubled)))
    least = sum(counts[: min(positive, sum(doubled) - positive) + 1])
    return float(min(1.0, 2 * least / 2 ** len(nonzero)))


def _doubled_ranks(values: Sequence[float]) -> list[int]:
    """Return twice the rank of each value, the smallest being 1. Tied values get the mean of their ranks."""
    places: dict[float, list[int]] = {}
    for place, value in enumerate(sorted(values), start=1):
        places.setdefault(value, []).append(place)
    return [places[value][0] + places[value][-1] for value in values]


def mean_ranks(values: Sequence[float]) -> list[float]:
    """Return the rank of each value, the smallest being 1. Tied values get the mean of their ranks."""
    return [rank / 2 for rank in _doubled_ranks(values)]


def _normal_p(positive: float, n: int, tied: Iterable[int]) -> float:
    """Return the two-sided p of the sum of positive ranks. `tied` are the sizes of the groups of equal values."""
    variance = (n * (n + 1) * (2 * n + 1) - sum(count**3 - count for count in tied) / 2) / 24
    distance = abs(positive - n * (n + 1) / 4)
    return min(1.0, math.erfc((distance - 0.5) / math.sqrt(2 * variance))) if distance > 0 else 1.0


def adjusted(p_values: Sequence[float], method: Literal["holm", "fdr_bh"]) -> tuple[float, ...]:
    """Correct p-values for their number: Holm, or Benjamini-Hochberg, as statsmodels' `multipletests` does."""
    n = len(p_values)
    order = sorted(range(n), key=lambda number: p_values[number])
    if method == "holm":
        stepped = accumulate([(n - place) * p_values[number] for place, number in enumerate(order)], max)
    else:
        order.reverse()
        stepped = accumulate([p_values[number] / ((n - place) / n) for place, number in enumerate(order)], min)
    corrected = dict(zip(order, stepped, strict=True))
    return tuple([min(float(corrected[number]), 1.0) for number in range(n)])


def spread(values: Sequence[float]) -> Spread:
    """Return how far the values spread about their median."""
    ordered = sorted(values)
    middle = median(ordered)
    return Spread(
        mad=float(median([abs(value - middle) for value in ordered])),
        p05=_percentile(ordered, 0.05),
        p95=_percentile(ordered, 0.95),
    )


def _percentile(ordered: Sequence[float], share: float) -> float:
    """Return the linear percentile like numpy.percentile, which takes 0.1 ms per call."""
    whole, part = divmod(share * (len(ordered) - 1), 1)
    low, high = ordered[int(whole)], ordered[min(int(whole) + 1, len(ordered) - 1)]
    return float(low + (high - low) * part if part < 0.5 else high - (high - low) * (1 - part))


def quartiles(ordered: Sequence[float]) -> tuple[float, float]:
    """Return the first and third quartile of values in ascending order."""
    return _percentile(ordered, 0.25), _percentile(ordered, 0.75)


def outliers(values: Mapping[K, float], fence: float = 1.5) -> tuple[K, ...]:
    """Return the keys of values more than `fence` interquartile ranges outside the quartiles (Tukey): to mark, not to drop."""
    if len(values) < 4:
        return ()
    low, high = quartiles(sorted(values.values()))
    reach = fence * (high - low)
    return tuple(key for key, value in values.items() if not low - reach <= value <= high + reach)


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> tuple[float, float] | None:
    """Return Spearman's rho and its p; None for too few values, or if one side is constant."""
    import numpy as np
    from scipy.special import stdtr

    if len(one) < FEWEST_FOR_VERDICT or len(set(one)) < 2 or len(set(other)) < 2:
        return None
    rho = float(np.corrcoef(_doubled_ranks(one), _doubled_ranks(other))[0, 1])
    freedom = len(one) - 2
    statistic = abs(rho) * math.sqrt(freedom / max((1 + rho) * (1 - rho), 1e-300))
    return rho, 2 * float(stdtr(freedom, -statistic))


def evenness(shares: Sequence[float]) -> float | None:
    """Return Jain's fairness index: 1 if all shares are equal, 1/n if one of n has everything. None if all are 0."""
    total = sum(shares)
    return total**2 / (len(shares) * sum(share**2 for share in shares)) if total else None
