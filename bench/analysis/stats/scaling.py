"""Describes how work scales with workers: speed-up, efficiency, serial fraction, and a fitted law with predictions.

The law is Gunther's: X(N) = l N / (1 + s (N - 1) + k N (N - 1)), with contention s and coherency k; Amdahl's law has k = 0. The
best number of workers is sqrt((1 - s) / k). What the values do not determine is not reported.
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
"""Each block's rate in units of work per second, by number of workers."""

FEWEST_POINTS = 6
FEWEST_BLOCKS = 3  # of each number of workers: resamples of fewer hardly differ, and the interval would be a point
RESAMPLES = 200
FARTHEST = 2  # times the largest number of workers measured: no prediction beyond
UNSEEN = 1e-6  # a contention or coherency below this counts as none
START = (0.05, 0.001)
LEVEL = 0.95
CURVE_STEPS = 40  # straight pieces of the drawn curve


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """A fitted parameter and its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Point:
    """One number of workers, compared with the smallest one that was measured."""

    workers: int
    rate: float  # median over blocks
    n: int  # blocks
    speed_up: float  # median of the blocks' own ratios
    efficiency: float  # speed-up divided by the ratio of the numbers of workers
    serial_fraction: float | None  # Karp and Flatt's; None for the base
    is_crowded: bool  # more workers than CPUs: the rate depends on scheduling too


@dataclass(frozen=True, kw_only=True)
class Foretold:
    """The law's prediction for a number of workers, in units of work per second, with its interval."""

    workers: float
    rate: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Law:
    """The fitted law. Contention and coherency are None if the values do not distinguish them from 0."""

    name: str  # "USL" or "Amdahl", by AICc
    contention: Bounds | None
    coherency: Bounds | None
    best_workers: Bounds | None
    reasons: tuple[str, ...] = ()  # for each value that is None
    curve: tuple[Foretold, ...] = ()  # from the smallest to the largest number of workers that was measured


@dataclass(frozen=True, kw_only=True)
class ScalingCard:
    """The points, and the fitted law or the reason why none was fitted."""

    points: tuple[Point, ...]
    law: Law | None
    refusal: str | None


def card(values: Values, *, cpus: int, seed: int = 1) -> ScalingCard:
    """Describe the scaling of one arm. `cpus`: of all nodes together; `seed`: of the resampling."""
    measured = {workers: dict(blocks) for workers, blocks in sorted(values.items()) if blocks}
    points = tuple(_points(measured, cpus))
    refusal = _refusal(measured)
    law = None if refusal else fit(measured, cpus=cpus, seed=seed)
    return ScalingCard(points=points, law=law, refusal=refusal)


def karp_flatt(speed_up: float, times: float) -> float:
    """Return the serial fraction that explains a speed-up on `times` as many workers; `times` is above 1."""
    return (1 / speed_up - 1 / times) / (1 - 1 / times)


def usl(workers: float, *, rate: float, contention: float, coherency: float) -> float:
    """Return the law's work per second; `rate` is that of one worker."""
    return rate * workers / (1 + contention * (workers - 1) + coherency * workers * (workers - 1))


def best_workers(contention: float, coherency: float) -> float:
    """Return the number of workers with the maximum rate: at least 1, and infinity if the law has no maximum."""
    return math.inf if coherency <= 0 else max(1.0, math.sqrt(max(0.0, 1 - contention) / coherency))


def fit(values: Values, *, cpus: int, seed: int = 1) -> Law:
    """Fit both laws and return the one with the smaller AICc; intervals come from resampling whole blocks."""
    all_values = _flat(values, None)
    amdahl, amdahl_error = _fit(*all_values, has_coherency=False)
    full, full_error = _fit(*all_values, has_coherency=True)
    count = len(all_values[0])
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
    """Return the law's predictions between `fewest` and `most` workers, at equal ratios, each with its own interval."""
    curve = []
    for step in range(CURVE_STEPS + 1):
        workers = fewest * (most / fewest) ** (step / CURVE_STEPS)
        rates = [usl(workers, rate=rate, contention=s, coherency=k) for rate, s, k in (fitted, *draws)]
        bounds = _bounds(rates[0], rates[1:])
        low, high = min(bounds.low, bounds.value), max(bounds.high, bounds.value)
        curve.append(Foretold(workers=workers, rate=bounds.value, low=low, high=high))
    return tuple(curve)


