"""What an experiment declares is looked at when it is loaded: a slip is a line in words, before anything starts."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, get_type_hints

import pytest
from builders import a_spec, a_topology

from bench import experiments
from bench.errors import BadInput
from bench.experiments import core_rates, flaw
from bench.planning import needs

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


@pytest.mark.parametrize("name", experiments.NAMES)
def test_params_that_say_how_many_work_at_once_are_counted(name: str) -> None:
    module = experiments.load(name)
    options = [
        (field, option)
        for field, hint in get_type_hints(module.Params, include_extras=True).items()
        for option in getattr(hint, "__metadata__", ())
    ]
    counted = [field for field, option in options if getattr(option, "metavar", "") in ("ACTORS", "WORKERS", "THREADS")]
    if counted:
        shape = a_topology()
        few, many = (module.busy_workers(module.Params(**dict.fromkeys(counted, n)), shape) for n in (1, 8))  # type: ignore[attr-defined]
        assert few <= 2 < many


@pytest.mark.parametrize(
    ("experiment", "params", "workers"),
    [
        ("inference", {"actors": 8}, 8),
        ("parameter-server", {"workers": 4}, 4),
        ("tune", {"threads": 3}, 6),
        ("tune", {"samples": 1}, 1),
        ("core-rates", {}, None),
    ],
)
def test_how_many_work_at_once_is_what_the_params_say(
    experiment: str, params: dict[str, int], workers: int | None
) -> None:
    assert needs.complete(a_spec(experiment=experiment, params=params)).busy_workers == workers


def test_a_slip_is_one_line_that_says_where_and_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, core_rates.__name__, SimpleNamespace(__name__=core_rates.__name__))
    with pytest.raises(BadInput, match=r"bench\.experiments\.core_rates is no experiment yet: it has no METRICS and"):
        experiments.load("core-rates")
