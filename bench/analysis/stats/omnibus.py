"""Compares three or more conditions: Friedman's test over blocks, then Nemenyi's test of each pair, as a critical difference.

Both use only the rank of each condition within its block, so blocks may differ in speed, and no distribution is assumed. Formulas:
Demsar, "Statistical comparisons of classifiers over multiple data sets", 2006.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from bench.analysis.stats.estimates import FEWEST_FOR_VERDICT, LEVEL, mean_ranks

FEWEST_CONDITIONS = 3  # two conditions have a ratio
_STEPS = 2001  # of the integral over the normal distribution from -8 to 8 SDs


@dataclass(frozen=True, kw_only=True)
class Omnibus:
    """The result of the test: whether some conditions differ, and which, by their ranks within blocks (1 is best)."""

    blocks: int  # that have a value of every condition
    mean_ranks: Mapping[str, float]  # the best first
    chi_squared: float  # Friedman's, corrected for ties, with one degree of freedom fewer than conditions
    p: float
    critical_difference: float  # of two mean ranks, at 5 % for all pairs together

    @property
    def is_shown(self) -> bool:
        """Whether the test shows that not all conditions are equal."""
        return self.p < 1 - LEVEL

    def not_told_from(self, name: str) -> tuple[str, ...]:
        """Return the conditions that the test does not distinguish from `name`: all others if it shows no difference."""
        own = self.mean_ranks[name]
        return tuple(
            other
            for other, rank in self.mean_ranks.items()
            if other != name and not (self.is_shown and abs(rank - own) >= self.critical_difference)
        )


def omnibus(values: Mapping[str, Mapping[int, float]], *, higher_is_better: bool) -> Omnibus | None:
    """Test `values`, by condition and block. Blocks that lack a condition are left out.

    Returns None for fewer than 3 conditions or 6 blocks.
    """
    names = list(values)
    blocks = sorted(set.intersection(*map(set, values.values()))) if values else []
    if len(names) < FEWEST_CONDITIONS or len(blocks) < FEWEST_FOR_VERDICT:
        return None
    sign = -1 if higher_is_better else 1
    ranks = [mean_ranks([sign * values[name][block] for name in names]) for block in blocks]
    means = {name: math.fsum(row[place] for row in ranks) / len(blocks) for place, name in enumerate(names)}
    chi_squared, p = friedman(ranks)
    return Omnibus(
        blocks=len(blocks),
        mean_ranks=dict(sorted(means.items(), key=lambda item: item[1])),
        chi_squared=chi_squared,
        p=p,
        critical_difference=critical_difference(len(names), len(blocks)),
    )


def friedman(ranks: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Return chi-squared, corrected for ties, and its p, from the ranks in each block, as R's `friedman.test` does."""
    from scipy.special import chdtrc  # scipy.stats takes a second to import

    n, k = len(ranks), len(ranks[0])
    sums = [math.fsum(column) for column in zip(*ranks, strict=True)]
    spread = math.fsum((total - n * (k + 1) / 2) ** 2 for total in sums)
    ties = sum(size**3 - size for row in ranks for size in Counter(row).values())
    scale = n * k * (k + 1) - ties / (k - 1)
    if scale <= 0:
        return 0.0, 1.0  # all conditions are tied in every block
    chi_squared = 12 * spread / scale
    return chi_squared, float(chdtrc(k - 1, chi_squared))


def critical_difference(conditions: int, blocks: int) -> float:
    """Return the distance of two mean ranks that any of all pairs exceeds by chance in 5 of 100 sessions."""
    return _range_quantile(conditions) / math.sqrt(2) * math.sqrt(conditions * (conditions + 1) / (6 * blocks))


@lru_cache(maxsize=64)
def _range_quantile(conditions: int) -> float:
    low, high = 0.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if beyond_range(middle, conditions) > 1 - LEVEL else (low, middle)
    return high


def beyond_range(width: float, conditions: int) -> float:
    """Return the probability that the range of `conditions` standard normal values exceeds `width` (studentized range)."""
    import numpy as np
    from scipy.special import ndtr

    at = np.linspace(-8.0, 8.0, _STEPS)
    density = np.exp(-(at**2) / 2) / math.sqrt(2 * math.pi)
    inside = density * (ndtr(at) - ndtr(at - width)) ** (conditions - 1)
    step = float(at[1] - at[0])
    return min(1.0, max(0.0, 1 - conditions * step * float(inside.sum())))
