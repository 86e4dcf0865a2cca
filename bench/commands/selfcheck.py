"""Check this machine and raymeter's measurements.

It compares 20 pairs of identical runs, measures a known slow-down and a known stall, and fails where it sees a
difference that is not there or misses one that is.

Example: bench selfcheck --quick
"""

from __future__ import annotations

from typing import Annotated

import typer

from bench.errors import RunFailed, SelfcheckFailed
from bench.experiments import selfcheck
from bench.options import DEFAULT_OUT, AsJson, Out, RunRequest, Seed, TargetName, TargetOptions
from bench.planning import plan
from bench.runner.measure import measure_new
from bench.targets import choose
from bench.terminal.answers import say_json
from bench.terminal.asking import typed_command

Quick = Annotated[bool, typer.Option("--quick", help="Take 3 minutes on one cluster, with pairs of turns.")]
MARKS = {True: "good", False: "bad", None: "note"}


def command(
    given: TargetOptions,
    quick: Quick = False,
    seed: Seed = 1,
    target: TargetName = "auto",
    as_json: AsJson = False,
    out: Out = DEFAULT_OUT,
) -> None:
    from bench.analysis.selfcheck import judge

    chosen = choose(target, given)
    request = RunRequest(
        experiments=("selfcheck",),
        profile="quick" if quick else "full",
        topology="single",
        seed=seed,
        target=chosen.target.name,
        options=chosen.options.given(),
        command=typed_command(),
    )
    session = plan.make(request)
    note = chosen.describe(f"Session {session.id}, kept in {out / session.id}.")
    runs = measure_new(out, session, chosen.target, note).runs
    if broken := [run for run in runs if run.status != "ok"]:
        raise RunFailed(
            f"{broken[0].spec.folder} is {broken[0].status}: {broken[0].reasons[0]}.",
            f"See it with `bench show {session.id} {broken[0].spec.folder}`.",
        )
    params = selfcheck.Params(**session.specs[0].params)  # type: ignore[arg-type]  # as that experiment declares them
    outcome = judge(
        runs,
        session.metrics["selfcheck"],
        slow_down=params.slow_down_percent / 100,
        stall_seconds=params.stall_milliseconds / 1000,
    )
    if as_json:
        say_json("selfcheck", outcome)
    else:
        typer.echo(f"Pairs: {outcome.level}, on one node")
    for check in () if as_json else outcome.checks:
        typer.echo(f"{MARKS[check.is_good]:5} {check.of:8} {check.name}: {check.words}")
    if outcome.failures:
        wrong = outcome.failures[0]
        raise SelfcheckFailed(
            f"The check of the {wrong.of} failed: {wrong.words}.",
            "`bench doctor` prints what makes this machine steadier; then repeat the check.",
        )
