"""Print what a run would do and how long it takes.

Nothing is started. --save writes the plan to a file for `bench run --plan`.

Example: bench plan inference --profile lab --set batch=1,10 --save plan.toml
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from bench.analysis.number_format import percent
from bench.analysis.stats import power
from bench.analysis.stopping import FEWEST_PAIRS
from bench.counts import plural
from bench.history import past_runs
from bench.history.past_runs import PairSpread
from bench.model import Session, Spec
from bench.options import DEFAULT_OUT, AsJson, Calibrate, Out, RunRequest, TargetOptions
from bench.planning import budget, estimate, plan, plan_file
from bench.record import store
from bench.targets import choose
from bench.terminal.answers import say_json, say_plain
from bench.terminal.asking import typed_command
from bench.terminal.output import say

Save = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write the plan to a file, e.g. plan.toml or plan.yaml.")
]


def _say_schema(wanted: bool) -> None:
    """Print the schema of plan files and exit, before a missing experiment is reported: the schema needs none."""
    if wanted:
        from bench.planning import plan_schema

        say_plain(plan_schema.schema())
        raise typer.Exit


Schema = Annotated[
    bool,
    typer.Option("--schema", is_eager=True, callback=_say_schema, help="Print the JSON schema of plan files."),
]
MOST_CONTRASTS = 12  # that are listed
SPREADS = (0.02, 0.05, 0.1)  # of pairs' log-ratios, if no earlier session has them


def command(
    request: RunRequest,
    given: TargetOptions,
    calibrate: Calibrate = None,
    out: Out = DEFAULT_OUT,
    save: Save = None,
    schema: Schema = False,  # noqa: ARG001, its callback has answered
    as_json: AsJson = False,
) -> None:
    plan.check_experiments(request)
    chosen = choose(request.target, given)
    made = plan.make(replace(request, target=chosen.target.name, command=typed_command()))
    known = estimate.calibrated(made, past_runs.known(out, chosen.target.name), wanted=calibrate)
    session = budget.fit(made, known)
    for topology in plan.topologies(request):
        chosen.target.check(topology)
    if save:
        store.write_whole(save, plan_file.written(plan_file.plan_of(request, given, out), save.name).encode())
        say(f"Run it with: bench run --plan {shlex.quote(str(save))}")
    for reason in plan.left_out(request):
        say(reason)
    if as_json:
        say_json("plan", {"why": chosen.reason, **vars(estimate.estimate(session, known)), "session": session})
        return
    lines = describe(session, known, reason=chosen.reason)
    if len(plan.topologies(request)) > 1:
        lines += ["", *smallest_effects(session, past_runs.spreads(out))]
    typer.echo("\n".join(lines))


def describe(session: Session, known: plan.Known, *, reason: str) -> list[str]:
    """Return the plan as lines of text."""
    specs = session.specs
    first = [spec for spec in specs if spec.block == 1 and spec.topology.name == specs[0].topology.name]
    topologies = {spec.topology.name: spec.topology for spec in specs}
    blocks = max(spec.block for spec in specs)
    because = f" ({reason})" if reason else ""
    lines = [f"Target {session.target}{because}, profile {session.profile}, seed {session.seed}.", "", "Topologies"]
    lines += [
        f"  {t.name:8} {plural(t.nodes, 'node')}, each {plural(t.cpus_per_node, 'CPU')}, {plural(t.threads_per_node, 'native thread')},"
        f" {t.memory_bytes_per_node / plan.MIB:.0f} MiB with an object store of"
        f" {t.object_store_bytes_per_node / plan.MIB:.0f} MiB"
        for t in topologies.values()
    ]
    times, warmups = plural(first[0].samples, "time"), plural(first[0].warmups, "warm-up")
    lines += ["", f"Cells ({len(first)}), each measured {times} after {warmups}"]
    minutes = {_by_cell(spec): _minutes(session, spec, known) for spec in first}
    width = max(map(len, minutes.values()))
    lines += [
        f"  {spec.experiment} {spec.cell}  {minutes[_by_cell(spec)]:>{width}}  {_params(spec)}{_oversubscribed(spec)}"
        for spec in sorted(first, key=_by_cell)
    ]
    lines += describe_contrasts(session)
    lines += ["", f"Order ({plural(blocks, 'block')}, each topology on a fresh cluster)"]
    for block in range(1, blocks + 1):
        runs = [spec for spec in specs if spec.block == block]
        order = {name: [spec.cell for spec in runs if spec.topology.name == name] for name in topologies}
        names = list(dict.fromkeys(spec.topology.name for spec in runs))
        lines.append(f"  {block:2}  " + ", then ".join(f"{name} ({' '.join(order[name])})" for name in names))
    if refused := plan.refusals(session):
        lines += ["", *refused]
    lines += ["", estimate.estimate(session, known).describe()]
    lines += [f"{stand_in}." for stand_in in session.stand_ins]
    lines += [f"Not checked in {checks}." for checks in session.unchecked]
    if session.budget_seconds is not None:
        lines.append(f"The budget is {plan.format_duration(session.budget_seconds)}.")
    if session.precision_share is not None:
        lines.append(
            f"It ends earlier if every headline's interval is within {percent(session.precision_share)}"
            f" and rests on {FEWEST_PAIRS} pairs or more."
        )
    if blocks < 6:
        lines.append(
            f"{plural(blocks, 'block gives', 'blocks give')} values and no verdict: a verdict needs at least 6."
        )
    return lines


def describe_contrasts(session: Session) -> list[str]:
    """List the cells that the report will compare, and the parameters in which they differ."""
    from bench.analysis.contrasts import planned  # with numpy, which the rest of a plan does not need

    contrasts = [each for experiment in session.metrics for each in planned(session, experiment)]
    lines = [
        f"  {each.experiment} {each.candidate} beside {each.baseline}  {', '.join(filter(None, (each.title, each.where)))}"
        f"{' (at once: cannot be told apart)' if each.at_once else ''}"
        for each in contrasts[:MOST_CONTRASTS]
    ]
    if len(contrasts) > MOST_CONTRASTS:
        lines.append(f"  ... {plural(len(contrasts) - MOST_CONTRASTS, 'more contrast')}")
    return ["", f"Contrasts ({len(contrasts)})", *lines] if contrasts else []


def smallest_effects(session: Session, known: Mapping[str, PairSpread]) -> Iterator[str]:
    """Yield the smallest difference that each cell's headline shows with the planned blocks, for the spread of earlier sessions."""
    blocks = max(spec.block for spec in session.specs)
    if blocks == 1:
        yield "One pair cannot show a difference of any size: two or more pairs are needed."
        return
    yield f"Smallest difference that {plural(blocks, 'pair')} would show in 4 of 5 sessions"
    keys = {(spec.experiment, spec.cell): plan.run_key(spec) for spec in session.specs}
    cells = budget.cells_of(session)
    cells_with_spread = [(cell, earlier) for cell in cells if (earlier := known.get(keys[cell])) is not None]
    for (experiment, cell), earlier in cells_with_spread:
        yield (
            f"  {experiment} {cell}  {_effect(earlier.deviation, blocks)}, with a spread of"
            f" {percent(earlier.deviation)} as in {plural(earlier.pairs, 'pair')} of"
            f" {plural(earlier.sessions, 'earlier session')}"
        )
    if len(cells_with_spread) < len(cells):
        effects = [f"{_effect(share, blocks)} if pairs spread by {percent(share)}" for share in SPREADS]
        others = "every other cell" if cells_with_spread else "every cell" if len(cells) > 1 else " ".join(cells[0])
        yield f"  {others}  {', '.join(effects)}: no earlier session has their spread"


def _effect(deviation: float, pairs: int) -> str:
    smallest = power.smallest_effect(deviation, pairs)
    return "none" if smallest is None else percent(smallest)


def _minutes(session: Session, cell: Spec, known: plan.Known) -> str:
    """Return the duration of all runs of one cell, without starting clusters."""
    own = [spec for spec in session.specs if (spec.experiment, spec.cell) == (cell.experiment, cell.cell)]
    return plan.format_duration(sum(plan.run_seconds(spec, known) for spec in own))


def _oversubscribed(spec: Spec) -> str:
    """Return a note if a cell will have more busy workers than CPUs."""
    workers, cpus = spec.busy_workers or 0, spec.topology.totals["CPUs"]
    return f" (oversubscribed: {plural(workers, 'worker')} on {plural(cpus, 'CPU')})" if workers > cpus else ""


def _by_cell(spec: Spec) -> tuple[str, str]:
    return spec.experiment, spec.cell


def _params(spec: Spec) -> str:
    return " ".join(f"{name}={value}" for name, value in spec.params.items())
