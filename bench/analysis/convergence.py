"""Whether a training converged too soon to be believed: MLPerf's test of reference convergence points.

A large batch, or a fault, may seem to need fewer samples than the reference with the same batch does. What needs
significantly fewer than the reference's own repeats is no speed-up but another problem.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.analysis.rows import Question, Specs
from bench.analysis.table import Selection
from bench.metrics import meaning
from bench.model import Arm, Metric

SIGNIFICANCE = 0.05
FEWEST_RUNS = 3  # so that one is left when the fastest and the slowest are dropped
FEWEST_IN_ALL = 7  # so that a degree of freedom is left


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


@dataclass(frozen=True, kw_only=True)
class Guard:
    """One arm's trainings on one topology beside those of its reference, which has the same batch."""

    topology: str
    arm: str
    reference: str
    runs: int
    reference_runs: int
    needed: float | None  # samples, mean without the least and the greatest
    point: ReferencePoint | None
    refusal: str = ""  # why there is no point

    @property
    def is_too_fast(self) -> bool:
        """Whether it is not the same training."""
        return self.needed is not None and self.point is not None and self.needed < self.point.least_mean


def guards(question: Question, specs: Specs, metrics: Sequence[Metric], arms: Sequence[Arm]) -> Iterator[Guard]:
    """Every arm that names a reference, on each topology where both were measured."""
    metric = meaning("samples to target", metrics)
    if metric is None:
        return
    for topology, those in specs.items():
        runs = question.usable(those)
        for arm in (arm for arm in arms if arm.reference):
            submission, reference = _needed(runs, metric, arm.name), _needed(runs, metric, arm.reference)
            if submission and reference:
                yield _guard(topology, arm, submission, reference)


def _guard(topology: str, arm: Arm, submission: Sequence[float], reference: Sequence[float]) -> Guard:
    point, refusal = None, _refusal(submission, reference)
    if not refusal:
        point = reference_point(reference, len(submission))
    kept = _olympic(submission)
    return Guard(
        topology=topology,
        arm=arm.name,
        reference=arm.reference,
        runs=len(submission),
        reference_runs=len(reference),
        needed=None if refusal else sum(kept) / len(kept),
        point=point,
        refusal=refusal,
    )


def _refusal(submission: Sequence[float], reference: Sequence[float]) -> str:
    """Why chance cannot be told from haste; nothing: it can."""
    if min(len(submission), len(reference)) < FEWEST_RUNS or len(submission) + len(reference) < FEWEST_IN_ALL:
        return f"{len(submission)} and {len(reference)} runs, and {FEWEST_RUNS} and {FEWEST_IN_ALL - FEWEST_RUNS} are needed"
    missed = max(sum(map(math.isinf, values)) for values in (submission, reference))
    if missed > 1:
        return f"{missed} runs did not reach the target, and one may miss it"
    if len(set(_olympic(reference))) == 1:
        return (
            "the runs of the reference that count needed the same: seeds that differ are needed, or a look more often"
        )
    return ""


def _needed(runs: Selection, metric: Metric, arm: str) -> list[float]:
    """Samples to the target in each run that was measured; without end where it was not reached."""
    found = runs.having(metric, arm).outcomes(metric, arm)
    return [math.inf if isinstance(value, str) else value for value in found]


def _olympic(values: Sequence[float]) -> Sequence[float]:
    """Without the least and the greatest."""
    return sorted(values)[1:-1]
