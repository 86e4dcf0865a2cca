"""How the jobs are split: by the layers of the network, and each layer's into parts. Numbered, so that order is kept."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise

from bench.experiments.clustering.points import RESNET18, Layer

PART_SECONDS = 1.0  # a part that lasts so long is lost cheaply, and costs its handing over no hundredth of it
MOST_JOBS_PER_PART = 20_000
SHORTEST_SECONDS = 0.1  # of a part, where it need not be shorter: handing one over takes a few milliseconds
PARTS_PER_WORKER = 32  # where they are not too short for it: the last ones decide how long the others wait
FEWEST_PER_WORKER = 8  # and however short they are
MOST_PARTS = 100_000  # rows of a journal that still goes to a new head in one piece


@dataclass(frozen=True, kw_only=True)
class Part:
    """What is handed over at once, done or not done as a whole, and a row of the journal."""

    number: int
    layer: int  # its place in RESNET18
    first: int  # job, counted over all layers from 0
    jobs: int

    @property
    def of(self) -> Layer:
        return RESNET18[self.layer]


def jobs_by_layer(jobs: int) -> list[int]:
    """How many of `jobs` each layer has: by its weights, and all of them together as many as asked for."""
    ends = list(accumulate(layer.weights for layer in RESNET18))
    bounds = [0, *(jobs * end // ends[-1] for end in ends)]
    return [stop - start for start, stop in pairwise(bounds)]


def parts(jobs: int, jobs_per_part: int) -> Iterator[Part]:
    """All parts, in order; none has jobs of two layers. They are made one at a time, however many there are."""
    number = first = 0
    for layer, count in enumerate(jobs_by_layer(jobs)):
        end = first + count
        while first < end:
            part = Part(number=number, layer=layer, first=first, jobs=min(jobs_per_part, end - first))
            yield part
            number, first = number + 1, first + part.jobs


def count(jobs: int, jobs_per_part: int) -> int:
    """How many parts there are."""
    return sum(math.ceil(each / jobs_per_part) for each in jobs_by_layer(jobs))


def chosen(jobs: int, *, job_seconds: float, job_bytes: int, most_bytes: int, workers: int) -> int:
    """Jobs in a part: as many as last a second, fit into so many bytes, and leave each worker a few parts."""
    limits = (
        PART_SECONDS / max(job_seconds, 1e-9),
        most_bytes / job_bytes if job_bytes else MOST_JOBS_PER_PART,
        max(jobs / (workers * PARTS_PER_WORKER), SHORTEST_SECONDS / max(job_seconds, 1e-9)),
        jobs / (workers * FEWEST_PER_WORKER),
        MOST_JOBS_PER_PART,
    )
    return max(1, int(min(limits)), math.ceil(jobs / MOST_PARTS))
