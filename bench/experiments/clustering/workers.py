"""A worker on each CPU that does jobs of k-means: Ray places it, and carries the word and the answers."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import chain, pairwise
from time import process_time
from typing import TYPE_CHECKING, Any, cast

from bench.context import NodeSlot
from bench.errors import RunInvalid
from bench.experiments.clustering import expected, kernels, points, work
from bench.experiments.clustering.kernels import AnyKernel
from bench.experiments.toolkit.placement import Span, get_in_time, on, shares

if TYPE_CHECKING:
    from bench.experiments.clustering.expected import Expected
    from bench.experiments.clustering.kernels import Clustering, Points

READY_SECONDS = 120.0
SLOWEST_POINT_ITERATIONS_PER_SECOND = 1e4  # of a worker that is alive, with 20 clusters of 16 values


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What one job is."""

    points: int
    dimensions: int
    clusters: int
    iterations: int

    @property
    def longest_seconds(self) -> float:
        """A job that lasts longer is one that hangs."""
        work = self.points * self.iterations * max(1.0, self.clusters * self.dimensions / (20 * 16))
        return 1.0 + work / SLOWEST_POINT_ITERATIONS_PER_SECOND

    def __str__(self) -> str:
        return f"{self.points} x {self.dimensions}, k={self.clusters}, {self.iterations} iterations"


@dataclass(frozen=True, kw_only=True)
class Job:
    """One job, done."""

    number: int
    labels_sha256: str
    inertia: float
    cpu_seconds: float


@dataclass(frozen=True, kw_only=True)
class Checked:
    """What was found of a job that is done, off the clock."""

    number: int
    problem: str  # empty: none
    empty_clusters: int
    is_compared: (
        bool  # with the inertia by float64: where ties or clusters without points leave it open, it is bounded only
    )


@dataclass(frozen=True, kw_only=True)
class Ready:
    """What a worker is like when it can begin."""

    threads: int
    has_faiss: bool


class Worker:
    """One CPU's jobs, and their points in ordinary memory."""

    def __init__(self, shape: Shape, seed: int, span: Span, given: Points | None) -> None:
        """Make the points of the jobs in `span`, or take those that are `given`, shape (jobs, points, dimensions)."""
        self._has_faiss = find_spec("faiss") is not None
        if self._has_faiss:
            import faiss  # noqa: F401  # its threads are limited below, so it must be here
        work.one_thread()
        self._shape = shape
        self._seed = seed
        self._span = span
        self._given = given
        self._points = {number: self._make(number) for number in range(*span)}
        self._last: dict[int, Clustering] = {}  # by the kernel that ran last
        self._expected: dict[int, Expected] = {}

    def ready(self) -> Ready:
        """What is here, and how many native threads a kernel may use."""
        from threadpoolctl import threadpool_info

        return Ready(
            threads=max((int(pool["num_threads"]) for pool in threadpool_info()), default=1), has_faiss=self._has_faiss
        )

    def run(self, kernel: str) -> list[Job]:
        """Every job of this worker, once."""
        return [self._do(kernel, number, held) for number, held in self._points.items()]

    def check(self) -> list[Checked]:
        """Each job as the last kernel did it."""
        return [self._check(number, held, self._last[number]) for number, held in self._points.items()]

    def _check(self, number: int, held: Points, found: Clustering) -> Checked:
        if number not in self._expected:
            self._expected[number] = expected.expect(
                held, clusters=self._shape.clusters, iterations=self._shape.iterations
            )
        meant = self._expected[number]
        problem = expected.wrong_with(held, found)
        if not problem and meant.differs(found.inertia):
            problem = f"its inertia is {found.inertia:.6g}, and {meant.meant}"
        return Checked(
            number=number,
            problem=problem,
            empty_clusters=expected.empty_clusters(found, self._shape.clusters),
            is_compared=not meant.why_open,
        )

    def _make(self, number: int) -> Points:
        if self._given is not None:
            taken: Points = self._given[number - self._span[0]].copy()
            return taken
        layer = points.RESNET18[number % len(points.RESNET18)]
        return points.make(layer, number, points=self._shape.points, dimensions=self._shape.dimensions, seed=self._seed)

    def _do(self, kernel: str, number: int, held: Points) -> Job:
        begin = process_time()
        found = kernels.cluster(
            cast(AnyKernel, kernel), held, clusters=self._shape.clusters, iterations=self._shape.iterations
        )
        seconds = process_time() - begin
        self._last[number] = found
        labels_sha256 = hashlib.sha256(found.labels.tobytes()).hexdigest()
        return Job(number=number, labels_sha256=labels_sha256, inertia=found.inertia, cpu_seconds=seconds)


@dataclass(frozen=True)
class Workers:
    """One on each CPU, and which jobs are whose."""

    shape: Shape
    actors: Sequence[Any]
    slots: Sequence[tuple[NodeSlot, Span]]

    def ready(self) -> bool:
        """Wait for all; whether every node has faiss. Raises RunInvalid where a worker has more threads than one."""
        found: list[Ready] = get_in_time(
            [actor.ready.remote() for actor in self.actors], READY_SECONDS, "Workers that make their points"
        )
        for (node, _), worker in zip(self.slots, found, strict=True):
            if worker.threads != 1:
                raise RunInvalid(f"A worker on {node.name} has {worker.threads} native threads, not 1.")
        return all(worker.has_faiss for worker in found)

    def run(self, kernel: str) -> list[Job]:
        """All jobs, once."""
        longest = max(stop - start for _, (start, stop) in self.slots) * self.shape.longest_seconds
        answers = get_in_time([actor.run.remote(kernel) for actor in self.actors], longest, f"Jobs by {kernel}")
        return list(chain.from_iterable(answers))

    def check(self) -> list[Checked]:
        """All jobs as the last kernel did them; off the clock."""
        longest = max(stop - start for _, (start, stop) in self.slots) * self.shape.longest_seconds
        return list(
            chain.from_iterable(get_in_time([a.check.remote() for a in self.actors], longest, "Checks of jobs"))
        )

    def credit(self, _: object) -> Mapping[str, float]:
        """Jobs done on each node."""
        done: Counter[str] = Counter()
        for node, (start, stop) in self.slots:
            done[node.name] += stop - start
        return {name: float(jobs) for name, jobs in done.items()}

    def close(self) -> None:
        """End the workers."""
        import ray

        for actor in self.actors:
            ray.kill(actor)


def slots(nodes: Sequence[NodeSlot], jobs: int) -> list[tuple[NodeSlot, Span]]:
    """The jobs of each CPU: split over the nodes by their CPUs, and over the CPUs of a node evenly."""
    found = []
    for node, (start, stop) in shares(jobs, nodes):
        bounds = [start + (stop - start) * cpu // node.cpus for cpu in range(node.cpus + 1)]
        found += [(node, span) for span in pairwise(bounds)]
    return found


def start(nodes: Sequence[NodeSlot], shape: Shape, *, jobs: int, seed: int, given: Points | None = None) -> Workers:
    """A worker on every CPU; they are not ready yet. Points that are `given` have shape (jobs, points, dimensions)."""
    import ray

    placed = slots(nodes, jobs)
    actors = [
        ray.remote(Worker)
        .options(num_cpus=0, scheduling_strategy=on(node))
        .remote(shape, seed, span, None if given is None else given[slice(*span)])
        for node, span in placed
    ]
    return Workers(shape, actors, placed)
