"""Evaluates a training: accuracy along the way, time to the target, and whether it converged at all."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any

from bench.context import Measured
from bench.experiments.parameter_server import metrics as m
from bench.experiments.parameter_server.arms import ONE_WORKER
from bench.experiments.parameter_server.learner import Learner
from bench.experiments.parameter_server.snapshots import Snapshot
from bench.model import Metric, Sample

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]

LEAST_FALL = 0.0005  # of the loss on held-out images, as a share: what does not fall by that does not learn
PERCENT = 100.0


@dataclass(frozen=True, kw_only=True)
class Evaluated:
    """The state after so many iterations, seen by the held-out images."""

    iteration: int
    seconds: float
    cpu_seconds: float
    evaluation_seconds: float  # of this one and all before it
    accuracy: float  # per cent
    loss: float


@dataclass(frozen=True, kw_only=True)
class TimeToTarget:
    """What it took until the target was reached."""

    seconds: float
    on_clock_seconds: float
    samples: float


class Examiner:
    """Evaluates states on the driver's node while nothing is timed."""

    def __init__(self, learner: Learner, images: Any, classes: Any) -> None:
        self._learner = learner
        self._images = images
        self._classes = classes
        self.initial = learner.state.copy()
        self.first_accuracy, self.first_loss = self._look(self.initial)

    def evaluate(self, snapshots: Sequence[Snapshot], *, processes: int = 1) -> list[Evaluated]:
        """Every one of `snapshots`; their CPU seconds are those of one of so many like processes."""
        found, spent = [], 0.0
        for snapshot in snapshots:
            begin = monotonic()
            accuracy, loss = self._look(snapshot.state)
            spent += monotonic() - begin
            found.append(
                Evaluated(
                    iteration=snapshot.iteration,
                    seconds=snapshot.seconds,
                    cpu_seconds=snapshot.cpu_seconds * processes,
                    evaluation_seconds=spent,
                    accuracy=accuracy,
                    loss=loss,
                )
            )
        return found

    def fault(self, evaluated: Sequence[Evaluated]) -> str | None:
        """Why this was no training, however fast; None: the loss on held-out images fell."""
        last = evaluated[-1].loss
        if math.isfinite(last) and last <= self.first_loss * (1 - LEAST_FALL):
            return None
        problem = "not converging" if math.isfinite(last) else "diverged"
        return f"{problem}: the loss on held-out images was {self.first_loss:.4f}, and {last:.4f} at the end"

    def _look(self, state: Vector) -> tuple[float, float]:
        share, loss = self._learner.evaluate(state, self._images, self._classes)
        return PERCENT * share, loss


def share_apart(ours: Vector, theirs: Vector, before: Vector) -> float:
    """The greatest difference of a number, as a share of the greatest change since `before`."""
    apart, change = (float(abs(ours - other).max()) for other in (theirs, before))
    return apart / change if change else apart


def time_to_target(evaluated: Sequence[Evaluated], target: float, samples_an_iteration: float) -> TimeToTarget | None:
    """When the accuracy was first at `target` per cent; None: never."""
    for one in evaluated:
        if one.accuracy >= target:
            return TimeToTarget(
                seconds=one.seconds,
                on_clock_seconds=one.seconds + one.evaluation_seconds,
                samples=one.iteration * samples_an_iteration,
            )
    return None


def curves(measured: Measured[Any], evaluated: Sequence[Evaluated]) -> Iterator[Sample]:
    """Accuracy and loss along iterations, seconds and CPU seconds."""
    for one in evaluated:
        for metric, value, step in (
            (m.ACCURACY_BY_ITERATIONS, one.accuracy, float(one.iteration)),
            (m.ACCURACY_BY_SECONDS, one.accuracy, one.seconds),
            (m.ACCURACY_ON_CLOCK, one.accuracy, one.seconds + one.evaluation_seconds),
            (m.ACCURACY_BY_CPU, one.accuracy, one.cpu_seconds),
            (m.LOSS, one.loss, float(one.iteration)),
            (m.ITERATIONS, float(one.iteration), one.seconds),
        ):
            yield measured.sample(metric, value, step=step)


def target_samples(
    measured: Measured[Any], evaluated: Sequence[Evaluated], target: float, found: TimeToTarget | None
) -> Iterator[Sample]:
    """Time and samples to the target, or the reason that there are none."""
    yield measured.sample(m.ACCURACY, evaluated[-1].accuracy)
    best = max(one.accuracy for one in evaluated)
    missed = None if found else f"the accuracy got to {best:.1f} %, and the target is {target:g} %"
    for metric, value in (
        (m.TO_TARGET, found.seconds if found else 0.0),
        (m.TO_TARGET_ON_CLOCK, found.on_clock_seconds if found else 0.0),
        (m.SAMPLES_TO_TARGET, found.samples if found else 0.0),
    ):
        yield sample(measured, metric, value, missed)


def speed_ups(measured: Measured[Any], base: TimeToTarget | None, found: TimeToTarget | None) -> Iterator[Sample]:
    """The ratio of the times to the target, and the two ratios that it is the product of."""
    if base is None or found is None:
        reason = f"the target was not reached by {ONE_WORKER.name if base is None else measured.arm}"
        for metric in (m.SPEED_UP, m.SPEED_UP_OF_RATE, m.SPEED_UP_OF_SAMPLES):
            yield measured.missing(metric, reason)
        return
    yield measured.sample(m.SPEED_UP, base.seconds / found.seconds)
    rates = (found.samples / found.seconds) / (base.samples / base.seconds)
    yield measured.sample(m.SPEED_UP_OF_RATE, rates)
    yield measured.sample(m.SPEED_UP_OF_SAMPLES, base.samples / found.samples)


def sample(measured: Measured[Any], metric: Metric, value: float, problem: str | None) -> Sample:
    """`value`, or the `problem` in its place."""
    return measured.sample(metric, value) if problem is None else measured.missing(metric, problem)


def by_node(values: Mapping[int, float], node_of: Callable[[int], str]) -> dict[str, float]:
    """The mean of the ranks' values on each node."""
    found: dict[str, list[float]] = {}
    for rank, value in values.items():
        found.setdefault(node_of(rank), []).append(value)
    return {node: sum(those) / len(those) for node, those in found.items()}
