"""What an experiment declares is looked at when it is loaded: a slip is a line in words, before anything starts."""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, get_type_hints

import pytest
from builders import a_spec, a_topology
from msgspec import Meta

from bench import experiments
from bench import params as parameters
from bench.errors import BadInput
from bench.experiments import Experiment, core_rates
from bench.options import RunRequest
from bench.planning import needs

GOOD = core_rates.EXPERIMENT
ARM, METRIC = core_rates.ARMS[0], core_rates.METRICS[0]
TINY = core_rates.PROFILES["tiny"]
REQUIRED = ("metrics", "arms", "params", "profiles", "guess_pass_seconds", "run")


@dataclass(frozen=True)
class Unannotated:
    calls: int = 1


@dataclass(frozen=True)
class OutOfBounds:
    calls: Annotated[int, Meta(ge=1)] = 0


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
        (
            {"profiles": {"tiny": replace(TINY, grids=({"cals": (4,)},))}},
            "Profile tiny varies cals, which is no parameter",
        ),
        ({"profiles": {"tiny": replace(TINY, grids=({"calls": (0,)},))}}, "calls must be an integer from 1"),
        ({"params": Unannotated}, r"params must be a frozen dataclass: Unannotated\.calls must be Annotated"),
        ({"params": int}, "params must be a frozen dataclass"),
        ({"params": OutOfBounds}, "calls must be an integer of at least 1, got 0"),
        ({"metrics": (replace(METRIC, name="task rate"),)}, "a name must have letters a-z, digits and _ only"),
        ({"metrics": (replace(METRIC, unit="tasks"),)}, r"a rate, must match \.\+/s, got 'tasks'"),
    ],
)
def test_a_wrong_declaration_is_explained(slip: dict[str, Any], message: str) -> None:
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
    counted = [
        field
        for field, option in options
        if (getattr(option, "extra", None) or {}).get("unit") in {"ACTORS", "WORKERS", "THREADS"}
    ]
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
        ("tune", {"trials": 1}, 1),
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


@pytest.mark.parametrize("field", ["blocks", "samples"])
def test_a_profile_that_measures_nothing_is_refused(field: str) -> None:
    with pytest.raises(BadInput, match=f"{field} of a profile must be 1 or more, got 0"):
        replace(TINY, **{field: 0})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '"""X."""\nfrom bench.metrics import rate\nR = rate("r", "x/s", means="nonsense")',
            "line 3: r must mean one of",
        ),
        ('"""X."""\nfrom bench.metrics import rate\nR = rate("r", 3)', "line 3: .*string"),
        ('"""X."""\nfrom bench.experiments import Profile\nP = Profile(help="")', "line 3: .*missing"),
    ],
)
def test_a_slip_that_python_meets_on_import_is_told_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    (tmp_path / "slipped.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(experiments._MODULES, "core-rates", "slipped")
    with pytest.raises(BadInput, match=rf"slipped\.py, {message}"):
        experiments.load("core-rates")


def test_a_module_that_does_not_begin_with_its_title_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core_rates, "__doc__", "What Ray does.")
    with pytest.raises(BadInput, match="must begin with its title, a colon and what it does"):
        experiments.summary("core-rates")


@pytest.mark.parametrize("name", experiments.NAMES)
def test_no_parameter_has_the_name_of_an_option_that_means_something_else(name: str) -> None:
    options = {field.name for field in fields(RunRequest)}
    assert {*parameters.declared(experiments.load(name).params)} & options <= {"chaos"}  # the same in both
