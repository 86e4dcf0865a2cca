"""What may be expected of a job of k-means: no right kernel is called wrong, on any data; a wrong result is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from bench.experiments.clustering import expected, kernels
from bench.experiments.clustering.kernels import Clustering

if TYPE_CHECKING:
    from bench.experiments.clustering.kernels import Points

KERNELS = (*get_args(kernels.Kernel), "lloyd-unique")
RANDOM = np.random.default_rng(5)
EQUAL = np.concatenate([np.ones((20, 3)), [[5, 5, 5], [9, 9, 9]]]).astype(np.float32)


def ordinary(size: int = 400, dimensions: int = 4) -> Points:
    return RANDOM.standard_normal((size, dimensions)).astype(np.float32)


def done(kernel: str, held: Points, clusters: int, iterations: int) -> Clustering:
    with threadpool_limits(1):
        return kernels.cluster(kernel, held, clusters=clusters, iterations=iterations)  # type: ignore[arg-type]


def problems(held: Points, clusters: int, iterations: int) -> list[str]:
    meant = expected.expect(held, clusters=clusters, iterations=iterations)
    found = []
    for kernel in KERNELS:
        result = done(kernel, held, clusters, iterations)
        if expected.wrong_with(held, result) or meant.differs(result.inertia):
            found.append(f"{kernel}: {expected.wrong_with(held, result)}, {result.inertia} and {meant}")
    return found


def test_equal_points_and_outliers_are_no_fault_and_their_empty_clusters_are_counted() -> None:
    assert problems(EQUAL, 5, 20) == []
    assert expected.expect(EQUAL, clusters=5, iterations=20).why_open == "a cluster has no points"
    assert expected.empty_clusters(done("gemm", EQUAL, 5, 20), 5) == 2


def test_fewer_distinct_points_than_clusters_let_a_kernel_that_counts_them_begin_elsewhere() -> None:
    held = np.array([0, 0, 1, 0, -1, 0, 1, 1, -1, -1, -1, 0], dtype=np.float32)[:, None]
    assert problems(held, 4, 1) == []
    assert done("broadcast-unique", held, 4, 1).inertia > done("broadcast", held, 4, 1).inertia


def test_centres_that_are_moved_after_the_labels_were_given_get_labels_of_their_own() -> None:
    held = (1e12 * (np.random.default_rng(12).standard_normal((12, 1)).round(0) + 3.0)).astype(np.float32)
    assert problems(held, 7, 3) == []


def test_values_that_were_rounded_lead_right_kernels_elsewhere_and_are_no_fault() -> None:
    data = [np.round(RANDOM.standard_normal((2000, 16)), 1).astype(np.float32) for _ in range(4)]
    assert [problem for held in data for problem in problems(held, 20, 20)] == []
    on_a_grid = np.round(ordinary(400, 2), 1)
    assert expected.expect(on_a_grid, clusters=8, iterations=8).why_open.endswith(" of 3200 assignments are ties")


@settings(deadline=None, max_examples=25)
@given(
    seed=st.integers(0, 2**32),
    size=st.integers(12, 200),
    dimensions=st.integers(1, 8),
    clusters=st.integers(1, 9),
    iterations=st.integers(1, 8),
    decimals=st.sampled_from([0, 1, 6]),
    offset=st.sampled_from([0.0, 3.0, 1000.0]),
    scale=st.sampled_from([1e-12, 1.0, 1e12]),
)
def test_no_right_kernel_is_called_wrong(
    seed: int, size: int, dimensions: int, clusters: int, iterations: int, decimals: int, offset: float, scale: float
) -> None:
    values = np.random.default_rng(seed).standard_normal((size, dimensions)).round(decimals) + offset
    assert problems((scale * values).astype(np.float32), clusters, iterations) == []


def test_where_nothing_is_open_the_inertia_is_that_by_float64() -> None:
    held = ordinary()
    meant = expected.expect(held, clusters=8, iterations=6)
    assert meant.why_open == ""
    assert done("lloyd", held, 8, 6).inertia == pytest.approx(meant.inertia, rel=1e-5)
    assert meant.differs(meant.inertia * 1.01)
    assert meant.differs(meant.inertia * 0.99)
    assert meant.differs(done("lloyd", held, 8, 1).inertia)  # fewer iterations are not the same work


@pytest.mark.parametrize("held", [ordinary(), EQUAL], ids=["ordinary", "equal"])
@pytest.mark.parametrize("inertia", [float("nan"), float("inf"), -1.0, 1e9])
def test_an_inertia_that_cannot_be_differs_whatever_is_open(held: Points, inertia: float) -> None:
    assert expected.expect(held, clusters=5, iterations=6).differs(inertia)
    result = replace(done("gemm", held, 5, 6), inertia=inertia)
    assert "its inertia is" in expected.wrong_with(held, result)


def test_a_result_that_no_right_kernel_comes_to_is_named() -> None:
    held = ordinary()
    right = done("gemm", held, 8, 6)
    assert expected.wrong_with(held, right) == ""
    moved = right.labels.copy()
    moved[7] = (moved[7] + 1) % 8
    assert expected.wrong_with(held, replace(right, labels=moved)).startswith("1 of 400 points are not of the cluster")
    assert "labels are not 400" in expected.wrong_with(held, replace(right, labels=right.labels[:-1]))
    assert "labels are not 400" in expected.wrong_with(held, replace(right, labels=right.labels + 1))
    assert "inertia" in expected.wrong_with(held, replace(right, inertia=right.inertia * 1.01))
    broken = right.centres.copy()
    broken[0] = np.nan
    assert expected.wrong_with(held, replace(right, centres=broken)) == "a centre is not finite"
