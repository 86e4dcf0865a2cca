"""Clustering-kernels: one k-means job by each numeric kernel.

It also measures what counting the points first costs.

The same jobs on the same CPUs by every kernel, each job on one thread. How many iterations there are is fixed, so that
every kernel does the same work. Each result is checked off the clock: by itself, and where neither ties nor empty clusters
leave the outcome open, against the same iterations in float64.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from bench.context import Context, Measured
from bench.errors import BadInput, DoesNotFit
from bench.experiments import Experiment, Profile
from bench.experiments.clustering import workers
from bench.experiments.clustering.inputs import check_path, open_jobs
from bench.experiments.clustering.metrics import PROJECTED, STUDY_JOBS
from bench.experiments.clustering.workers import Checked, Job, Shape
from bench.metrics import count, rate, ratio, seconds, size
from bench.model import Arm, Sample, Topology

if TYPE_CHECKING:
    from bench.experiments.clustering.inputs import Points

JOBS = rate("jobs_per_second", "jobs/s", "Jobs done and checked.")
POINT_ITERATIONS = rate(
    "point_iterations_per_second",
    "point-iterations/s",
    "Points times requested iterations, per second; a kernel that has converged may skip some.",
)
CPU = seconds("cpu_seconds_per_job", "CPU time of the process for a job: the mean of the jobs.")
INERTIA = size("inertia_per_job", "1", "Sum of squared distances of points to their centres: the mean of the jobs.")
EMPTY = count("empty_clusters_per_job", "clusters", "Clusters without a point at the end: the mean of the jobs.")
COMPARED = ratio(
    "compared_share",
    "1",
    "Share of the jobs whose inertia was compared with float64; with ties or empty clusters it is only bounded.",
    better="higher",
)
METRICS = (JOBS, POINT_ITERATIONS, CPU, INERTIA, EMPTY, COMPARED, PROJECTED)

LLOYD = Arm(name="lloyd", help="scikit-learn, Lloyd's algorithm.", role="subject")
FAISS = Arm(name="faiss", help="faiss, if every node has it.")
ARMS = (
    LLOYD,
    Arm(name="elkan", help="scikit-learn, Elkan's algorithm, which skips distances that it does not need."),
    Arm(name="gemm", help="numpy, distances by one matrix product."),
    Arm(name="broadcast", help="numpy, all differences between points and centres at once."),
    Arm(
        name="broadcast-unique",
        help="As broadcast, and first sorts all points to count the different ones, as the study did.",
    ),
    Arm(name="lloyd-unique", help="As lloyd, and first sorts all points to count the different ones."),
    FAISS,
)
MOST_DIFFERENCES_BYTES = 512 * 2**20  # of a broadcast: it makes as much twice
SHARE_OF_MEMORY = 0.25  # for the points of all jobs
POINT_ITERATIONS_PER_SECOND = {
    "lloyd": 17e6,
    "elkan": 6e6,
    "gemm": 7e6,
    "broadcast": 0.85e6,
    "broadcast-unique": 0.85e6,
    "lloyd-unique": 10e6,
}
"""On one CPU, in the study's shape: only to guess how long a session takes."""


