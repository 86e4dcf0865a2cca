"""`bench history`: how a metric went from session to session."""

from __future__ import annotations

from typing import Annotated

import typer

from bench import history
from bench.commands.options import DEFAULT_OUT, AsJson, Out, say_json
from bench.history import Number

MetricName = Annotated[str, typer.Argument(metavar="METRIC", help="Its name, as `bench list` has it.")]
Experiment = Annotated[str, typer.Option(help="Of this experiment alone.")]
Since = Annotated[str, typer.Option(metavar="DATE", help="Of sessions since then: 2026-01-31.")]


def command(
    metric: MetricName, experiment: Experiment = "", since: Since = "", as_json: AsJson = False, out: Out = DEFAULT_OUT
) -> None:
    """Print a metric of every session, the same params together, oldest first. What changed beside it, it cannot tell.

    Example: bench history throughput_inputs_per_second --since 2026-01-01
    """

    def reading(sessions: int) -> None:
        typer.echo(f"Reading {sessions} sessions for the first time.", err=True)

    found = history.of_metric(out, metric, experiment=experiment, since=since, reading=reading)
    if as_json:
        say_json(found)
        return
    typer.echo("\n".join(_lines(found)))


def _lines(found: list[Number]) -> list[str]:
    from bench.analysis.numbers import scale_for, with_interval
    from bench.analysis.stats import Estimate

    groups: dict[tuple[str, str, str], list[Number]] = {}
    for number in found:
        groups.setdefault((number.experiment, number.params, number.topology), []).append(number)
    lines = []
    for (experiment, params, topology), numbers in groups.items():
        is_ratio = "/" in topology
        scale = scale_for(numbers[0].metric, [] if is_ratio else [number.value for number in numbers])
        lines += ["", f"{experiment} {params} on {topology}{'' if is_ratio else f', in {scale.unit}'}"]
        for each in numbers:
            estimate = Estimate(value=each.value, low=each.low, high=each.high, level=each.level, n=each.n)
            value = with_interval(estimate, decimals=3) if is_ratio else with_interval(estimate, scale)
            lines.append(f"  {each.created[:16]}  {value:26}  n {each.n:<3} {each.verdict:12} {each.session}")
    return lines[1:]
