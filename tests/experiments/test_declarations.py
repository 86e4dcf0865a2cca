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
from bench.experiments import Experiment, core_rates
from bench.planning import needs

GOOD = core_rates.EXPERIMENT
ARM, METRIC = core_rates.ARMS[0], core_rates.METRICS[0]
TINY = core_rates.PROFILES["tiny"]
REQUIRED = ("metrics", "arms", "params", "profiles", "guess_pass_seconds", "run")


@pytest.mark.parametrize("name", experiments.ALL_NAMES)
def test_every_experiment_can_be_loaded_and_has_a_summary(name: str) -> None:
    assert isinstance(experiments.load(name), Experiment)
    title, colon, text = experiments.summary(name).partition(": ")
    assert title
    assert colon
    assert text


@pytest.mark.parametrize("name", REQUIRED)
def test_what_was_left_out_is_named(name: str) -> None:
    given = {each: getattr(GOOD, each) for each in REQUIRED if each != name}
    with pytest.raises(TypeError, match=f"missing 1 required keyword-only argument: '{name}'"):
        Experiment(**given)


def test_what_an_experiment_does_not_say_has_a_default() -> None:
    silent = Experiment(**{each: getattr(GOOD, each) for each in REQUIRED})
    params, shape = silent.params(), a_topology()
    silent.check_fits(params, shape)
    silent.check_input(params)
    said = (silent.data_sets, silent.ray_settings, silent.without_effect, silent.faults)
    assert [each(params) for each in said] == [(), {}, (), ""]
    assert (silent.busy_workers(params, shape), silent.tolerates) == (None, None)


@pytest.mark.parametrize(
    ("slip", "message"),
    [
        ({"metrics": METRIC}, r"metrics must be a tuple of Metrics: \(one,\) has a comma"),
        ({"arms": ()}, r"arms must be a tuple of Arms"),
        ({"metrics": (replace(METRIC, better="more"),)}, "Invalid enum value 'more'"),
        ({"arms": (replace(ARM, role="main"),)}, "Invalid enum value 'main'"),
        ({"arms": (replace(ARM, role="peer"),)}, f"The first of the arms must be the subject, and {ARM.name} is not"),
        ({"metrics": (ARM,)}, "metrics must be Metrics: "),
        ({"metrics": (METRIC, METRIC)}, f"The metrics do not go together: two metrics have the name {METRIC.name}"),
        (
            {"profiles": {"tiny": replace(TINY, grids=({"calls": 4},))}},
            "Profile tiny must have a tuple of values for calls",
        ),
    ],
)
def test_a_slip_is_told_in_words(slip: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        replace(GOOD, **slip)


@pytest.mark.parametrize("name", experiments.NAMES)
def test_params_that_say_how_many_work_at_once_are_counted(name: str) -> None:
    module = experiments.load(name)
    options = [
        (field, option)
        for field, hint in get_type_hints(module.params, include_extras=True).items()
        for option in getattr(hint, "__metadata__", ())
    ]
    counted = [field for field, option in options if getattr(option, "metavar", "") in ("ACTORS", "WORKERS", "THREADS")]
    if counted:
        shape = a_topology()
        few, many = (module.busy_workers(module.params(**dict.fromkeys(counted, n)), shape) for n in (1, 8))
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


def test_a_module_without_an_experiment_is_one_line_that_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, core_rates.__name__, SimpleNamespace(__name__=core_rates.__name__))
    with pytest.raises(BadInput, match=r"bench\.experiments\.core_rates must declare EXPERIMENT = Experiment"):
        experiments.load("core-rates")