@dataclass(frozen=True, kw_only=True)
class Params:
    """What can be varied. The study's shape is the default."""

    points: Annotated[
        int,
        Meta(ge=10, le=10_000_000, description="Vectors in one job.", extra={"unit": "POINTS", "changes": "job"}),
    ] = 20_000
    dimensions: Annotated[
        int, Meta(ge=1, le=4096, description="Values of one vector.", extra={"unit": "VALUES", "changes": "job"})
    ] = 16
    clusters: Annotated[
        int, Meta(ge=1, le=65_536, description="Clusters of one job.", extra={"unit": "CLUSTERS", "changes": "job"})
    ] = 20
    iterations: Annotated[
        int,
        Meta(
            ge=1,
            le=1000,
            description="Iterations of each job, all done.",
            extra={"unit": "ITERATIONS", "changes": "job"},
        ),
    ] = 20
    jobs: Annotated[
        int,
        Meta(
            ge=1, le=100_000, description="Jobs in one pass, split over all CPUs.", extra={"unit": "JOBS", "size": True}
        ),
    ] = 8
    input: Annotated[
        str,
        Meta(
            description="Vectors of your own: a .npy, .parquet or .safetensors file on the driver's node. Empty: made from the seed.",
            extra={"unit": "PATH"},
        ),
    ] = ""

    def __post_init__(self) -> None:
        if self.clusters > self.points:
            raise BadInput(f"clusters={self.clusters} is more than points={self.points}.", "Lower clusters.")
        if self.input:
            check_path(self.input)

    @property
    def shape(self) -> Shape:
        """Of one job."""
        return Shape(points=self.points, dimensions=self.dimensions, clusters=self.clusters, iterations=self.iterations)

    @property
    def differences_bytes(self) -> int:
        """What a broadcast makes at once: float32, shape (points, clusters, dimensions)."""
        return 4 * self.points * self.clusters * self.dimensions


PROFILES = {
    "tiny": Profile(
        help="Four jobs of the study's shape, 20,000 vectors of 16, 20 clusters.",
        grids=({"jobs": (4,)},),
        blocks=6,
        warmups=1,
        samples=1,
        sample_seconds=0.3,
    ),
    "lab": Profile(
        help="16 and 128 values by 20 and 128 clusters.",
        grids=({"dimensions": (16, 128), "clusters": (20, 128)},),
        blocks=6,
        warmups=1,
        samples=3,
        sample_seconds=1.0,
        deadline_seconds=3600.0,
    ),
    "full": Profile(
        help="4 to 128 values by 8 to 1,024 clusters.",
        grids=({"dimensions": (4, 16, 128), "clusters": (8, 20, 128, 1024)},),
        blocks=12,
        warmups=1,
        samples=4,
        sample_seconds=2.0,
        deadline_seconds=4 * 3600.0,
    ),
}


def guess_pass_seconds(params: Params) -> dict[str, tuple[float, ...]]:
    """One pass of every kernel that has room, on two CPUs; distances cost as clusters by values."""
    work = params.jobs * params.points * params.iterations * params.clusters * params.dimensions / (20 * 16)
    measured = [arm for arm in ARMS if why_not(arm, params, has_faiss=False) is None]
    return {arm.name: (work / POINT_ITERATIONS_PER_SECOND[arm.name] / 2,) for arm in measured}


def guess_other_seconds(_params: Params) -> float:
    """Workers import scikit-learn."""
    return 4.0


def check_fits(params: Params, topology: Topology) -> None:
    """Raise DoesNotFit where the points of all jobs take more of a node than they may."""
    needed = 4 * params.points * params.dimensions * params.jobs / topology.nodes
    if needed > SHARE_OF_MEMORY * topology.memory_bytes_per_node:
        raise DoesNotFit(
            f"The points of {params.jobs} jobs take {needed / 2**20:.0f} MiB on each node of {topology.name}, and a"
            f" quarter of its memory is {SHARE_OF_MEMORY * topology.memory_bytes_per_node / 2**20:.0f} MiB.",
            "Lower jobs or points, or give the nodes more with --memory-mib.",
        )


def check_input(params: Params) -> None:
    """Raise BadInput or DataMissing where the user's own file, which lies on this machine, is not what it should be."""
    if params.input:
        open_jobs(params.input, params.points, params.dimensions, params.jobs)


def run(params: Params, context: Context) -> Iterator[Sample]:
    """One invocation: every kernel does the same jobs in each turn."""
    with ExitStack() as exits:
        given = taken(params, context) if params.input else None
        group = workers.start(context.nodes, params.shape, jobs=params.jobs, seed=context.seed, given=given)
        exits.callback(group.close)
        context.leaves_idle([name for name, jobs in group.credit(None).items() if not jobs])
        has_faiss = group.ready()
        arms = []
        for arm in filter(context.wants, ARMS):
            reason = why_not(arm, params, has_faiss=has_faiss)
            if reason is None:
                arms.append(arm)
            else:
                yield context.time_once(arm.name, lambda: None).missing(JOBS, reason)
        checks = Checks(params, context)
        for turn in context.turns():
            for arm in turn.order(arms):
                timed = turn.measure(arm, partial(group.run, arm.name), group.credit)
                yield from checks.samples(timed, group.check())


