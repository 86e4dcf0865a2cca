"""The convergence-point test gives MLPerf's own figures, and finds what converged too soon."""

from __future__ import annotations

import pytest

from bench.analysis.convergence import is_too_fast, reference_point

FIRST = [16, 14, 16, 17, 16, 16, 15, 16, 15, 16]
SECOND = [20, 21, 21, 20, 22, 22, 21, 21, 20, 20]


def test_ten_reference_runs_and_five_of_a_submission_give_the_published_point() -> None:
    point = reference_point(FIRST, 5)
    assert point.mean == pytest.approx(15.75)
    assert point.deviation == pytest.approx(0.433, abs=5e-4)
    assert point.least_mean == pytest.approx(15.2126, abs=5e-5)
    assert point.most_speed_up == pytest.approx(0.0353, abs=5e-5)


def test_another_published_point() -> None:
    point = reference_point(SECOND, 5)
    assert point.least_mean == pytest.approx(19.929, abs=5e-4)
    assert point.most_speed_up == pytest.approx(0.0412, abs=5e-5)


def test_a_submission_below_the_point_is_too_fast_and_one_above_is_not() -> None:
    assert is_too_fast([15, 15, 15, 15, 15], FIRST)
    assert not is_too_fast([16, 15, 15, 16, 15], FIRST)


def test_the_fastest_run_of_a_submission_does_not_condemn_it() -> None:
    assert not is_too_fast([2, 16, 16, 16, 16], FIRST)


def test_too_few_runs_are_refused() -> None:
    with pytest.raises(ValueError, match="each needs 3"):
        reference_point(FIRST, 2)
