from __future__ import annotations

import itertools
import math
import random
from statistics import median
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import binom, spearmanr, t, wilcoxon

from bench.analysis.stats import estimates

# Hollander & Wolfe, depression: first visit less second visit. R: wilcox.test(x, y, paired = TRUE, conf.int = TRUE).
BEFORE = (1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30)
AFTER = (0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29)
DEPRESSION = tuple(one - other for one, other in zip(BEFORE, AFTER, strict=True))

few_values = st.lists(st.floats(-2, 2).map(lambda value: round(value, 6)), min_size=6, max_size=20)


def some_values(n: int, seed: int = 1) -> list[float]:
    draw = random.Random(seed)
    return [draw.gauss(0.1, 0.2) for _ in range(n)]


@pytest.mark.parametrize("n", [1, 2, 5, 8, 10])
def test_the_null_distribution_counts_every_sign_pattern(n):
    counts = [0] * (n * (n + 1) // 2 + 1)
    for signs in itertools.product((0, 1), repeat=n):
        counts[sum(rank for rank, sign in enumerate(signs, 1) if sign)] += 1
    assert list(estimates.signed_rank_counts(n)) == counts


@pytest.mark.parametrize(
    ("n", "critical"), [(6, 0), (7, 2), (8, 3), (9, 5), (10, 8), (12, 13), (15, 25), (20, 52), (25, 89), (30, 137)]
)
def test_critical_values_are_those_of_the_printed_tables(n, critical):
    assert estimates.signed_rank_quantile(0.025, n) - 1 == critical


def test_the_depression_example_gives_what_r_gives():
    found = estimates.hodges_lehmann(DEPRESSION)
    assert (found.value, found.low, found.high) == pytest.approx((0.46, 0.010, 0.786))
    assert estimates.signed_rank_p(DEPRESSION) / 2 == pytest.approx(0.01953, abs=5e-6)


@pytest.mark.parametrize("n", [6, 7, 12, 25, 40])
def test_the_interval_holds_what_the_exact_test_does_not_reject(n):
    values = some_values(n)
    found = estimates.hodges_lehmann(values)

    def p(shift: float) -> float:
        return float(wilcoxon([value - shift for value in values], method="exact").pvalue)

    assert p(found.low - 1e-9) <= 0.05 < p(found.low + 1e-9)
    assert p(found.high + 1e-9) <= 0.05 < p(found.high - 1e-9)
    assert found.level >= 0.95


def test_from_50_values_on_the_interval_is_that_of_the_corrected_normal_approximation():
    values = some_values(55)
    found = estimates.hodges_lehmann(values)

    def p(shift: float) -> float:
        moved = [value - shift for value in values]
        return float(wilcoxon(moved, method="asymptotic", correction=True).pvalue)

    assert p(found.low - 1e-9) <= 0.05 < p(found.low + 1e-9)
    assert p(found.high + 1e-9) <= 0.05 < p(found.high - 1e-9)


@pytest.mark.parametrize("values", [some_values(5, 3), some_values(8, 4)])
def test_the_estimate_is_the_median_of_all_pairwise_means(values):
    means = [(a + b) / 2 for a, b in itertools.combinations_with_replacement(values, 2)]
    assert estimates.hodges_lehmann(values).value == pytest.approx(median(means))


@pytest.mark.parametrize(("n", "level"), [(2, 0.5), (3, 0.75), (4, 0.875), (5, 0.9375), (6, 0.96875)])
def test_fewer_than_6_values_span_an_interval_that_says_what_it_is_worth(n, level):
    for found in (estimates.hodges_lehmann(some_values(n)), estimates.median_with_interval(some_values(n))):
        assert found.level == pytest.approx(level)
        assert (found.low, found.high) == pytest.approx((min(some_values(n)), max(some_values(n))))


@pytest.mark.parametrize(
    "estimate", [estimates.hodges_lehmann, estimates.median_with_interval, estimates.mean_with_t_interval]
)
def test_one_value_has_no_interval(estimate):
    found = estimate([3.0])
    assert (found.value, found.low, found.high, found.n) == (3.0, None, None, 1)


@settings(deadline=None, max_examples=50)
@given(few_values, st.randoms())
def test_permuting_blocks_changes_nothing(values, draw):
    mixed = draw.sample(values, len(values))
    one, other = estimates.hodges_lehmann(values), estimates.hodges_lehmann(mixed)
    assert (one.value, one.low, one.high) == pytest.approx((other.value, other.low, other.high))


@settings(deadline=None, max_examples=50)
@given(few_values)
def test_swapping_arms_inverts_the_ratio(values):
    one = estimates.exponential(estimates.hodges_lehmann(values))
    other = estimates.inverse(estimates.exponential(estimates.hodges_lehmann([-value for value in values])))
    assert (one.value, one.low, one.high) == pytest.approx((other.value, other.low, other.high))


@settings(deadline=None, max_examples=50)
@given(few_values, st.floats(-1, 1))
def test_an_effect_common_to_all_blocks_moves_the_estimate_by_just_that(values, shift):
    one, other = estimates.hodges_lehmann(values), estimates.hodges_lehmann([value + shift for value in values])
    assert other.value == pytest.approx(one.value + shift, abs=1e-9)
    assert other.high - other.low == pytest.approx(one.high - one.low, abs=1e-9)


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 60))
def test_equal_arms_give_the_ratio_1_and_nothing_around_it(n):
    found = estimates.exponential(estimates.hodges_lehmann([0.0] * n))
    assert found.value == 1.0
    assert n == 1 or (found.low, found.high) == (1.0, 1.0)


