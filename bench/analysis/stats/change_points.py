"""Where a series of sessions took another level: the split that E-divisive would try, on ranks, against shuffled series.

Ranks make it the same in any unit, and deaf to one odd session. A split is kept where fewer than 1 - level of the same
values in random order have a split as clear; then both parts are searched. The shuffles are seeded: same values, same answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.analysis.stats import unpaired
from bench.analysis.stats.estimates import LEVEL

FEWEST = 10  # sessions; with fewer, a change cannot be told from noise
SHORTEST = 3  # sessions on each side: one odd session is no level
_SHUFFLES = 1999
_SEED = 20_260_101


@dataclass(frozen=True, kw_only=True)
class ChangePoint:
    """A new level begins at `position`. `ratio`: of the new level to the one before; None where a value is not above 0."""

    position: int
    before: float  # median from the change before to this one
    after: float  # median from here to the next change
    ratio: float | None  # Hodges-Lehmann
    p: float  # of the split, among all places at which it could lie


def change_points(values: Sequence[float], level: float = LEVEL) -> tuple[ChangePoint, ...]:
    """Where `values`, in the order of time, took another level. Raises ValueError below 10 values: say so instead."""
    if len(values) < FEWEST:
        raise ValueError(f"{len(values)} values are not enough history: it takes {FEWEST}")
    found = _settled(values, sorted(_splits(values, 0, len(values), 1 - level)), 1 - level)
    edges = [0, *(position for position, _ in found), len(values)]
    return tuple(
        _described(values[edges[number] : position], values[position : edges[number + 2]], position, p)
        for number, (position, p) in enumerate(found)
    )


def _settled(values: Sequence[float], found: Sequence[tuple[int, float]], alpha: float) -> list[tuple[int, float]]:
    """Each split looked for once more between its neighbours: where it was found, others had their say in it."""
    settled: list[tuple[int, float]] = []
    for number in range(len(found)):
        begin = settled[-1][0] if settled else 0
        end = found[number + 1][0] if number + 1 < len(found) else len(values)
        at, p = _best_split(values[begin:end])
        if p <= alpha:
            settled.append((begin + at, p))
    return settled


def _splits(values: Sequence[float], begin: int, end: int, alpha: float) -> Iterator[tuple[int, float]]:
    """Every split of values[begin:end] that is kept, with its p."""
    if end - begin < 2 * SHORTEST:
        return
    at, p = _best_split(values[begin:end])
    if p <= alpha:
        yield begin + at, p
        yield from _splits(values, begin, begin + at, alpha)
        yield from _splits(values, begin + at, end, alpha)


def _best_split(values: Sequence[float]) -> tuple[int, float]:
    """Where the two parts differ most, and how often shuffled values have parts that differ as much."""
    import numpy as np
    from scipy.stats import rankdata

    ranks = rankdata(values)
    draw = np.random.default_rng(_SEED)
    shuffled = draw.permuted(np.tile(ranks, (_SHUFFLES, 1)), axis=1)
    n = len(values)
    sizes = np.arange(SHORTEST, n - SHORTEST + 1)
    every = np.cumsum(np.vstack([ranks, shuffled]), axis=1)[:, sizes - 1]
    scores = np.abs(every - sizes * (n + 1) / 2) / np.sqrt(sizes * (n - sizes) * (n + 1) / 12)
    clearest = scores.max(axis=1)
    as_clear = int(np.count_nonzero(clearest >= clearest[0] - 1e-9))  # the series itself is one of them
    return int(sizes[scores[0].argmax()]), as_clear / (_SHUFFLES + 1)


def _described(before: Sequence[float], after: Sequence[float], position: int, p: float) -> ChangePoint:
    import numpy as np

    ratio = None
    if min(*before, *after) > 0:
        shift = unpaired.hodges_lehmann([math.log(x) for x in before], [math.log(x) for x in after])
        ratio = math.exp(shift.value)
    return ChangePoint(
        position=position, before=float(np.median(before)), after=float(np.median(after)), ratio=ratio, p=p
    )
