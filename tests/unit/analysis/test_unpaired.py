"""Two independent samples: R's numbers, exact enumeration, and what must hold for any values."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.analysis.stats import unpaired

# Hollander & Wolfe, permeability of the chorioamnion: the example of R's ?wilcox.test.
AT_TERM = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46]
EARLIER = [1.15, 0.88, 0.90, 0.74, 1.21]

logs = st.lists(st.floats(-1, 1), min_size=2, max_size=8)


def test_shift_and_interval_are_those_of_r():
    # R's coin::wilcox_test(distribution = "exact", conf.int = TRUE), as posted to r-help: -0.305 in -0.76 to 0.15
    found = unpaired.hodges_lehmann(AT_TERM, EARLIER)
    assert (found.value, found.low, found.high) == pytest.approx((-0.305, -0.76, 0.15))
    assert found.n == 5


def test_p_is_that_of_r():
    # R: wilcox.test(x, y, alternative = "two.sided", exact = TRUE), in scipy's own tests (gh-9184)
    assert unpaired.mann_whitney_p(AT_TERM, EARLIER) == pytest.approx(0.2544122544123, abs=1e-12)


@pytest.mark.parametrize(
    ("one", "other"),
    [([1, 2, 3], [4, 5, 6, 7]), ([1, 1, 2, 5], [1, 2, 2]), ([3, 3, 3], [3, 3]), ([1.5, 2.5, 7], [0.5, 2.5, 2.5, 9])],
)
def test_p_is_what_counting_all_ways_to_deal_the_values_gives_with_ties_too(one, other):
    values = [*one, *other]
    ranks = [sum(x < v for x in values) + (sum(x == v for x in values) + 1) / 2 for v in values]
    middle = len(one) * (len(values) + 1) / 2
    sums = [sum(each) for each in itertools.combinations(ranks, len(one))]
    reach = abs(sum(ranks[: len(one)]) - middle)
    exact = sum(abs(each - middle) >= reach for each in sums) / len(sums)
    assert unpaired.mann_whitney_p(one, other) == pytest.approx(exact)


@pytest.mark.parametrize(("m", "n"), [(2, 2), (3, 5), (4, 4), (6, 6), (5, 9)])
def test_the_level_is_how_often_the_interval_holds_no_shift_when_all_orders_are_alike(m, n):
    level = unpaired.hodges_lehmann([0.0] * m, [1.0] * n).level
    covered = total = 0
    for chosen in itertools.combinations(range(m + n), m):
        rest = [x for x in range(m + n) if x not in chosen]
        found = unpaired.hodges_lehmann(chosen, rest)
        covered += found.low <= 0 <= found.high
        total += 1
    assert covered / total == pytest.approx(level)


def test_50_values_a_side_are_beyond_the_exact_tables_and_agree_with_them():
    draw = np.random.default_rng(3)
    one, other = draw.normal(size=60), draw.normal(size=49)
    approximate, exact = unpaired.hodges_lehmann(one, other), unpaired.hodges_lehmann(one[:49], other)
    assert approximate.level == 0.95
    assert exact.level == pytest.approx(0.95, abs=0.001)
    assert approximate.high - approximate.low == pytest.approx(exact.high - exact.low, rel=0.15)
    assert unpaired.mann_whitney_p(one, other) == pytest.approx(unpaired.mann_whitney_p(one[:49], other), abs=0.3)


def test_one_value_has_no_interval_and_none_has_no_difference():
    assert unpaired.hodges_lehmann([1.0], [2.0, 3.0]).low is None
    assert unpaired.pooled_deviation([1.0], [2.0, 3.0]) is None
    with pytest.raises(ValueError, match="no difference"):
        unpaired.hodges_lehmann([], [1.0])


def test_welch_is_scipys():
    from scipy.stats import ttest_ind

    found = unpaired.welch(EARLIER, AT_TERM)
    interval = ttest_ind(AT_TERM, EARLIER, equal_var=False).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))
    assert unpaired.welch([1.0, 1.0], [2.0, 2.0]).low == 1.0


@pytest.mark.parametrize(
    ("effect", "m", "n"), [(3.0, 1.9, 1.9), (1.5, 4, 9.5), (0.8, 25.8, 25.8), (0.05, 400, 60), (0.5, 900, 900)]
)
def test_students_power_is_that_of_statsmodels(effect, m, n):
    from statsmodels.stats.power import TTestIndPower  # takes a second to import

    wanted = TTestIndPower().power(effect, m, 1 - unpaired.LEVEL, ratio=n / m)
    assert unpaired.students_power(effect, m, n) == pytest.approx(wanted, abs=1e-9)


@given(st.floats(0.01, 0.5), st.floats(0.01, 0.5))
def test_as_many_values_as_are_needed_find_the_effect(spread, effect):
    needed = unpaired.needed(spread, effect)
    assert unpaired.smallest_effect(spread, needed, needed) <= effect * (1 + 1e-6)
    assert needed == unpaired.FEWEST or unpaired.smallest_effect(spread, needed - 1, needed - 1) > effect * (1 - 1e-6)


def test_the_smallest_effect_is_the_one_of_the_power_tables():
    # Cohen, table 2.4.1: Student finds d = 1.8 with 6 of each, 0.8 with 26 (two-sided 5 %, power 80 %); by ranks a little less
    assert math.log1p(unpaired.smallest_effect(1.0, 6, 6)) == pytest.approx(1.85, abs=0.02)
    assert math.log1p(unpaired.smallest_effect(1.0, 27, 27)) == pytest.approx(0.8, abs=0.01)
    assert unpaired.needed(1.0, math.expm1(0.8)) == 27
    assert unpaired.needed(0.0, 0.02) == 2


@settings(deadline=None, max_examples=50)
@given(logs, logs)
def test_swapping_the_sides_turns_the_shift_round(one, other):
    there, back = unpaired.hodges_lehmann(one, other), unpaired.hodges_lehmann(other, one)
    assert (there.value, there.low, there.high) == pytest.approx((-back.value, -back.high, -back.low))
    assert unpaired.mann_whitney_p(one, other) == pytest.approx(unpaired.mann_whitney_p(other, one))


@settings(deadline=None, max_examples=50)
@given(logs, logs, st.integers(-8, 8))
def test_a_shift_of_one_side_shifts_all_of_the_estimate(one, other, by):
    before, after = unpaired.hodges_lehmann(one, other), unpaired.hodges_lehmann(one, [x + by for x in other])
    assert (after.value, after.low, after.high) == pytest.approx((before.value + by, before.low + by, before.high + by))
