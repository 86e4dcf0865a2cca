"""Run an experiment once and print its samples.

For authors of experiments: it runs the first cell of the profile, or the one that --set names, in a Ray of this process
that ends with it. There is no cluster, quiet check or report. It checks that samples and credited work match what the
experiment declares.

Example: bench try core-rates --set calls=10
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated

import typer

from bench import options as o
from bench.analysis.number_format import plain, scale_for
from bench.errors import RunInvalid
from bench.experiments import load
from bench.metrics import seconds
from bench.model import Metric, Sample
from bench.planning import plan
from bench.runner import local_run
from bench.terminal.answers import say_json
from bench.terminal.asking import typed_command

Experiment = Annotated[str, typer.Argument(metavar="EXPERIMENT", help="Experiment to run; see `bench list`.")]
Samples = Annotated[
    int, typer.Option(min=1, metavar="N", rich_help_panel=o.WORK, help="Samples of each metric, without warm-up.")
]
Cpus = Annotated[
    int, typer.Option(min=1, metavar="CPUS", rich_help_panel="Ray", help="CPUs of the Ray that it starts.")
]
Address = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        rich_help_panel="Ray",
        help="Running Ray to use, e.g. 127.0.0.1:6379. [default: start one]",
    ),
]
WORKLOAD = o.Workload()
SECONDS = seconds("interval_seconds")
OBJECT_STORE_MIB = 512


def command(
    experiment: Experiment,
    workload: o.Workload = WORKLOAD,
    samples: Samples = 1,
    cpus: Cpus = 2,
    address: Address = None,
    as_json: o.AsJson = False,
) -> None:
    request = o.RunRequest(
        **vars(workload),
        experiments=(experiment,),
        blocks=1,
        samples=samples,
        topology="single",
        cpus=cpus,
        object_store_mib=OBJECT_STORE_MIB,
        target="local",
        command=typed_command(),
    )
    cells = sorted(plan.make(request).specs, key=lambda spec: spec.cell)
    outcome = local_run.run(replace(cells[0], warmups=0), address=address, print_logs=not as_json)
    if as_json:
        say_json("try", outcome)
    else:
        params = " ".join(f"{name}={value}" for name, value in cells[0].params.items())
        others = f" (1 of {len(cells)} cells; --set chooses another)" if len(cells) > 1 else ""
        typer.echo("\n".join([f"{experiment} {params}{others}", "", *_table(experiment, outcome)]))
    if outcome.reasons:
        raise RunInvalid(f"A run like this is invalid: {'; '.join(outcome.reasons)}.", "See docs/extending.md.")


def _table(experiment: str, outcome: local_run.LocalRun) -> Iterator[str]:
    metrics = {metric.name: metric for metric in load(experiment).metrics}
    rows = [("turn", "arm", "metric", "interval", "value")]
    rows += [
        (
            str(sample.turn or "all"),
            sample.arm,
            " ".join(filter(None, (sample.metric, sample.point, sample.node, _step(sample, metrics)))),
            plain(sample.interval.seconds, scale_for(SECONDS, [sample.interval.seconds])),
            _value(sample, metrics),
        )
        for sample in outcome.samples
    ]
    yield from _aligned(rows)
    yield ""
    yield "Credited work: what credit returned, over all passes"
    for arm, work in outcome.work.items():
        yield f"  {arm}: {', '.join(f'{node} {amount:,.6g}' for node, amount in work.items()) or 'none'}"
    if outcome.unmeasured:
        yield f"Declared, and without a value here: {', '.join(outcome.unmeasured)}."


def _step(sample: Sample, metrics: dict[str, Metric]) -> str:
    if sample.step is None:
        return ""
    metric = metrics.get(sample.metric)
    return f"at {sample.step:g} {metric.axis if metric else ''}".rstrip()


def _value(sample: Sample, metrics: dict[str, Metric]) -> str:
    if sample.value is None:
        return f"none: {sample.reason}"
    metric = metrics.get(sample.metric)
    if metric is None:
        return f"{plain(sample.value)} {sample.unit}"
    return plain(sample.value, scale_for(metric, [sample.value]))


def _aligned(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
