"""Measures a session on a target: all runs of a new plan, or those that a stopped session still lacks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from bench.counts import plural
from bench.errors import Stopped
from bench.history import past_runs
from bench.model import Session, Spec
from bench.planning import plan
from bench.planning.budget import Limits
from bench.record import store
from bench.runner import dashboards, session_lock
from bench.runner.interrupts import Stop, stopping
from bench.runner.report_so_far import ReportSoFar
from bench.runner.result import SessionResult, is_precise
from bench.runner.run import SessionContext
from bench.runner.session import Work, perform, remaining
from bench.targets import Target
from bench.terminal.output import say
from bench.terminal.progress import Progress


def measure_new(
    out: Path, session: Session, target: Target, *notes: str, slowness: float | None = None
) -> SessionResult:
    """Measure a new session, after printing `notes`. A session that is refused leaves no folder.

    `slowness`: of this machine, from a calibration.

    Raises DoesNotFit if the nodes do not fit or the deployment is in use, and Stopped.
    """
    check_nodes(session.specs, target)
    with session_lock.alone(session, out / session.id, session.command):
        folder = store.create(out, session)
        for note in notes:
            say(note)
        return measure(remaining(folder, session), target, slowness)


def check_nodes(specs: Iterable[Spec], target: Target) -> None:
    """Raise DoesNotFit or BadInput if a topology of `specs` does not fit on the target."""
    for topology in {spec.topology.name: spec.topology for spec in specs}.values():
        target.check(topology)


def measure(work: Work, target: Target, slowness: float | None = None) -> SessionResult:
    """Do the remaining runs of a session, whose deployment is locked. Raises Stopped."""
    store.end_early(work.folder, "")
    with _down_at_end(target) as stays_up:
        ended = _perform(work, target, slowness)
    session = store.end_early(work.folder, ended)
    if ended:
        left = describe(remaining(work.folder, session))
        say(f"Ended early: {ended}. `bench resume {session.id}` would add {left}.")
    link = dashboards.of_target(target, session.id, is_running=False) if stays_up else ""
    return SessionResult(
        folder=work.folder, session=session, runs=store.load_runs(work.folder, session), dashboards=link
    )


def describe(work: Work) -> str:
    """Describe the remaining runs of a session: their number, blocks and duration."""
    known = past_runs.known(work.folder.parent, work.session.target)
    blocks = plural(len({spec.block for spec in work.todo}), "block")
    duration = plan.format_duration(plan.sum_seconds(work.todo, known))
    return f"{plural(len(work.todo), 'run')} in {blocks}, about {duration}"


def _perform(work: Work, target: Target, slowness: float | None) -> str:
    """Do the work; return the reason if the session ended early."""
    known = replace(past_runs.known(work.folder.parent, work.session.target), slowness=slowness)
    so_far = ReportSoFar(folder=work.folder, session=work.session)
    limits = Limits(
        session=work.session,
        todo=work.todo,
        known=known,
        is_precise=lambda: is_precise(so_far.read, work.session),
    )
    listener = Progress(
        todo=work.todo,
        known=known,
        left_seconds=lambda: limits.left_seconds,
        so_far=so_far.read,
    )
    stop = Stop()
    context = SessionContext(
        folder=work.folder, session=work.session, target=target, listener=listener, stop=stop, so_far=so_far
    )
    with listener, stopping(stop):
        ended = perform(context, work.todo, limits)
    if stop.is_asked:
        raise Stopped("Stopped; finished runs are kept.", f"Continue with: bench resume {work.session.id}")
    return ended


@contextmanager
def _down_at_end(target: Target) -> Iterator[bool]:
    """Take the cluster down at the end, unless it was up before: yields whether. A second Ctrl-C leaves that to `bench down`."""
    if target.status().cluster is not None:
        yield True
        return
    try:
        yield False
    except KeyboardInterrupt:
        raise
    except BaseException:
        target.down()
        raise
    target.down()
