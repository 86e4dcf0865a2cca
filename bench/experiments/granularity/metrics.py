"""Declares the metrics of granularity, and gets METG, the minimum effective task granularity, from task lengths and efficiencies."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median
from typing import Any

from bench.context import Measured
from bench.experiments.granularity.params import Params, Point
from bench.metrics import count, rate, ratio, seconds
from bench.model import Sample

SHARES = (50, 90)
METG = {
    share: seconds(
        f"least_task_{share}_seconds", f"METG: the shortest task that keeps the CPUs {share} % busy with its work."
    )
    for share in SHARES
}
OVERHEAD = seconds("overhead_per_task_seconds", "CPU time that each task costs beyond its work.")
EFFICIENCY = ratio(
    "efficiency",
    "1",
    "Work done, measured by the serial loop, divided by what all CPUs could have done.",
    better="higher",
)
SPEEDUP = ratio(
    "speed_up",
    "1",
    "Speed relative to the serial loop, which does the same jobs on one CPU; below 1 is slower.",
    better="higher",
)
BATCH = {
    share: count(f"batch_for_{share}_percent", "jobs/task", f"Jobs of that length in one task that reach {share} %.")
    for share in SHARES
}
RATE = rate("throughput_jobs_per_second", "jobs/s", "Jobs done and counted.")
METRICS = (METG[50], METG[90], RATE, EFFICIENCY, SPEEDUP, OVERHEAD, *BATCH.values())

NO_LOSS = 1e-3  # an efficiency nearer to 1, or above it, is noise: no overhead can be read from it


def compared(timed: Measured[Any], *, serial: float, ray: float, tasks: int, cpus: int) -> Iterator[Sample]:
    """Ray's pass beside the serial loop's, by their seconds."""
    yield timed.sample(EFFICIENCY, serial / (ray * cpus))
    yield timed.sample(SPEEDUP, serial / ray)
    yield timed.sample(OVERHEAD, overhead_seconds(wall_seconds=ray, work_seconds=serial, tasks=tasks, cpus=cpus))


def frontier(whole: Measured[Any], params: Params, efficiencies: Mapping[Point, Sequence[float]]) -> Iterator[Sample]:
    """The least tasks that this run found, and the batch to use for each length of job."""
    by_task: dict[float, list[float]] = {}
    for point, shares in efficiencies.items():
        by_task.setdefault(point.task_seconds, []).extend(shares)
    middle = {task_seconds: median(shares) for task_seconds, shares in by_task.items()}
    for share in SHARES:
        least = least_task_seconds(middle, share / 100)
        if least is None:
            reason = f"tasks of {max(middle, default=0.0):g} s do not reach {share} %"
            yield whole.missing(METG[share], reason)
            yield replace(whole, point=f"{params.jobs[0] * 1000:g} ms").missing(BATCH[share], reason)
            continue
        yield whole.sample(METG[share], least)
        for job in params.jobs:
            yield replace(whole, point=f"{job * 1000:g} ms").sample(BATCH[share], batch_for(job, least))


def least_task_seconds(efficiencies: Mapping[float, float], share: float) -> float | None:
    """The least task length, in seconds, that keeps `share` of the CPUs busy, as do all longer ones.

    `efficiencies` by task seconds. Where tasks of L seconds cost o seconds more, efficiency is L / (L + o): what is lost
    for what is done, o / L, is a straight line in logarithms, and between two lengths it is read off that line. None:
    the longest task does not reach `share`. The shortest length, where all lengths reach it: METG is no more than that.
    """
    wanted = (1 - share) / share
    lengths = sorted(efficiencies, reverse=True)
    loss = {length: max(NO_LOSS, 1 / max(efficiencies[length], 1e-9) - 1) for length in lengths}
    if not lengths or loss[lengths[0]] > wanted:
        return None
    for longer, shorter in pairwise(lengths):
        if loss[shorter] > wanted:
            way = math.log(wanted / loss[longer]) / math.log(loss[shorter] / loss[longer])
            return math.exp(math.log(longer) + way * math.log(shorter / longer))
    return lengths[-1]


def batch_for(job_seconds: float, task_seconds: float) -> int:
    """Jobs of `job_seconds` in one task, so that it lasts `task_seconds` or more."""
    return max(1, math.ceil(task_seconds / job_seconds * (1 - 1e-9)))


def overhead_seconds(*, wall_seconds: float, work_seconds: float, tasks: int, cpus: int) -> float:
    """What each task cost beyond its work, in seconds of one CPU."""
    return (wall_seconds * cpus - work_seconds) / tasks
