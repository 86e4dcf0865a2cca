"""Declares what can be varied in clustering, and what follows from it before a run."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from bench.errors import BadInput, DoesNotFit, did_you_mean
from bench.experiments import Profile
from bench.experiments.clustering import arms, split
from bench.experiments.clustering.inputs import check_path, open_jobs
from bench.experiments.clustering.kernels import Kernel
from bench.experiments.clustering.points import RESNET18
from bench.experiments.clustering.study import JOB
from bench.experiments.clustering.work import Given, Job, Kind
from bench.experiments.clustering.workspace import Source
from bench.experiments.toolkit import faults
from bench.model import Arm, Topology, Value


@dataclass(frozen=True, kw_only=True)
class Params:
    """What can be varied."""

    jobs: Annotated[
        int, Meta(ge=1, le=100_000_000, description="Jobs in one round.", extra={"unit": "JOBS", "size": True})
    ] = 48
    job: Annotated[
        Kind, Meta(description="Work of a job: a clustering, CPU time, a sleep, or nothing.", extra={"changes": "job"})
    ] = "kmeans"
    job_ms: Annotated[
        float,
        Meta(
            ge=0.001,
            le=60_000,
            description="Length of a job that spins or sleeps.",
            extra={"unit": "MILLISECONDS", "changes": "job"},
        ),
    ] = 10.0
    kernel: Annotated[Kernel, Meta(description="Kernel that computes a clustering.")] = "lloyd"
    points: Annotated[
        int,
        Meta(ge=2, le=10_000_000, description="Vectors in a job.", extra={"unit": "VECTORS", "changes": "job"}),
    ] = 20_000
    dimensions: Annotated[
        int, Meta(ge=1, le=10_000, description="Values of a vector.", extra={"unit": "WEIGHTS", "changes": "job"})
    ] = 16
    clusters: Annotated[
        int,
        Meta(
            ge=1,
            le=100_000,
            description="Clusters to find in a job.",
            extra={"unit": "CLUSTERS", "changes": "job"},
        ),
    ] = 20
    iterations: Annotated[
        int,
        Meta(
            ge=1,
            le=10_000,
            description="Iterations of Lloyd's algorithm in a job.",
            extra={"unit": "ITERATIONS", "changes": "job"},
        ),
    ] = 20
    jobs_per_part: Annotated[
        int,
        Meta(ge=0, le=10_000_000, description="Jobs in a part; 0: as many as last a second.", extra={"unit": "JOBS"}),
    ] = 0
    part_mib: Annotated[
        int,
        Meta(
            ge=0,
            le=4_096,
            description="Input of a part; 0: as much as lasts a second, 64 MiB at most.",
            extra={"unit": "MIB"},
        ),
    ] = 0
    layers: Annotated[
        str,
        Meta(
            description="Layers whose jobs are done, e.g. layer4+fc; empty: all.",
            extra={"unit": "LAYERS"},
        ),
    ] = ""
    source: Annotated[
        Source,
        Meta(
            description="Where input comes from: made by the worker, read from its node's disk, or pulled from the first node."
        ),
    ] = "made"
    input: Annotated[
        str,
        Meta(
            description="File of your own vectors (.npy, .parquet or .safetensors), on every node with source=local, or on the first"
            " one with source=pulled. Job n takes the n-th window.",
            extra={"unit": "PATH"},
        ),
    ] = ""
    failing: Annotated[
        int,
        Meta(ge=0, le=1_000, description="Jobs that fail at every try, as a test.", extra={"unit": "JOBS"}),
    ] = 0
    chaos: faults.Choice = ""

    def __post_init__(self) -> None:
        faults.read_plan(self.chaos)
        self._check_layers()
        if self.clusters > self.points:
            raise BadInput(f"clusters must be at most points ({self.points}), got {self.clusters}.", "Lower clusters.")
        if self.failing >= (total := split.total(self.jobs, self.layers)):
            raise BadInput(f"failing must be less than jobs ({total}), got {self.failing}.", "Lower failing.")
        if self.source != "made" and self.job != "kmeans":
            raise BadInput(
                f"source must be made with job={self.job}, which has no input, got {self.source!r}.",
                "Take source=made.",
            )
        if self.input:
            check_path(self.input)
        if self.input and self.source == "made":
            raise BadInput(
                f"source must be local or pulled with input={self.input}, got 'made'.",
                "Take source=local where every node has the file, else source=pulled.",
            )

    def _check_layers(self) -> None:
        try:
            total = split.total(self.jobs, self.layers)
        except ValueError as error:
            names = [layer.name for layer in RESNET18]
            raise BadInput(
                f"layers must name layers of ResNet-18 joined by +, got {self.layers!r}: there is no {error}.",
                f"{did_you_mean(str(error), names)}Choose from: {', '.join(names)}; layer4 is all of layer4.",
            ) from None
        if not total:
            raise BadInput(
                f"The layers {self.layers} have none of {self.jobs} jobs: a layer has as many as it has weights.",
                "Raise jobs, or name more layers.",
            )

    @property
    def job_seconds(self) -> float:
        """What a job may take, on a CPU of 2025: for the size of the parts, which must be known before any was done."""
        if self.job == "kmeans":
            updates = self.points * self.clusters * self.dimensions * self.iterations
            return updates * (5e-9 if self.kernel.startswith("broadcast") else 3e-10) + 2e-8 * self.job_values
        return 2e-6 if self.job == "empty" else self.job_ms / 1000

    @property
    def job_values(self) -> int:
        return self.points * self.dimensions


def job_of(params: Params, seed: int, given: Given | None = None) -> Job:
    """The job that all jobs of a run are, but for their number."""
    total = split.total(params.jobs, params.layers)
    return Job(
        kind=params.job,
        seconds=params.job_ms / 1000,
        kernel=params.kernel,
        points=params.points,
        dimensions=params.dimensions,
        clusters=params.clusters,
        iterations=params.iterations,
        seed=seed,
        # Spread over all jobs, so that they are in different parts.
        failing=tuple(
            split.nth(total * (2 * number + 1) // (2 * params.failing), params.jobs, params.layers)
            for number in range(params.failing)
        ),
        given=given,
    )


_AS_STUDIED: Mapping[str, tuple[Value, ...]] = {
    "jobs": (8_000_000,),
    **{name: (value,) for name, value in JOB.items()},
}
PROFILES = {
    "tiny": Profile(
        help="48 clusterings of the study's size, by every arm.",
        grids=({},),
        blocks=6,
        warmups=1,
        samples=2,
        sample_seconds=0.1,
    ),
    "lab": Profile(
        help="The study's steps: kernels, jobs of 10 ms and of one second, parts of one job, input from disk or pulled.",
        grids=(
            {"jobs": (480,), "kernel": ("lloyd", "broadcast")},
            {"jobs": (480,), "source": ("made", "local", "pulled")},
            {"jobs": (6_000,), "job": ("spin",), "job_ms": (10.0,), "jobs_per_part": (0, 1)},
            {"jobs": (120,), "job": ("spin",), "job_ms": (1000.0,)},
            {"jobs": (1_000_000,), "job": ("empty",)},
        ),
        blocks=6,
        warmups=1,
        samples=3,
        sample_seconds=1.0,
        deadline_seconds=3600.0,
    ),
    "full": Profile(
        help="As lab, with the number of the study's jobs, all of them empty, and every kernel.",
        grids=(
            {"jobs": (8_000_000,), "job": ("empty",)},
            {"jobs": (960,), "kernel": ("lloyd", "elkan", "gemm", "broadcast", "broadcast-unique")},
            {"jobs": (960,), "source": ("made", "local", "pulled"), "part_mib": (16, 64, 256)},
            {"jobs": (12_000,), "job": ("spin",), "job_ms": (1.0, 10.0, 100.0), "jobs_per_part": (0, 1)},
            {"jobs": (600,), "job": ("spin",), "job_ms": (1000.0,)},
        ),
        blocks=12,
        warmups=1,
        samples=3,
        sample_seconds=1.0,
        deadline_seconds=3 * 3600.0,
    ),
    "chaos": Profile(
        help="One kind of fault after another, each in the midst of 3,000 jobs of 10 ms; then `bench resume` where it asks.",
        grids=({"jobs": (3_000,), "job": ("spin",), "chaos": ("", "worker:5", "pause:1", "raylet:1")},),
        blocks=1,
        warmups=0,
        samples=1,
        sample_seconds=0.1,
        arms=(arms.EMPTY_PARTS.name,),
    ),
    "study": Profile(
        help="The study's 8,000,000 jobs of a second, 30 times as fast in the end; parts of 64, 128, 256 MiB.",
        grids=(
            {"kernel": ("broadcast-unique",), "part_mib": (64,), **_AS_STUDIED},
            {"kernel": ("broadcast",), "part_mib": (64, 128, 256), **_AS_STUDIED},
        ),
        blocks=1,
        warmups=0,
        samples=1,
        sample_seconds=0.1,
        deadline_seconds=120 * 24 * 3600.0,
        arms=(arms.SERIAL.name,),
    ),
}


def impossible_arms(params: Params) -> Collection[Arm]:
    """The peers cannot pull their input, and tolerate no nodes that leave or join."""
    return (
        (arms.TASKS, arms.POOL, arms.SERIAL) if params.source == "pulled" or faults.changes_nodes(params.chaos) else ()
    )


def check_fits(params: Params, topology: Topology) -> None:
    """Raise DoesNotFit where the chaos needs a node besides the head's."""
    if topology.nodes == 1 and faults.needs_other_nodes(params.chaos):
        raise DoesNotFit(
            f"chaos={params.chaos} needs nodes besides the head, and {topology.name} has none.",
            "Take --topology multi, or another plan.",
        )


def check_input(params: Params) -> None:
    """Raise BadInput or DataMissing where the user's own file, which lies on this machine, is not what it should be."""
    if params.input:
        open_jobs(params.input, params.points, params.dimensions, params.jobs)


def without_effect(params: Params) -> Collection[str]:
    """Parameters of another kind of job, and the size of parts where a number of jobs is given or there is no input."""
    idle = {"kernel", "points", "dimensions", "clusters", "iterations"} if params.job != "kmeans" else set()
    idle |= {"job_ms"} if params.job in ("kmeans", "empty") else set()
    return idle | ({"part_mib"} if params.jobs_per_part or params.job != "kmeans" else set())


def guess_pass_seconds(params: Params) -> dict[str, tuple[float, ...]]:
    """All jobs on two cores, by one process on one of them."""
    serial = split.total(params.jobs, params.layers) * params.job_seconds
    return {
        arms.RAY.name: (serial / 2,),
        arms.EMPTY_PARTS.name: (0.1,),
        arms.TASKS.name: (serial / 2,),
        arms.POOL.name: (serial / 2,),
        arms.SERIAL.name: (serial,),
    }


def guess_other_seconds(_: Params) -> float:
    """Workers and peers import scikit-learn, and each does a job."""
    return 5.0
