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
MOST_BYTES = 64 * 2**20  # of a part's input, where its size is not given


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


def chosen_layers(layers: str) -> list[int]:
    """The places in RESNET18 of the layers that `layers` names, as in layer4+fc: by name, or by what stands before a dot; empty: all.

    Raises ValueError with the name that no layer has.
    """
    found: set[int] = set()
    for name in filter(None, layers.split("+")):
        places = {at for at, layer in enumerate(RESNET18) if layer.name == name or layer.name.startswith(f"{name}.")}
        if not places:
            raise ValueError(name)
        found |= places
    return sorted(found) or list(range(len(RESNET18)))


def spans(jobs: int, layers: str = "") -> list[tuple[int, int, int]]:
    """Of each layer that is chosen: its place in RESNET18, its first job of all `jobs`, and the one after its last."""
    bounds = [0, *accumulate(jobs_by_layer(jobs))]
    return [(layer, bounds[layer], bounds[layer + 1]) for layer in chosen_layers(layers)]


def total(jobs: int, layers: str = "") -> int:
    """How many of all `jobs` the layers that are chosen have."""
    return sum(stop - first for _, first, stop in spans(jobs, layers))


def nth(place: int, jobs: int, layers: str = "") -> int:
    """The number of the job at a place, from 0, among those of the layers that are chosen."""
    for _, first, stop in spans(jobs, layers):
        if place < stop - first:
            return first + place
        place -= stop - first
    raise IndexError(place)


def parts(jobs: int, jobs_per_part: int, layers: str = "") -> Iterator[Part]:
    """All parts of the layers that are chosen, in order; none has jobs of two layers. They are made one at a time."""
    number = 0
    for layer, first, stop in spans(jobs, layers):
        for begin in range(first, stop, jobs_per_part):
            yield Part(number=number, layer=layer, first=begin, jobs=min(jobs_per_part, stop - begin))
            number += 1


def count(jobs: int, jobs_per_part: int, layers: str = "") -> int:
    """How many parts there are."""
    return sum(math.ceil((stop - first) / jobs_per_part) for _, first, stop in spans(jobs, layers))


def filled(jobs: int, *, job_bytes: int, part_bytes: int) -> int:
    """Jobs in a part whose input is so large, however long it takes; more where there would be too many parts."""
    return max(1, part_bytes // job_bytes, math.ceil(jobs / MOST_PARTS))


def chosen(jobs: int, *, job_seconds: float, job_bytes: int, workers: int) -> int:
    """Jobs in a part: as many as last a second, fit into MOST_BYTES, and leave each worker a few parts."""
    limits = (
        PART_SECONDS / max(job_seconds, 1e-9),
        MOST_BYTES / job_bytes if job_bytes else MOST_JOBS_PER_PART,
        max(jobs / (workers * PARTS_PER_WORKER), SHORTEST_SECONDS / max(job_seconds, 1e-9)),
        jobs / (workers * FEWEST_PER_WORKER),
        MOST_JOBS_PER_PART,
    )
    return max(1, int(min(limits)), math.ceil(jobs / MOST_PARTS))