def taken(params: Params, context: Context) -> Points:
    """The vectors of the user's own file, shape (jobs, points, dimensions). Raises BadInput or DataMissing."""
    import numpy as np

    found = open_jobs(params.input, params.points, params.dimensions, params.jobs)
    context.data(params.input, found.sha256)  # two folders may have files of one name
    return np.stack([found.read(job) for job in range(params.jobs)])


def why_not(arm: Arm, params: Params, *, has_faiss: bool) -> str | None:
    """The reason that `arm` cannot be measured; None: it can."""
    if arm == FAISS and not has_faiss:
        return "faiss is not installed on every node: uv pip install faiss-cpu"
    if arm.name.startswith("broadcast") and params.differences_bytes > MOST_DIFFERENCES_BYTES:
        return (
            f"{arm.name} makes differences of {params.differences_bytes / 2**20:.0f} MiB at once, and may make"
            f" {MOST_DIFFERENCES_BYTES // 2**20} MiB"
        )
    return None


class Checks:
    """Every job once, the same labels each time, and nothing wrong with any of them."""

    def __init__(self, params: Params, context: Context) -> None:
        self._params = params
        self._context = context

    def samples(self, timed: Measured[list[Job]], checked: Sequence[Checked]) -> Iterator[Sample]:
        """What one sample came to; all of it missing where a job is wrong. `checked`: the jobs of its last pass."""
        for jobs in timed.results:
            problem = self.problem(timed.arm, jobs, checked)
            if problem is not None:
                self._context.invalid(problem)
                yield from (timed.missing(metric, problem) for metric in METRICS)
                return
            shape = self._params.shape
            of = f"{len(jobs)} x {shape}" + (f" of {Path(self._params.input).name}" if self._params.input else "")
            self._context.same_everywhere(f"clustering-kernels: labels by {timed.arm}, {of}", digest(jobs))
        every = [job for jobs in timed.results for job in jobs]
        rate = len(every) / timed.interval.seconds
        yield timed.sample(JOBS, rate)
        yield timed.sample(POINT_ITERATIONS, rate * self._params.points * self._params.iterations)
        yield timed.sample(CPU, sum(job.cpu_seconds for job in every) / len(every))
        yield timed.sample(INERTIA, sum(job.inertia for job in every) / len(every))
        yield timed.sample(EMPTY, sum(job.empty_clusters for job in checked) / len(checked))
        yield timed.sample(COMPARED, sum(job.is_compared for job in checked) / len(checked))
        yield timed.sample(PROJECTED, STUDY_JOBS / rate / 3600)

    def problem(self, kernel: str, jobs: Sequence[Job], checked: Sequence[Checked]) -> str | None:
        """What is wrong with one pass; None: nothing."""
        done = sorted(job.number for job in jobs)
        if done != list(range(self._params.jobs)):
            return f"{kernel}: {len(set(done))} of {self._params.jobs} jobs were done, {len(done)} answered"
        return next((f"job {job.number} by {kernel}: {job.problem}" for job in checked if job.problem), None)


def digest(jobs: Sequence[Job]) -> str:
    """Of all labels, in the order of the jobs."""
    import hashlib

    return hashlib.sha256(
        "".join(job.labels_sha256 for job in sorted(jobs, key=lambda job: job.number)).encode()
    ).hexdigest()


EXPERIMENT = Experiment(
    metrics=METRICS,
    arms=ARMS,
    params=Params,
    profiles=PROFILES,
    guess_pass_seconds=guess_pass_seconds,
    guess_other_seconds=guess_other_seconds,
    run=run,
    check_fits=check_fits,
    check_input=check_input,
)
