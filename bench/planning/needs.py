"""What an experiment needs before anything starts, and what it leaves: nodes that are large enough, sets that a person has seeded.

An experiment says so, if it has to, in `check_fits(params, topology)`, which raises, in `data_sets(params)`, which names sets, in
`breaks_cluster(params)`: whether it takes nodes away or adds some on purpose, in `ray_settings(params)`: what its nodes are
started with, in `busy_workers(params, topology)`: how many workers compute at once, where params say so, in `without_effect(params)`:
which params change nothing beside the others, and in `check_input(params)`, which raises where a file of the user's own on this machine is not good. One that has `CHAOS` takes a plan of
`bench/faults.py`: see `bench/experiments/toolkit/fault_injector.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench import faults
from bench.cluster import profiling
from bench.data import seeded
from bench.errors import BadInput, did_you_mean
from bench.experiments import NAMES, load
from bench.experiments.toolkit.fault_injector import Survives
from bench.model import Spec, Topology
from bench.stacks import PROFILERS


def check(spec: Spec, topologies: Sequence[Topology], target: str) -> None:
    """Raise what the experiment of `spec` has against a topology, or its chaos against the target, and DataMissing where a set was not seeded."""
    if befalls := str(spec.params.get("chaos", "")):
        check_chaos(spec.experiment, befalls)
        faults.check_target(befalls, target)
    check_fits(spec, topologies)
    experiment = load(spec.experiment)
    check_input: Callable[[Any], None] | None = getattr(experiment, "check_input", None)
    if check_input is not None and target == "local":  # whose driver runs here, and sees the same files
        check_input(experiment.Params(**spec.params))
    seeded_files(spec)


def check_fits(spec: Spec, topologies: Sequence[Topology]) -> None:
    """Raise what the experiment of `spec` has against a topology."""
    experiment = load(spec.experiment)
    refuse: Callable[[Any, Topology], None] | None = getattr(experiment, "check_fits", None)
    if refuse is not None:
        for topology in topologies:
            refuse(experiment.Params(**spec.params), topology)


def check_profiler(name: str, target: str) -> None:
    """Raise BadInput where there is no profiler `name`, or it cannot be used here. What other machines allow, they say."""
    if name not in PROFILERS:
        raise BadInput(
            f"--profile-with {name}: there is no such.",
            f"{did_you_mean(name, PROFILERS)}There are: {', '.join(PROFILERS)}.",
        )
    if target == "local" and (lack := profiling.lack(name)):
        raise BadInput(f"--profile-with {name}: {lack}.", "Mend that, or name another.")


def check_chaos(name: str, plan: str = "") -> None:
    """Raise BadInput where the experiment `name` does not get over all kinds of `plan`: its `CHAOS` says which it does."""
    survives: Survives | None = getattr(load(name), "CHAOS", None)
    if survives is None:
        allow = [each for each in NAMES if getattr(load(each), "CHAOS", None)]
        raise BadInput(
            f"--chaos: {name} allows none, for any loss makes its run invalid.", f"These allow it: {', '.join(allow)}."
        )
    faults.read_plan(plan, survives.kinds)


def seeded_files(spec: Spec) -> list[Path]:
    """The files of the seeded sets that `spec` needs. Raises DataMissing where one is not here."""
    experiment = load(spec.experiment)
    name_sets: Callable[[Any], Sequence[str]] | None = getattr(experiment, "data_sets", None)
    named = name_sets(experiment.Params(**spec.params)) if name_sets is not None else ()
    return [seeded.find(name) for name in named if name in seeded.NAMES]


def busy_workers(spec: Spec) -> int | None:
    """Processes and threads of `spec` that compute at once, where their number does not follow from that of CPUs."""
    experiment = load(spec.experiment)
    count: Callable[[Any, Topology], int] | None = getattr(experiment, "busy_workers", None)
    return count(experiment.Params(**spec.params), spec.topology) if count is not None else None


def without_effect(experiment: Any, params: Any) -> Collection[str]:
    """Names of the parameters of `params` that change nothing beside the others, where the experiment says so."""
    name: Callable[[Any], Collection[str]] | None = getattr(experiment, "without_effect", None)
    return name(params) if name is not None else ()


def breaks_cluster(spec: Spec) -> bool:
    """Whether `spec` takes nodes away on purpose: that they are gone is then no fault, and the next run needs a new cluster."""
    experiment = load(spec.experiment)
    breaks: Callable[[Any], bool] | None = getattr(experiment, "breaks_cluster", None)
    return breaks is not None and breaks(experiment.Params(**spec.params))


def ray_settings(spec: Spec) -> Mapping[str, str]:
    """Settings of Ray that `spec` varies, without the RAY_ before them. Nodes read them as they start: others take another cluster."""
    experiment = load(spec.experiment)
    settings: Callable[[Any], Mapping[str, str]] | None = getattr(experiment, "ray_settings", None)
    return settings(experiment.Params(**spec.params)) if settings is not None else {}
