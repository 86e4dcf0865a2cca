"""Asks an experiment, once, what its runs need. All that is asked again while they run becomes a part of their Specs.

An experiment says so, if it has to, in `check_fits(params, topology)`, which raises, in `data_sets(params)`, which names sets, in
`breaks_cluster(params)`: whether it takes nodes away or adds some on purpose, in `ray_settings(params)`: what its nodes are
started with, in `busy_workers(params, topology)`: how many workers compute at once, where params say so, in `without_effect(params)`:
which params change nothing beside the others, and in `check_input(params)`, which raises where a file of the user's own on this machine is not good. One that has `CHAOS` takes a plan of
faults: see `bench/experiments/toolkit/faults.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from bench.cluster import profiling
from bench.data import seeded
from bench.errors import BadInput, did_you_mean
from bench.experiments import NAMES, load
from bench.experiments.toolkit import faults
from bench.model import Spec, Topology
from bench.stacks import PROFILERS

JOB_SECONDS = 7.0  # a run's job around its work: a guess


def check(spec: Spec, topologies: Sequence[Topology], target: str) -> None:
    """Raise what the experiment of `spec` has against a topology, or its faults against the target, and DataMissing where a set was not seeded."""
    if planned := _planned_faults(spec):
        check_chaos(spec.experiment, planned)
        faults.check_target(planned, target)
    experiment = load(spec.experiment)
    params = experiment.Params(**spec.params)
    for topology in topologies:
        _ask(experiment, "check_fits", params, topology)
    if target == "local":  # whose driver runs here, and sees the same files
        _ask(experiment, "check_input", params)
    for name in _seeded_sets(experiment, params):
        seeded.find(name)


def complete(spec: Spec) -> Spec:
    """`spec` with all that its experiment says of its params, and of its topology."""
    experiment = load(spec.experiment)
    params = experiment.Params(**spec.params)
    pass_seconds = experiment.guess_pass_seconds(params)
    # A turn lasts as long as its samples must, or one pass.
    turn_seconds = max(pass_seconds, len(experiment.ARMS) * spec.sample_seconds * 1.3)
    return replace(
        spec,
        guessed_seconds=JOB_SECONDS + pass_seconds + turn_seconds * (spec.samples + spec.warmups),
        ray_settings=_ask(experiment, "ray_settings", params) or {},
        data_sets=_seeded_sets(experiment, params),
        busy_workers=_ask(experiment, "busy_workers", params, spec.topology),
        faults=_planned_faults(spec),
        breaks_cluster=bool(_ask(experiment, "breaks_cluster", params)),
    )


def _planned_faults(spec: Spec) -> str:
    return str(spec.params.get("chaos", ""))


def _seeded_sets(experiment: Any, params: Any) -> tuple[str, ...]:
    """Names of the data sets that the user must have seeded."""
    return tuple(name for name in _ask(experiment, "data_sets", params) or () if name in seeded.NAMES)


def _ask(experiment: Any, about: str, *arguments: Any) -> Any:
    """What an experiment says about its params in the function called `about`; None where it has none."""
    answer = getattr(experiment, about, None)
    return answer(*arguments) if answer else None


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
    """Raise BadInput where the experiment `name` does not tolerate all kinds of `plan`: its `CHAOS` says which it does."""
    tolerated: faults.ToleratedFaults | None = getattr(load(name), "CHAOS", None)
    if tolerated is None:
        allow = [each for each in NAMES if getattr(load(each), "CHAOS", None)]
        raise BadInput(
            f"--chaos: {name} allows none, for any loss makes its run invalid.", f"These allow it: {', '.join(allow)}."
        )
    faults.read_plan(plan, tolerated.kinds)


def without_effect(experiment: Any, params: Any) -> Collection[str]:
    """Names of the parameters of `params` that change nothing beside the others, where the experiment says so."""
    return _ask(experiment, "without_effect", params) or ()
