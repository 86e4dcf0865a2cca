"""Intervals of simulated pairs hold the true value as often as they promise."""

from __future__ import annotations

import random

from bench.analysis.stats import estimates


def test_the_interval_covers_the_truth_as_often_as_it_says():
    draw = random.Random(5)
    hits = 0
    for _ in range(400):
        found = estimates.hodges_lehmann([draw.gauss(0.0, 0.05) for _ in range(10)])
        hits += found.low <= 0 <= found.high
    assert 0.92 <= hits / 400 <= 0.99
