"""Runs what is left of a session: one run at a time, on a fresh cluster for every topology of every block."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from bench.model import QuietCheck, Session, Spec
from bench.planning.budget import Limits
from bench.record import store
from bench.runner.quiet_check import Deployment, wait_for_quiet
from bench.runner.run import SessionContext, run_one
from bench.targets import Cluster
from bench.targets.steps import Steps


@dataclass(frozen=True, kw_only=True)
class Work:
    """The Specs of a session recorded in `folder`: those that are kept, repeated, or not yet started."""

    folder: Path
    session: Session
    kept: tuple[Spec, ...] = ()
    again: tuple[Spec, ...] = ()
    new: tuple[Spec, ...] = ()

    @property
    def todo(self) -> tuple[Spec, ...]:
        """The Specs to run, in the order of the plan."""
        wanted = {spec.id: spec for spec in self.again + self.new}
        return tuple(wanted[spec.id] for spec in self.session.specs if spec.id in wanted)


def remaining(folder: Path, session: Session) -> Work:
    """What `resume` would run. Runs that are ok or invalid are kept; failed, stopped and damaged ones get a new attempt.

    Raises RecordDamaged where the plan was changed since any of its runs was started.
    """
    store.check_cells(session)
    kept, again, new = [], [], []
    for spec in session.specs:
        last = store.latest_attempt(folder, spec)
        if last is None:
            new.append(spec)
            continue
        store.check_unchanged(folder, last)
        status = store.run_or_damage(folder, last).status
        if status in ("ok", "invalid"):
            kept.append(last)
        else:
            again.append(replace(last, attempt=last.attempt + 1))
    return Work(folder=folder, session=session, kept=tuple(kept), again=tuple(again), new=tuple(new))


def perform(context: SessionContext, todo: Sequence[Spec], limits: Limits) -> str:
    """Do the runs `todo` in this order. A run that fails is recorded, and the next one gets a fresh cluster.

    Returns why `limits` wants no more of them; empty where all were done, or the user stopped the session.
    Raises TargetFailed where no cluster can be stood up.
    """
    quiet_checks: dict[int, QuietCheck] = {}
    cluster: Cluster | None = None
    deployed: object = None
    for spec, following in zip(todo, [*todo[1:], None], strict=False):
        if spec.block not in quiet_checks:
            if why := limits.enough(spec):
                return why  # before a wait that would be for nothing
            quiet_checks[spec.block] = _check_quiet(context, spec.block, limits.most_wait_seconds)
        if context.stop.is_asked:
            return ""
        if why := limits.enough(spec):
            return why
        wanted = (spec.block, spec.topology.name, spec.ray_settings)
        stood_up: float | None = None
        if cluster is None or wanted != deployed:
            begun = time.monotonic()
            cluster, deployed = _stand_up(context, spec), wanted
            stood_up = round(time.monotonic() - begun, 3)
        context.listener.run_begun(spec)
        result = run_one(context, spec, cluster, quiet_checks[spec.block], stood_up)
        context.listener.run_ended(spec, result)
        if result.status != "ok" or spec.breaks_cluster:
            cluster = None  # what broke the run may have broken its cluster
        if result.status != "stopped" and (following is None or following.block != spec.block):
            context.listener.block_ended(spec.block)
    return ""


def _check_quiet(context: SessionContext, block: int, most_seconds: float) -> QuietCheck:
    """Wait for a quiet machine, before a block begins."""
    return wait_for_quiet(
        context.stop.event,
        partial(context.listener.host_is_busy, block),
        most_seconds=most_seconds,
        deployment=Deployment.of(context.target),
    )


def _stand_up(context: SessionContext, spec: Spec) -> Cluster:
    """Start a fresh cluster for `spec`; Ctrl-C interrupts this at once."""
    context.listener.cluster_wanted(spec.topology, spec.block)
    context.stop.may_interrupt = True
    steps = Steps(started=context.listener.cluster_step_started, finished=context.listener.cluster_step_finished)
    cluster = context.target.up(spec.topology, spec.ray_settings, steps)
    context.stop.may_interrupt = False
    return cluster
