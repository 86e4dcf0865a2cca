"""The samples of many runs, metric by metric: what is asked of every run is found for all of them at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING

from bench.analysis.comparison import NOT_MEASURED, Outcome, invocation_value, reason
from bench.analysis.stats.grouped import Groups
from bench.model import Metric, Run, Sample

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from bench.analysis.stats.grouped import Numbers

Key = tuple[str, str, str | None, str]
"""A metric, an arm, a node and a point."""


@dataclass(frozen=True)
class _Part:
    """All samples of one key, run by run."""

    by_run: Mapping[int, Sequence[Sample]]

    @cached_property
    def samples(self) -> list[Sample]:
        return [sample for those in self.by_run.values() for sample in those]

    @cached_property
    def run(self) -> NDArray[np.intp]:
        import numpy as np

        return np.repeat(np.array(list(self.by_run), dtype=np.intp), [len(those) for those in self.by_run.values()])

    @cached_property
    def value(self) -> Numbers:
        """NaN: a reason stands in its place."""
        import numpy as np

        return np.array([sample.value for sample in self.samples], dtype=float)

    @cached_property
    def warmup(self) -> NDArray[np.bool_]:
        import numpy as np

        return np.array([sample.warmup for sample in self.samples], dtype=bool)

    @cached_property
    def turn(self) -> NDArray[np.intp]:
        import numpy as np

        return np.array([sample.turn for sample in self.samples], dtype=np.intp)

    @cached_property
    def seconds(self) -> Numbers:
        import numpy as np

        return np.array([sample.interval.end - sample.interval.begin for sample in self.samples], dtype=float)


class Samples:
    """Those of some runs, curves left out."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = tuple(runs)
        by_key: dict[Key, dict[int, Sequence[Sample]]] = {}
        for at, run in enumerate(runs):
            for key, those in run.values.items():
                by_key.setdefault(key, {})[at] = those
        self._parts = {key: _Part(by_run) for key, by_run in by_key.items()}

    @property
    def blocks(self) -> Sequence[int]:
        """That of each run."""
        return [run.spec.block for run in self.runs]

    @property
    def keys(self) -> Sequence[Key]:
        """All that any run has samples of."""
        return list(self._parts)

    def outcomes(self, metric: Metric, arm: str, *, node: str | None = None, point: str = "") -> list[Outcome]:
        """What `comparison.outcome` says of each run."""
        import numpy as np

        part = self._parts.get((metric.name, arm, node, point))
        if part is None:
            return [NOT_MEASURED] * len(self.runs)
        counts = ~(np.isnan(part.value) | part.warmup)
        groups, value = Groups(part.run[counts], len(self.runs)), part.value[counts]
        weight = part.seconds[counts] if metric.kind == "rate" else np.ones(len(value))
        whole, sums = groups.sums(weight).astype(float), groups.sums(value * weight).astype(float)
        means = np.divide(sums, whole, out=np.zeros_like(whole), where=whole > 0).tolist()
        return [
            mean if is_whole else self._one(part, at, metric)
            for at, (mean, is_whole) in enumerate(zip(means, (whole > 0).tolist(), strict=True))
        ]

    def _one(self, part: _Part, at: int, metric: Metric) -> Outcome:
        """Of a run that has nothing that counts, or took no time for it."""
        samples = part.by_run.get(at, ())
        value = invocation_value(metric, samples)
        return reason(samples) if value is None else value

    def series(self, metric: Metric, arm: str, *, warmups: bool = False) -> list[list[float]]:
        """What the turns of each run gave of `metric`, in their order; with `warmups`, those too. Curves and points not."""
        import numpy as np

        part = self._parts.get((metric.name, arm, None, ""))
        if part is None:
            return [[] for _ in self.runs]
        counted = np.flatnonzero((part.turn > 0) & ~np.isnan(part.value) & (warmups | ~part.warmup))
        counted = counted[np.lexsort((part.turn[counted], part.run[counted]))]
        run, turn, value = part.run[counted], part.turn[counted], part.value[counted].tolist()
        bounds = np.searchsorted(run, np.arange(len(self.runs) + 1)).tolist()
        if np.any((np.diff(run) == 0) & (np.diff(turn) == 0)):
            turns = turn.tolist()
            return [_one_each(turns[a:b], value[a:b]) for a, b in pairwise(bounds)]
        return [value[a:b] for a, b in pairwise(bounds)]


def _one_each(turns: Sequence[int], values: Sequence[float]) -> list[float]:
    """The mean of each turn, where it has several values."""
    found: dict[int, list[float]] = {}
    for turn, value in zip(turns, values, strict=True):
        found.setdefault(turn, []).append(value)
    return [fmean(each) for each in found.values()]
