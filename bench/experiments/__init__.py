"""What we measure: the contract of an experiment, and the index of those there are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, cast

from bench.context import Context
from bench.errors import BadInput
from bench.metrics import conflict
from bench.model import Arm, Metric, Sample, Value, from_json, to_json


@dataclass(frozen=True, kw_only=True)
class Profile:
    """A named choice of cells and of how often each is measured.

    Each grid is a full factorial of the values that it names; the cells are those of all grids, in order, without repeats.
    """

    help: str
    grids: tuple[Mapping[str, tuple[Value, ...]], ...]
    blocks: int
    warmups: int
    samples: int
    sample_seconds: float
    deadline_seconds: float = 600.0  # of one run


class Experiment(Protocol):
    """The shape of a module in this folder. What it needs before it starts it may say too: see `bench/planning/needs.py`."""

    METRICS: tuple[Metric, ...]  # the headline first
    ARMS: tuple[Arm, ...]  # the subject first
    PROFILES: dict[str, Profile]
    Params: type[Any]  # a frozen dataclass; each field is Annotated[type, Meta(...)]

    def guess_pass_seconds(self, params: Any) -> float:
        """How long one pass of all arms may take on two cores, before any run has said so."""
        ...

    def run(self, params: Any, context: Context) -> Iterator[Sample]:
        """One invocation: start, measure in turns, yield samples."""
        ...


DECLARED = ("METRICS", "ARMS", "PROFILES", "Params", "guess_pass_seconds", "run")
_MODULES = {
    "inference": "bench.experiments.inference",
    "parameter-server": "bench.experiments.parameter_server",
    "network": "bench.experiments.network",
    "core-rates": "bench.experiments.core_rates",
    "granularity": "bench.experiments.granularity",
    "tune-overhead": "bench.experiments.tune_overhead",
    "tune": "bench.experiments.tune",
    "clustering": "bench.experiments.clustering",
    "clustering-kernels": "bench.experiments.clustering_kernels",
    "clustering-files": "bench.experiments.clustering_files",
}
NAMES = tuple(_MODULES)
_OWN_MODULES = {
    "selfcheck": "bench.experiments.selfcheck"
}  # of raymeter itself: in no list, run by a command of its own
ALL_NAMES = (*NAMES, *_OWN_MODULES)


def load(name: str) -> Experiment:
    """The experiment called `name`; its frameworks are not imported before it runs.

    Raises KeyError if there is none, and BadInput where its module is not what an experiment is.
    """
    module = import_module((_MODULES | _OWN_MODULES)[name])
    if lack := flaw(module):
        raise BadInput(f"{module.__name__} is no experiment yet: {lack}.", "docs/extending.md shows one.")
    return cast(Experiment, module)


def flaw(module: Any) -> str:
    """What is wrong with what `module` declares, in words; empty where all is well. No type checker sees what is loaded by name."""
    if lacking := [name for name in DECLARED if not hasattr(module, name)]:
        return f"it has no {' and no '.join(lacking)}"
    for name, kind in (("METRICS", Metric), ("ARMS", Arm)):
        nouns = getattr(module, name)
        if not isinstance(nouns, tuple) or not nouns:
            return f"{name} is no tuple of {kind.__name__}s: (one,) has a comma"
        for noun in nouns:
            try:
                from_json(to_json(noun), kind)
            except ValueError as error:
                return f"{name} has what is no {kind.__name__}: {error}"
    if module.ARMS[0].role != "subject":
        return f"the first of its ARMS, {module.ARMS[0].name}, is not the subject"
    for title, profile in module.PROFILES.items():
        if alone := [name for grid in profile.grids for name, values in grid.items() if not isinstance(values, tuple)]:
            return f"its profile {title} has no tuple of values for {alone[0]}: (4,) has a comma"
    wrong = conflict(module.METRICS)
    return f"of its METRICS {wrong}" if wrong else ""
