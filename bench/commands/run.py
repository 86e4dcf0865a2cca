"""Measure experiments and print the report.

Each experiment runs on one node and on several, in blocks, and the report compares the two. Without arguments it lists
the experiments. --plan reads the request from a file that `bench plan --save` wrote.

Example: bench run inference --profile tiny --blocks 6
"""

from __future__ import annotations

from dataclasses import replace

from bench.history import past_runs
from bench.options import DEFAULT_OUT, AsJson, Calibrate, Out, RunRequest, TargetOptions
from bench.planning import budget, estimate, plan
from bench.runner.measure import measure_new
from bench.runner.result import announce
from bench.targets import choose
from bench.terminal.asking import typed_command


def command(
    request: RunRequest,
    given: TargetOptions,
    calibrate: Calibrate = None,
    out: Out = DEFAULT_OUT,
    as_json: AsJson = False,
) -> None:
    plan.check_experiments(request)
    chosen = choose(request.target, given)
    target = chosen.target
    resolved = replace(request, target=target.name, options=chosen.options.given(), command=typed_command())
    made = plan.make(resolved)
    known = estimate.calibrated(made, past_runs.known(out, target.name), wanted=calibrate)
    session = budget.fit(made, known)
    result = measure_new(
        out,
        session,
        target,
        chosen.describe(f"Session {session.id}, kept in {out / session.id}."),
        *plan.left_out(request),
        *(f"{stand_in}." for stand_in in session.stand_ins),
        *(f"Not checked in {checks}." for checks in session.unchecked),
        *plan.refusals(session),
        estimate.estimate(session, known).describe(),
        slowness=known.slowness,
    )
    announce(result, as_json=as_json)
