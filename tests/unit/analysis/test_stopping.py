"""A session ends when its intervals are narrow, whatever they say."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import made_up

from bench import analysis
from bench.analysis.stats import estimates
from bench.analysis.stats.estimates import Estimate
from bench.analysis.stopping import half_width, headline_ratios, precision_reached


def a_ratio(logs: list[float]) -> Estimate:
    return estimates.exponential(estimates.hodges_lehmann(logs))


@given(st.integers(0, 10_000), st.integers(12, 30), st.floats(-2, 2), st.floats(0.005, 0.2))
def test_a_constant_added_to_all_log_ratios_never_changes_the_decision(
    seed: int, pairs: int, shift: float, precision: float
) -> None:
    draw = random.Random(seed)
    logs = [draw.gauss(0, 0.05) for _ in range(pairs)]
    width = half_width(a_ratio(logs))
    moved = half_width(a_ratio([log + shift for log in logs]))
    assert width is not None
    assert moved == pytest.approx(width, rel=1e-9, abs=1e-12)
    if abs(width - precision) > 1e-9:
        assert precision_reached([a_ratio(logs)], precision) == precision_reached(
            [a_ratio([log + shift for log in logs])], precision
        )


def test_the_half_width_is_the_same_distance_both_ways() -> None:
    assert half_width(Estimate(value=2.0, low=2 / 1.03, high=2 * 1.03, level=0.95, n=12)) == pytest.approx(0.03)
    assert half_width(Estimate(value=2.0, low=None, high=None, level=None, n=1)) is None


@pytest.mark.parametrize(
    ("pairs", "spread", "reached"), [(12, 0.03, True), (11, 0.03, False), (12, 0.06, False), (12, 0.0, True)]
)
def test_it_takes_twelve_pairs_and_an_interval_within_the_precision(pairs: int, spread: float, reached: bool) -> None:
    ratio = Estimate(value=1.0, low=math.exp(-spread), high=math.exp(spread), level=0.95, n=pairs)
    assert precision_reached([ratio], math.expm1(0.03) + 1e-12) is reached


def test_one_headline_that_is_wide_or_missing_keeps_the_session_going() -> None:
    narrow = Estimate(value=1.0, low=0.99, high=1.01, level=0.95, n=20)
    wide = Estimate(value=1.0, low=0.8, high=1.2, level=0.95, n=20)
    assert precision_reached([narrow, narrow], 0.03)
    assert not precision_reached([narrow, wide], 0.03)
    assert not precision_reached([narrow, None], 0.03)
    assert not precision_reached([], 0.03)


def test_every_headline_of_a_report_is_looked_at() -> None:
    session, runs = made_up(blocks=12, cells=3)
    ratios = headline_ratios(analysis.build(session, runs))
    assert [ratio.n for ratio in ratios if ratio] == [12, 12, 12]
    assert precision_reached(ratios, 0.1)
    assert not precision_reached(headline_ratios(analysis.build(session, runs[:-1])), 0.1)
