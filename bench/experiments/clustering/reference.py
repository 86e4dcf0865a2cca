"""What a round must come to, by another way than the one it was done by: sums in closed form, or Lloyd's iterations in float64.

The reference is computed by the driver, off the clock, once an invocation. Where all clusterings would take it too long it
does evenly spaced ones, and says what share of all that is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bench.experiments.clustering import split, work
from bench.experiments.clustering.expected import Expected, expect
from bench.experiments.clustering.split import Part
from bench.experiments.clustering.work import Job

if TYPE_CHECKING:
    from bench.experiments.clustering.kernels import Points

MOST_SECONDS = 10.0  # at clusterings of the reference, in each invocation
UPDATE_SECONDS = 3e-10  # in float64, on a CPU of 2025: a value of a vector, for a cluster, in an iteration
FEWEST_JOBS = 3


def chosen(job: Job, jobs: int, most_seconds: float = MOST_SECONDS) -> list[int]:
    """Which jobs are done again: all if there is time for that, else evenly spaced ones, the first and the last too."""
    seconds = job.points * job.clusters * job.dimensions * job.iterations * UPDATE_SECONDS
    count = min(jobs, max(FEWEST_JOBS, int(most_seconds / seconds)))
    return sorted({number * (jobs - 1) // max(count - 1, 1) for number in range(count)})


@dataclass(kw_only=True)
class Reference:
    """Inertias of some jobs, or of all, by float64; computed when they are first asked for."""

    job: Job
    jobs: int
    jobs_per_part: int
    layers: str = ""
    _inertias: dict[int, Expected] = field(default_factory=dict)

    @property
    def share(self) -> float:
        """Of the jobs: those that are compared one by one, or all where their sum is known beforehand."""
        total = split.total(self.jobs, self.layers)
        return 1.0 if self.job.kind != "kmeans" else len(chosen(self.job, total)) / total

    def wrong(self, results: Mapping[int, bytes]) -> Iterator[str]:
        """What differs in `results`: inertias by the number of the part, float64, NaN where a job was set aside."""
        import numpy as np

        if self.job.kind != "kmeans":
            return
        if not self._inertias:
            self._inertias = dict(self._compute())
        for part in split.parts(self.jobs, self.jobs_per_part, self.layers):
            found = np.frombuffer(results.get(part.number, b""), dtype="<f8")
            if len(found) != part.jobs:
                yield f"part {part.number} has {len(found)} results of {part.jobs} jobs"
                continue
            for number in range(part.first, part.first + part.jobs):
                again, value = self._inertias.get(number), found[number - part.first]
                if again is not None and not np.isnan(value) and again.differs(value):  # NaN: it was set aside
                    yield f"job {number} has an inertia of {value:g}, and {again.meant}"

    def _compute(self) -> Iterator[tuple[int, Expected]]:
        wanted, before = set(chosen(self.job, split.total(self.jobs, self.layers))), 0
        for part in split.parts(self.jobs, self.jobs_per_part, self.layers):
            for at in sorted(wanted.intersection(range(before, before + part.jobs))):
                number = part.first + at - before
                yield number, self._again(part, number)
            before += part.jobs

    def _again(self, part: Part, number: int) -> Expected:
        vectors: Points = work.vectors_of(self.job, part, None)(number)
        return expect(vectors, clusters=self.job.clusters, iterations=self.job.iterations)
