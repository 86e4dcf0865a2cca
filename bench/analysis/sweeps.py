"""Sweeps that each run makes by itself: every arm at every point, on each topology, and the two side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from bench.analysis.comparison import Outcome, outcome
from bench.analysis.rows import MetricRow, Question, Specs
from bench.analysis.usage import NOT_COUNTED, Quantity, quantities, use_at
from bench.model import Metric, Run


def sweeps(question: Question, specs: Specs, metrics: Sequence[Metric], unit: str) -> Iterator[MetricRow]:
    """Every metric at every point that it was measured at; then what a unit of work used there."""
    runs = [run for those in specs.values() for run in question.usable(those)]
    for metric in metrics:
        for point, arm in dict.fromkeys(
            (point, arm) for run in runs for name, arm, node, point in run.values if name == metric.name and point
        ):
            row = question.row(specs, metric, arm, partial(outcome, metric=metric, arm=arm, point=point))
            yield replace(row, point=point)
    watched = dict.fromkeys((row.point, row.arm) for run in runs for row in run.usage if row.point)
    for quantity in quantities(unit):
        for point, arm in watched if quantity.by_unit else ():
            read = partial(_used, quantity=quantity, arm=arm, point=point)
            row = question.row(specs, quantity.metric, arm, read, is_compared=quantity.compared)
            yield replace(row, point=point)


def _used(run: Run, *, quantity: Quantity, arm: str, point: str) -> Outcome:
    value = quantity.read(use_at(run, arm, point))
    return NOT_COUNTED if value is None else value
