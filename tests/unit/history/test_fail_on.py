"""Which conditions of --fail-on fail a comparison, and which do not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from builders import RATE

from bench.analysis.stats.estimates import Estimate
from bench.analysis.two_samples import TwoSamples
from bench.analysis.two_sessions import SessionRow
from bench.errors import BadInput
from bench.history import fail_on
from bench.history.fail_on import Condition

MIDDLE = Estimate(value=1.0, low=0.9, high=1.1, level=0.95, n=6)


def a_row(verdict, ratio=1.0, stand=""):
    found = TwoSamples(baseline=MIDDLE, candidate=MIDDLE, ratio=replace(MIDDLE, value=ratio), verdict=verdict)
    fields = {"experiment": "inference", "cell": "c01", "title": "", "where": "single", "arm": "ray", "point": ""}
    return SessionRow(**fields, metric=RATE, headline=True, found=found, stand=stand)


def failing(words, *rows, confirmed=False):
    return list(fail_on.failing(fail_on.parse([words]), rows, confirmed=confirmed))


def test_conditions_are_verdicts_with_or_without_a_size():
    assert fail_on.parse(["slower:5%, undecided", "faster"]) == (
        Condition("slower", 0.05),
        Condition("undecided"),
        Condition("faster"),
    )


@pytest.mark.parametrize(
    "word", ["", "slow", "slower:", "slower:5", "slower:x%", "slower:-5%", "slower:nan%", "slower:inf%", "undecided:5%"]
)
def test_what_is_no_condition_is_refused_with_those_there_are(word):
    with pytest.raises(BadInput, match="slower, faster, differs, undecided"):
        fail_on.parse([word])


def test_a_size_is_the_same_both_ways_of_a_ratio():
    little, much, slow_time = a_row("slower", 0.96), a_row("slower", 0.9), a_row("slower", 1.06)
    assert failing("slower:5%", little, much, slow_time) == [much, slow_time]
    assert failing("slower", little, much) == [little, much]
    assert failing("faster", little) == []


def test_what_differs_and_is_neither_better_nor_worse_fails_the_condition_that_names_it():
    changed = a_row("differs", 0.5)
    assert failing("slower,faster", changed) == []
    assert failing("differs:5%", changed) == [changed]


def test_too_few_values_are_undecided_to_the_regression_gate():
    assert len(failing("undecided", a_row(None), a_row("undecided"), a_row("equivalent"))) == 2


def test_where_alarms_were_to_be_confirmed_one_that_was_not_found_again_fails_nothing():
    found, untold, lost = (a_row("slower", 0.5, stand) for stand in ("confirmed", "not confirmed", "not found again"))
    assert failing("slower", found, untold, lost) == [found, untold, lost]
    # What the fresh session could not tell of stands: it had too few pairs, or a noisy host.
    assert failing("slower", found, untold, lost, confirmed=True) == [found, untold]
