"""Metrics of the parts of an experiment's time, from which a report makes its network breakdown.

An experiment that yields them for its subject gets a more detailed breakdown; the report shows them nowhere else. Each is in
seconds of the timed interval. Parts that are not yielded are reported as not measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, median_low
from typing import Any

from bench.context import Measured
from bench.metrics import count, seconds
from bench.model import Sample

BUSY = seconds(
    "busy_seconds", "Time in the work itself, inside a worker: the mean of the workers of a node.", means="busy"
)
COMPUTE = seconds(
    "compute_seconds",
    "Time of the work if all workers were as fast as the median one and shared it evenly.",
    means="compute",
)
STRAGGLER = seconds(
    "straggler_seconds",
    "Additional time because a worker is slower than the median one, or has more work.",
    means="straggler",
)
SERIALISE = seconds(
    "serialise_seconds", "Time in which the driver submits calls and reads their answers.", means="serialise"
)
QUEUE = seconds(
    "queue_seconds", "Time that work waits until it is scheduled, if the experiment can see it.", means="queue"
)
ROUND_TRIPS = count(
    "round_trips_in_sequence",
    "",
    "Calls that waited for one another: all calls divided by the number in flight.",
    means="round trips in sequence",
)
WORK_METRICS = (BUSY, COMPUTE, STRAGGLER)


@dataclass(frozen=True, kw_only=True)
class WorkDone:
    """The work of one worker in an interval, or in one round between two barriers."""

    node: str
    busy_seconds: float
    units: float  # of work; 1 each if all workers have the same


def compute_and_straggler(workers: Sequence[WorkDone]) -> tuple[float, float]:
    """Return the seconds that the work takes if all workers are as fast as the median one, and the seconds that the busiest took more.

    The median is the lower one of seconds per unit. So of two workers the faster one counts, and a worker that is delayed is a
    straggler even if the others take over part of its work.
    """
    busiest = max((worker.busy_seconds for worker in workers), default=0.0)
    paces = [worker.busy_seconds / worker.units for worker in workers if worker.units > 0]
    if not paces:
        return 0.0, busiest
    even = median_low(paces) * sum(worker.units for worker in workers) / len(workers)
    compute = min(even, busiest)
    return compute, busiest - compute


def work_samples(measured: Measured[Any], rounds: Iterable[Sequence[WorkDone]]) -> Iterator[Sample]:
    """Yield WORK_METRICS of an interval, from its rounds, each of which ends when the last worker has done its part.

    A pool whose workers take the next item as soon as they are free has one round.
    """
    compute = straggler = 0.0
    by_node: dict[str, list[float]] = {}
    for workers in rounds:
        parts = compute_and_straggler(workers)
        compute, straggler = compute + parts[0], straggler + parts[1]
        nodes: dict[str, list[float]] = {}
        for worker in workers:
            nodes.setdefault(worker.node, []).append(worker.busy_seconds)
        for node, busy in nodes.items():
            by_node.setdefault(node, []).append(fmean(busy))
    yield measured.sample(COMPUTE, compute)
    yield measured.sample(STRAGGLER, straggler)
    for node, means in by_node.items():
        yield measured.sample(BUSY, sum(means), node=node)


def jain(amounts: Sequence[float]) -> float:
    """Return Jain's fairness index: 1 if all amounts are equal, 1/n if one of n has everything."""
    squares = sum(amount * amount for amount in amounts)
    return sum(amounts) ** 2 / (len(amounts) * squares) if squares else 1.0
