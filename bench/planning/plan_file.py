"""Reads and writes plan files: all options of `bench run` in one file of TOML or YAML, checked line by line."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, get_args

import yaml
from msgspec import Meta

from bench import params as parameters
from bench import targets
from bench.errors import BadInput
from bench.experiments import NAMES
from bench.model import Value
from bench.options import Out, RunRequest, choices, declared
from bench.params import Parameter
from bench.planning import plan, plan_text
from bench.planning.plan import Levels
from bench.planning.plan_text import SUFFIXES, Dumper, KeyPath, Language, Text

EXPERIMENTS = "experiments"  # the one table: of each experiment, the params that are set
IN_TABLES = ("experiments", "levels", "sets", "chaos")  # options of which a plan has this table
_FEWEST_EXPERIMENTS: dict[Language, str] = {
    "TOML": "Write [experiments.inference].",
    "YAML": "Write experiments: and, in the next line and indented, inference:",
}


KINDS = (str, int, float, bool, Path)
"""Types of the options that a plan file can hold, beside words of a Literal."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a file asks for: options as the command line has them, and of each experiment the params that are set."""

    options: Mapping[str, Value]
    experiments: Mapping[str, Levels]


def known_options() -> dict[str, Parameter]:
    """The options that a plan may have, as they are declared for the command line."""
    options = {**declared(RunRequest), **targets.declared_options(), "out": Out}
    return {name: _as_parameter(name, annotation) for name, annotation in options.items() if name not in IN_TABLES}


def _as_parameter(name: str, annotation: Any) -> Parameter:
    kind, option = get_args(annotation)[:2]
    one: Any = (
        next((type_ for type_ in get_args(kind) if type_ is not NoneType), kind) if NoneType in get_args(kind) else kind
    )
    if words := choices(annotation):
        one = Literal.__getitem__(words)
    elif one not in KINDS:
        raise TypeError(f"the option {name} must be one of {', '.join(type_.__name__ for type_ in KINDS)}, got {kind}")
    # What stands for a text in the help, as TIME, is no unit of it; of a path it says that `~` may be in it.
    unit = option.metavar if one is not str or option.metavar in parameters.PATHS else ""
    meta = Meta(ge=option.min, le=option.max, description=option.help, extra={"unit": unit or ""})
    return parameters.as_declared(name, Annotated[str if one is Path else one, meta], default="")


def load(path: Path) -> Plan:
    """The plan at `path`. Raises BadInput, with the line."""
    return check(plan_text.read(path))


def check(text: Text) -> Plan:
    """What `text` asks for. Raises BadInput, naming the line and what could have been meant."""
    options: dict[str, Value] = {}
    known = known_options()
    for name, value in text.values.items():
        if name == EXPERIMENTS:
            continue
        if name not in known:
            raise text.wrong((name,), f"unknown option {name}{_nearest(name, [EXPERIMENTS, *known])}")
        options[name] = _value(text, (name,), known[name], value)
    return Plan(options=options, experiments=_experiments(text, str(options.get("profile", "tiny"))))


def _experiments(text: Text, profile: str) -> dict[str, Levels]:
    tables = text.values.get(EXPERIMENTS)
    if not isinstance(tables, dict) or not tables:
        raise text.wrong(
            (EXPERIMENTS,), f"a plan must have a {text.table} of experiments.", _FEWEST_EXPERIMENTS[text.language]
        )
    levels_by_experiment: dict[str, Levels] = {}
    for name, table in tables.items():
        keys = (EXPERIMENTS, name)
        if name not in NAMES:
            raise text.wrong(keys, f"unknown experiment {name}{_nearest(name, NAMES)}")
        subject = plan.experiment(name)
        if profile not in subject.profiles:
            where = ("profile",) if "profile" in text.values else keys
            raise text.wrong(where, f"{name} has no profile {profile}{_nearest(profile, subject.profiles)}")
        if not isinstance(table, dict | None):  # `inference:` with nothing after it is an empty mapping of YAML
            raise text.wrong(keys, f"{name} must be a {text.table} of its parameters, which may be empty.")
        declared = parameters.declared(subject.params)
        levels = (table or {}).items()
        levels_by_experiment[name] = {
            parameter: _levels(text, (*keys, parameter), declared, values) for parameter, values in levels
        }
    return levels_by_experiment


