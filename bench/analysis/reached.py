"""How many trainings reached their target, and when: those that did not are part of the median, and never dropped."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.analysis.comparison import measured, outcome
from bench.analysis.rows import Question, Specs
from bench.analysis.stats.estimates import LEVEL
from bench.model import Arm, Metric, Run
from bench.survival import kaplan_meier_median

TIME_TO_TARGET = "time_to_target_seconds"  # an experiment that yields it, with the curve below, gets this table
ACCURACY_BY_SECONDS = "accuracy_by_seconds"  # how long a training went that did not reach it


@dataclass(frozen=True, kw_only=True)
class Reached:
    """One arm's trainings on one topology."""

    topology: str
    arm: str
    runs: int
    reached: int
    low: float  # of the share that reaches it: Clopper and Pearson's interval
    high: float
    median_seconds: float | None  # Kaplan and Meier's; None: half of them never got there
    vain_seconds: float  # the longest that one was watched in vain; 0: all got there


def reached(question: Question, specs: Specs, metrics: Sequence[Metric], arms: Sequence[Arm]) -> Iterator[Reached]:
    """Every arm on each topology whose time to a target was measured, or missed."""
    metric = next((metric for metric in metrics if metric.name == TIME_TO_TARGET), None)
    if metric is None:
        return
    for topology, those in specs.items():
        runs = question.usable(those)
        for arm in arms:
            if trained := measured(runs, metric, arm.name):
                yield _reached(topology, arm.name, trained, metric)


def _reached(topology: str, arm: str, runs: Sequence[Run], metric: Metric) -> Reached:
    times = [(run, outcome(run, metric, arm)) for run in runs]
    came = [time for _, time in times if not isinstance(time, str)]
    missed = [_watched_seconds(run, arm) for run, time in times if isinstance(time, str)]
    middle = kaplan_meier_median(came, missed)
    low, high = _interval(len(came), len(runs))
    return Reached(
        topology=topology,
        arm=arm,
        runs=len(runs),
        reached=len(came),
        low=low,
        high=high,
        median_seconds=None if math.isinf(middle) else middle,
        vain_seconds=max(missed, default=0.0),
    )


def _watched_seconds(run: Run, arm: str) -> float:
    """Until the last look at the accuracy."""
    looks = (s.step for s in run.samples if s.metric == ACCURACY_BY_SECONDS and s.arm == arm and s.step is not None)
    return max(looks, default=0.0)


def _interval(reached: int, runs: int) -> tuple[float, float]:
    from scipy.stats import binomtest

    found = binomtest(reached, runs).proportion_ci(LEVEL, method="exact")
    return float(found.low), float(found.high)
