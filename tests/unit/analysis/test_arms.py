from __future__ import annotations

import pytest
from made_up import RATE

from bench.analysis.arms import arm_row, cost_of_measuring
from bench.analysis.comparison import side
from bench.model import Arm, Metric

SECONDS = Metric(name="end_to_end_seconds", unit="s", better="lower", kind="time")


def a_row(role="peer", *, subject, other, metric=RATE):
    arm = Arm(name="other", help="", role=role)
    sides = [side(dict(enumerate(values, 1))) for values in (other, subject)]
    return arm_row(arm, metric, sides[0], subject=sides[1], topology="single")


def test_the_subject_reaches_a_share_of_the_ceiling():
    row = a_row("ceiling", subject=[50.0] * 6, other=[200.0] * 6)
    assert row.share.value == pytest.approx(0.25)
    assert row.share.n == 6


def test_less_time_is_a_larger_share():
    assert a_row(subject=[1.0] * 6, other=[2.0] * 6, metric=SECONDS).share.value == pytest.approx(2.0)


def test_of_what_is_neither_better_nor_worse_an_arm_only_differs():
    chosen = Metric(name="chunk_bytes", unit="B", better=None, kind="size")
    row = a_row(subject=[1.0] * 6, other=[2.0] * 6, metric=chosen)
    assert (row.verdict, row.subject_is_worse, row.share.value) == ("differs", False, pytest.approx(0.5))


@pytest.mark.parametrize(
    ("subject", "worse"),
    [
        ([90, 91, 89, 92, 90, 88], True),
        ([110] * 6, False),
        ([90, 120, 95, 110, 97, 104], False),
        ([89], False),
        ([10] * 5, False),
        ([99, 98.9, 99.1, 99, 98.9, 99.1], False),
    ],
)
def test_the_subject_is_worse_where_the_interval_of_invocations_enough_is_beyond_the_margin(subject, worse):
    assert a_row(subject=subject, other=[100] * len(subject)).subject_is_worse is worse


def test_only_invocations_that_have_both_arms_count():
    row = a_row(subject=[100, "lost", 100], other=[50, 50, "lost"])
    assert row.share.n == 1


def test_the_subject_has_no_share_of_itself():
    assert a_row("subject", subject=[1.0], other=[1.0]).share is None


def test_measuring_costs_what_the_unwatched_control_does_more():
    cost = cost_of_measuring(a_row("control", subject=[100.0] * 6, other=[103.0] * 6))
    assert cost.value == pytest.approx(0.03)
