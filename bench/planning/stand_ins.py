"""Uses a data set that is here in place of one that the user has not added."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

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


def describe(specs: Sequence[Spec], names: Sequence[str]) -> Iterator[str]:
    """Which stand-ins the experiments in `names` use, as a sentence each."""
    for name in names:
        used = {str(value) for spec in specs if spec.experiment == name for value in spec.params.values()}
        for wanted, instead in load(name).stand_ins.items():
            if instead in used and not seeded.files(wanted):
                yield f"{name} uses {instead}, as the set {wanted} is not here; `bench data seed {wanted} PATH` adds it"
