"""Each constructor declares its kind, and the direction that is better for most of that kind."""

from __future__ import annotations

from typing import get_args

from bench import metrics
from bench.meanings import SHARED, UNITS, Meaning
from bench.model import Metric


def test_a_constructor_sets_the_kind_and_the_better_direction():
    assert metrics.rate("done_per_second", "jobs/s", "Jobs done.") == Metric(
        name="done_per_second", unit="jobs/s", better="higher", kind="rate", help="Jobs done."
    )
    assert metrics.seconds("took_seconds") == Metric(name="took_seconds", unit="s", better="lower", kind="time")
    assert metrics.size("held_bytes", "B") == Metric(name="held_bytes", unit="B", better="lower", kind="size")
    assert metrics.count("lost", "jobs") == Metric(name="lost", unit="jobs", better="lower", kind="count")
    assert metrics.ratio("share", "1", better="higher") == Metric(name="share", unit="1", better="higher", kind="ratio")


def test_what_few_metrics_have_is_given_by_name():
    curve = metrics.seconds("held_seconds", unit="s/iteration", better="higher", axis="iterations")
    assert (curve.unit, curve.better, curve.axis) == ("s/iteration", "higher", "iterations")


def test_every_meaning_has_a_unit_that_fits():
    assert set(UNITS) == set(get_args(Meaning))
    assert set(SHARED) <= set(UNITS)
