"""The kernels agree and leave their points alone; wrong jobs are told; a real run on a node of two CPUs."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from bench.context import Measured, NodeSlot
from bench.errors import BadInput, DoesNotFit
from bench.experiments import clustering_kernels as experiment
from bench.experiments.clustering import kernels, points, workers
from bench.experiments.clustering.workers import Checked, Job, Shape
from bench.experiments.clustering_kernels import ARMS, Checks, Params
from bench.model import Interval, Topology

SMALL = Params(points=300, dimensions=5, clusters=7, iterations=6, jobs=5)


def clustered(kernel: kernels.Kernel, held: kernels.Points, clusters: int, iterations: int) -> kernels.Clustering:
    with threadpool_limits(1):
        return kernels.cluster(kernel, held, clusters=clusters, iterations=iterations)


class TestKernels:
    @settings(deadline=None, max_examples=25)
    @given(
        number=st.integers(0, 2**32),
        size=st.integers(40, 400),
        dimensions=st.integers(1, 24),
        clusters=st.integers(1, 8),
        iterations=st.integers(1, 8),
    )
    def test_they_agree_on_the_inertia(
        self, number: int, size: int, dimensions: int, clusters: int, iterations: int
    ) -> None:
        held = points.make(points.RESNET18[5], number, points=size, dimensions=dimensions, seed=3)
        found = {name: clustered(name, held, clusters, iterations) for name in get_args(kernels.Kernel)}
        assume(all(len(np.unique(each.labels)) == clusters for each in found.values()))
        first = found["lloyd"].inertia
        assert all(each.inertia == pytest.approx(first, rel=1e-3) for each in found.values())

    @pytest.mark.parametrize("kernel", get_args(kernels.Kernel))
    def test_points_are_left_as_they_were(self, kernel: kernels.Kernel) -> None:
        held = points.make(points.RESNET18[1], 4, points=500, dimensions=3, seed=3)
        before = held.copy()
        held.flags.writeable = False
        clustered(kernel, held, 6, 4)
        assert np.array_equal(held, before)

    @pytest.mark.parametrize("kernel", get_args(kernels.Kernel))
    def test_a_job_is_done_as_one_would_by_hand(self, kernel: kernels.Kernel) -> None:
        held = np.array([[0], [1], [10], [11], [14]], dtype=np.float32)
        found = clustered(kernel, held, 2, 5)  # begins at 0 and at 14
        assert found.labels.tolist() == [0, 0, 1, 1, 1]
        assert found.centres.ravel() == pytest.approx([0.5, 35 / 3])
        assert found.inertia == pytest.approx(0.5 + (25 + 4 + 49) / 9)

    def test_faiss_agrees_where_it_is(self) -> None:
        pytest.importorskip("faiss", reason="needs faiss: pip install faiss-cpu")
        held = points.make(points.RESNET18[1], 4, points=20_000, dimensions=16, seed=3)
        faiss = kernels.cluster("faiss", held, clusters=20, iterations=20)
        assert faiss.inertia == pytest.approx(clustered("lloyd", held, 20, 20).inertia, rel=1e-3)


class TestShares:
    @given(jobs=st.integers(0, 200), cpus=st.lists(st.integers(0, 9), min_size=1, max_size=5).filter(any))
    def test_every_job_is_one_cpus_and_no_cpu_has_three_more_than_another(self, jobs: int, cpus: list[int]) -> None:
        nodes = [NodeSlot(name=str(number), node_id="", cpus=has, threads=has) for number, has in enumerate(cpus)]
        slots = workers.slots(nodes, jobs)
        assert [number for _, span in slots for number in range(*span)] == list(range(jobs))
        counts = [stop - start for _, (start, stop) in slots]
        assert len(counts) == sum(cpus)
        assert max(counts) - min(counts) <= 2


def jobs_of(params: Params, inertia: float = 10.0) -> list[Job]:
    return [
        Job(number=number, labels_sha256=f"{number}", inertia=inertia, cpu_seconds=0.5) for number in range(params.jobs)
    ]


def checked(params: Params, problem: str = "") -> list[Checked]:
    return [
        Checked(
            number=number, problem=problem if number == 3 else "", empty_clusters=number % 2, is_compared=number > 0
        )
        for number in range(params.jobs)
    ]


def timed(jobs: list[Job], arm: str = "lloyd") -> Measured[list[Job]]:
    return Measured(results=[jobs, jobs], interval=Interval(0, 4), arm=arm, turn=1, warmup=False)


@dataclass
class Told:
    """A Context that keeps what it is told of a run's results."""

    reasons: list[str] = field(default_factory=list)
    digests: dict[str, set[str]] = field(default_factory=dict)
    sets: dict[str, str] = field(default_factory=dict)

    def data(self, name: str, sha256: str) -> None:
        self.sets[name] = sha256

    def invalid(self, reason: str) -> None:
        self.reasons.append(reason)

    def same_everywhere(self, name: str, digest: str) -> None:
        self.digests.setdefault(name, set()).add(digest)

    @property
    def is_invalid(self) -> bool:
        return bool(self.reasons) or any(len(digests) > 1 for digests in self.digests.values())


