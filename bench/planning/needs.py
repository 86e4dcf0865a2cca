"""Asks an experiment once what its runs need, and completes their Specs with the answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bench.cluster import profiling
from bench.data import seeded
from bench.errors import BadInput, did_you_mean
from bench.experiments import NAMES, Experiment, load
from bench.experiments.toolkit import faults
from bench.model import Spec, Topology
from bench.stacks import PROFILERS

JOB_SECONDS = 7.0  # a run's job around its work: a guess


def check(spec: Spec, topologies: Sequence[Topology], target: str) -> None:
    """Raise what the experiment of `spec` has against a topology, or its faults against the target, and DataMissing where a set was not seeded."""
    experiment = load(spec.experiment)
    params = experiment.params(**spec.params)
    if planned := experiment.faults(params):
        check_chaos(spec.experiment, planned)
        faults.check_target(planned, target)
    for topology in topologies:
        experiment.check_fits(params, topology)
    if target == "local":  # whose driver runs here, and sees the same files
        experiment.check_input(params)
    for name in _seeded_sets(experiment, params):
        seeded.find(name)


def complete(spec: Spec) -> Spec:
    """`spec` with all that its experiment says of its params, and of its topology."""
    experiment = load(spec.experiment)
    params = experiment.params(**spec.params)
    pass_seconds = experiment.guess_pass_seconds(params)
    # A turn lasts as long as its samples must, or one pass.
    turn_seconds = max(pass_seconds, 1.3 * sum(map(spec.seconds_of, experiment.arms)))
    return replace(
        spec,
        guessed_seconds=JOB_SECONDS + pass_seconds + turn_seconds * (spec.samples + spec.warmups),
        ray_settings=experiment.ray_settings(params),
        data_sets=_seeded_sets(experiment, params),
        busy_workers=experiment.busy_workers(params, spec.topology),
        faults=experiment.faults(params),
        breaks_cluster=faults.changes_nodes(experiment.faults(params)),
    )


def _seeded_sets(experiment: Experiment[Any], params: Any) -> tuple[str, ...]:
    """Names of the data sets that the user must have seeded."""
    return tuple(name for name in experiment.data_sets(params) if name in seeded.NAMES)


def check_profiler(name: str, target: str) -> None:
    """Raise BadInput where there is no profiler `name`, or it cannot be used here. What other machines allow, they say."""
    if name not in PROFILERS:
        raise BadInput(
            f"--profile-with must be one of {', '.join(PROFILERS)}, got {name!r}.",
            did_you_mean(name, PROFILERS).strip(),
        )
    if target == "local" and (reason := profiling.why_unavailable(name)):
        raise BadInput(f"--profile-with {name}: {reason}.", "Install it, or name another profiler.")


def check_chaos(name: str, plan: str = "") -> None:
    """Raise BadInput where the experiment `name` does not tolerate all kinds of `plan`."""
    tolerated = load(name).tolerates
    if tolerated is None:
        allow = [experiment for experiment in NAMES if load(experiment).tolerates]
        raise BadInput(f"--chaos: {name} tolerates no faults.", f"Experiments that do: {', '.join(allow)}.")
    faults.read_plan(plan, tolerated.kinds)
