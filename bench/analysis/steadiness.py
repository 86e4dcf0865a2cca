"""Tells whether values stayed the same during the invocations: steady, drifting, not steady, or too few samples to tell.

The unit is the invocation here too. Samples within one are correlated, so a test of a single series would take slow fluctuations
for a drift. So each invocation gives one number, the difference between its second and its first half. These numbers are
independent, and the test is whether their mean is 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from bench.analysis.stats import estimates
from bench.analysis.stats.estimates import Estimate
from bench.analysis.table import Selection
from bench.model import Metric

FEWEST_SAMPLES = 4  # in each invocation, without warm-ups
FEWEST_INVOCATIONS = 6
ALARMS = 0.05  # probability of any false alarm in a steady cell, over all arms and topologies
Label = Literal["steady", "drifting", "not steady", "too few samples to tell"]


@dataclass(frozen=True, kw_only=True)
class Steadiness:
    """One arm of one cell on one topology, over its samples in order."""

    arm: str
    topology: str
    label: Label
    samples: int  # in each invocation, without warm-ups
    invocations: int
    shift: Estimate | None = None  # second half / first half of an invocation; None if there are too few samples


Series = Sequence[Sequence[float]]
"""Logarithms of the values that count, in order, by invocation; all of equal length."""


def steadiness(
    samples: Mapping[str, Selection], metric: Metric, arms: Sequence[str], *, margin: float
) -> tuple[Steadiness, ...]:
    """Judge each arm and topology of one cell, from `samples` by topology. A shift within `margin` does not matter."""
    series_of = {
        (arm, topology): series
        for arm in arms
        for topology, selection in samples.items()
        if (series := _series(selection, metric, arm))
    }
    tests = sum(_is_enough(series) for series in series_of.values())
    return tuple(
        judged(series, arm=arm, topology=topology, level=1 - ALARMS / max(tests, 1), margin=margin)
        for (arm, topology), series in series_of.items()
    )


def judged(series: Series, *, arm: str, topology: str, level: float, margin: float) -> Steadiness:
    """Return the steadiness of one arm on one topology, from the interval of its shift at `level`."""
    invocations, samples = len(series), len(series[0])
    unknown = Steadiness(
        arm=arm, topology=topology, label="too few samples to tell", samples=samples, invocations=invocations
    )
    if not _is_enough(series):
        return unknown
    half = samples // 2
    shifts = [math.fsum(logs[-half:]) / half - math.fsum(logs[:half]) / half for logs in series]
    shift = estimates.mean_with_t_interval(shifts, level)
    return Steadiness(
        arm=arm,
        topology=topology,
        label=_label(series, shift, margin),
        samples=samples,
        invocations=invocations,
        shift=estimates.exponential(shift),
    )


def _series(samples: Selection, metric: Metric, arm: str) -> Series:
    """Return the series of an arm, cut to the shortest. Invocations without values are left out."""
    all_series = samples.series(metric, arm)
    logs_of = [list(map(math.log, values)) for values in all_series if values and min(values) > 0]
    shortest = min(map(len, logs_of), default=0)
    return [logs[:shortest] for logs in logs_of]


def _is_enough(series: Series) -> bool:
    return len(series) >= FEWEST_INVOCATIONS and len(series[0]) >= FEWEST_SAMPLES


def _label(series: Series, shift: Estimate, margin: float) -> Label:
    """Label a shift: one that matters and is significant is a drift; if two levels fit better than a line, it is not steady.

    Better by the Bayesian information criterion: two levels have one more parameter, the position of the change.
    """
    if (
        shift.low is None
        or shift.high is None
        or shift.low <= 0 <= shift.high
        or abs(shift.value) <= math.log1p(margin)
    ):
        return "steady"
    means = [math.fsum(turn) / len(turn) for turn in zip(*series, strict=True)]
    penalty = len(means) ** (1 / len(means))
    return "not steady" if penalty * _rest_of_step(means) < _rest_of_line(means) else "drifting"


def _rest_of_line(means: Sequence[float]) -> float:
    """Return the residual sum of squares of a straight line."""
    import numpy as np

    turns = np.arange(len(means))
    return float(np.sum((np.asarray(means) - np.polyval(np.polyfit(turns, means, 1), turns)) ** 2))


def _rest_of_step(means: Sequence[float]) -> float:
    """Return the residual sum of squares of two levels, with the change where it is smallest."""
    import numpy as np

    array = np.asarray(means)
    parts = ((array[:k], array[k:]) for k in range(1, len(array)))
    return min(float(one.var() * one.size + other.var() * other.size) for one, other in parts)
