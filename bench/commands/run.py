"""`bench run`: plan, stand clusters up, measure, say what it means."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FrameType

import typer

from bench.analysis.numbers import plural
from bench.errors import DoesNotFit, NothingMeasured, RecordDamaged, RunFailed, RunInvalid, Stopped
from bench.history import past_runs, summaries
from bench.model import Run, Session
from bench.options import DEFAULT_OUT, AsJson, Out, RunRequest, TargetOptions
from bench.planning import budget, plan
from bench.planning.budget import Limits
from bench.record import store
from bench.runner import session_lock
from bench.runner.session import Stop, Work, perform, remaining
from bench.targets import Target, choose
from bench.terminal import progress
from bench.terminal.answers import say_json
from bench.terminal.asking import typed_command
from bench.terminal.output import say


def command(request: RunRequest, given: TargetOptions, out: Out = DEFAULT_OUT, as_json: AsJson = False) -> None:
    """Measure experiments on one node and on many, side by side, and print what the numbers mean.

    With --plan, what is to be done comes from a file, as `bench plan --save` writes it.

    Example: bench run inference --profile tiny --blocks 6
    """
    topologies = plan.topologies(request)
    chosen = choose(request.target, given)
    target = chosen.target
    resolved = replace(request, target=target.name, options=chosen.options.given(), command=typed_command())
    session = budget.fit(plan.make(resolved), past_runs.known(out, target.name))
    for topology in topologies:
        target.check(topology)
    with created(out, session) as folder:
        say(f"{chosen.describe()} Session {session.id}, kept in {folder}.")
        for twin in plan.twins(request):
            say(twin)
        for cell in session.unfit:
            say(f"Left out, since the nodes are too small: {cell}.")
        for dropped in session.dropped:
            say(f"No room in the budget: {dropped}.")
        carry_on(folder, session, remaining(folder, session), target=target, as_json=as_json)


@contextmanager
def created(out: Path, session: Session) -> Iterator[Path]:
    """The folder of a new session, whose deployment is held meanwhile: one that is refused leaves none. Raises DoesNotFit."""
    with session_lock.alone(session, out / session.id, typed_command()):
        yield store.create(out, session)


def carry_on(folder: Path, session: Session, work: Work, *, target: Target, as_json: bool = False) -> None:
    """Do what is left of a session, then report on all of it. Raises RunFailed, RunInvalid or Stopped."""
    session, runs = measure(folder, session, work, target=target)
    if session.ended and not runs:
        raise DoesNotFit(f"Nothing was run: {session.ended}.", "Give more --budget, or a smaller profile.")
    text = report(folder, session, runs)
    if as_json:
        from bench import analysis

        say_json("report", analysis.build(session, runs))
    else:
        typer.echo(text)
    say(f"With pictures: {folder / 'report.html'}")
    judge(session, runs)


def measure(folder: Path, session: Session, work: Work, *, target: Target) -> tuple[Session, list[Run]]:
    """Do what is left of a session, whose deployment is held. Raises Stopped.

    Returns the session, which may say that it ended early, and all of its runs.
    """
    store.end_early(folder, "")
    ended = _perform(folder, session, work, target=target)
    session = store.end_early(folder, ended)
    if ended:
        say(f"Ended early: {ended}. `bench resume {session.id}` would add {left_out(folder, session)}.")
    return session, store.load_runs(folder, session)


def left_out(folder: Path, session: Session) -> str:
    """What a session lacks, and how long it would take."""
    todo = remaining(folder, session).todo
    seconds = plan.sum_seconds(todo, past_runs.known(folder.parent, session.target))
    blocks = plural(len({spec.block for spec in todo}), "block")
    return f"{plural(len(todo), 'run')} in {blocks}, about {plan.in_words(seconds)}"


def _perform(folder: Path, session: Session, work: Work, *, target: Target) -> str:
    """Do the work; why it ended before its end, where it did."""
    stays_up = target.status().cluster is not None
    stop = Stop()
    known = past_runs.known(folder.parent, session.target)
    limits = Limits(session=session, todo=work.todo, known=known, is_precise=partial(is_precise, folder, session))
    listener = progress.Progress(session, todo=work.todo, known=known, left_seconds=lambda: limits.left_seconds)
    try:
        with listener, _ctrl_c(stop):
            ended = perform(
                folder,
                session,
                work.todo,
                target=target,
                listener=listener,
                stop=stop,
                enough=limits.enough,
                most_wait_seconds=lambda: limits.most_wait_seconds,
            )
    except KeyboardInterrupt:
        raise  # at once: `bench down` takes away what is left
    except BaseException:
        if not stays_up:
            target.down()
        raise
    if not stays_up:
        target.down()
    if stop.is_asked:
        raise Stopped("Stopped; what was done is kept.", f"Go on with: bench resume {session.id}")
    return ended


def is_precise(folder: Path, session: Session) -> bool:
    """Whether the intervals of a session's headlines are as narrow as it asks for."""
    from bench import analysis
    from bench.analysis import stopping

    if session.precision_share is None:
        return False
    found = analysis.build(session, store.load_runs(folder, session))
    return stopping.precision_reached(stopping.headline_ratios(found), session.precision_share)


