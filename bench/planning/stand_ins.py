"""Uses a data set that is here in place of one that the user has not added."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench import params as parameters
from bench.data import seeded
from bench.experiments import Experiment, load
from bench.model import Spec, Value


def replaced(subject: Experiment[Any], cell: Mapping[str, Value], chosen: Mapping[str, Any]) -> dict[str, Value]:
    """`cell` with a stand-in for each data set that is not here. What was chosen is kept: it is refused where it is missing."""
    return {name: value if name in chosen else _in_place_of(subject, value) for name, value in cell.items()}


def _in_place_of(subject: Experiment[Any], value: Value) -> Value:
    if isinstance(value, str) and value in subject.stand_ins and not seeded.files(value):
        return subject.stand_ins[value]
    return value


def describe(
    specs: Sequence[Spec], profile: str, chosen: Mapping[str, Mapping[str, tuple[Value, ...]]]
) -> Iterator[str]:
    """Which sets stand in for another that `profile` names, as a sentence each. `chosen`: by experiment, in place of it."""
    for name, levels in chosen.items():
        subject = load(name)
        defaults = {each: (parameter.default,) for each, parameter in parameters.declared(subject.params).items()}
        grids = [{**defaults, **grid, **levels} for grid in subject.profiles[profile].grids]
        asked = {value for grid in grids for values in grid.values() for value in values}
        used = {str(value) for spec in specs if spec.experiment == name for value in spec.params.values()}
        for wanted, instead in subject.stand_ins.items():
            if wanted in asked and instead in used and not seeded.files(wanted):
                yield f"{name} uses {instead}, as the set {wanted} is not here; `bench data seed {wanted} PATH` adds it"
