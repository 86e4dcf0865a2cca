"""METG, the minimum effective task granularity: pure functions of task lengths and efficiencies."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise

NO_LOSS = 1e-3  # an efficiency nearer to 1, or above it, is noise: no overhead can be read from it


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