def _levels(text: Text, keys: KeyPath, declared: Mapping[str, Parameter], given: Any) -> tuple[Value, ...]:
    _, of, name = keys
    if name not in declared:
        raise text.wrong(keys, f"{of} has no parameter {name}{_nearest(name, declared)}")
    values = given if isinstance(given, list) else [given]
    if not values:
        raise text.wrong(keys, f"{name} has no value.", "Remove it to use the value of the profile.")
    return tuple(dict.fromkeys(_value(text, keys, declared[name], value) for value in values))


def _value(text: Text, keys: KeyPath, parameter: Parameter, given: Any) -> Value:
    try:
        return parameters.check(parameter, given)
    except BadInput as error:
        raise text.wrong(keys, error.what, error.hint) from None


def _nearest(name: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown `name`: the nearest known one, or all of them."""
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1)
    return f"; did you mean {close[0]}?" if close else f". Choose from: {', '.join(names)}."


def plan_of(request: RunRequest, given: targets.Given, out: Path) -> Plan:
    """A request as a plan: all options that have a value, so that it means the same when a default changes."""
    defaults = {**vars(RunRequest()), **targets.defaults()}
    values = {**vars(request), **targets.defaults(), **given, "out": str(out)}
    unset = {name for name, value in defaults.items() if value in (None, "") and values[name] == value}
    return Plan(
        options={name: values[name] for name in known_options() if name not in unset},
        experiments={name: plan.chosen_levels(request, name) for name in dict.fromkeys(request.experiments)},
    )


def written(wanted: Plan, name: str) -> str:
    """`wanted` as the text of a file called `name`, whose ending says how. Raises BadInput where it says nothing."""
    if not name.endswith(SUFFIXES):
        raise BadInput(f"The name of a plan file must end in {', '.join(SUFFIXES)}, got {name!r}.")
    for option, value in wanted.options.items():
        if isinstance(value, str) and any("\ud800" <= letter <= "\udfff" for letter in value):
            raise BadInput(
                f"{option} {value} has bytes that are not UTF-8, which a plan file cannot hold.",
                f"Leave out --{option.replace('_', '-')} here, and give it to `bench run`.",
            )
    tables = {
        of: {parameter: _one_or_all(values) for parameter, values in set_.items()}
        for of, set_ in wanted.experiments.items()
    }
    if not name.endswith(".toml"):
        document = {**wanted.options, EXPERIMENTS: tables}
        # A next line (U+0085) ends a line of YAML, and would be written as it is: then all is escaped.
        has_next_line = any("\x85" in str(value) for value in wanted.options.values())
        dumped: str = yaml.dump(document, Dumper=Dumper, sort_keys=False, allow_unicode=not has_next_line, width=120)
        return dumped
    lines = _toml(wanted.options)
    for of, values in tables.items():
        lines += ["", f"[{EXPERIMENTS}.{of}]", *_toml(values)]
    return "\n".join(lines) + "\n"


def _one_or_all(values: tuple[Value, ...]) -> Value | list[Value]:
    return values[0] if len(values) == 1 else list(values)


def _toml(values: Mapping[str, Value | list[Value]]) -> list[str]:
    return [f"{name} = {_toml_value(value)}" for name, value in values.items()]


def _toml_value(value: Value | list[Value]) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml_value, value))}]"
    if isinstance(value, str):  # JSON's escapes are TOML's, but for one letter that only TOML must escape
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value).lower() if isinstance(value, bool) else repr(value)
