"""Curves: a metric along an axis, as the median over invocations with a band from the least to the greatest."""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from bench.analysis.rows import Question, Specs
from bench.model import Metric, Run

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
        runs = question.usable(those).runs
        for metric in (metric for metric in metrics if metric.axis):
            for (arm, point), lines in _lines(runs, metric).items():
                yield _curve(metric, arm, topology, point, lines)


def _lines(runs: Sequence[Run], metric: Metric) -> Mapping[tuple[str, str], list[Line]]:
    """By arm and point: what each invocation drew. A step that came twice has the value that came last."""
    found: dict[tuple[str, str], list[Line]] = {}
    for run in runs:
        drawn: dict[tuple[str, str], dict[float, float]] = {}
        for sample in run.samples:
            if sample.metric == metric.name and sample.step is not None and sample.value is not None:
                drawn.setdefault((sample.arm, sample.point), {})[sample.step] = sample.value
        for key, values in drawn.items():
            found.setdefault(key, []).append(sorted(values.items()))
    return found


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