def test_corrected_p_values_are_those_of_the_step_down_and_step_up_rules():
    p_values = (0.01, 0.04, 0.03)
    assert estimates.adjusted(p_values, "holm") == pytest.approx((0.03, 0.06, 0.06))
    assert estimates.adjusted(p_values, "fdr_bh") == pytest.approx((0.03, 0.04, 0.04))
    assert estimates.adjusted((), "holm") == ()


@given(st.lists(st.floats(0, 1) | st.sampled_from([0.01, 0.04, 0.5]), min_size=1), st.sampled_from(["holm", "fdr_bh"]))
def test_corrected_p_values_are_those_of_statsmodels(p_values, method):
    from statsmodels.stats.multitest import multipletests  # takes a second to import

    with patch("gc.collect"):  # which multipletests calls each time, for a twentieth of a second
        known = multipletests(p_values, method=method)[1]
    assert estimates.adjusted(p_values, method) == tuple(known)


@given(st.lists(st.integers(-40, 60), min_size=60, max_size=90))
def test_the_p_of_many_values_is_that_of_scipy_with_ties_and_zeros_too(values):
    some = [value for value in values if value]
    assume(len(some) >= estimates.EXACT_BELOW)
    known = wilcoxon(some, method="asymptotic", correction=True).pvalue
    assert estimates.signed_rank_p(values) == pytest.approx(known, rel=1e-9)


@pytest.mark.parametrize("n", [2, 5, 6, 12, 49, 60, 200])
def test_the_bounds_of_a_median_and_students_quantile_are_those_of_scipy(n):
    ordered = [float(value) for value in range(1, n + 1)]
    found = estimates.median_with_interval(ordered)
    rank = max(binom.ppf(0.025, n, 0.5), 1)
    assert (found.low, found.high) == (rank, n + 1 - rank)
    assert found.level == pytest.approx(1 - 2 * binom.cdf(rank - 1, n, 0.5))
    assert estimates.student_quantile(n - 1) == pytest.approx(t.isf(0.025, n - 1))


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 30)), min_size=6, max_size=40))
def test_rank_correlation_is_that_of_scipy_with_ties_too(pairs):
    one, other = zip(*pairs, strict=True)
    found = estimates.rank_correlation(one, other)
    assume(found is not None)
    known = spearmanr(one, other)
    assert found == pytest.approx((known.statistic, known.pvalue), rel=1e-6, abs=1e-12)


def test_an_outlier_is_marked_where_it_lies():
    values = {1: 10.0, 2: 10.1, 3: 9.9, 4: 10.2, 5: 17.0}
    assert estimates.outliers(values) == (5,)
    assert estimates.outliers({1: 1.0, 2: 99.0}) == ()


@pytest.mark.parametrize(
    "values",
    [[0.1, 0.2, -0.3, 0.4, 0.5, 0.6], [0.1, 0.1, -0.1, 0.2, 0.2, -0.2, 0.3], [0.0, 0.5, 0.5, 0.5, -0.5, 0.2, 0.1]],
)
def test_the_exact_p_is_the_share_of_sign_patterns_that_are_as_extreme(values):
    rest = [value for value in values if value]
    ranks = [sum((abs(o) < abs(v)) + 0.5 * (abs(o) == abs(v)) for o in rest) + 0.5 for v in rest]
    middle = sum(ranks) / 2
    seen = abs(sum(rank for rank, value in zip(ranks, rest, strict=True) if value > 0) - middle)
    patterns = list(itertools.product((0, 1), repeat=len(rest)))
    extreme = sum(abs(sum(itertools.compress(ranks, signs)) - middle) >= seen for signs in patterns)
    assert estimates.signed_rank_p(values) == pytest.approx(extreme / len(patterns))


def test_values_that_are_all_zero_have_nothing_against_them():
    assert estimates.signed_rank_p([0.0] * 8) == 1.0


def test_spread_is_the_median_deviation_and_the_middle_90_percent():
    found = estimates.spread([1.0, 2.0, 3.0, 4.0, 100.0])
    assert found.mad == 1.0
    assert found.p05 == pytest.approx(1.2)


def test_skew_shows_where_two_estimates_disagree():
    def at(value: float) -> estimates.Estimate:
        return estimates.Estimate(value=value, low=value - 0.1, high=value + 0.1, level=0.95, n=9)

    assert estimates.disagree(at(0.0), at(0.11))
    assert not estimates.disagree(at(0.0), at(0.09))


def test_evenness_runs_from_1_to_one_in_n():
    assert estimates.evenness([5.0, 5.0]) == 1.0
    assert estimates.evenness([5.0, 0.0]) == 0.5
    assert estimates.evenness([0.0, 0.0]) is None


def test_rank_correlation_finds_a_drift_and_no_more():
    rising = list(range(10))
    assert estimates.rank_correlation(rising, [math.sqrt(x) for x in rising])[0] == pytest.approx(1.0)
    assert estimates.rank_correlation(rising, [1.0] * 10) is None
    assert estimates.rank_correlation([1, 2], [1, 2]) is None


@given(few_values)
def test_the_percentiles_are_those_of_numpy(values):
    found = estimates.spread(values)
    assert (found.p05, found.p95) == pytest.approx(tuple(np.percentile(values, [5, 95])), rel=1e-12, abs=1e-12)
