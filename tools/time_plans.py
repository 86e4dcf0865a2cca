"""Compares what `bench plan` says with what a session takes: `task time:plans -- inference network --blocks 2`.

Each experiment's profile is run once, all of them by default, as on a machine without earlier sessions. Guesses are scaled by a
calibration before and after each; what was waited for a quiet machine is left out. With --passes, the first pass of each arm stands beside its guess, which shows what to fix where a plan is wrong.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean, geometric_mean
from time import monotonic
from typing import Annotated

import typer

from bench.errors import BenchError, Stopped
from bench.experiments import NAMES, load
from bench.model import Run, Session
from bench.options import RunRequest
from bench.planning import calibration, plan
from bench.planning.plan import Known
from bench.runner.measure import measure_new
from bench.targets import choose
from tools import command_line


def main(
    experiments: Annotated[list[str] | None, typer.Argument()] = None,
    profile: str = "tiny",
    blocks: int = 1,
    target: str = "local",
    name: str = "time-plans",
    passes: Annotated[bool, typer.Option("--passes")] = False,
) -> None:
    """Print planned and actual seconds of each experiment, and their ratio."""
    chosen = choose(target, {"name": name})
    print(f"{'experiment':20}{'guessed':>10}{'slowness':>10}{'planned':>10}{'actual':>10}{'ratio':>8}", flush=True)
    for experiment in experiments or NAMES:
        request = RunRequest(experiments=(experiment,), profile=profile, blocks=blocks, target=target)
        session = plan.make(request)
        slowness = [calibration.slowness()]
        with tempfile.TemporaryDirectory() as folder:
            begin = monotonic()
            try:
                runs = measure_new(Path(folder), session, chosen.target).runs
            except Stopped:
                raise Stopped(f"Stopped in {experiment}; later experiments were not timed.") from None
            except BenchError as error:
                print(f"{experiment:20}{error}", flush=True)
                continue
            actual = monotonic() - begin - _waited_seconds(runs)
        slowness.append(calibration.slowness())
        guessed, planned = (
            plan.estimate_seconds(session, Known(slowness=slow)) for slow in (None, geometric_mean(slowness))
        )
        print(
            f"{experiment:20}{guessed:8.0f} s{geometric_mean(slowness):10.2f}{planned:8.0f} s{actual:8.0f} s"
            f"{planned / actual:8.2f}{_not_ok(runs)}",
            flush=True,
        )
        if passes:
            print("\n".join(_parts(session, runs)), flush=True)


def _not_ok(runs: Sequence[Run]) -> str:
    """How many runs failed or are invalid, and the reason of the first."""
    broken = [run for run in runs if run.status != "ok"]
    return f"  {len(broken)} runs are not ok: {'; '.join(broken[0].reasons)}" if broken else ""


def _waited_seconds(runs: Sequence[Run]) -> float:
    """For a quiet machine, before all blocks."""
    waits = {run.spec.block: run.quiet_check.waited_seconds for run in runs if run.quiet_check}
    return sum(waits.values())


def _parts(session: Session, runs: Sequence[Run]) -> Iterator[str]:
    """Of each cell on each topology: its run, its clusters, and the first pass of each arm, guessed and taken."""
    taken: defaultdict[tuple[str, str], list[Run]] = defaultdict(list)
    for run in runs:
        taken[run.spec.cell, run.spec.topology.name].append(run)
    for (cell, topology), same in taken.items():
        spec = same[0].spec
        seconds = fmean(run.seconds or 0.0 for run in same)
        clusters = [run.cluster_seconds for run in same if run.cluster_seconds is not None]
        cluster_times = (
            f", cluster {plan.cluster_seconds(topology, plan.NOTHING_KNOWN):.1f} / {fmean(clusters):.1f} s"
            if clusters
            else ""
        )
        yield f"  {cell} {topology}: run {spec.guessed_seconds:.1f} / {seconds:.1f} s{cluster_times}"
        guesses = load(spec.experiment).guess_pass_seconds(load(spec.experiment).params(**spec.params))
        for arm in session.arms[spec.experiment]:
            first = [
                [
                    row.interval.seconds
                    for row in run.usage
                    if row.arm == arm.name and row.turn == 1 and row.node == "head"
                ]
                for run in same
            ]
            guess = guesses.get(arm.name, ())
            if any(first) or guess:
                each = " ".join(f"{seconds:.3f}" for seconds in first[0])
                yield f"    {arm.name:24}{sum(guess):8.3f} /{fmean(map(sum, first)):8.3f} s  {len(guess)} / {len(first[0])} points: {each}"


if __name__ == "__main__":
    command_line.run(main)
