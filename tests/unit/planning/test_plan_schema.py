"""The JSON schema of plan files: it takes what the check takes, and refuses what the check refuses."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from repository import ROOT

from bench import params
from bench.errors import BadInput
from bench.experiments import NAMES
from bench.planning import plan, plan_file, plan_schema, plan_text

PLANS = sorted([*(ROOT / "examples").glob("*.toml"), *(ROOT / "docs").glob("*plan*.toml")])


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    made = plan_schema.schema()
    jsonschema.Draft202012Validator.check_schema(made)
    return jsonschema.Draft202012Validator(made)


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_every_plan_that_comes_with_the_project_is_valid(validator: Any, path: Path) -> None:
    validator.validate(tomllib.loads(path.read_text()))


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("profile = 'tiny'", []),
        ("experiments = {}", ["experiments"]),
        ("profil = 'tiny'\nexperiments.inference = {}", []),
        ("profile = 'huge'\nexperiments.inference = {}", ["profile"]),
        ("topology = 'ring'\nexperiments.inference = {}", ["topology"]),
        ("nodes = 0\nexperiments.inference = {}", ["nodes"]),
        ("seed = '1'\nexperiments.inference = {}", ["seed"]),
        ("experiments.inferense = {}", ["experiments"]),
        ("experiments.inference.btach = 1", ["experiments", "inference"]),
        ("experiments.inference.batch = 0", ["experiments", "inference", "batch"]),
        ("experiments.inference.batch = []", ["experiments", "inference", "batch"]),
        ("experiments.inference.batch = [1, true]", ["experiments", "inference", "batch"]),
        ("experiments.inference.dtype = 'float7'", ["experiments", "inference", "dtype"]),
    ],
)
def test_a_mistake_that_the_check_finds_the_schema_finds_at_its_place(
    validator: Any, text: str, place: list[str]
) -> None:
    with pytest.raises(BadInput):
        plan_file.check(plan_text.parse("plan.toml", text))
    assert place in [list(error.absolute_path) for error in validator.iter_errors(tomllib.loads(text))]


@pytest.mark.parametrize("of", NAMES)
def test_each_parameter_may_have_its_default_and_its_bounds_and_nothing_beyond(validator: Any, of: str) -> None:
    for name, declared in params.declared(plan.experiment(of).params).items():

        def valid(value: object, name: str = name) -> bool:
            return bool(validator.is_valid({"experiments": {of: {name: value}}}))

        assert valid(declared.default)
        assert valid([declared.default])
        assert not valid({})
        for bound, beyond in ((declared.minimum, -1), (declared.maximum, 1)):
            if bound is not None:
                assert valid(bound)
                assert not valid(bound + beyond)


def test_all_options_of_a_plan_are_in_it(validator: Any) -> None:
    assert validator.schema["properties"].keys() == plan_file.known_options().keys() | {"experiments"}


def test_the_command_prints_it_though_no_experiment_is_named() -> None:
    said = subprocess.run(
        [sys.executable, "-m", "bench.cli", "plan", "--schema"], check=True, capture_output=True, text=True, timeout=60
    )
    assert json.loads(said.stdout) == plan_schema.schema()
