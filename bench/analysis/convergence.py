"""Whether a training converged too soon to be believed: MLPerf's test of reference convergence points.

A large batch, or a fault, may seem to need fewer samples than the reference with the same batch does. What needs
significantly fewer than the reference's own repeats is no speed-up but another problem.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

SIGNIFICANCE = 0.05
FEWEST_RUNS = 3  # so that one is left when the fastest and the slowest are dropped


@dataclass(frozen=True, kw_only=True)
class ReferencePoint:
    """What the reference needs to converge, in epochs or samples: its runs without the fastest and the slowest."""

    mean: float
    deviation: float  # of these as a whole population
    least_mean: float  # of a submission of so many runs, below which it is too fast to be the same training

    @property
    def most_speed_up(self) -> float:
        """By which a submission may be faster, by chance: 0.0353 is 3.53 %."""
        return self.mean / self.least_mean - 1


def reference_point(reference: Sequence[float], submitted: int) -> ReferencePoint:
    """The point of `reference` runs for a submission of `submitted` runs. Raises ValueError for fewer than 3 of either."""
    from scipy.stats import t

    if min(len(reference), submitted) < FEWEST_RUNS:
        raise ValueError(f"{len(reference)} reference runs and {submitted} of the submission: each needs {FEWEST_RUNS}")
    kept = _olympic(reference)
    count = submitted - 2
    mean = sum(kept) / len(kept)
    deviation = math.sqrt(sum((value - mean) ** 2 for value in kept) / len(kept))
    freedom = len(kept) + count - 2
    if freedom < 1:
        raise ValueError(
            f"{len(reference)} reference runs and {submitted} of the submission leave no degree of freedom"
        )
    quantile = float(t.ppf(1 - SIGNIFICANCE, freedom))
    least = mean - quantile * deviation * math.sqrt(1 / len(kept) + 1 / count)
    return ReferencePoint(mean=mean, deviation=deviation, least_mean=least)


def is_too_fast(submission: Sequence[float], reference: Sequence[float]) -> bool:
    """Whether `submission` needed significantly less to converge than `reference` at the same batch."""
    kept = _olympic(submission)
    return sum(kept) / len(kept) < reference_point(reference, len(submission)).least_mean


def _olympic(values: Sequence[float]) -> Sequence[float]:
    """Without the least and the greatest."""
    return sorted(values)[1:-1]
