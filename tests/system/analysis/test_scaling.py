"""Fits of simulated throughputs: intervals hold the truth, and noise tells no peak."""

from __future__ import annotations

from simulated_scaling import LADDER, simulated

from bench.analysis.stats import scaling


def test_intervals_of_the_coherency_hold_the_truth_most_of_the_time() -> None:
    held = 0
    for seed in range(6):
        law = scaling.fit(simulated(LADDER, noise=0.05, blocks=10, seed=100 + seed), cpus=10)
        held += law.coherency is not None and law.coherency.low <= 0.002 <= law.coherency.high
    assert held >= 4


def test_three_noisy_blocks_tell_no_best_number_of_workers() -> None:
    laws = [scaling.fit(simulated(LADDER, noise=0.10, blocks=3, seed=seed), cpus=10) for seed in range(5)]
    untold = [law for law in laws if law.best_workers is None]
    assert len(untold) >= 2
    assert all(law.reasons for law in untold)