def _points(values: Values, cpus: int) -> list[Point]:
    if not values:
        return []
    fewest = min(values)
    base = values[fewest]
    points = []
    for workers, blocks in values.items():
        # The median of ratios within blocks; of medians if no block has both numbers of workers.
        ratios = [blocks[block] / base[block] for block in blocks.keys() & base.keys() if base[block] > 0]
        speed_up = median(ratios) if ratios else median(blocks.values()) / median(base.values())
        times = workers / fewest
        points.append(
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
    return points


def _refusal(values: Values) -> str | None:
    if len(values) < FEWEST_POINTS:
        measured = ", ".join(str(workers) for workers in values) or "none"
        return f"a law of scaling needs {FEWEST_POINTS} distinct numbers of workers, and there are: {measured}"
    fewest = min(len(blocks) for blocks in values.values())
    if fewest < FEWEST_BLOCKS:
        return f"the intervals of a law need {FEWEST_BLOCKS} blocks of each number of workers, and one has {fewest}"
    if any(value <= 0 for blocks in values.values() for value in blocks.values()):
        return "a law of scaling needs rates above 0"
    return None


def _flat(values: Values, blocks: Mapping[int, Sequence[int]] | None) -> tuple[Floats, Floats]:
    """Return workers and rates, one entry per value: all values, or those of the resampled `blocks` of each point."""
    import numpy as np

    pairs = [
        (workers, rates[block])
        for workers, rates in values.items()
        for block in (rates if blocks is None else blocks[workers])
    ]
    return np.array([workers for workers, _ in pairs], float), np.array([rate for _, rate in pairs], float)


def _resamples(values: Values, seed: int) -> list[dict[int, list[int]]]:
    """Draw blocks with replacement: the same ones for every point that has them."""
    generator = random.Random(seed)
    names = sorted({block for rates in values.values() for block in rates})
    resamples = []
    for _ in range(RESAMPLES):
        drawn = generator.choices(names, k=len(names))
        # A point with none of the drawn blocks keeps its own, so that the law is never fitted to fewer points.
        resamples.append(
            {workers: [block for block in drawn if block in rates] or list(rates) for workers, rates in values.items()}
        )
    return resamples


def _fit(workers: Floats, rates: Floats, *, has_coherency: bool) -> tuple[tuple[float, float, float], float]:
    """Return (rate of one worker, contention, coherency), and the sum of squared errors relative to the rates."""
    import numpy as np
    from scipy.optimize import curve_fit

    scale = float(rates[workers == workers.min()].mean() / workers.min())

    def law(count: Floats, rate: float, contention: float, coherency: float = 0.0) -> Floats:
        return np.asarray(
            scale * rate * count / (1 + contention * (count - 1) + coherency * count * (count - 1)), float
        )

    size = 3 if has_coherency else 2
    fitted, _ = curve_fit(
        law,
        workers,
        rates,
        p0=(1.0, *START)[:size],
        sigma=rates,  # measurement errors are proportional to the rate
        bounds=([1e-9, 0.0, 0.0][:size], [np.inf, 1.0, np.inf][:size]),
        max_nfev=2_000,
    )
    errors = (law(workers, *fitted) - rates) / rates
    rate, contention, coherency = (*map(float, fitted), 0.0)[:3]
    return (rate * scale, contention, coherency), float((errors**2).sum())


def _aicc(error: float, count: int, parameters: int) -> float:
    """Return Akaike's criterion with the correction for few values; the variance counts as a parameter."""
    size = parameters + 1
    spare = count - size - 1
    if spare <= 0:
        return math.inf
    return count * math.log(max(error, 1e-300) / count) + 2 * size + 2 * size * (size + 1) / spare


def _bounds(value: float, draws: Sequence[float]) -> Bounds:
    ordered = sorted(draws)
    cut = int((1 - LEVEL) / 2 * len(ordered))
    return Bounds(value=value, low=ordered[cut], high=ordered[-1 - cut])
