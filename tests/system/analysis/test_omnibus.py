"""Friedman's test alarms in simulated sessions as often as its level says."""

from __future__ import annotations

import random

from bench.analysis.stats.omnibus import omnibus


def test_of_conditions_that_are_the_same_five_sessions_in_a_hundred_say_otherwise():
    draw, alarms = random.Random(1), 0
    for _ in range(400):
        values = {name: {block: draw.gauss(0, 1) for block in range(12)} for name in "abcd"}
        found = omnibus(values, higher_is_better=True)
        assert found is not None
        alarms += found.is_shown
    assert 8 <= alarms <= 32
