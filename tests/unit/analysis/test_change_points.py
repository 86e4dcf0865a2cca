"""Change points: found where they are, of the right size, and seldom where there are none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.analysis.stats.change_points import FEWEST, change_points


def levels(*parts, noise=0.02, seed=1):
    draw = np.random.default_rng(seed)
    return [level * float(np.exp(draw.normal(0, noise))) for level, count in parts for _ in range(count)]


def test_a_step_is_found_where_it_is_with_its_size():
    (point,) = change_points(levels((1000, 7), (800, 7)))
    assert point.position == 7
    assert point.ratio == pytest.approx(0.8, rel=0.03)
    assert (point.before, point.after) == (pytest.approx(1000, rel=0.03), pytest.approx(800, rel=0.03))
    assert point.p <= 0.05


def test_two_steps_are_found():
    assert [point.position for point in change_points(levels((100, 10), (130, 12), (100, 9)))] == [10, 22]


def test_10_sessions_are_the_fewest_and_enough_for_a_clear_step():
    assert [point.position for point in change_points(levels((1, 5), (2, 5)))] == [5]
    with pytest.raises(ValueError, match="9 values are not enough history"):
        change_points([1.0] * (FEWEST - 1))


def test_one_odd_session_and_a_series_that_never_varies_are_no_change():
    assert change_points([*levels((100, 7)), 20.0, *levels((100, 7), seed=2)]) == ()
    assert change_points([5.0] * 12) == ()


def test_a_value_of_zero_has_a_change_without_a_ratio():
    (point,) = change_points([0.0, 0.1, 0.0, 0.2, 0.1, 3.0, 3.1, 3.2, 3.0, 3.3])
    assert (point.position, point.ratio) == (5, None)


@settings(deadline=None, max_examples=20)
@given(st.lists(st.floats(0.5, 2.0), min_size=10, max_size=20), st.sampled_from([0.25, 8.0, 1024.0]))
def test_the_unit_changes_nothing(values, factor):
    one, other = change_points(values), change_points([factor * x for x in values])
    assert [(p.position, p.p) for p in one] == [(p.position, p.p) for p in other]
    assert [p.ratio for p in one] == pytest.approx([p.ratio for p in other])
