"""What a comparison can find: by the signed-rank test, which the verdict rests on, of normal log-ratios in 4 of 5 sessions.

From 10 pairs on, the test finds what Student's finds with 3/pi as many pairs, which is its efficiency for normal values
(Hodges and Lehmann 1956); simulated sessions have the power within 0.025. Below, its few levels matter more than that.
"""

from __future__ import annotations

import math
from functools import lru_cache

from bench.analysis.stats.estimates import FEWEST_FOR_VERDICT, LEVEL

POWER = 0.8
EFFICIENCY = 3 / math.pi
MOST_PAIRS = 10**7  # for more it would take years

# Effects in SDs that the signed-rank test of n normal pairs finds in 4 of 5 cases, by 120,000 simulated sessions each.
# For 6 it is known, since all of them must lie on one side: the 0.8^(1/6) quantile of the normal distribution.
_OF_FEW_PAIRS = {6: 1.793, 7: 1.329, 8: 1.249, 9: 1.148}


def smallest_effect(spread: float, n: int) -> float | None:
    """The smallest ratio less 1 that n pairs find in 4 of 5 sessions, where log-ratios have this SD.

    None below 6 pairs, which find nothing, however large it is.
    """
    return None if n < FEWEST_FOR_VERDICT else math.expm1(effect_size(n) * spread)


def pairs_needed(spread: float, effect: float) -> int:
    """How many pairs find a ratio of 1 + `effect` in 4 of 5 sessions, where log-ratios have this SD: at least 6."""
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
    """Effects in SDs that the signed-rank test of n >= 6 pairs finds in 4 of 5 cases. Less with every pair more."""
    return _OF_FEW_PAIRS.get(n) or students_effect_size(EFFICIENCY * n)


def students_effect_size(n: float) -> float:
    """The same of a paired t-test, as statsmodels' `TTestPower` has it; 3 pairs and more, which need be no whole number."""
    low, high = 0.0, 0.25
    while _students_power(high, n) < POWER:
        low, high = high, 2 * high
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if _students_power(middle, n) < POWER else (low, middle)
    return high


def _students_power(effect: float, n: float) -> float:
    """How often the two-sided test of n pairs finds an effect of so many SDs."""
    return t_test_power(effect * math.sqrt(n), n - 1)


def t_test_power(noncentrality: float, freedom: float) -> float:
    """The power of a two-sided t-test at this noncentrality and these degrees of freedom."""
    from scipy.special import nctdtr, stdtrit

    beyond = float(stdtrit(freedom, (1 + LEVEL) / 2))
    opposite = float(nctdtr(freedom, noncentrality, -beyond))  # NaN where it is below what a float can tell from 0
    return 1 - float(nctdtr(freedom, noncentrality, beyond)) + (0.0 if math.isnan(opposite) else opposite)
