"""What we measure: the contract of an experiment, and the index of those there are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, cast

from bench.context import Context
from bench.model import Arm, Metric, Sample, Value


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
    Params: type[Any]  # a frozen dataclass: type, bounds, default, unit and help of each parameter

    def guess_pass_seconds(self, params: Any) -> float:
        """How long one pass of all arms may take on two cores, before any run has said so."""
        ...

    def run(self, params: Any, context: Context) -> Iterator[Sample]:
        """One invocation: start, measure in turns, yield samples."""
        ...


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
    """The experiment called `name`. KeyError if there is none; its frameworks are not imported before it runs."""
    return cast(Experiment, import_module((_MODULES | _OWN_MODULES)[name]))
