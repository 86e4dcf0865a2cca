"""How work grows with workers: speed-up, efficiency, serial fraction, and a fitted law with what it foretells.

The law is Gunther's: X(N) = l N / (1 + s (N - 1) + k N (N - 1)), with a contention s and a coherency k; Amdahl's is k = 0.
The best number of workers is then sqrt((1 - s) / k). Nothing is told of it where the values cannot tell.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

Values = Mapping[int, Mapping[int, float]]
"""By number of workers: each block's rate, in units of work per second."""

FEWEST_POINTS = 6
FEWEST_BLOCKS = 3  # of each: what is drawn from fewer hardly differs, and its interval would be a point
RESAMPLES = 200
FARTHEST = 2  # times the greatest number of workers measured: what lies beyond is not foretold
UNSEEN = 1e-6  # a contention or a coherency below it is none
START = (0.05, 0.001)
LEVEL = 0.95
CURVE_STEPS = 40  # straight pieces that look like a curve


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """A fitted number and its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Point:
    """So many workers beside the fewest that were measured."""

    workers: int
    rate: float  # median over blocks
    n: int  # blocks
    speed_up: float  # median of the blocks' own ratios
    efficiency: float  # speed-up by how many times as many workers these are
    serial_fraction: float | None  # Karp and Flatt's; None for the base
    is_crowded: bool  # more workers than CPUs: what is seen there is scheduling too


@dataclass(frozen=True, kw_only=True)
class Foretold:
    """What a law says of so many workers, in units of work per second: as fitted, and its interval."""

    workers: float
    rate: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Law:
    """What was fitted. Contention and coherency are None where the values do not tell them from nothing."""

    name: str  # "USL" or "Amdahl", by AICc
    contention: Bounds | None
    coherency: Bounds | None
    best_workers: Bounds | None
    reasons: tuple[str, ...] = ()  # why something is None
    curve: tuple[Foretold, ...] = ()  # from the fewest workers that were measured to the most


@dataclass(frozen=True, kw_only=True)
class ScalingCard:
    """The points, and either a law or the reason why none was fitted."""

    points: tuple[Point, ...]
    law: Law | None
    refusal: str | None


def card(values: Values, *, cpus: int, seed: int = 1) -> ScalingCard:
    """The scaling of one arm. `cpus` are those of all nodes together; `seed` draws the resamples of the blocks."""
    measured = {workers: dict(blocks) for workers, blocks in sorted(values.items()) if blocks}
    points = tuple(_points(measured, cpus))
    refusal = _refusal(measured)
    law = None if refusal else fit(measured, cpus=cpus, seed=seed)
    return ScalingCard(points=points, law=law, refusal=refusal)


def karp_flatt(speed_up: float, times: float) -> float:
    """The serial fraction that would explain a speed-up on `times` as many workers; `times` is above 1."""
    return (1 / speed_up - 1 / times) / (1 - 1 / times)


def usl(workers: float, *, rate: float, contention: float, coherency: float) -> float:
    """Work per second by the law; `rate` is that of one worker."""
    return rate * workers / (1 + contention * (workers - 1) + coherency * workers * (workers - 1))


def best_workers(contention: float, coherency: float) -> float:
    """Where the law has its peak: infinity where it has none, and at least 1."""
    return math.inf if coherency <= 0 else max(1.0, math.sqrt(max(0.0, 1 - contention) / coherency))


def fit(values: Values, *, cpus: int, seed: int = 1) -> Law:
    """The law with the smaller AICc; intervals by drawing whole blocks, with replacement."""
    whole = _flat(values, None)
    amdahl, amdahl_error = _fit(*whole, has_coherency=False)
    full, full_error = _fit(*whole, has_coherency=True)
    count = len(whole[0])
    is_usl = _aicc(full_error, count, 3) < _aicc(amdahl_error, count, 2)
    draws = [_fit(*_flat(values, blocks), has_coherency=True)[0] for blocks in _resamples(values, seed)]
    curve = _curve(full if is_usl else amdahl, draws, min(values), max(values))
    contention = _bounds(full[1] if is_usl else amdahl[1], [draw[1] for draw in draws])
    coherency = _bounds(full[2], [draw[2] for draw in draws])
    peak = _bounds(best_workers(full[1], full[2]), [best_workers(draw[1], draw[2]) for draw in draws])
    reasons = []
    if contention.low <= UNSEEN:
        reasons.append("contention cannot be told from none")
    tells_coherency = is_usl and coherency.low > UNSEEN
    if not tells_coherency:
        reasons.append("coherency cannot be told from none, so there is no best number of workers")
    farthest = FARTHEST * max(values)
    is_near = peak.high <= farthest
    if tells_coherency and not is_near:
        reasons.append(f"the best number of workers may lie beyond {farthest}, which is too far to foretell")
    if max(values) <= cpus:
        reasons.append(f"no point has more than {cpus} workers, which have a CPU each: the decline was not seen")
    return Law(
        name="USL" if is_usl else "Amdahl",
        contention=contention if contention.low > UNSEEN else None,
        coherency=coherency if tells_coherency else None,
        best_workers=peak if tells_coherency and is_near else None,
        reasons=tuple(reasons),
        curve=curve,
    )


def _curve(
    fitted: tuple[float, float, float], draws: Sequence[tuple[float, float, float]], fewest: int, most: int
) -> tuple[Foretold, ...]:
    """What the law says between the fewest and the most, at equal ratios; at each of them an interval by itself."""
    found = []
    for step in range(CURVE_STEPS + 1):
        workers = fewest * (most / fewest) ** (step / CURVE_STEPS)
        rates = [usl(workers, rate=rate, contention=s, coherency=k) for rate, s, k in (fitted, *draws)]
        bounds = _bounds(rates[0], rates[1:])
        low, high = min(bounds.low, bounds.value), max(bounds.high, bounds.value)
        found.append(Foretold(workers=workers, rate=bounds.value, low=low, high=high))
    return tuple(found)


def _points(values: Values, cpus: int) -> list[Point]:
    if not values:
        return []
    fewest = min(values)
    base = values[fewest]
    found = []
    for workers, blocks in values.items():
        # Inside a block, where both were measured; beside each other where no block has both.
        ratios = [blocks[block] / base[block] for block in blocks.keys() & base.keys() if base[block] > 0]
        speed_up = median(ratios) if ratios else median(blocks.values()) / median(base.values())
        times = workers / fewest
        found.append(
            Point(
                workers=workers,
                rate=median(blocks.values()),
                n=len(blocks),
                speed_up=speed_up,
                efficiency=speed_up / times,
                serial_fraction=karp_flatt(speed_up, times) if times > 1 and speed_up > 0 else None,
                is_crowded=workers > cpus,
            )
        )
    return found


def _refusal(values: Values) -> str | None:
    if len(values) < FEWEST_POINTS:
        there = ", ".join(str(workers) for workers in values) or "none"
        return f"a law of scaling needs {FEWEST_POINTS} distinct numbers of workers, and there are: {there}"
    fewest = min(len(blocks) for blocks in values.values())
    if fewest < FEWEST_BLOCKS:
        return f"the intervals of a law need {FEWEST_BLOCKS} blocks of each number of workers, and one has {fewest}"
    if any(value <= 0 for blocks in values.values() for value in blocks.values()):
        return "a law of scaling needs rates above 0"
    return None


def _flat(values: Values, blocks: Mapping[int, Sequence[int]] | None) -> tuple[Floats, Floats]:
    """Workers and rates, value by value: all of them, or those of the blocks that were drawn for each point."""
    import numpy as np

    pairs = [
        (workers, rates[block])
        for workers, rates in values.items()
        for block in (rates if blocks is None else blocks[workers])
    ]
    return np.array([workers for workers, _ in pairs], float), np.array([rate for _, rate in pairs], float)


def _resamples(values: Values, seed: int) -> list[dict[int, list[int]]]:
    """Blocks, drawn with replacement: the same ones for every point that has them."""
    generator = random.Random(seed)
    names = sorted({block for rates in values.values() for block in rates})
    found = []
    for _ in range(RESAMPLES):
        drawn = generator.choices(names, k=len(names))
        # A point that was in none of the blocks drawn keeps its own: the law must not be fitted to fewer points.
        found.append(
            {workers: [block for block in drawn if block in rates] or list(rates) for workers, rates in values.items()}
        )
    return found


def _fit(workers: Floats, rates: Floats, *, has_coherency: bool) -> tuple[tuple[float, float, float], float]:
    """Rate of one worker, contention, coherency, and the sum of squared errors, relative to the rates."""
    import numpy as np
    from scipy.optimize import curve_fit

    scale = float(rates[workers == workers.min()].mean() / workers.min())

    def law(count: Floats, rate: float, contention: float, coherency: float = 0.0) -> Floats:
        return np.asarray(
            scale * rate * count / (1 + contention * (count - 1) + coherency * count * (count - 1)), float
        )

    size = 3 if has_coherency else 2
    found, _ = curve_fit(
        law,
        workers,
        rates,
        p0=(1.0, *START)[:size],
        sigma=rates,  # errors of a measurement grow with it
        bounds=([1e-9, 0.0, 0.0][:size], [np.inf, 1.0, np.inf][:size]),
        max_nfev=2_000,
    )
    errors = (law(workers, *found) - rates) / rates
    rate, contention, coherency = (*map(float, found), 0.0)[:3]
    return (rate * scale, contention, coherency), float((errors**2).sum())


def _aicc(error: float, count: int, parameters: int) -> float:
    """Akaike's criterion for few values; the variance is one parameter more."""
    size = parameters + 1
    spare = count - size - 1
    if spare <= 0:
        return math.inf
    return count * math.log(max(error, 1e-300) / count) + 2 * size + 2 * size * (size + 1) / spare


def _bounds(value: float, draws: Sequence[float]) -> Bounds:
    ordered = sorted(draws)
    cut = int((1 - LEVEL) / 2 * len(ordered))
    return Bounds(value=value, low=ordered[cut], high=ordered[-1 - cut])
