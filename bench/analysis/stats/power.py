"""Computes which differences a comparison can detect with 80 % power, for the signed-rank test of normal log-ratios.

From 10 pairs on, the test detects what Student's detects with 3/pi times as many pairs, its efficiency for normal values (Hodges
and Lehmann 1956); simulated power agrees within 0.025. For fewer pairs its few attainable levels matter more, so it is tabulated.
"""

from __future__ import annotations

import math
from functools import lru_cache

from bench.analysis.stats.estimates import FEWEST_FOR_VERDICT, LEVEL

POWER = 0.8
EFFICIENCY = 3 / math.pi
MOST_PAIRS = 10**7  # more would take years

# Effects in standard deviations that the test of n normal pairs detects in 4 of 5 sessions, from 120,000 simulated sessions each.
# For 6 pairs the value is exact: all must lie on one side, so it is the 0.8^(1/6) quantile of the normal distribution.
_OF_FEW_PAIRS = {6: 1.793, 7: 1.329, 8: 1.249, 9: 1.148}


def smallest_effect(spread: float, n: int) -> float | None:
    """Return the smallest ratio minus 1 that n pairs detect in 4 of 5 sessions. `spread`: standard deviation of log-ratios.

    None for fewer than 6 pairs, which detect no difference of any size.
    """
    return None if n < FEWEST_FOR_VERDICT else math.expm1(effect_size(n) * spread)


def pairs_needed(spread: float, effect: float) -> int:
    """Return how many pairs detect a ratio of 1 + `effect` in 4 of 5 sessions, 6 at least. `spread`: of log-ratios."""
    if spread * effect_size(FEWEST_FOR_VERDICT) <= math.log1p(effect):
        return FEWEST_FOR_VERDICT
    size = math.log1p(effect) / spread
    few, enough = FEWEST_FOR_VERDICT, 2 * FEWEST_FOR_VERDICT
    while effect_size(enough) > size and enough < MOST_PAIRS:
        few, enough = enough, 2 * enough
    while enough - few > 1:
        middle = (few + enough) // 2
        few, enough = (middle, enough) if effect_size(middle) > size else (few, middle)
    return enough


@lru_cache(maxsize=4096)
def effect_size(n: int) -> float:
    """Return the effect in standard deviations that n >= 6 pairs detect in 4 of 5 sessions. It decreases with n."""
    return _OF_FEW_PAIRS.get(n) or students_effect_size(EFFICIENCY * n)


def students_effect_size(n: float) -> float:
    """Return the same for the paired t-test, like statsmodels' `TTestPower`; n is 3 or more, not necessarily an integer."""
    low, high = 0.0, 0.25
    while _students_power(high, n) < POWER:
        low, high = high, 2 * high
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if _students_power(middle, n) < POWER else (low, middle)
    return high


def _students_power(effect: float, n: float) -> float:
    """Return the power of the two-sided test of n pairs for an effect in standard deviations."""
    return t_test_power(effect * math.sqrt(n), n - 1)


def t_test_power(noncentrality: float, freedom: float) -> float:
    """Return the power of a two-sided t-test for a noncentrality and degrees of freedom."""
    from scipy.special import nctdtr, stdtrit

    beyond = float(stdtrit(freedom, (1 + LEVEL) / 2))
    opposite = float(nctdtr(freedom, noncentrality, -beyond))  # NaN if it is too small for a float
    return 1 - float(nctdtr(freedom, noncentrality, beyond)) + (0.0 if math.isnan(opposite) else opposite)
