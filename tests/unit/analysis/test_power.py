from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from bench.analysis.stats import power


@pytest.mark.parametrize(
    ("spread", "shown"),
    [
        (0.01, (1.7, 1.0, 0.8, 0.7, 0.5, 0.4)),
        (0.02, (3.4, 2.0, 1.6, 1.3, 1.1, 0.8)),
        (0.05, (8.8, 5.1, 4.0, 3.4, 2.7, 2.0)),
        (0.10, (18.3, 10.5, 8.1, 6.8, 5.4, 4.1)),
        (0.20, (40.0, 22.0, 16.8, 14.1, 11.2, 8.4)),
    ],
)
def test_what_students_test_finds_is_that_of_the_power_table(spread, shown):
    found = [100 * math.expm1(power.students_effect_size(n) * spread) for n in (5, 10, 15, 20, 30, 50)]
    assert found == pytest.approx(shown, abs=0.051)


@pytest.mark.parametrize(
    ("spread", "pairs"), [(0.02, (6, 4, 3)), (0.05, (25, 11, 5)), (0.10, (92, 35, 11)), (0.20, (362, 134, 37))]
)
def test_what_students_test_needs_is_that_of_the_power_table(spread, pairs):
    sizes = [power.students_effect_size(n) for n in range(3, 400)]
    needed = [
        next(n for n, size in enumerate(sizes, start=3) if spread * size <= math.log1p(e)) for e in (0.03, 0.05, 0.1)
    ]
    assert tuple(needed) == pairs


@pytest.mark.parametrize("n", [4, 9.55, 12, 57.3, 400])
def test_students_power_is_that_of_statsmodels(n):
    from statsmodels.stats.power import TTestPower  # takes a second to import

    size = power.students_effect_size(n)
    assert TTestPower().power(size, n, 0.05) == pytest.approx(0.8, abs=1e-4)


@given(st.floats(0.001, 0.5), st.floats(0.005, 0.5))
def test_the_pairs_needed_are_the_fewest_whose_smallest_effect_is_as_small(spread, effect):
    needed = power.pairs_needed(spread, effect)
    assert power.smallest_effect(spread, needed) <= effect * (1 + 1e-9)
    fewer = power.smallest_effect(spread, needed - 1)
    assert fewer is None or fewer > effect


def test_fewer_than_6_pairs_find_nothing_and_6_all_on_one_side():
    assert power.smallest_effect(0.05, 5) is None
    assert math.log1p(power.smallest_effect(0.05, 6)) / 0.05 == pytest.approx(norm.ppf(0.8 ** (1 / 6)), rel=1e-3)
    assert power.smallest_effect(0.0, 12) == 0.0
    assert power.pairs_needed(0.0, 0.02) == 6


def test_what_would_take_years_has_an_end():
    assert power.pairs_needed(1e6, 0.02) >= power.MOST_PAIRS
