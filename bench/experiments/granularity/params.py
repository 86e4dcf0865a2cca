"""Declares what can be varied in granularity, and the points of its sweep."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from bench.errors import BadInput
from bench.experiments import Profile
from bench.experiments.granularity import arms

PASS_SECONDS = 0.15  # of work on each CPU, as far as the counts below allow
MOST_TASKS = 200
DOMINATED_SECONDS = 0.010  # a task shorter than this measures Ray more than its work
LABEL = "overhead-dominated"


@dataclass(frozen=True, kw_only=True)
class Params:
    """What can be varied."""

    shortest: Annotated[
        float, Meta(ge=1e-5, le=10.0, description="CPU time of the shortest job.", extra={"unit": "SECONDS"})
    ] = 1e-4
    longest: Annotated[
        float,
        Meta(
            ge=1e-4,
            le=60.0,
            description="CPU time of the longest job and of the longest task.",
            extra={"unit": "SECONDS"},
        ),
    ] = 1.0
    growth: Annotated[
        float, Meta(ge=1.5, le=1e4, description="Factor from each job length to the next.", extra={"unit": "TIMES"})
    ] = 10.0
    most_batch: Annotated[
        int,
        Meta(ge=1, le=10_000, description="Most jobs in one task: 1, 10, 100 up to this.", extra={"unit": "JOBS"}),
    ] = 10

    def __post_init__(self) -> None:
        if self.shortest > self.longest:
            raise BadInput(f"shortest={self.shortest:g} is more than longest={self.longest:g}.", "Lower shortest.")

    @property
    def jobs(self) -> list[float]:
        """Job lengths, in seconds of CPU time."""
        steps = math.floor(math.log(self.longest / self.shortest) / math.log(self.growth) + 1e-9)
        return [float(f"{self.shortest * self.growth**step:.6g}") for step in range(steps + 1)]

    @property
    def points(self) -> list[Point]:
        """Every job length in every batch that makes no task longer than the longest."""
        batches = [10**power for power in range(int(math.log10(self.most_batch)) + 1)]
        return [
            Point(job_seconds=job, batch=batch)
            for job in self.jobs
            for batch in batches
            if batch == 1 or job * batch <= self.longest * (1 + 1e-9)
        ]


@dataclass(frozen=True, kw_only=True)
class Point:
    """Jobs of one length, `batch` of them in each task."""

    job_seconds: float
    batch: int

    @property
    def task_seconds(self) -> float:
        return float(f"{self.job_seconds * self.batch:.6g}")

    @property
    def is_dominated(self) -> bool:
        """Whether a task is so short that scheduling is what is measured."""
        return self.task_seconds < DOMINATED_SECONDS

    def __str__(self) -> str:
        label = f", {LABEL}" if self.is_dominated else ""
        return f"{self.job_seconds * 1000:g} ms x {self.batch}{label}"

    def tasks(self, cpus: int) -> int:
        """Tasks of one pass: the same on every topology, and as many for each CPU as for the others."""
        rounds = max(2, min(MOST_TASKS // cpus, round(PASS_SECONDS / self.task_seconds)))
        return rounds * cpus if self.task_seconds < 0.5 else cpus


PROFILES = {
    "tiny": Profile(
        help="Jobs of 0.1 to 100 ms, 1 and 10 in a task.",
        grids=({"longest": (0.1,)},),
        blocks=6,
        warmups=1,
        samples=1,
        sample_seconds=0.01,
    ),
    "lab": Profile(
        help="Jobs of 0.1 ms to 1 s, 1 to 100 in a task.",
        grids=({"growth": (10**0.5,), "most_batch": (100,)},),
        blocks=6,
        warmups=1,
        samples=5,
        sample_seconds=0.2,
        deadline_seconds=3600.0,
    ),
    "full": Profile(
        help="As lab, in finer steps.",
        grids=({"growth": (10**0.25,), "most_batch": (1000,)},),
        blocks=12,
        warmups=1,
        samples=5,
        sample_seconds=0.2,
        deadline_seconds=4 * 3600.0,
    ),
}


def guess_pass_seconds(params: Params) -> dict[str, tuple[float, ...]]:
    """Both arms at every point on two cores: the loop does on one what Ray does on two."""
    work = [point.tasks(2) * point.task_seconds for point in params.points]
    calls = [point.tasks(2) * 0.0007 for point in params.points]
    return {
        arms.RAY.name: tuple(seconds / 2 + more for seconds, more in zip(work, calls, strict=True)),
        arms.SERIAL.name: tuple(work),
    }


def without_effect(params: Params) -> Collection[str]:
    """The factor between lengths, where there is one length."""
    return ("growth",) if len(params.jobs) == 1 else ()
