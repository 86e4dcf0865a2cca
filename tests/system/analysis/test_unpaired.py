"""Simulated sessions find the smallest detectable effect of unpaired invocations."""

from __future__ import annotations

import math
import random

import pytest

from bench.analysis.stats import unpaired


@pytest.mark.parametrize(("m", "n"), [(6, 6), (12, 12), (6, 20)])
def test_the_smallest_effect_is_found_in_four_of_five_simulated_cases(m, n):
    draw, shift = random.Random(2), math.log1p(unpaired.smallest_effect(1.0, m, n))
    found = [
        unpaired.mann_whitney_p([draw.gauss(0, 1) for _ in range(m)], [draw.gauss(shift, 1) for _ in range(n)]) < 0.05
        for _ in range(800)
    ]
    assert sum(found) / len(found) == pytest.approx(0.78, abs=0.055)
