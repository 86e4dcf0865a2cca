"""Compares values with the quantiles of a normal distribution, for a Q-Q plot. It is shown, and decides nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist

from bench.analysis.stats.estimates import quartiles

FEWEST = 6  # values; fewer show no shape
_QUARTILE = NormalDist().inv_cdf(0.75)


@dataclass(frozen=True, kw_only=True)
class Quantile:
    """One value with its block, and its expected position under a normal distribution, in standard deviations."""

    block: int
    value: float
    z: float


@dataclass(frozen=True, kw_only=True)
class Quantiles:
    """Values in ascending order, and the line through their quartiles, like R's `qqline`."""

    points: tuple[Quantile, ...]
    centre: float
    slope: float  # of one standard deviation

    def line(self, z: float) -> float:
        """Return the value that a normal distribution with these quartiles has at `z`."""
        return self.centre + self.slope * z


def quantiles(values: Mapping[int, float]) -> Quantiles:
    """Return the quantiles of `values` by block. Positions are R's `ppoints`: (i - a)/(n + 1 - 2a), a = 3/8 up to 10 values, else 1/2."""
    ordered = sorted(values.items(), key=lambda item: item[1])
    n = len(ordered)
    a = 3 / 8 if n <= 10 else 1 / 2
    inverse = NormalDist().inv_cdf
    low, high = quartiles([value for _, value in ordered])
    return Quantiles(
        points=tuple(
            Quantile(block=block, value=value, z=inverse((place - a) / (n + 1 - 2 * a)))
            for place, (block, value) in enumerate(ordered, start=1)
        ),
        centre=(low + high) / 2,
        slope=(high - low) / (2 * _QUARTILE),
    )


def correlation(normal_quantiles: Quantiles) -> float | None:
    """Return the correlation of the values with their positions, 1 for perfectly normal ones. None if all values are equal."""
    n = len(normal_quantiles.points)
    mean, middle = (
        math.fsum(p.value for p in normal_quantiles.points) / n,
        math.fsum(p.z for p in normal_quantiles.points) / n,
    )
    products = math.fsum((p.value - mean) * (p.z - middle) for p in normal_quantiles.points)
    squares = [
        math.fsum((p.value - mean) ** 2 for p in normal_quantiles.points),
        math.fsum((p.z - middle) ** 2 for p in normal_quantiles.points),
    ]
    return products / math.sqrt(squares[0] * squares[1]) if min(squares) > 0 else None
