"""Scaling: golden arithmetic, a law that is found again in simulated values, and refusals where it cannot be."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated_scaling import LADDER, simulated

from bench.analysis.stats import scaling


def test_four_times_as_fast_on_ten_workers_is_a_serial_sixth() -> None:
    assert scaling.karp_flatt(4.0, 10) == pytest.approx(0.1667, abs=5e-5)


@given(fraction=st.floats(0.0, 1.0), times=st.integers(2, 1_000))
def test_karp_and_flatt_find_amdahls_serial_fraction_again(fraction: float, times: int) -> None:
    speed_up = 1 / (fraction + (1 - fraction) / times)
    assert scaling.karp_flatt(speed_up, times) == pytest.approx(fraction, abs=1e-6)


def test_the_peak_of_the_law_is_where_it_was_published() -> None:
    assert scaling.best_workers(0.1, 0.002) == pytest.approx(21.2, abs=0.05)
    assert scaling.best_workers(0.1, 0.0) == math.inf


@pytest.mark.parametrize("seed", range(2))
def test_ten_blocks_at_five_per_cent_of_noise_give_the_published_ranges(seed: int) -> None:
    law = scaling.card(simulated(LADDER, noise=0.05, blocks=10, seed=seed), cpus=10).law
    assert law is not None
    assert law.name == "USL"
    assert law.contention is not None
    assert law.coherency is not None
    assert law.best_workers is not None
    # 95 % ranges of 300 fits, a little wider: these are two of them.
    assert 0.08 <= law.contention.value <= 0.12
    assert 0.001 <= law.coherency.value <= 0.0031
    assert 17 <= law.best_workers.value <= 27
    assert law.best_workers.low <= law.best_workers.value <= law.best_workers.high <= 40


def test_three_points_are_refused_and_neither_coherency_nor_peak_is_told() -> None:
    card = scaling.card(simulated((1, 2, 4), noise=0.05, blocks=10, seed=1), cpus=2)
    assert card.law is None
    assert card.refusal == "a law of scaling needs 6 distinct numbers of workers, and there are: 1, 2, 4"
    assert [point.workers for point in card.points] == [1, 2, 4]


def test_a_block_or_two_have_no_interval_and_so_no_law() -> None:
    values = {n: {block: float(n) for block in (1, 2)} for n in range(1, 7)}
    found = scaling.card(values, cpus=2)
    assert found.law is None
    assert found.refusal == "the intervals of a law need 3 blocks of each number of workers, and one has 2"
    assert len(found.points) == 6


def test_no_peak_is_told_beyond_twice_what_was_measured() -> None:
    law = scaling.fit(simulated((1, 2, 3, 4, 5, 6), noise=0.001, blocks=10, seed=1), cpus=4)
    assert law.best_workers is None
    assert any("too far to foretell" in reason or "coherency" in reason for reason in law.reasons)


def test_amdahls_law_has_no_peak() -> None:
    law = scaling.fit(simulated(LADDER, noise=0.02, blocks=10, seed=4, coherency=0.0), cpus=10)
    assert law.best_workers is None
    assert law.contention is not None
    assert law.contention.value == pytest.approx(0.1, abs=0.02)


def test_points_are_ratios_inside_the_blocks_and_those_beyond_the_cpus_are_marked() -> None:
    card = scaling.card({1: {1: 10.0, 2: 20.0}, 2: {1: 15.0, 2: 30.0}, 4: {1: 20.0, 2: 40.0}}, cpus=2)
    assert [point.speed_up for point in card.points] == [1.0, 1.5, 2.0]
    assert [point.efficiency for point in card.points] == [1.0, 0.75, 0.5]
    assert [point.is_crowded for point in card.points] == [False, False, True]
    assert card.points[0].serial_fraction is None
    assert card.points[2].serial_fraction == pytest.approx(1 / 3)


def test_a_scaling_series_that_fits_on_the_cpus_says_that_the_decline_was_not_seen() -> None:
    law = scaling.fit(simulated(LADDER, noise=0.05, blocks=10, seed=1), cpus=64)
    assert any("the decline was not seen" in reason for reason in law.reasons)


def test_nothing_measured_is_an_empty_card_with_its_reason() -> None:
    card = scaling.card({}, cpus=2)
    assert card.points == ()
    assert card.refusal is not None
