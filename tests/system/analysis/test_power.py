"""Simulated sessions find the smallest detectable effect as often as planned."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bench.analysis.stats import estimates, power

SESSIONS = 20_000


@pytest.mark.parametrize("n", [6, 7, 8, 9, 10, 12, 15, 20, 30, 60])
def test_simulated_sessions_find_the_smallest_effect_in_4_of_5_by_the_test_of_the_verdict(n):
    spread = 0.05
    effect = math.log1p(power.smallest_effect(spread, n))
    draws = np.random.default_rng(n).normal(effect, spread, (SESSIONS, n))
    # Both ends of the interval are the Walsh averages of this rank, and as many of these are above 0 as positive ranks add up to.
    first, second = np.triu_indices(n)
    rank = 1 + int(
        np.searchsorted(np.sort(draws[0][first] + draws[0][second]) / 2, estimates.hodges_lehmann(draws[0]).low)
    )
    positive = ((np.abs(draws).argsort(axis=1).argsort(axis=1) + 1) * (draws > 0)).sum(axis=1)
    found = (positive < rank) | (positive > first.size - rank)
    assert found.mean() == pytest.approx(0.8, abs=0.026)
