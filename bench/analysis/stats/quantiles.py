"""Values beside the quantiles of a normal distribution: what a Q-Q plot draws. It is looked at, and decides nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist

from bench.analysis.stats.estimates import quartiles

FEWEST = 6  # of fewer, no shape shows
_QUARTILE = NormalDist().inv_cdf(0.75)


@dataclass(frozen=True, kw_only=True)
class Quantile:
    """One value: its block, the value, and where a normal distribution would have it, in standard deviations."""

    block: int
    value: float
    z: float


@dataclass(frozen=True, kw_only=True)
class Quantiles:
    """Values from the least to the greatest, and the line through their quartiles, as R's `qqline` has it."""

    points: tuple[Quantile, ...]
    centre: float
    slope: float  # of one standard deviation

    def line(self, z: float) -> float:
        """What a normal distribution with these quartiles has there."""
        return self.centre + self.slope * z


def quantiles(values: Mapping[int, float]) -> Quantiles:
    """`values` by block, 1 at least. The places are R's `ppoints`: (i - a)/(n + 1 - 2a), a being 3/8 up to 10 values, else 1/2."""
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


def correlation(found: Quantiles) -> float | None:
    """Of the values and their places: 1 where they are normal to the eye. None where all are the same."""
    n = len(found.points)
    mean, middle = math.fsum(p.value for p in found.points) / n, math.fsum(p.z for p in found.points) / n
    products = math.fsum((p.value - mean) * (p.z - middle) for p in found.points)
    squares = [
        math.fsum((p.value - mean) ** 2 for p in found.points),
        math.fsum((p.z - middle) ** 2 for p in found.points),
    ]
    return products / math.sqrt(squares[0] * squares[1]) if min(squares) > 0 else None
