"""Print the runs of a session, or one run.

Of one run it prints the reasons, the Spec, the facts of its nodes, the samples and the end of the driver's log.

Example: bench show latest b01-multi-inference-c01
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from bench.counts import plural
from bench.errors import BadInput, did_you_mean
from bench.model import Run, as_builtins
from bench.options import DEFAULT_OUT, AsJson, Out, SessionName
from bench.record import store
from bench.runner import session_lock
from bench.terminal.answers import say_json
from bench.terminal.output import say

RunName = Annotated[str | None, typer.Argument(metavar="RUN", help="Run of the session, e.g. b01-multi-inference-c01.")]


def command(session: SessionName, run: RunName = None, as_json: AsJson = False, out: Out = DEFAULT_OUT) -> None:
    folder = store.find(out, session)
    runs = store.load_runs(folder, store.load_session(folder))
    holder = session_lock.running().get(str(folder.resolve()))
    in_progress = _in_progress(folder, runs) if holder else frozenset()
    if run is None and as_json:
        say_json("runs", [_ending(stored_run, in_progress) for stored_run in runs])
        return
    if damaged := sum(stored_run.status == "damaged" for stored_run in runs):
        say(f"{plural(damaged, 'run')} damaged: `bench resume {folder.name}` runs them again.")
    if run is None:
        if holder:
            typer.echo(f"running: process {holder.pid}, since {holder.since}: {holder.command}")
        typer.echo("\n".join(_line(stored_run, in_progress) for stored_run in runs) or "No run yet.")
        return
    matching = [stored_run for stored_run in runs if run == stored_run.spec.folder]
    if not matching:
        raise BadInput(
            f"{folder.name} has no run {run}.",
            f"{did_you_mean(run, [stored_run.spec.folder for stored_run in runs])}See them with `bench show {folder.name}`.",
        )
    if as_json:
        say_json("run", matching[0])
        return
    typer.echo("\n".join(_whole(matching[0], in_progress)))


def _in_progress(folder: Path, runs: Sequence[Run]) -> frozenset[str]:
    """The runs of a running session that have not ended: last attempts without a result."""
    last = (run.spec for run in store.last_attempts(runs))
    return frozenset(spec.folder for spec in last if not (store.run_folder(folder, spec) / "run.json").exists())


def _ending(run: Run, in_progress: Collection[str]) -> dict[str, object]:
    status, reasons = ("running", ()) if run.spec.folder in in_progress else (run.status, run.reasons)
    return {"run": run.spec.folder, "status": status, "samples": len(run.samples), "reasons": reasons}


def _line(run: Run, in_progress: Collection[str]) -> str:
    status, reason = ("running", "") if run.spec.folder in in_progress else (run.status, "; ".join(run.reasons[:1]))
    return f"{run.spec.folder:36} {status:8} {plural(len(run.samples), 'sample'):>12}  {reason}".rstrip()


def _whole(run: Run, in_progress: Collection[str]) -> list[str]:
    reconciled = {True: "yes", False: "no: see `bench doctor`", None: "not asked"}[run.reconciled]
    notes = [f"reason: {reason}" for reason in run.reasons] + [f"alert: {alert}" for alert in run.alerts]
    lines = [_line(run, in_progress), *(f"  {note}" for note in notes), f"  reconciled: {reconciled}", "", "spec"]
    lines += [f"  {line}" for line in _yaml_like(run.spec)]
    if run.facts:
        lines += ["", "facts", *(f"  {line}" for line in _yaml_like(run.facts))]
    if run.profiles:
        lines += ["", "profiles, for the report's flame graphs and for https://speedscope.app"]
        lines += [f"  files/{name}  {len(text.encode()):,} bytes" for name, text in run.profiles.items()]
    lines += ["", "samples"]
    lines += [
        f"  turn {s.turn} {'warm-up' if s.warmup else '       '} {s.arm:18} {s.metric:32}"
        f" {f'{s.value:.6g} {s.unit}' if s.value is not None else s.reason} {s.node or ''}".rstrip()
        for s in run.samples
    ]
    if run.log_end:
        lines += ["", "end of the driver's log", run.log_end]
    return lines


def _yaml_like(value: object) -> list[str]:
    return msgspec.json.format(msgspec.json.encode(as_builtins(value)), indent=2).decode().splitlines()[1:-1]
