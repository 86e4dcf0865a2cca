"""Makes the JSON schema of plan files, for editors, from the declarations that plans are checked against."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from bench import params as parameters
from bench.experiments import NAMES
from bench.params import Parameter
from bench.planning import plan
from bench.planning.plan_file import EXPERIMENTS, known_options

VERSION = 1  # of what the keys mean; a parameter more or less is no new version


def schema() -> dict[str, Any]:
    """What a plan may say, in JSON Schema 2020-12.

    What no schema can say is left to `bench plan --plan`: params that do not go together, and an experiment without the
    profile that is asked for.
    """
    subjects = {name: plan.experiment(name) for name in NAMES}
    profiles = list(dict.fromkeys(profile for subject in subjects.values() for profile in subject.profiles))
    options = {name: _value(parameter) for name, parameter in known_options().items()}
    options["profile"]["enum"] = profiles
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:raymeter:plan:{VERSION}",
        "title": "raymeter plan",
        "type": "object",
        "required": [EXPERIMENTS],
        "additionalProperties": False,
        "properties": {
            **options,
            EXPERIMENTS: {
                "description": "Of each experiment, the params that are set, to one value or to several in turn.",
                "type": "object",
                "minProperties": 1,
                "additionalProperties": False,
                "properties": {name: _table(parameters.declared(subject.params)) for name, subject in subjects.items()},
            },
        },
    }


def _table(declared: Mapping[str, Parameter]) -> dict[str, Any]:
    return {
        "type": ["object", "null"],  # YAML: a name with nothing after it
        "additionalProperties": False,
        "properties": {name: _one_or_several(parameter) for name, parameter in declared.items()},
    }


def _one_or_several(parameter: Parameter) -> dict[str, Any]:
    one = _value(parameter)
    about = {"description": one.pop("description"), "default": parameter.default}
    return {**about, "anyOf": [one, {"type": "array", "minItems": 1, "items": one}]}


def _value(parameter: Parameter) -> dict[str, Any]:
    """One value, with the bounds that `parameter` has."""
    unit = f" Unit: {parameter.unit}." if parameter.unit else ""
    return {**msgspec.json.schema(parameter.annotation), "description": f"{parameter.help}{unit}"}
