"""K-means on a real Ray: every kernel clusters the same points to the same end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from bench.experiments import clustering_kernels as experiment
from bench.experiments.clustering import kernels
from bench.experiments.clustering_kernels import ARMS, Params

SMALL = Params(points=300, dimensions=5, clusters=7, iterations=6, jobs=5)


def clustered(kernel: kernels.Kernel, held: kernels.Points, clusters: int, iterations: int) -> kernels.Clustering:
    with threadpool_limits(1):
        return kernels.cluster(kernel, held, clusters=clusters, iterations=iterations)


@pytest.mark.timeout(120)
def test_a_real_run_does_every_job_by_every_kernel(two_halves: Any) -> None:
    found = list(experiment.run(replace(SMALL, points=3000), two_halves))
    assert two_halves.reasons == []
    assert not two_halves.is_invalid
    measured = {each.arm for each in found if each.metric == "jobs_per_second" and each.value}
    assert {arm.name for arm in ARMS} - measured <= {"faiss"}
    inertia = [each.value for each in found if each.metric == "inertia_per_job"]
    assert inertia == pytest.approx([inertia[0]] * len(measured), rel=1e-3)
    assert all(each.value for each in found if each.metric == "cpu_seconds_per_job")
    assert two_halves.credits["lloyd"] == [{"head": 2.0, "worker-1": 3.0}] * two_halves.passes


@pytest.mark.timeout(120)
def test_a_real_run_clusters_the_vectors_of_a_file(two_halves: Any, tmp_path: Path) -> None:
    vectors = np.random.default_rng(2).standard_normal((600, 3)).astype(np.float32)
    np.save(tmp_path / "mine.npy", vectors)
    params = Params(points=200, clusters=4, dimensions=3, jobs=3, input=str(tmp_path / "mine.npy"))
    found = list(experiment.run(params, two_halves))
    assert not two_halves.is_invalid
    by_hand = [clustered("lloyd", part, 4, 20).inertia for part in vectors.reshape(3, 200, 3)]
    (inertia,) = [each.value for each in found if each.metric == "inertia_per_job" and each.arm == "lloyd"]
    assert inertia == pytest.approx(np.mean(by_hand))
