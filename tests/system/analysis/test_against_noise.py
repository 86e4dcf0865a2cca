"""The design against noise as it is on a shared machine: what A..A B..B calls different, and what raymeter does.

Series are AR(1), with the correlation and spread that were measured of a fixed piece of work on a quiet machine (lag 1: 0.73,
3 %) and on a busy one (0.83, 23 %). raymeter's side is its own plan and its own comparison, not a copy of them.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from made_up import RATE
from scipy.signal import lfilter
from scipy.stats import ttest_ind

from bench.analysis.comparison import compare, side
from bench.options import RunRequest
from bench.planning import plan

SESSIONS = 200
BLOCKS = 12
NOISES = [(0.75, 0.03), (0.85, 0.03), (0.75, 0.23), (0.85, 0.23)]


def correlated(length, *, phi, cv, seed):
    """Logs of an AR(1) process of that spread, from its stationary distribution on."""
    draw = np.random.default_rng(seed)
    steps = draw.normal(0, cv * math.sqrt(1 - phi**2), length)
    steps[0] = draw.normal(0, cv)
    return lfilter([1.0], [1.0, -phi], steps)


@cache
def order(seed, blocks=BLOCKS):
    """(block, topology) of one cell's invocations, in the order in which raymeter would run them."""
    shape = RunRequest(experiments=("inference",), cpus=2, blocks=blocks, seed=seed)
    return tuple((spec.block, spec.topology.name) for spec in plan.make(shape).specs if spec.cell == "c01")


def compared(series, *, seed, blocks=BLOCKS, effect=0.0):
    """The comparison of a session whose n-th invocation meets the n-th value of `series`; multi is `effect` slower."""
    sides = {"single": {}, "multi": {}}
    for (block, topology), log in zip(order(seed, blocks), series, strict=True):
        sides[topology][block] = 1000 * math.exp(log) * (1 - effect if topology == "multi" else 1)
    return compare(RATE, {name: side(found) for name, found in sides.items()}, baseline="single", candidate="multi")


def differs(ratio):
    return not ratio.low <= 1 <= ratio.high


@pytest.mark.parametrize(("phi", "cv"), NOISES)
def test_one_after_the_other_calls_the_same_thing_different(phi, cv):
    alarms = 0
    for seed in range(SESSIONS):
        series = np.exp(correlated(2 * BLOCKS, phi=phi, cv=cv, seed=seed))
        alarms += ttest_ind(series[:BLOCKS], series[BLOCKS:], equal_var=False).pvalue < 0.05
    assert alarms > 0.2 * SESSIONS


@pytest.mark.parametrize(("phi", "cv"), NOISES)
def test_raymeters_plan_and_comparison_do_not(phi, cv):
    found = [compared(correlated(2 * BLOCKS, phi=phi, cv=cv, seed=seed), seed=seed) for seed in range(SESSIONS)]
    assert sum(differs(each.ratio) for each in found) <= 0.07 * SESSIONS
    assert sum(each.verdict in ("faster", "slower") for each in found) <= 0.07 * SESSIONS


@pytest.mark.parametrize(("phi", "cv"), [(0.8, 0.03), (0.8, 0.10), (0.8, 0.16)])
def test_an_injected_tenth_is_found_where_the_session_says_that_it_can(phi, cv):
    found = [
        compared(correlated(2 * BLOCKS, phi=phi, cv=cv, seed=seed), seed=seed, effect=0.1) for seed in range(SESSIONS)
    ]
    # 10 % less is a ratio of 0.9, and 1/0.9 - 1 = 11.1 % is the difference in the unit of `smallest_effect`
    able = [each for each in found if each.smallest_effect <= 1 / 0.9 - 1]
    assert len(able) >= 50
    assert sum(each.verdict == "slower" for each in able) >= 0.8 * len(able)


def test_where_a_session_cannot_show_a_tenth_it_says_so():
    found = [compared(correlated(2 * BLOCKS, phi=0.75, cv=0.5, seed=seed), seed=seed, effect=0.1) for seed in range(50)]
    assert all(each.smallest_effect > 0.1 for each in found)
    assert sum(each.verdict == "undecided" for each in found) > 40


@pytest.mark.parametrize("seed", range(5))
def test_a_drift_of_20_percent_cancels_in_the_order_of_a_plan_and_not_in_blocks_of_one_topology(seed):
    blocks = 6
    drift = np.linspace(0, math.log(0.8), 2 * blocks)
    ours = compared(drift, seed=seed, blocks=blocks).ratio.value
    half = len(drift) // 2
    theirs = math.exp(drift[half:].mean() - drift[:half].mean())
    assert abs(ours - 1) < 0.01
    assert abs(theirs - 1) > 0.05
