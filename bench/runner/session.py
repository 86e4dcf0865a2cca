"""Does the remaining runs of a session: one at a time, on a fresh cluster for every topology of every block."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from bench.model import QuietCheck, Session, Spec
from bench.planning.budget import Limits
from bench.prometheus import session_links
from bench.record import store
from bench.runner.board_values import BoardValues
from bench.runner.quiet_check import Deployment, wait_for_quiet
from bench.runner.run import SessionContext, run_one
from bench.targets import Cluster
from bench.targets.steps import Steps


@dataclass(frozen=True, kw_only=True)
class Work:
    """The Specs of a session recorded in `folder`: finished ones (`kept`), ones to repeat (`again`), and `new` ones."""

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


def remaining(folder: Path, session: Session, blocks: Collection[int] = ()) -> Work:
    """Return what `resume` would do. Runs that are ok or invalid are kept; failed, stopped and damaged ones get a new attempt.

    All runs of `blocks` get one, so that they are measured side by side again. Raises RecordDamaged if the plan was changed since one of its runs was started.
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
        if status in store.ENDED and spec.block not in blocks:
            kept.append(last)
        else:
            again.append(replace(last, attempt=last.attempt + 1))
    return Work(folder=folder, session=session, kept=tuple(kept), again=tuple(again), new=tuple(new))


def perform(context: SessionContext, todo: Sequence[Spec], limits: Limits) -> str:
    """Do the runs `todo` in order. A failed run is recorded, and the next one gets a fresh cluster.

    Returns why `limits` ends the session early; empty if all runs were done, or the user stopped the session. Raises TargetFailed
    if no cluster can be started.
    """
    values = BoardValues(context=context, todo=todo, limits=limits)
    quiet_checks: dict[int, QuietCheck] = {}
    cluster: Cluster | None = None
    deployed: object = None
    grafana_url: str | None = None
    for spec, following in zip(todo, [*todo[1:], None], strict=False):
        if spec.block not in quiet_checks:
            if reason := limits.enough(spec):
                return reason  # before the wait for a quiet machine
            quiet_checks[spec.block] = _check_quiet(context, spec.block, limits.most_wait_seconds)
        if context.stop.is_asked:
            return ""
        if reason := limits.enough(spec):
            return reason
        wanted = (spec.block, spec.topology.name, spec.ray_settings)
        start_seconds: float | None = None
        if cluster is None or wanted != deployed:
            started_at = time.monotonic()
            cluster, deployed = _start_cluster(context, spec), wanted
            start_seconds = round(time.monotonic() - started_at, 3)
            if cluster.grafana_url and cluster.grafana_url != grafana_url:
                grafana_url = cluster.grafana_url
                context.listener.dashboards_ready(session_links.following(grafana_url, spec.session, spec.experiment))
        values.send(cluster)
        context.listener.run_begun(spec)
        result = run_one(context, spec, cluster, quiet_checks[spec.block], start_seconds)
        context.listener.run_ended(spec, result)
        values.run_ended()
        if result.status != "stopped" and (following is None or following.block != spec.block):
            context.so_far.block_ended()
            values.block_ended()
            values.send(cluster)
            context.listener.block_ended(spec.block)
        if result.status != "ok" or spec.breaks_cluster:
            cluster = None  # the fault may have damaged the cluster too
    return ""


def _check_quiet(context: SessionContext, block: int, most_seconds: float) -> QuietCheck:
    """Wait for a quiet machine before a block."""
    return wait_for_quiet(
        context.stop.event,
        partial(context.listener.host_is_busy, block),
        most_seconds=most_seconds,
        deployment=Deployment.of(context.target),
    )


def _start_cluster(context: SessionContext, spec: Spec) -> Cluster:
    """Start a fresh cluster for `spec`. Ctrl-C interrupts it at once."""
    context.listener.cluster_wanted(spec.topology, spec.block)
    context.stop.may_interrupt = True
    steps = Steps(started=context.listener.cluster_step_started, finished=context.listener.cluster_step_finished)
    cluster = context.target.up(spec.topology, spec.ray_settings, steps)
    context.stop.may_interrupt = False
    return cluster