class TestChecks:
    @pytest.fixture
    def context(self) -> Any:
        return Told()

    def test_the_numbers_are_those_of_all_passes(self, context: Any) -> None:
        found = {
            each.metric: each.value for each in Checks(SMALL, context).samples(timed(jobs_of(SMALL)), checked(SMALL))
        }
        assert found == {
            "jobs_per_second": 10 / 4,
            "point_iterations_per_second": 10 / 4 * 300 * 6,
            "cpu_seconds_per_job": 0.5,
            "projected_hours": pytest.approx(8_000_000 / 2.5 / 3600),
            "inertia_per_job": 10.0,
            "empty_clusters_per_job": 2 / 5,
            "compared_share": 4 / 5,
        }

    def test_a_job_that_is_wrong_makes_the_run_invalid_and_is_named(self, context: Any) -> None:
        found = list(Checks(SMALL, context).samples(timed(jobs_of(SMALL), "gemm"), checked(SMALL, "it is wrong")))
        assert all(each.value is None for each in found)
        assert context.reasons == ["job 3 by gemm: it is wrong"]

    @pytest.mark.parametrize("lost", ["missing", "twice"])
    def test_a_job_that_is_missing_or_done_twice_makes_the_run_invalid(self, context: Any, lost: str) -> None:
        jobs = jobs_of(SMALL)
        list(Checks(SMALL, context).samples(timed(jobs[1:] if lost == "missing" else [*jobs, jobs[0]]), checked(SMALL)))
        assert context.reasons == [
            "lloyd: 4 of 5 jobs were done, 4 answered"
            if lost == "missing"
            else "lloyd: 5 of 5 jobs were done, 6 answered"
        ]

    def test_other_labels_by_the_same_kernel_make_the_run_invalid(self, context: Any) -> None:
        checks = Checks(SMALL, context)
        list(checks.samples(timed(jobs_of(SMALL)), checked(SMALL)))
        list(
            checks.samples(
                timed([replace(job, labels_sha256="other") for job in jobs_of(SMALL)], "gemm"), checked(SMALL)
            )
        )
        assert not context.is_invalid
        list(checks.samples(timed([replace(job, labels_sha256="other") for job in jobs_of(SMALL)]), checked(SMALL)))
        assert context.is_invalid


def test_more_clusters_than_points_are_refused() -> None:
    with pytest.raises(BadInput, match="clusters=30 is more than points=20"):
        Params(points=20, clusters=30)


def test_jobs_that_take_more_than_their_share_of_memory_are_refused() -> None:
    topology = Topology(
        name="multi",
        nodes=2,
        cpus_per_node=1,
        memory_bytes_per_node=2**30,
        object_store_bytes_per_node=2**27,
        threads_per_node=1,
    )
    experiment.check_fits(Params(jobs=400), topology)
    with pytest.raises(DoesNotFit, match="The points of 800 jobs take 488 MiB on each node of multi"):
        experiment.check_fits(Params(jobs=800), topology)


def test_what_cannot_be_measured_says_why() -> None:
    reasons = {
        arm.name: experiment.why_not(arm, Params(dimensions=128, clusters=1024), has_faiss=False) for arm in ARMS
    }
    assert reasons["faiss"] == "faiss is not installed on every node: uv pip install faiss-cpu"
    assert reasons["broadcast"] == "broadcast makes differences of 10000 MiB at once, and may make 512 MiB"
    assert reasons["lloyd"] is None
    assert experiment.why_not(ARMS[3], Params(), has_faiss=False) is None


def test_a_shape_that_is_larger_may_last_longer() -> None:
    shape = Shape(points=20_000, dimensions=16, clusters=20, iterations=20)
    assert replace(shape, clusters=40).longest_seconds == pytest.approx(2 * shape.longest_seconds - 1)


class TestInput:
    @pytest.mark.parametrize("path", ["mine.npy", "/data/mine.pkl"])
    def test_a_path_that_cannot_be_meant_is_refused_before_anything_starts(self, path: str) -> None:
        with pytest.raises(BadInput, match="input must be"):
            Params(input=path)

    def test_vectors_of_a_file_are_split_into_jobs_and_the_file_is_declared(self, tmp_path: Path) -> None:
        vectors = np.arange(36, dtype=np.float32).reshape(12, 3)
        np.save(tmp_path / "mine.npy", vectors)
        told = Told()
        params = Params(points=5, clusters=2, dimensions=3, jobs=2, input=str(tmp_path / "mine.npy"))
        found = experiment.taken(params, told)  # type: ignore[arg-type]
        assert np.array_equal(found, vectors[:10].reshape(2, 5, 3))
        assert told.sets == {params.input: hashlib.sha256((tmp_path / "mine.npy").read_bytes()).hexdigest()}

    def test_a_file_with_fewer_vectors_than_the_jobs_take_is_refused(self, tmp_path: Path) -> None:
        np.save(tmp_path / "mine.npy", np.zeros((12, 3), dtype=np.float32))
        params = Params(points=5, clusters=2, dimensions=3, jobs=3, input=str(tmp_path / "mine.npy"))
        with pytest.raises(BadInput, match="12 vectors: 2 jobs of 5, not 3"):
            experiment.taken(params, Told())  # type: ignore[arg-type]
