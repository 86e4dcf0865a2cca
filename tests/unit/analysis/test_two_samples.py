"""One number in two sessions: what the verdict keeps to, in seeded simulations and for any values."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up import RATE

from bench.analysis.two_samples import two_samples
from bench.model import Metric

SECONDS = Metric(name="end_to_end_seconds", unit="s", better="lower", kind="time")
values = st.lists(st.floats(0.5, 2.0), min_size=6, max_size=10)


def found(one, other, metric=RATE, **changes):
    return two_samples(metric, one, other, **{"margin": 0.02} | changes)


def test_fewer_than_6_of_a_session_give_numbers_and_no_verdict():
    few = found([1.0] * 5, [2.0] * 9)
    assert (few.ratio.value, few.verdict) == (2.0, None)
    assert few.why == "5 and 9 invocations, and a verdict needs 6 of each session"


def test_a_zero_has_no_ratio():
    none = found([1.0, 0.0], [1.0, 2.0])
    assert (none.ratio, none.verdict, none.p) == (None, None, None)
    assert "above zero" in none.why


def test_undecided_says_what_it_could_have_found_and_what_it_takes():
    undecided = found([95, 105, 98, 103, 91, 108], [96, 104, 99, 102, 92, 107])
    assert undecided.verdict == "undecided"
    assert f"it takes {undecided.needed} of each session" in undecided.why


def test_less_time_is_faster():
    assert found([1.0, 1.01, 1.02, 1.03, 1.04, 1.05], [0.5, 0.51, 0.52, 0.53, 0.54, 0.55], SECONDS).verdict == "faster"


def test_stalls_in_a_few_invocations_are_flagged():
    steady = [100 + x / 20 for x in range(20)]
    assert found(steady, [*steady[:15], 50, 48, 52, 51, 49]).skewed
    assert not found(steady, [*steady[:15], 100, 101, 99, 100, 100]).skewed


@settings(deadline=None, max_examples=30)
@given(values, values, st.floats(0.01, 100))
def test_scaling_both_sessions_changes_nothing(one, other, factor):
    before, after = found(one, other), found([factor * x for x in one], [factor * x for x in other])
    assert _interval(after.ratio) == pytest.approx(_interval(before.ratio))


@settings(deadline=None, max_examples=30)
@given(values, values)
def test_swapping_the_sessions_inverts_the_ratio_and_the_verdict(one, other):
    there, back = found(one, other), found(other, one)
    value, low, high = _interval(there.ratio)
    assert _interval(back.ratio) == pytest.approx((1 / value, 1 / high, 1 / low))
    turned = {"faster": "slower", "slower": "faster"}
    at_margin = any(math.isclose(x, y) for x in (value, low, high) for y in (1.0, 1.02, 1 / 1.02))
    assert at_margin or turned.get(there.verdict, there.verdict) == back.verdict
    assert back.smallest_effect == pytest.approx(there.smallest_effect)


@settings(deadline=None, max_examples=30)
@given(values)
def test_a_session_beside_itself_is_never_an_alarm(same):
    beside = found(same, same)
    assert beside.ratio.value == pytest.approx(1.0)
    assert beside.verdict in ("equivalent", "undecided")
    assert beside.p == 1.0


@settings(deadline=None, max_examples=30)
@given(values, values, st.randoms())
def test_the_order_of_invocations_says_nothing(one, other, draw):
    before = found(one, other)
    one, other = draw.sample(one, len(one)), draw.sample(other, len(other))
    after = found(one, other)
    assert _interval(after.ratio) == pytest.approx(_interval(before.ratio))
    assert after.verdict == before.verdict


def _interval(estimate):
    return (estimate.value, estimate.low, estimate.high)
