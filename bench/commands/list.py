"""List experiments, sessions or targets.

Name an experiment to see its parameters, metrics and arms, and the values that each of its profiles sets.

Example: bench list sessions --experiment inference --since 2026-01-01
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from bench.counts import plural
from bench.errors import BadInput, did_you_mean
from bench.history import summaries
from bench.history.summaries import Entry, Filters
from bench.model import Status as Ending
from bench.options import DEFAULT_OUT, AsJson, Out, Since
from bench.record import store
from bench.runner import session_lock
from bench.sanitize import clean_line
from bench.terminal.answers import say_json

if TYPE_CHECKING:
    from bench.experiments import Profile as ExperimentProfile

KINDS = ("experiments", "sessions", "targets")
What = Annotated[str, typer.Argument(metavar="WHAT", help="experiments, sessions, targets, or one experiment.")]

ENDINGS = get_args(Ending)
STATUSES = (*ENDINGS, "running")
Experiment = Annotated[str, typer.Option(metavar="EXPERIMENT", help="Only sessions of this experiment.")]
TargetName = Annotated[str, typer.Option("--target", metavar="TARGET", help="Only sessions on this target.")]
Profile = Annotated[str, typer.Option(metavar="PROFILE", help="Only sessions of this profile.")]
Status = Annotated[
    str,
    typer.Option(metavar="STATUS", help="Only with a run of this status, e.g. failed, damaged or running."),
]
Last = Annotated[
    int, typer.Option(min=0, metavar="N", help="Only the last N sessions. [default: all]", show_default=False)
]


def command(
    what: What = "experiments",
    experiment: Experiment = "",
    target: TargetName = "",
    profile: Profile = "",
    since: Since = "",
    status: Status = "",
    last: Last = 0,
    as_json: AsJson = False,
    out: Out = DEFAULT_OUT,
) -> None:
    if what not in ("sessions", "targets"):
        names = _experiments(what)
        if as_json:
            say_json("experiments", [about(name) for name in names])
            return
        lines = overview() if what == "experiments" else describe(what)
    elif what == "sessions":
        if status not in ("", *STATUSES):
            raise BadInput(
                f"Unknown status {status}.", f"{did_you_mean(status, STATUSES)}Choose from: {', '.join(STATUSES)}."
            )
        wanted = Filters(experiment=experiment, target=target, profile=profile, since=since, status=status)
        store.check_there(out)
        entries = summaries.entries(out, wanted, session_lock.running())[-last:]
        if as_json:
            say_json("sessions", entries)
            return
        lines = [_session(entry) for entry in entries] or [f"No sessions in {out}."]
    else:
        from bench import targets

        if as_json:
            say_json("targets", targets.NAMES)
            return
        lines = list(targets.NAMES)
    typer.echo("\n".join(lines))


def _experiments(what: str) -> Sequence[str]:
    """Return the names of all experiments, or the one that `what` names. Raises BadInput."""
    from bench.experiments import NAMES

    if what != "experiments" and what not in NAMES:
        raise BadInput(
            f"Cannot list {what}.",
            f"{did_you_mean(what, (*KINDS, *NAMES))}Choose from: {', '.join(KINDS)}, and each experiment: {', '.join(NAMES)}.",
        )
    return NAMES if what == "experiments" else (what,)


def about(name: str) -> dict[str, object]:
    """Return an experiment's declarations as a JSON value, with the content of `describe`."""
    from bench import experiments
    from bench.params import declared

    experiment = experiments.load(name)
    return {
        "name": name,
        "help": experiments.summary(name),
        "params": [parameter.as_json() for parameter in declared(experiment.params).values()],
        "metrics": experiment.metrics,
        "arms": experiment.arms,
        "profiles": experiment.profiles,
    }


def overview() -> list[str]:
    """A line about each experiment, with its profiles."""
    from bench import experiments

    rows = [
        (name, " ".join(experiments.load(name).profiles), experiments.summary(name).partition(": ")[2])
        for name in experiments.NAMES
    ]
    return [line.strip() for line in _aligned(rows)]


def describe(name: str) -> list[str]:
    """An experiment as lines of text: parameters, metrics, arms, and profiles with the values that they set."""
    from bench import experiments
    from bench.params import declared

    experiment = experiments.load(name)
    parameters = [
        (p.name, f"{p.range} {p.unit}".strip(), f"[{p.default}]", p.help) for p in declared(experiment.params).values()
    ]
    metrics = [(m.name, m.unit, m.direction, m.help) for m in experiment.metrics]
    arms = [(arm.name, arm.role, arm.help) for arm in experiment.arms]
    profiles = [line for key, profile in experiment.profiles.items() for line in _profile(key, profile)]
    return [
        f"{name}: {experiments.summary(name)}",
        *("", "  params (--set name=value,value)", *_aligned(parameters)),
        *("", "  metrics (the headline first)", *_aligned(metrics)),
        *("", "  arms (measured in turn)", *_aligned(arms)),
        *("", "  profiles (--profile name), with the values that they set", *profiles),
    ]


def _profile(name: str, profile: ExperimentProfile) -> Iterator[str]:
    """A profile: what it is for, its cells, and how often each is measured."""
    yield f"    {name}: {profile.help}"
    for grid in profile.grids:
        values = (f"{parameter}={','.join(map(str, levels))}" for parameter, levels in grid.items())
        yield f"      {' '.join(values) or 'the defaults'}"
    counts = (plural(profile.blocks, "block"), plural(profile.warmups, "warm-up"), plural(profile.samples, "sample"))
    yield f"      {', '.join(counts)} a run"


def _aligned(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Yield the rows as indented lines with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield ("    " + "  ".join(f"{word:{width}}" for word, width in zip(row, widths, strict=True))).rstrip()


def _session(entry: Entry) -> str:
    if entry.damage:
        return clean_line(f"{entry.folder}  damaged: {entry.damage}")
    if entry.running:  # the run in progress has no ending yet
        entry = replace(entry, stopped=max(entry.stopped - 1, 0))
    counts = ["running"] if entry.running else []
    counts += [f"{count} {name}" for name in ENDINGS if (count := getattr(entry, name))]
    name = entry.folder if entry.folder == entry.id else f"{entry.folder}  of session {entry.id}"
    return f"{name}  {entry.created}  {', '.join(counts) or 'nothing run'} of {entry.planned}"
