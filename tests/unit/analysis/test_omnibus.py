"""More than two conditions: the published examples of Friedman's and Nemenyi's tests, and what must not change them."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import friedmanchisquare

from bench.analysis.stats.estimates import mean_ranks
from bench.analysis.stats.omnibus import beyond_range, critical_difference, friedman, omnibus

# Hollander and Wolfe (1973), rounding first base: the example of R's `friedman.test`.
BASES = """5.40 5.50 5.55 5.85 5.70 5.75 5.20 5.60 5.50 5.55 5.50 5.40 5.90 5.85 5.70 5.45 5.55 5.60 5.40 5.40 5.35 5.45
5.50 5.35 5.25 5.15 5.00 5.85 5.80 5.70 5.25 5.20 5.10 5.65 5.55 5.45 5.60 5.35 5.45 5.05 5.00 4.95 5.50 5.50 5.40 5.45
5.55 5.50 5.55 5.55 5.35 5.45 5.50 5.55 5.50 5.45 5.25 5.65 5.60 5.40 5.70 5.65 5.55 6.30 6.30 6.25"""
# Demsar (2006), table 6: the areas under the curve of four classifiers on fourteen sets of data.
CURVES = """.763 .768 .771 .798 .599 .591 .590 .569 .954 .971 .968 .967 .628 .661 .654 .657 .882 .888 .886 .898 .936 .931 .916
.931 .661 .668 .609 .685 .583 .583 .563 .625 .775 .838 .866 .875 1.0 1.0 1.0 1.0 .940 .962 .965 .962 .619 .666 .614 .669
.972 .981 .9751 .975 .957 .978 .946 .970"""


def by_condition(text: str, names: list[str]) -> dict[str, dict[int, float]]:
    numbers = [float(word) for word in text.split()]
    return {name: dict(enumerate(numbers[place :: len(names)])) for place, name in enumerate(names)}


def test_friedman_and_nemenyi_are_those_of_the_example_of_r():
    found = omnibus(by_condition(BASES, ["round out", "narrow", "wide"]), higher_is_better=False)
    assert found is not None
    # R: Friedman chi-squared = 11.143, df = 2, p-value = 0.003805; digits from scipy's friedmanchisquare.
    assert found.chi_squared == pytest.approx(11.142857142857132)
    assert found.p == pytest.approx(0.003805040775511383)
    assert found.blocks == 22
    assert list(found.mean_ranks) == ["wide", "narrow", "round out"]
    assert found.not_told_from("wide") == ("narrow",)
    assert found.not_told_from("narrow") == ("wide", "round out")
    assert found.not_told_from("round out") == ("narrow",)
    # scikit-posthocs' posthoc_nemenyi_friedman.
    for one, other, p in (
        ("round out", "narrow", 0.637427),
        ("round out", "wide", 0.004410),
        ("narrow", "wide", 0.061371),
    ):
        gap = abs(found.mean_ranks[one] - found.mean_ranks[other])
        assert beyond_range(math.sqrt(2) * gap / math.sqrt(3 * 4 / (6 * 22)), 3) == pytest.approx(p, abs=2e-6)


def test_ranks_are_those_of_the_published_example():
    found = omnibus(by_condition(CURVES, ["C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf"]), higher_is_better=True)
    assert found is not None
    assert {name: round(rank, 3) for name, rank in found.mean_ranks.items()} == {
        "C4.5+m+cf": 1.964,
        "C4.5+m": 2.0,
        "C4.5+cf": 2.893,
        "C4.5": 3.143,
    }
    assert found.chi_squared == pytest.approx(10.228346456692925)  # scipy's, which corrects for ties as we do
    assert found.critical_difference == pytest.approx(1.25, abs=0.005)  # as it is printed there


@pytest.mark.parametrize(
    ("conditions", "quantile"),  # of scipy's studentized_range with infinite freedom, over the root of 2
    [(3, 2.343700586378409), (4, 2.569031772546482), (6, 2.8497054196100016), (10, 3.163683577053373)],
)
def test_the_critical_difference_is_that_of_the_studentized_range(conditions, quantile):
    assert critical_difference(conditions, 14) == pytest.approx(
        quantile * math.sqrt(conditions * (conditions + 1) / (6 * 14)), rel=1e-9
    )


@pytest.mark.parametrize(("width", "conditions", "p"), [(2.0, 3, 0.33349932504015), (3.5, 5, 0.09633846396542678)])
def test_the_tail_of_the_range_is_that_of_scipy(width, conditions, p):
    assert beyond_range(width, conditions) == pytest.approx(p, rel=1e-9)


def test_a_block_that_lacks_a_condition_counts_for_none():
    values = by_condition(BASES, ["a", "b", "c"])
    del values["b"][3]
    found = omnibus(values, higher_is_better=False)
    assert found is not None
    assert found.blocks == 21


def test_two_conditions_or_five_blocks_have_no_such_test():
    values = by_condition(BASES, ["a", "b", "c"])
    assert omnibus({name: values[name] for name in "ab"}, higher_is_better=True) is None
    assert (
        omnibus({n: {b: v for b, v in of.items() if b < 5} for n, of in values.items()}, higher_is_better=True) is None
    )
    assert omnibus({}, higher_is_better=True) is None


def test_conditions_that_are_always_the_same_show_nothing():
    found = omnibus({name: dict.fromkeys(range(8), 2.0) for name in "abc"}, higher_is_better=True)
    assert found is not None
    assert (found.chi_squared, found.p, found.is_shown) == (0.0, 1.0, False)
    assert found.not_told_from("a") == ("b", "c")


@given(st.integers(0, 10_000), st.floats(0.1, 10.0))
def test_the_speed_of_a_block_and_the_unit_change_nothing(seed, unit):
    draw = random.Random(seed)
    values = {name: {block: draw.uniform(1, 2) for block in range(8)} for name in "abcd"}
    moved = {name: {block: unit * 2**block * value for block, value in of.items()} for name, of in values.items()}
    assert omnibus(moved, higher_is_better=True) == omnibus(values, higher_is_better=True)


@given(st.integers(3, 6).flatmap(lambda k: st.lists(st.lists(st.integers(0, 4), min_size=k, max_size=k), min_size=6)))
def test_friedman_is_that_of_scipy_with_ties_too(blocks):
    assume(any(len(set(block)) > 1 for block in blocks))
    expected = friedmanchisquare(*zip(*blocks, strict=True))
    chi_squared, p = friedman([mean_ranks(block) for block in blocks])
    assert (chi_squared, p) == (pytest.approx(expected.statistic, rel=1e-9, abs=1e-9), pytest.approx(expected.pvalue))
