"""Tests whether a training converged too fast to be the same training, by MLPerf's reference convergence points.

A large batch, or a fault, may seem to need fewer samples than the reference at the same batch. A training that needs significantly
fewer than repeats of the reference solves another problem, which is no speed-up.
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
    """What the reference needs to converge, in epochs or samples, from its runs without the fastest and the slowest."""

    mean: float
    deviation: float  # standard deviation of these runs, taken as the whole population
    least_mean: float  # of a submission with this number of runs: below it, it is too fast to be the same training

    @property
    def most_speed_up(self) -> float:
        """How much faster a submission may be by chance; 0.0353 is 3.53 %."""
        return self.mean / self.least_mean - 1


def reference_point(reference: Sequence[float], submitted: int) -> ReferencePoint:
    """Return the reference point for a submission of `submitted` runs. Raises ValueError for fewer than 3 runs of either."""
    from scipy.stats import t

    if min(len(reference), submitted) < FEWEST_RUNS:
        raise ValueError(f"{len(reference)} reference runs and {submitted} of the submission: each needs {FEWEST_RUNS}")
    trimmed = _olympic(reference)
    count = submitted - 2
    mean = sum(trimmed) / len(trimmed)
    deviation = math.sqrt(sum((value - mean) ** 2 for value in trimmed) / len(trimmed))
    freedom = len(trimmed) + count - 2
    if freedom < 1:
        raise ValueError(
            f"{len(reference)} reference runs and {submitted} of the submission leave no degree of freedom"
        )
    quantile = float(t.ppf(1 - SIGNIFICANCE, freedom))
    least = mean - quantile * deviation * math.sqrt(1 / len(trimmed) + 1 / count)
    return ReferencePoint(mean=mean, deviation=deviation, least_mean=least)


def is_too_fast(submission: Sequence[float], reference: Sequence[float]) -> bool:
    """Whether `submission` needed significantly less to converge than `reference` at the same batch."""
    trimmed = _olympic(submission)
    return sum(trimmed) / len(trimmed) < reference_point(reference, len(submission)).least_mean


@dataclass(frozen=True, kw_only=True)
class Guard:
    """The trainings of one arm on one topology, compared with those of its reference, which has the same batch."""

    topology: str
    arm: str
    reference: str
    runs: int
    reference_runs: int
    needed: float | None  # samples: mean without the least and the greatest
    point: ReferencePoint | None
    refusal: str = ""  # the reason if there is no point

    @property
    def is_too_fast(self) -> bool:
        """Whether it converged too fast to be the same training."""
        return self.needed is not None and self.point is not None and self.needed < self.point.least_mean


def guards(question: Question, specs: Specs, metrics: Sequence[Metric], arms: Sequence[Arm]) -> Iterator[Guard]:
    """Yield a guard of every arm that names a reference, for each topology on which both were measured."""
    metric = meaning("samples to target", metrics)
    if metric is None:
        return
    for topology, specs_of_topology in specs.items():
        runs = question.usable(specs_of_topology)
        for arm in (arm for arm in arms if arm.reference):
            submission, reference = _needed(runs, metric, arm.name), _needed(runs, metric, arm.reference)
            if submission and reference:
                yield _guard(topology, arm, submission, reference)


def _guard(topology: str, arm: Arm, submission: Sequence[float], reference: Sequence[float]) -> Guard:
    point, refusal = None, _refusal(submission, reference)
    if not refusal:
        point = reference_point(reference, len(submission))
    trimmed = _olympic(submission)
    return Guard(
        topology=topology,
        arm=arm.name,
        reference=arm.reference,
        runs=len(submission),
        reference_runs=len(reference),
        needed=None if refusal else sum(trimmed) / len(trimmed),
        point=point,
        refusal=refusal,
    )


def _refusal(submission: Sequence[float], reference: Sequence[float]) -> str:
    """Return the reason why the runs cannot show whether a training is too fast; empty if they can."""
    if min(len(submission), len(reference)) < FEWEST_RUNS or len(submission) + len(reference) < FEWEST_IN_ALL:
        return f"{len(submission)} and {len(reference)} runs, and {FEWEST_RUNS} and {FEWEST_IN_ALL - FEWEST_RUNS} are needed"
    missed = max(sum(map(math.isinf, values)) for values in (submission, reference))
    if missed > 1:
        return f"{missed} runs did not reach the target, and one may miss it"
    if len(set(_olympic(reference))) == 1:
        return "the runs of the reference that count needed the same: use different seeds, or evaluate more often"
    return ""


def _needed(runs: Selection, metric: Metric, arm: str) -> list[float]:
    """Return the samples to the target of each measured run; infinity if it was not reached."""
    outcomes = runs.having(metric, arm).outcomes(metric, arm)
    return [math.inf if isinstance(value, str) else value for value in outcomes]


def _olympic(values: Sequence[float]) -> Sequence[float]:
    """Return the values without the least and the greatest, in ascending order."""
    return sorted(values)[1:-1]
