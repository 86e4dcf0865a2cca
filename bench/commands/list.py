"""`bench list`: the experiments, the sessions, the targets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bench import experiments, store, targets
from bench.commands.options import DEFAULT_OUT, Out
from bench.errors import BadInput, RecordDamaged
from bench.params import declared

KINDS = ("experiments", "sessions", "targets")
What = Annotated[str, typer.Argument(metavar="WHAT", help="experiments, sessions or targets.")]


def command(what: What = "experiments", out: Out = DEFAULT_OUT) -> None:
    """List the experiments with their params, metrics, arms and profiles; or the sessions; or the targets.

    Example: bench list sessions
    """
    if what not in KINDS:
        raise BadInput(f"There is no list of {what}.", f"There are: {', '.join(KINDS)}.")
    if what == "experiments":
        lines = [line for name in experiments.NAMES for line in describe(name)]
    elif what == "sessions":
        lines = [_session(folder) for folder in store.session_folders(out)] or [f"No sessions in {out}."]
    else:
        lines = list(targets.NAMES)
    typer.echo("\n".join(lines))


def describe(name: str) -> list[str]:
    """An experiment for a person: what can be varied, what is measured, against what."""
    experiment = experiments.load(name)
    lines = [f"{name}: {(experiment.__doc__ or '').strip().splitlines()[0]}", "", "  params (--set name=value,value)"]
    for parameter in declared(experiment.Params).values():
        bounds = f"{parameter.range} {parameter.unit}".strip()
        lines.append(f"    {parameter.name:12} {bounds:34} [{parameter.default}]  {parameter.help}")
    lines += ["", "  metrics (the headline first)"]
    lines += [f"    {m.name:32} {m.unit:10} {m.better} is better  {m.help}" for m in experiment.METRICS]
    lines += ["", "  arms (measured in turn, in every run)"]
    lines += [f"    {arm.name:18} {arm.role:8} {arm.help}" for arm in experiment.ARMS]
    lines += ["", "  profiles"]
    lines += [f"    {key:6} {p.help}" for key, p in experiment.PROFILES.items()]
    return lines


def _session(folder: Path) -> str:
    try:
        session = store.load_session(folder)
        runs = store.load_runs(folder, session)
    except RecordDamaged as error:
        return f"{folder.name}  damaged: {error}"
    counts = [
        f"{sum(r.status == s for r in store.last_attempts(runs))} {s}" for s in ("ok", "invalid", "failed", "stopped")
    ]
    said = ", ".join(count for count in counts if not count.startswith("0 ")) or "nothing run"
    return f"{session.id}  {session.created}  {said} of {len(session.specs)}"
