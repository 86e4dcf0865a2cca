"""One job: k-means of a few thousand vectors, by several ways to compute the same.

All begin with the same centres and do the same number of Lloyd's iterations. So their inertia, the sum of squared distances
of the points to their centres, agrees but for rounding, unless a tie or a cluster without points leaves it open which way to
go: numpy's leave such a cluster where it is, scikit-learn's move it to a point that is far from its centre.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Points = NDArray[np.float32]
    Labels = NDArray[np.int32]

Kernel = Literal["lloyd", "elkan", "gemm", "broadcast", "broadcast-unique"]
AnyKernel = Kernel | Literal["lloyd-unique", "faiss"]  # faiss is no dependency of ours: for those who have installed it


@dataclass(frozen=True, kw_only=True)
class Clustering:
    """What a job comes to."""

    labels: Labels  # shape (points,)
    centres: Points  # shape (clusters, dimensions)
    inertia: float


def cluster(kernel: AnyKernel, points: Points, *, clusters: int, iterations: int) -> Clustering:
    """k-means of `points`, shape (points, dimensions), in exactly so many iterations, on one thread.

    The points are not changed. As many threads are used as the process allows: its caller sees to that.
    """
    return _KERNELS[kernel](points, clusters, iterations)


def first_centres(points: Points, clusters: int) -> Points:
    """As many of the points, evenly spaced: every kernel begins with these."""
    import numpy as np

    chosen: Points = points[np.linspace(0, len(points) - 1, clusters).astype(int)].copy()
    return chosen


def _broadcast(points: Points, clusters: int, iterations: int) -> Clustering:
    """The difference of every point and every centre at once: shape (points, clusters, dimensions)."""
    import numpy as np

    centres = first_centres(points, clusters)
    for _ in range(iterations):
        labels = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2).argmin(axis=1)
        for number in range(clusters):
            members = points[labels == number]
            if len(members):
                centres[number] = members.mean(axis=0, dtype=np.float64)
    return _closed(points, centres)


def _counted(kernel: Callable[[Points, int, int], Clustering]) -> Callable[[Points, int, int], Clustering]:
    """By the study's habit: sort all points only to find that there are enough of them for so many clusters."""

    def count_first(points: Points, clusters: int, iterations: int) -> Clustering:
        import numpy as np

        return kernel(points, min(clusters, len(np.unique(points, axis=0))), iterations)

    return count_first


def _gemm(points: Points, clusters: int, iterations: int) -> Clustering:
    """Distances by one product of matrices: |x - c|^2 = |x|^2 - 2xc + |c|^2, and |x|^2 changes no order."""
    import numpy as np

    centres = first_centres(points, clusters)
    for _ in range(iterations):
        labels = _nearest(points, centres)
        counts = np.bincount(labels, minlength=clusters)
        sums = np.stack([np.bincount(labels, weights=column, minlength=clusters) for column in points.T], axis=1)
        full = counts > 0
        centres[full] = (sums[full] / counts[full, None]).astype(np.float32)
    return _closed(points, centres)


def _sklearn(algorithm: Literal["lloyd", "elkan"]) -> Callable[[Points, int, int], Clustering]:
    def scikit_learn(points: Points, clusters: int, iterations: int) -> Clustering:
        import warnings

        import numpy as np
        from sklearn.cluster import KMeans

        means = KMeans(
            n_clusters=clusters,
            init=first_centres(points, clusters),
            n_init=1,
            max_iter=iterations,
            tol=0.0,
            algorithm=algorithm,
            copy_x=True,  # else it takes the mean off the points and adds it again, and they are not what they were
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it did not converge in so few iterations
            means.fit(points)
        labels = means.labels_.astype(np.int32)
        if np.bincount(labels, minlength=clusters).min() == 0:
            # It has moved the centre of an empty cluster after the labels were given: they belong to other centres.
            return _closed(points, means.cluster_centers_)
        return Clustering(labels=labels, centres=means.cluster_centers_, inertia=float(means.inertia_))

    return scikit_learn


def _faiss(points: Points, clusters: int, iterations: int) -> Clustering:
    """faiss's own k-means, with every point in use: of its own accord it takes 256 a cluster."""
    import faiss

    means = faiss.Kmeans(
        points.shape[1],
        clusters,
        niter=iterations,
        min_points_per_centroid=1,
        max_points_per_centroid=len(points),
    )
    means.train(points, init_centroids=first_centres(points, clusters))
    return _closed(points, means.centroids)


def _nearest(points: Points, centres: Points) -> Labels:
    import numpy as np

    distances = points @ (-2 * centres.T)
    distances += (centres**2).sum(axis=1)
    nearest: Labels = distances.argmin(axis=1).astype(np.int32)
    return nearest


def _closed(points: Points, centres: Points) -> Clustering:
    """The labels that belong to the last centres, and the inertia."""
    import numpy as np

    labels = _nearest(points, centres)
    inertia = float(((points - centres[labels]).astype(np.float64) ** 2).sum())
    return Clustering(labels=labels, centres=centres, inertia=inertia)


_KERNELS: Mapping[AnyKernel, Callable[[Points, int, int], Clustering]] = {
    "lloyd": _sklearn("lloyd"),
    "elkan": _sklearn("elkan"),
    "gemm": _gemm,
    "broadcast": _broadcast,
    "broadcast-unique": _counted(_broadcast),
    "lloyd-unique": _counted(_sklearn("lloyd")),
    "faiss": _faiss,
}
