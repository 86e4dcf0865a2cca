"""Granularity: how long a task must last for Ray to keep the CPUs busy, and how many small jobs to put into one."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import median
from time import monotonic, thread_time
from typing import Annotated, Any

from msgspec import Meta

from bench.context import Context, Measured, NodeSlot
from bench.errors import BadInput
from bench.experiments import Profile
from bench.experiments.granularity.numbers import batch_for, least_task_seconds, overhead_seconds
from bench.experiments.toolkit.placement import get_in_time, on
from bench.metrics import count, rate, ratio, seconds
from bench.model import Arm, Sample

SHARES = (50, 90)
METG = {
    share: seconds(
        f"least_task_{share}_seconds", f"METG: the least task that keeps the CPUs {share} % busy with its work."
    )
    for share in SHARES
}
OVERHEAD = seconds("overhead_per_task_seconds", "CPU time that each task takes from the CPUs beyond its work.")
EFFICIENCY = ratio(
    "efficiency",
    "1",
    "Work by what all CPUs could have done in that time; the work as the serial loop does it.",
    better="higher",
)
SPEEDUP = ratio(
    "speed_up",
    "1",
    "By the serial loop, which does the same jobs on one CPU; below 1 it is slower, and shown as it is.",
    better="higher",
)
BATCH = {
    share: count(f"batch_for_{share}_percent", "jobs/task", f"Jobs of that length to put into one task, for {share} %.")
    for share in SHARES
}
RATE = rate("throughput_jobs_per_second", "jobs/s", "Jobs done and counted.")
METRICS = (METG[50], METG[90], RATE, EFFICIENCY, SPEEDUP, OVERHEAD, *BATCH.values())

RAY = Arm(name="ray-tasks", help="Ray tasks, each with a batch of jobs, spread over the nodes.", role="subject")
SERIAL = Arm(name="serial", help="A plain loop over the same jobs in one process, which Ray only places.")
ARMS = (RAY, SERIAL)

PASS_SECONDS = 0.15  # of work on each CPU, as far as the counts below allow
MOST_TASKS = 200
ANSWER_SECONDS = 300.0
DOMINATED_SECONDS = 0.010  # a task shorter than this measures Ray more than its work
LABEL = "overhead-dominated"


@dataclass(frozen=True, kw_only=True)
class Params:
    """What can be varied."""

    shortest: Annotated[
        float, Meta(ge=1e-5, le=10.0, description="Least job, of CPU time.", extra={"unit": "SECONDS"})
    ] = 1e-4
    longest: Annotated[
        float, Meta(ge=1e-4, le=60.0, description="Longest job and longest task.", extra={"unit": "SECONDS"})
    ] = 1.0
    growth: Annotated[
        float, Meta(ge=1.5, le=1e4, description="How much longer each job is.", extra={"unit": "TIMES"})
    ] = 10.0
    most_batch: Annotated[
        int,
        Meta(ge=1, le=10_000, description="Jobs in one task, at most: 1, 10, 100 up to this.", extra={"unit": "JOBS"}),
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
        help="Minutes: jobs of 0.1 to 100 ms, 1 and 10 in a task.",
        grids=({"longest": (0.1,)},),
        blocks=6,
        warmups=1,
        samples=1,
        sample_seconds=0.01,
    ),
    "lab": Profile(
        help="An hour: jobs of 0.1 ms to 1 s, 1 to 100 in a task.",
        grids=({"growth": (10**0.5,), "most_batch": (100,)},),
        blocks=6,
        warmups=1,
        samples=5,
        sample_seconds=0.2,
        deadline_seconds=3600.0,
    ),
    "full": Profile(
        help="Hours: as lab, in finer steps.",
        grids=({"growth": (10**0.25,), "most_batch": (1000,)},),
        blocks=12,
        warmups=1,
        samples=5,
        sample_seconds=0.2,
        deadline_seconds=4 * 3600.0,
    ),
}


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


def compared(timed: Measured[Done], *, serial: float, ray: float, tasks: int, cpus: int) -> Iterator[Sample]:
    """Ray's pass beside the serial loop's, by their seconds."""
    yield timed.sample(EFFICIENCY, serial / (ray * cpus))
    yield timed.sample(SPEEDUP, serial / ray)
    yield timed.sample(OVERHEAD, overhead_seconds(wall_seconds=ray, work_seconds=serial, tasks=tasks, cpus=cpus))


def frontier(whole: Measured[Done], params: Params, efficiencies: Mapping[Point, Sequence[float]]) -> Iterator[Sample]:
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


def guess_pass_seconds(params: Params) -> float:
    """One pass of both arms on two cores: the loop does on one what Ray does on two."""
    work = sum(point.tasks(2) * point.task_seconds for point in params.points)
    return 1.6 * work + sum(point.tasks(2) for point in params.points) * 0.001


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
