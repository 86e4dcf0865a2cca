"""Runs granularity: at every point of the sweep the serial loop and Ray do the same jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic, thread_time
from typing import Any

from bench.context import Context, Measured, NodeSlot
from bench.experiments.granularity.arms import ARMS, RAY, SERIAL
from bench.experiments.granularity.metrics import METG, RATE, compared, frontier
from bench.experiments.granularity.params import Params, Point
from bench.experiments.toolkit.placement import get_in_time, on
from bench.model import Sample

ANSWER_SECONDS = 300.0


@dataclass(frozen=True, kw_only=True)
class Done:
    """One pass: jobs by node, and what is wrong with their number."""

    jobs: Mapping[str, int]
    seconds: float

    def problem(self, asked: int) -> str | None:
        """What is wrong; None: nothing."""
        found = sum(self.jobs.values())
        return None if found == asked else f"{found} jobs were done, and {asked} were asked for"


def spin(job_seconds: float, jobs: int) -> int:
    """Jobs of CPU time, one after the other. Of CPU time: a job that must wait for a CPU is not shorter for it."""
    done = 0
    for _ in range(jobs):
        end = thread_time() + job_seconds
        while thread_time() < end:
            pass
        done += 1
    return done


class Loop:
    """The serial loop, in a process of its own."""

    def run(self, job_seconds: float, jobs: int) -> tuple[int, float]:
        """Jobs done, and the seconds of this process's monotonic clock that they took."""
        begin = monotonic()
        return spin(job_seconds, jobs), monotonic() - begin


def run(params: Params, context: Context) -> Iterator[Sample]:
    """One invocation: in each turn the serial loop and Ray do the same jobs, at every point."""
    import ray

    nodes = [node for node in context.nodes if node.cpus > 0]
    loop = ray.remote(Loop).options(num_cpus=0, scheduling_strategy=on(nodes[0])).remote()
    tasks = Tasks(nodes)
    tasks.run(Point(job_seconds=0.2, batch=1), 2 * tasks.cpus)  # workers start, and all of them have worked
    yield context.time_once(SERIAL.name, lambda: None).missing(METG[50], "a loop has no tasks: see it point by point")
    efficiencies: dict[Point, list[float]] = {}
    last: Measured[Done] | None = None
    for turn in context.turns():
        for point in params.points:
            count = point.tasks(tasks.cpus)
            jobs = count * point.batch
            work = {
                SERIAL.name: partial(_loop, loop, nodes[0], point, jobs),
                RAY.name: partial(tasks.run, point, count),
            }
            seconds = {}
            for arm in turn.order(ARMS):
                timed = turn.measure(arm, work[arm.name], lambda done: dict(done.jobs), point=str(point))
                problem = next((text for done in timed.results if (text := done.problem(jobs))), None)
                if problem is not None:
                    context.invalid(problem)
                seconds[arm.name] = sum(done.seconds for done in timed.results) / len(timed.results)
                yield timed.sample(RATE, jobs / seconds[arm.name])
                last = timed if arm == RAY else last
            if last is None:
                continue
            yield from compared(last, serial=seconds[SERIAL.name], ray=seconds[RAY.name], tasks=count, cpus=tasks.cpus)
            if not turn.warmup:
                share = seconds[SERIAL.name] / (seconds[RAY.name] * tasks.cpus)
                efficiencies.setdefault(point, []).append(share)
    ray.kill(loop)
    if last is not None:
        yield from frontier(replace(last, point=""), params, efficiencies)


class Tasks:
    """Ray tasks that are spread over the nodes."""

    def __init__(self, nodes: Sequence[NodeSlot]) -> None:
        import ray

        self.cpus = sum(node.cpus for node in nodes)
        self._names = {node.node_id: node.name for node in nodes}
        self._spin = ray.remote(num_cpus=1, scheduling_strategy="SPREAD")(_spin_there)

    def run(self, point: Point, tasks: int) -> Done:
        """As many tasks as that, all submitted at once."""
        begin = monotonic()
        calls = [self._spin.remote(point.job_seconds, point.batch) for _ in range(tasks)]
        jobs: Counter[str] = Counter()
        for node_id, done in get_in_time(calls, ANSWER_SECONDS, f"Tasks of {point}"):
            jobs[self._names[node_id]] += done
        return Done(jobs=jobs, seconds=monotonic() - begin)


def _spin_there(job_seconds: float, jobs: int) -> tuple[str, int]:
    import ray

    done = spin(job_seconds, jobs)
    return ray.get_runtime_context().get_node_id(), done


def _loop(loop: Any, node: NodeSlot, point: Point, jobs: int) -> Done:
    done, seconds = get_in_time([loop.run.remote(point.job_seconds, jobs)], ANSWER_SECONDS, f"The loop of {point}")[0]
    return Done(jobs={node.name: done}, seconds=seconds)
