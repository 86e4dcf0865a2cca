"""Curves: a metric along an axis, as the median over invocations with a band from the least to the greatest."""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from bench.analysis.rows import Question, Specs
from bench.analysis.table import Selection
from bench.model import Metric

MOST_STEPS = 200  # of one curve: more than any picture can show

Line = Sequence[tuple[float, float]]
"""Steps and values of one invocation, by step."""


@dataclass(frozen=True, kw_only=True)
class Curve:
    """One metric of one arm on one topology along its axis. `n[i]` invocations had got as far as `steps[i]`."""

    metric: Metric
    arm: str
    topology: str
    point: str
    steps: tuple[float, ...]
    middle: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    n: tuple[int, ...]


def curves(question: Question, specs: Specs, metrics: Sequence[Metric]) -> Iterator[Curve]:
    """Every curve that was measured, arm by arm and point by point."""
    for topology, those in specs.items():
        runs = question.usable(those)
        for metric in (metric for metric in metrics if metric.axis):
            for (arm, point), lines in _lines(runs, metric).items():
                yield _curve(metric, arm, topology, point, lines)


def _lines(those: Selection, metric: Metric) -> Mapping[tuple[str, str], list[Line]]:
    """By arm and point: what each invocation drew. A step that came twice has the value that came last."""
    table, samples = those.table, those.table.samples
    rows = those.samples[samples.named(those.samples, metric=metric.name)]
    rows = rows[table.is_curve[rows] & ~table.is_gap[rows]]
    names = zip(samples.text("arm", rows), samples.text("point", rows), samples.run[rows].tolist(), strict=True)
    drawn: dict[tuple[str, str], dict[int, dict[float, float]]] = {}
    steps, values = samples.read("step")[rows].tolist(), samples.read("value")[rows].tolist()
    for (arm, point, run), step, value in zip(names, steps, values, strict=True):
        drawn.setdefault((arm or "", point or ""), {}).setdefault(run, {})[step] = value
    return {key: [sorted(line.items()) for line in by_run.values()] for key, by_run in drawn.items()}


def _curve(metric: Metric, arm: str, topology: str, point: str, lines: Sequence[Line]) -> Curve:
    steps = _thinned(sorted({step for line in lines for step, _ in line}))
    there = [[value for line in lines if (value := _at(line, step)) is not None] for step in steps]
    return Curve(
        metric=metric,
        arm=arm,
        topology=topology,
        point=point,
        steps=tuple(steps),
        middle=tuple(float(median(values)) for values in there),
        low=tuple(min(values) for values in there),
        high=tuple(max(values) for values in there),
        n=tuple(len(values) for values in there),
    )


def _at(line: Line, step: float) -> float | None:
    """The value that a line has at `step`: its last one until then, as long as it goes on."""
    position = bisect.bisect_right(line, step, key=lambda pair: pair[0])
    return line[position - 1][1] if position and step <= line[-1][0] else None


def _thinned(steps: Sequence[float]) -> Sequence[float]:
    """At most MOST_STEPS of them, evenly taken, the first and the last with them."""
    if len(steps) <= MOST_STEPS:
        return steps
    return [steps[round(number * (len(steps) - 1) / (MOST_STEPS - 1))] for number in range(MOST_STEPS)]
