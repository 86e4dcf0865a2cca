"""Whether what was measured stayed the same inside the invocations: steady, drifting, not steady, or too little to tell.

The unit is the invocation here too. Samples inside one are correlated, and a test of one series would take every slow
wave for a drift. So each invocation gives one number, how far its second half lies from its first, and what is tested is
whether these numbers, which are independent, have a mean of 0.
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

FEWEST_SAMPLES = 4  # that count, in each invocation
FEWEST_INVOCATIONS = 6
ALARMS = 0.05  # of all that is steady in a cell, arms and topologies together
Label = Literal["steady", "drifting", "not steady", "too few samples to tell"]


@dataclass(frozen=True, kw_only=True)
class Steadiness:
    """One arm of one cell on one topology, over its samples in order."""

    arm: str
    topology: str
    label: Label
    samples: int  # in each invocation, that count
    invocations: int
    shift: Estimate | None = None  # second half / first half of an invocation; None: too few to tell


Series = Sequence[Sequence[float]]
"""Logarithms of what counts, in order, invocation by invocation; all are equally long."""


def steadiness(
    samples: Mapping[str, Selection], metric: Metric, arms: Sequence[str], *, margin: float
) -> tuple[Steadiness, ...]:
    """By arm and topology, of the `samples` of one cell's usable runs by topology. A shift within `margin` is too small to matter."""
    found = {
        (arm, topology): series
        for arm in arms
        for topology, those in samples.items()
        if (series := _series(those, metric, arm))
    }
    tests = sum(_is_enough(series) for series in found.values())
    return tuple(
        judged(series, arm=arm, topology=topology, level=1 - ALARMS / max(tests, 1), margin=margin)
        for (arm, topology), series in found.items()
    )


def judged(series: Series, *, arm: str, topology: str, level: float, margin: float) -> Steadiness:
    """The label of one arm on one topology, by the interval of its shift at `level`."""
    invocations, samples = len(series), len(series[0])
    found = Steadiness(
        arm=arm, topology=topology, label="too few samples to tell", samples=samples, invocations=invocations
    )
    if not _is_enough(series):
        return found
    half = samples // 2
    shifts = [math.fsum(each[-half:]) / half - math.fsum(each[:half]) / half for each in series]
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
    """Cut to the shortest; invocations without any value are left out."""
    every = samples.series(metric, arm)
    some = [list(map(math.log, values)) for values in every if values and min(values) > 0]
    shortest = min(map(len, some), default=0)
    return [each[:shortest] for each in some]


def _is_enough(series: Series) -> bool:
    return len(series) >= FEWEST_INVOCATIONS and len(series[0]) >= FEWEST_SAMPLES


def _label(series: Series, shift: Estimate, margin: float) -> Label:
    """A shift that matters and is no chance is a drift; where two levels say it better than a line, it is not steady.

    Better by the Bayesian information criterion: two levels have one parameter more, where the change is.
    """
    if (
        shift.low is None
        or shift.high is None
        or shift.low <= 0 <= shift.high
        or abs(shift.value) <= math.log1p(margin)
    ):
        return "steady"
    course = [math.fsum(turn) / len(turn) for turn in zip(*series, strict=True)]
    price = len(course) ** (1 / len(course))
    return "not steady" if price * _rest_of_step(course) < _rest_of_line(course) else "drifting"


def _rest_of_line(course: Sequence[float]) -> float:
    """What a straight line leaves of the sum of squares."""
    import numpy as np

    turns = np.arange(len(course))
    return float(np.sum((np.asarray(course) - np.polyval(np.polyfit(turns, course, 1), turns)) ** 2))


def _rest_of_step(course: Sequence[float]) -> float:
    """What two levels leave, with the change where it leaves least."""
    import numpy as np

    array = np.asarray(course)
    parts = ((array[:k], array[k:]) for k in range(1, len(array)))
    return min(float(one.var() * one.size + other.var() * other.size) for one, other in parts)
