"""Chooses which arms of an experiment are measured in a cell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from bench.errors import BadInput, did_you_mean
from bench.experiments import ArmCheck, Experiment, Profile, load
from bench.metrics import meaning
from bench.model import Arm, Spec, Topology
from bench.options import RunRequest


def check(request: RunRequest) -> None:
    """Raise BadInput where `--arms` names one that none of the experiments has."""
    known = [arm.name for name in dict.fromkeys(request.experiments) for arm in load(name).arms]
    for name in named(request):
        if name not in known:
            raise BadInput(
                f"--arms: {', '.join(request.experiments)} has no arm {name}.",
                f"{did_you_mean(name, known)}Choose from: {', '.join(dict.fromkeys(known))}.",
            )


def named(request: RunRequest) -> list[str]:
    """The arms that `--arms` names, of all experiments; none where it is not given."""
    return list(dict.fromkeys(filter(None, (name.strip() for name in request.only_arms.split(",")))))


def of_cell(subject: Experiment[Any], profile: Profile, request: RunRequest, params: Any) -> tuple[Arm, ...]:
    """The arms of one cell, in the order of their declaration: those asked for, else the profile's, else all.

    The subject, and what its figures are relative to, is never left out; what cannot be measured beside `params` always is.
    """
    wanted = named(request) or list(profile.arms) or [arm.name for arm in subject.arms]
    impossible = subject.impossible_arms(params)
    return tuple(
        arm
        for arm in subject.arms
        if arm.role == "subject" or arm.required or (arm.name in wanted and arm not in impossible)
    )


def check_measured(request: RunRequest, specs: Sequence[Spec]) -> None:
    """Raise BadInput where an arm was asked for by name and no cell can have it."""
    measured = {name for spec in specs for name in spec.arms}
    if absent := [name for name in named(request) if name not in measured]:
        raise BadInput(
            f"--arms: {', '.join(absent)} cannot be measured with these parameters.",
            "Leave it out of --arms, or see the page of the experiment under docs/experiments.",
        )


def measured(name: str, specs: Sequence[Spec]) -> tuple[Arm, ...]:
    """The arms of the experiment `name` that any of `specs` measures."""
    return tuple(arm for arm in load(name).arms if any(spec.experiment == name and spec.wants(arm) for spec in specs))


def unchecked(name: str, specs: Sequence[Spec], topologies: Sequence[Topology]) -> str:
    """Which checks the experiment `name` does not make of some of `specs`, for arms that they do not measure; empty: none."""
    experiment, missing = load(name), dict[str, None]()
    has_several = any(topology.nodes > 1 for topology in topologies)
    for spec in (spec for spec in specs if spec.experiment == name):
        for check in (*experiment.arm_checks(experiment.params(**spec.params)), *_convergence(experiment, spec)):
            if (has_several or not check.between_nodes) and not any(map(spec.wants, check.needs)):
                missing[f"{check.what} (needs {' or '.join(arm.name for arm in check.needs)})"] = None
    return f"{name}: {'; '.join(missing)}" if missing else ""


def _convergence(experiment: Experiment[Any], spec: Spec) -> Iterator[ArmCheck]:
    """That the trainings of `spec` did not converge faster than what each names as its reference."""
    if meaning("samples to target", experiment.metrics) is None:
        return
    trained = [arm for arm in experiment.arms if arm.reference and spec.wants(arm)]
    for reference in (arm for arm in experiment.arms if arm.name in {each.reference for each in trained}):
        names = " and ".join(arm.name for arm in trained if arm.reference == reference.name)
        yield ArmCheck(
            what=f"that {names} took no fewer samples to the target than {reference.name}", needs=(reference,)
        )