def report(folder: Path, session: Session, runs: list[Run]) -> str:
    """What the session means, left in its folder too, with pictures and for programs."""
    from bench import analysis, reports
    from bench.history import report_file

    found = analysis.build(session, runs)
    text = reports.render("text", found, runs)
    store.write_whole(folder / "report.txt", text.encode())
    store.write_whole(folder / "report.html", reports.render("html", found, runs).encode())
    report_file.keep(folder, summaries.read(folder), found)
    return text


def judge(session: Session, runs: list[Run]) -> None:
    """The exit code: a number that cannot be trusted, and one that is not there, must not look like a success."""
    last = store.last_attempts(runs)
    # One that was stopped, and not by the user of this session, has ended as badly.
    failed = [run for run in last if run.status == "failed" or (run.status == "stopped" and not session.ended)]
    invalid = [run for run in last if run.status == "invalid"]
    damaged = [run for run in last if run.status == "damaged"]
    if failed:
        raise RunFailed(
            f"{len(failed)} of {len(session.specs)} runs failed; the first, {failed[0].spec.id}:"
            f" {'; '.join(failed[0].reasons[:1]) or 'it left no word'}.",
            f"See it with `bench show {session.id} {failed[0].spec.folder}`; try them again with `bench resume {session.id}`.",
        )
    if invalid:
        raise RunInvalid(
            f"{len(invalid)} of {len(session.specs)} runs are invalid; the first, {invalid[0].spec.id}:"
            f" {invalid[0].reasons[0]}.",
            f"See it with `bench show {session.id} {invalid[0].spec.folder}`.",
        )
    if damaged:
        raise RecordDamaged(
            f"{len(damaged)} of {len(session.specs)} runs are damaged; the first, {damaged[0].spec.id}:"
            f" {damaged[0].reasons[0]}.",
            f"Run them again with `bench resume {session.id}`.",
        )
    if without := list(_without_headline(session, last)):
        raise NothingMeasured(
            f"No run measured {' or '.join(without)}.", f"See why with `bench show {session.id} {last[0].spec.folder}`."
        )


def _without_headline(session: Session, runs: list[Run]) -> Iterator[str]:
    """The headline of every experiment in `runs` that none of them has a value of, with the first reason."""
    for experiment in dict.fromkeys(run.spec.experiment for run in runs):
        headline = session.metrics[experiment][0].name
        samples = [
            sample
            for run in runs
            if run.spec.experiment == experiment
            for sample in run.samples
            if sample.metric == headline and not sample.warmup
        ]
        if not any(sample.value is not None for sample in samples):
            why = next((sample.reason for sample in samples if sample.reason), "")
            yield f"the {headline} of {experiment}" + (f" ({why})" if why else "")


@contextmanager
def _ctrl_c(stop: Stop) -> Iterator[None]:
    """The first Ctrl-C, or the terminal that is closed, ends the run and cleans up; the second ends everything at once."""

    def handle(_signal: int, _frame: FrameType | None) -> None:
        if stop.is_asked:
            raise KeyboardInterrupt
        stop.ask()
        say("Stopping: the run is ended and the cluster taken down. Ctrl-C again stops at once.")
        if stop.may_interrupt:
            raise Stopped("Stopped while a cluster was being stood up.")

    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # under nohup a terminal that is closed ends nothing
        numbers.append(signal.SIGHUP)
    previous = {number: signal.signal(number, handle) for number in numbers}
    try:
        yield
    except Stopped:
        return
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
