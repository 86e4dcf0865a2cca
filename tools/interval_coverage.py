"""How often the intervals hold the true value, by simulation: what the table in docs/statistics.md is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.analysis.stats.estimates import Estimate, hodges_lehmann, mean_with_t_interval, median_with_interval

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SEED = 1
DATA_SETS = 2000  # of each row: coverage is then known to within 1 % in 95 of 100 cases
SIZES = (6, 10, 20, 40)  # pairs, or invocations


def _normal(draw: np.random.Generator, n: int) -> NDArray[np.float64]:
    return draw.normal(0, 0.05, n)


def _with_outliers(draw: np.random.Generator, n: int) -> NDArray[np.float64]:
    """A stall in one of ten values, either way: in a log-ratio it may hit the one side or the other."""
    stalls = draw.exponential(0.25, n) * draw.choice((-1, 1), n) * (draw.random(n) < 0.1)
    found: NDArray[np.float64] = draw.normal(0, 0.03, n) + stalls
    return found


NOISES: dict[str, Callable[[np.random.Generator, int], NDArray[np.float64]]] = {
    "normal, 5 %": _normal,
    "normal, 3 %, and 10 % outliers": _with_outliers,
}
INTERVALS: dict[str, Callable[[list[float]], Estimate]] = {
    "Hodges-Lehmann (the ratio's)": hodges_lehmann,
    "order statistics (a topology's median)": median_with_interval,
    "Student's t (the cross-check)": mean_with_t_interval,
}


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """Of one interval for one noise and size."""

    noise: str
    n: int
    interval: str
    covered: float  # share of the data sets whose interval holds the true value: 0.95 is wanted
    width: float  # mean, of logarithms: 0.05 is 5 %


def simulate(data_sets: int = DATA_SETS, seed: int = SEED) -> Iterator[Coverage]:
    """By noise, size and interval; the true value is 0. The same numbers for the same `seed`."""
    import numpy as np

    draw = np.random.default_rng(seed)
    for noise, values in NOISES.items():
        for n in SIZES:
            drawn = [values(draw, n).tolist() for _ in range(data_sets)]
            for name, interval in INTERVALS.items():
                ends = [(each.low or 0.0, each.high or 0.0) for each in map(interval, drawn)]
                yield Coverage(
                    noise=noise,
                    n=n,
                    interval=name,
                    covered=sum(low <= 0 <= high for low, high in ends) / data_sets,
                    width=sum(high - low for low, high in ends) / data_sets,
                )
