"""Print a metric over all sessions.

Sessions with the same parameters are listed together, the oldest first; from 10 sessions on, changes of level are
marked. `bench compare` names the facts that differ between two sessions.

Example: bench history throughput_inputs_per_second --since 2026-01-01
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bench.history import metric_history
from bench.history.metric_history import Change, Number
from bench.options import DEFAULT_OUT, AsJson, Out, Since
from bench.record import store
from bench.terminal.answers import say_json
from bench.terminal.output import say

if TYPE_CHECKING:
    from bench.analysis.number_format import Scale

MetricName = Annotated[str, typer.Argument(metavar="METRIC", help="Name of the metric, as in `bench list`.")]
Experiment = Annotated[str, typer.Option(metavar="EXPERIMENT", help="Only this experiment, e.g. network.")]


def command(
    metric: MetricName, experiment: Experiment = "", since: Since = "", as_json: AsJson = False, out: Out = DEFAULT_OUT
) -> None:
    store.check_there(out)

    def reading(sessions: int) -> None:
        from bench.counts import plural

        say(f"Summarizing {plural(sessions, 'session')} for the first time.")

    measured = metric_history.with_changes(
        metric_history.of_metric(out, metric, experiment=experiment, since=since, reading=reading)
    )
    if as_json:
        say_json("history", measured)
        return
    typer.echo("\n".join(_lines(measured)))


def _lines(measured: list[Number]) -> list[str]:
    from bench.analysis.number_format import scale_for, with_interval
    from bench.analysis.stats.estimates import Estimate

    lines = []
    for (experiment, params, topology), numbers in metric_history.series(measured).items():
        is_ratio = "/" in topology
        scale = scale_for(numbers[0].metric, [] if is_ratio else [number.value for number in numbers])
        lines += ["", f"{experiment} {params} on {topology}{'' if is_ratio else f', in {scale.unit}'}"]
        for number in numbers:
            estimate = Estimate(value=number.value, low=number.low, high=number.high, level=number.level, n=number.n)
            value = with_interval(estimate, decimals=3) if is_ratio else with_interval(estimate, scale)
            if number.changed:
                lines.append(f"  ^ {_describe_change(number, number.changed, scale)}")
            lines.append(f"  {number.created[:16]}  {value:26}  n {number.n:<3} {number.verdict:12} {number.session}")
        lines.append(f"  {_how_many(numbers)}")
    return lines[1:]


def _describe_change(number: Number, changed: Change, scale: Scale) -> str:
    """Describe a change: between which sessions, from which level to which, by how much."""
    from bench.analysis.number_format import percent, plain

    size = ""
    if changed.ratio is not None:
        size = f", {percent(abs(changed.ratio - 1))} {'more' if changed.ratio > 1 else 'less'}"
    is_better = (changed.after > changed.before) == (number.metric.better == "higher")
    judged = "" if number.metric.better is None else "better, " if is_better else "worse, "
    levels = " to ".join(plain(value / scale.divisor) for value in (changed.before, changed.after))
    return f"changed between {changed.since} and {number.session}: from {levels}{size} ({judged}p {plain(changed.p)})"


def _how_many(numbers: list[Number]) -> str:
    from bench.analysis.stats.change_points import FEWEST
    from bench.counts import plural

    if len(numbers) < FEWEST:
        return f"not enough history to detect changes: {len(numbers)} of {FEWEST} sessions"
    changes = sum(number.changed is not None for number in numbers)
    return f"{plural(changes, 'change') if changes else 'no changes'} of level in {len(numbers)} sessions"
