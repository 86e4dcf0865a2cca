"""Asks an experiment once what its runs need, and completes their Specs with the answers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bench.cluster import profiling
from bench.cluster.invocation import ROOM
from bench.data import seeded
from bench.errors import BadInput, did_you_mean
from bench.experiments import NAMES, Experiment, load
from bench.experiments.toolkit import faults
from bench.model import Spec, Topology
from bench.stacks import PROFILERS

JOB_SECONDS = 9.0  # of a run beside its work: its job starts, looks at the idle nodes and ends: a guess
INTERVAL_SECONDS = 0.15  # around each timed interval: the probes begin and end
MOST_GUESSES = 4  # times as long as guessed, at the least, before a run is given up


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
    guessed_seconds = guess_seconds(spec)
    return replace(
        spec,
        guessed_seconds=guessed_seconds,
        deadline_seconds=max(spec.deadline_seconds, MOST_GUESSES * guessed_seconds),
        ray_settings=experiment.ray_settings(params),
        data_sets=_seeded_sets(experiment, params),
        busy_workers=experiment.busy_workers(params, spec.topology),
        faults=experiment.faults(params),
        breaks_cluster=faults.changes_nodes(experiment.faults(params)),
    )


def guess_seconds(spec: Spec) -> float:
    """How long one run of `spec` takes on the machine that the guesses were made on, by what its experiment says of each arm."""
    experiment = load(spec.experiment)
    params = experiment.params(**spec.params)
    passes = experiment.guess_pass_seconds(params)
    # Every pass is timed by itself in the first turn, and fills a sample in each turn after it.
    timed = [
        (seconds, spec.seconds_of(arm))
        for arm in experiment.arms
        if spec.wants(arm)
        for seconds in passes.get(arm.name, ())
    ]
    first_turn = sum(INTERVAL_SECONDS + seconds for seconds, _ in timed)
    later_turn = sum(INTERVAL_SECONDS + _sample_seconds(seconds, least) for seconds, least in timed)
    later_turns = spec.warmups + spec.samples - 1
    after = experiment.guess_after_seconds(params)
    evaluated = spec.samples * sum(after.get(arm.name, 0.0) for arm in experiment.arms if spec.wants(arm))
    around = JOB_SECONDS + experiment.guess_other_seconds(params)
    return around + first_turn + later_turn * later_turns + evaluated


def _sample_seconds(pass_seconds: float, least_seconds: float) -> float:
    """How long a sample of so many passes is that it lasts long enough."""
    if pass_seconds >= least_seconds:
        return pass_seconds
    return pass_seconds * math.ceil(ROOM * least_seconds / max(pass_seconds, 1e-6))


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
