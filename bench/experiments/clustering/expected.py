"""What the inertia of a job may be: that of the same iterations in float64, where rounding cannot lead elsewhere.

A point that is as near to one centre as to another, as far as float32 tells, may go to either. From there two right kernels
may come to different optima, as on values that were rounded to 0.1. And a cluster that loses all its points is filled anew by
some kernels and left alone by others. In both cases no inertia can be expected. What holds for every right kernel, whatever
path it took, is checked on its own result: see `wrong_with`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.experiments.clustering.kernels import Clustering, first_centres

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from bench.experiments.clustering.kernels import Points

CLOSE = 1e-3  # of an inertia: kernels round differently
ROUNDING_OF_TIES = 1.0  # of float32, of the sizes whose difference a squared distance is
ROUNDING_AT_MOST = 32.0
ROWS = 4096  # whose distances are held at once


@dataclass(frozen=True, kw_only=True)
class Expected:
    """The inertia of one job by float64, and whether other kernels must agree with it."""

    inertia: float
    first: float  # inertia about the first centres: no iteration of Lloyd's makes it greater
    rounding: float  # by which an inertia may differ, though it be 0
    why_open: str = ""  # why right kernels may come to another inertia; empty: they must not

    @property
    def meant(self) -> str:
        """What an inertia should be."""
        if self.why_open:
            return f"it may be {self.first:.6g} at most ({self.why_open})"
        return f"by float64 it is {self.inertia:.6g}"

    def differs(self, inertia: float) -> bool:
        """Whether `inertia` is not one that a right kernel comes to."""
        slack = self.rounding + CLOSE * self.inertia
        if self.why_open:
            return not -self.rounding <= inertia <= self.first * (1 + CLOSE) + self.rounding
        return not abs(inertia - self.inertia) <= slack  # so for NaN too


def expect(points: Points, *, clusters: int, iterations: int) -> Expected:
    """What a job of these points comes to, by the same iterations in float64, with the ties on its way counted."""
    import numpy as np

    centres = first_centres(points, clusters).astype(np.float64)
    first, ties, has_empty = None, 0, False
    for _ in range(iterations):
        counts, sums, inertia = np.zeros(clusters), np.zeros(centres.shape), 0.0
        for rows, distances, sizes in _distances(points, centres):
            nearest = distances.argmin(axis=1)
            lowest = distances[np.arange(len(rows)), nearest]
            ties += int((distances <= (lowest + _rounding(ROUNDING_OF_TIES, sizes))[:, None]).sum()) - len(rows)
            counts += np.bincount(nearest, minlength=clusters)
            sums += np.stack([np.bincount(nearest, weights=column, minlength=clusters) for column in rows.T], axis=1)
            inertia += float(np.maximum(lowest, 0.0).sum())
        first = inertia if first is None else first
        full = counts > 0
        has_empty |= not full.all()
        centres[full] = sums[full] / counts[full, None]
    inertia, rounding = _about(points, centres)
    first = inertia if first is None else first
    why_open = ""
    if has_empty:
        why_open = "a cluster has no points"
        # Kernels that count distinct points first make no more clusters than these, and begin elsewhere.
        distinct = min(clusters, len(np.unique(points, axis=0)))
        first = max(first, _about(points, first_centres(points, distinct).astype(np.float64))[0])
    elif ties:
        why_open = f"{ties} of {len(points) * iterations} assignments are ties"
    return Expected(inertia=inertia, first=first, rounding=rounding, why_open=why_open)


def wrong_with(points: Points, found: Clustering) -> str:
    """What is in `found` that no right kernel comes to; empty: nothing.

    Each label is that of the nearest centre, the inertia is that of labels and centres, and less than that of the first centres.
    """
    import numpy as np

    labels, centres = found.labels, found.centres
    if labels.shape != (len(points),) or labels.min() < 0 or labels.max() >= len(centres):
        return f"its labels are not {len(points)} from 0 to {len(centres) - 1}"
    if not np.isfinite(centres).all():
        return "a centre is not finite"
    own, rounding, farther = 0.0, 0.0, 0
    at = 0
    for rows, distances, sizes in _distances(points, centres.astype(np.float64)):
        mine = distances[np.arange(len(rows)), labels[at : at + len(rows)]]
        margin = _rounding(ROUNDING_AT_MOST, sizes)
        farther += int((mine > distances.min(axis=1) + margin).sum())
        own += float(np.maximum(mine, 0.0).sum())
        rounding += float(margin.sum())
        at += len(rows)
    if farther:
        return f"{farther} of {len(points)} points are not of the cluster that is nearest"
    if not abs(found.inertia - own) <= CLOSE * own + rounding:
        return f"its inertia is {found.inertia:.6g}, and that of its labels and centres {own:.6g}"
    first, _ = _about(points, first_centres(points, len(centres)).astype(np.float64))
    if not own <= first * (1 + CLOSE) + rounding:
        return f"its inertia is {own:.6g}, and the first centres had {first:.6g}: it has got worse"
    return ""


def empty_clusters(found: Clustering, clusters: int) -> int:
    """How many of `clusters` have no point in the end."""
    import numpy as np

    return clusters - len(np.unique(found.labels))


def _about(points: Points, centres: NDArray[np.float64]) -> tuple[float, float]:
    """The inertia of `points` about their nearest centres, and by how much rounding may change it."""
    inertia, rounding = 0.0, 0.0
    for _, distances, sizes in _distances(points, centres):
        inertia += float(distances.min(axis=1).clip(0.0).sum())
        rounding += float(_rounding(ROUNDING_AT_MOST, sizes).sum())
    return inertia, rounding


def _distances(
    points: Points, centres: NDArray[np.float64]
) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]]:
    """Some points, their squared distances of all centres, and of what size the numbers are whose difference those are."""
    import numpy as np

    of_centres = (centres**2).sum(axis=1)
    for begin in range(0, len(points), ROWS):
        rows = points[begin : begin + ROWS].astype(np.float64)
        of_rows = (rows**2).sum(axis=1)
        distances = of_rows[:, None] - 2 * (rows @ centres.T) + of_centres
        yield rows, distances, (of_rows + of_centres.max()) * rows.shape[1] ** 0.5


def _rounding(times: float, sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    import numpy as np

    found: NDArray[np.float64] = times * float(np.finfo(np.float32).eps) * sizes
    return found
