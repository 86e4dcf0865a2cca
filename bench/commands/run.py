"""`bench run`: plan, stand clusters up, measure, say what it means."""

from __future__ import annotations

from dataclasses import replace

from bench.history import past_runs
from bench.options import DEFAULT_OUT, AsJson, Out, RunRequest, TargetOptions
from bench.planning import budget, plan
from bench.runner.measure import measure_new
from bench.runner.result import announce
from bench.targets import choose
from bench.terminal.asking import typed_command


def command(request: RunRequest, given: TargetOptions, out: Out = DEFAULT_OUT, as_json: AsJson = False) -> None:
    """Measure experiments on one node and on many, side by side, and print what the numbers mean.

    With --plan, what is to be done comes from a file, as `bench plan --save` writes it.

    Example: bench run inference --profile tiny --blocks 6
    """
    chosen = choose(request.target, given)
    target = chosen.target
    resolved = replace(request, target=target.name, options=chosen.options.given(), command=typed_command())
    session = budget.fit(plan.make(resolved), past_runs.known(out, target.name))
    result = measure_new(
        out,
        session,
        target,
        f"{chosen.describe()} Session {session.id}, kept in {out / session.id}.",
        *plan.twins(request),
        *(f"Left out, since the nodes are too small: {cell}." for cell in session.unfit),
        *(f"No room in the budget: {dropped}." for dropped in session.dropped),
    )
    announce(result, as_json=as_json)
