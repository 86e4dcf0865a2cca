"""Finds the sessions at which a series took another level: the splits of E-divisive, on ranks, tested against shuffled series.

Ranks make it independent of the unit, and insensitive to one odd session. A split is kept if fewer than 1 - level of the shuffled
series have one that is as clear; then both parts are searched. The shuffles are seeded: the same values give the same result.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.analysis.stats import unpaired
from bench.analysis.stats.estimates import LEVEL

FEWEST = 10  # sessions; with fewer, a change cannot be told from noise
SHORTEST = 3  # sessions on each side: one odd session is not a level
_SHUFFLES = 1999
_SEED = 20_260_101


@dataclass(frozen=True, kw_only=True)
class ChangePoint:
    """A new level begins at `position`. `ratio` is the new level divided by the old; None if a value is not above 0."""

    position: int
    before: float  # median from the previous change to this one
    after: float  # median from here to the next change
    ratio: float | None  # Hodges-Lehmann
    p: float  # of the split, with all positions considered


def change_points(values: Sequence[float], level: float = LEVEL) -> tuple[ChangePoint, ...]:
    """Return where `values`, in the order of time, took another level. Raises ValueError for fewer than FEWEST values."""
    if len(values) < FEWEST:
        raise ValueError(f"{len(values)} values are not enough history: it takes {FEWEST}")
    splits = _refined(values, sorted(_splits(values, 0, len(values), 1 - level)), 1 - level)
    edges = [0, *(position for position, _ in splits), len(values)]
    return tuple(
        _described(values[edges[number] : position], values[position : edges[number + 2]], position, p)
        for number, (position, p) in enumerate(splits)
    )


def _refined(values: Sequence[float], splits: Sequence[tuple[int, float]], alpha: float) -> list[tuple[int, float]]:
    """Search each split again between its neighbours: when it was found first, values beyond them had an influence."""
    refined: list[tuple[int, float]] = []
    for number in range(len(splits)):
        begin = refined[-1][0] if refined else 0
        end = splits[number + 1][0] if number + 1 < len(splits) else len(values)
        position, p = _best_split(values[begin:end])
        if p <= alpha:
            refined.append((begin + position, p))
    return refined


def _splits(values: Sequence[float], begin: int, end: int, alpha: float) -> Iterator[tuple[int, float]]:
    """Yield every split of values[begin:end] that is kept, with its p."""
    if end - begin < 2 * SHORTEST:
        return
    position, p = _best_split(values[begin:end])
    if p <= alpha:
        yield begin + position, p
        yield from _splits(values, begin, begin + position, alpha)
        yield from _splits(values, begin + position, end, alpha)


def _best_split(values: Sequence[float]) -> tuple[int, float]:
    """Return where the two parts differ most, and the share of shuffled series with parts that differ as much."""
    import numpy as np
    from scipy.stats import rankdata

    ranks = rankdata(values)
    draw = np.random.default_rng(_SEED)
    shuffled = draw.permuted(np.tile(ranks, (_SHUFFLES, 1)), axis=1)
    n = len(values)
    sizes = np.arange(SHORTEST, n - SHORTEST + 1)
    rank_sums = np.cumsum(np.vstack([ranks, shuffled]), axis=1)[:, sizes - 1]
    scores = np.abs(rank_sums - sizes * (n + 1) / 2) / np.sqrt(sizes * (n - sizes) * (n + 1) / 12)
    clearest = scores.max(axis=1)
    as_clear = int(np.count_nonzero(clearest >= clearest[0] - 1e-9))  # counts the series itself
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
