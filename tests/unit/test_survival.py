"""Kaplan and Meier's median is that of the textbook, and what was given up counts."""

from __future__ import annotations

import math
from statistics import median_low

from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import CensoredData, ecdf

from bench.survival import kaplan_meier_median

# Remission in weeks of 42 patients with leukaemia: Freireich et al. 1963, as in Kleinbaum and Klein, Survival Analysis.
PLACEBO = [1, 1, 2, 2, 3, 4, 4, 5, 5, 8, 8, 8, 8, 11, 11, 12, 12, 15, 17, 22, 23]
TREATED = [6, 6, 6, 7, 10, 13, 16, 22, 23]
TREATED_CENSORED = [6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35]
times = st.lists(st.floats(0.1, 1e6), min_size=1, max_size=30)


def test_the_medians_of_a_published_study_are_found() -> None:
    assert kaplan_meier_median(PLACEBO, []) == 8
    assert kaplan_meier_median(TREATED, TREATED_CENSORED) == 23


def test_where_half_never_came_there_is_no_median() -> None:
    assert kaplan_meier_median([1.0], [30.0, 30.0]) == math.inf
    assert kaplan_meier_median([], [30.0]) == math.inf


@given(times)
def test_where_all_came_it_is_the_lower_median(reached: list[float]) -> None:
    assert kaplan_meier_median(reached, []) == median_low(reached)


@given(times, times)
def test_what_was_given_up_late_never_makes_the_median_less(reached: list[float], late: list[float]) -> None:
    beyond = [max(reached) + time for time in late]
    assert kaplan_meier_median(reached, beyond) >= kaplan_meier_median(reached, [])


@given(st.lists(st.integers(1, 9), min_size=1, max_size=15), st.lists(st.integers(1, 9), max_size=15))
def test_the_median_is_that_of_scipy_with_ties_too(reached: list[int], censored: list[int]) -> None:
    surviving = ecdf(CensoredData(uncensored=reached, right=censored)).sf
    steps = zip(surviving.quantiles.tolist(), surviving.probabilities.tolist(), strict=True)
    expected = next((time for time, share in steps if share <= 0.5 + 1e-9), math.inf)
    assert kaplan_meier_median(reached, censored) == expected
