"""How many trainings reached their target, and when: those that did not are part of the median, and never dropped."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.analysis.rows import Question, Specs
from bench.analysis.stats.estimates import LEVEL
from bench.analysis.table import Selection
from bench.metrics import meaning
from bench.model import Arm, Metric, Run
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
    censored_seconds: float  # the longest that one was watched in vain; 0: all got there


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
    runs = trained.runs
    times = list(zip(runs, trained.outcomes(metric, arm), strict=True))
    came = [time for _, time in times if not isinstance(time, str)]
    missed = [_watched_seconds(run, arm, curve) for run, time in times if isinstance(time, str)]
    middle = kaplan_meier_median(came, missed)
    low, high = _interval(len(came), len(runs))
    return TimeToTarget(
        topology=topology,
        arm=arm,
        runs=len(runs),
        reached=len(came),
        low=low,
        high=high,
        median_seconds=None if math.isinf(middle) else middle,
        censored_seconds=max(missed, default=0.0),
    )


def _watched_seconds(run: Run, arm: str, curve: Metric | None) -> float:
    """Until the accuracy was last evaluated; 0 where the experiment has no curve of it."""
    name = curve.name if curve else None
    looks = (s.step for s in run.samples if s.metric == name and s.arm == arm and s.step is not None)
    return max(looks, default=0.0)


def _interval(reached: int, runs: int) -> tuple[float, float]:
    from scipy.stats import binomtest

    found = binomtest(reached, runs).proportion_ci(LEVEL, method="exact")
    return float(found.low), float(found.high)
