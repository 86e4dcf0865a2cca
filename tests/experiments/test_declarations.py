"""What an experiment declares is looked at when it is loaded: a slip is a line in words, before anything starts."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from bench import experiments
from bench.errors import BadInput
from bench.experiments import core_rates, flaw

GOOD = {name: getattr(core_rates, name) for name in experiments.DECLARED}
ARM, METRIC = core_rates.ARMS[0], core_rates.METRICS[0]
TINY = core_rates.PROFILES["tiny"]


@pytest.mark.parametrize("name", experiments.ALL_NAMES)
def test_every_experiment_declares_what_it_must(name: str) -> None:
    assert flaw(experiments.load(name)) == ""


@pytest.mark.parametrize("name", experiments.DECLARED)
def test_what_was_left_out_is_named(name: str) -> None:
    assert flaw(SimpleNamespace(**{key: value for key, value in GOOD.items() if key != name})) == f"it has no {name}"


@pytest.mark.parametrize(
    ("slip", "words"),
    [
        ({"METRICS": METRIC}, "METRICS is no tuple of Metrics"),
        ({"ARMS": ()}, "ARMS is no tuple of Arms"),
        ({"METRICS": (replace(METRIC, better="more"),)}, "Invalid enum value 'more'"),
        ({"ARMS": (replace(ARM, role="main"),)}, "Invalid enum value 'main'"),
        ({"ARMS": (replace(ARM, role="peer"),)}, f"the first of its ARMS, {ARM.name}, is not the subject"),
        ({"METRICS": (ARM,)}, "METRICS has what is no Metric"),
        ({"PROFILES": {"tiny": replace(TINY, grids=({"calls": 4},))}}, "profile tiny has no tuple of values for calls"),
    ],
)
def test_a_slip_is_told_in_words(slip: dict[str, Any], words: str) -> None:
    assert words in flaw(SimpleNamespace(**GOOD | slip))


def test_a_slip_is_one_line_that_says_where_and_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, core_rates.__name__, SimpleNamespace(__name__=core_rates.__name__))
    with pytest.raises(BadInput, match=r"bench\.experiments\.core_rates is no experiment yet: it has no METRICS and"):
        experiments.load("core-rates")
