"""How many trainings reached their target, and when: those that did not are part of the median, and never dropped."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.analysis.rows import Question, Specs
from bench.analysis.stats.estimates import LEVEL
from bench.analysis.table import Groups, Selection
from bench.metrics import meaning
from bench.model import Arm, Metric
from bench.survival import kaplan_meier_median


@dataclass(frozen=True, kw_only=True)
class TimeToTarget:
    """One arm's trainings on one topology."""

    topology: str
    arm: str
    runs: int
    reached: int
    low: float  # of the share that reaches it: Clopper and Pearson's interval
    high: float
    median_seconds: float | None  # Kaplan and Meier's; None: half of them never got there
    censored_seconds: float  # the longest time of a training that did not reach it; 0: all did


def times_to_target(
    question: Question, specs: Specs, metrics: Sequence[Metric], arms: Sequence[Arm]
) -> Iterator[TimeToTarget]:
    """Every arm on each topology whose time to a target was measured, or missed."""
    metric, curve = meaning("time to target", metrics), meaning("accuracy by seconds", metrics)
    if metric is None:
        return
    for topology, those in specs.items():
        runs = question.usable(those)
        for arm in arms:
            trained = runs.having(metric, arm.name)
            if trained.at:
                yield _reached(topology, arm.name, trained, metric, curve)


def _reached(topology: str, arm: str, trained: Selection, metric: Metric, curve: Metric | None) -> TimeToTarget:
    times = list(zip(trained.at, trained.outcomes(metric, arm), strict=True))
    watched = _watched_seconds(trained, arm, curve)
    came = [time for _, time in times if not isinstance(time, str)]
    missed = [watched.get(run, 0.0) for run, time in times if isinstance(time, str)]
    middle = kaplan_meier_median(came, missed)
    low, high = _interval(len(came), len(times))
    return TimeToTarget(
        topology=topology,
        arm=arm,
        runs=len(times),
        reached=len(came),
        low=low,
        high=high,
        median_seconds=None if math.isinf(middle) else middle,
        censored_seconds=max(missed, default=0.0),
    )


def _watched_seconds(trained: Selection, arm: str, curve: Metric | None) -> dict[int, float]:
    """By run, until the accuracy was last evaluated; none where the experiment has no curve of it."""
    table, rows = trained.table, trained.samples
    rows = rows[table.samples.named(rows, metric=curve.name if curve else "", arm=arm) & table.is_curve[rows]]
    steps = Groups(table.samples.run[rows], len(table.runs)).most(table.samples.read("step")[rows]).tolist()
    return {at: steps[at] for at in trained.at if not math.isnan(steps[at])}


def _interval(reached: int, runs: int) -> tuple[float, float]:
    from scipy.stats import binomtest

    found = binomtest(reached, runs).proportion_ci(LEVEL, method="exact")
    return float(found.low), float(found.high)
