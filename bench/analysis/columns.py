"""The samples of a run as columns, and where in them each metric stands: found once for all runs of one shape.

Runs of a cell differ in values and times, and seldom in what was measured in which turn. So which samples belong together,
and which of them count, is worked out for the first run of a shape; of the others these places are read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter

from bench.model import Run

Key = tuple[str, str, str | None, str]
"""Metric, arm, node and point."""

_COLUMNS = "_columns"
_read_head = attrgetter("metric", "arm", "node", "point", "turn", "warmup")


@dataclass(frozen=True)
class Places:
    """Where the samples of one key stand in a run."""

    timed: tuple[int, ...]  # all but warm-ups
    counted: tuple[int, ...]  # those of them that have a value
    turns: tuple[tuple[int, tuple[int, ...]], ...]  # turns that count, in order, and where their values stand
    all_turns: tuple[tuple[int, tuple[int, ...]], ...]  # the same with warm-ups


@dataclass(frozen=True)
class Shape:
    """What runs have in common in which the same was measured in the same order; curves left out."""

    places: Mapping[Key, Places]
    in_turns: tuple[int, ...]  # samples of turns that count, of curves too
    turns: int  # that count

    def timed(self, metric: str) -> list[tuple[Key, Places]]:
        """What there is of one metric, on every arm, node and point."""
        return [(key, places) for key, places in self.places.items() if key[0] == metric]


@dataclass(frozen=True)
class Columns:
    """One run: figures by the position of their sample."""

    shape: Shape
    values: Sequence[float]  # no number where a sample has none, and no counted place names it
    begins: Sequence[float]  # seconds on the driver's clock
    ends: Sequence[float]

    def seconds(self, places: Sequence[int]) -> list[float]:
        """How long these samples took."""
        begins, ends = self.begins, self.ends
        return [ends[place] - begins[place] for place in places]


def columns(run: Run) -> Columns:
    """Those of `run`, read once and kept with it as its own cached properties are."""
    kept: dict[str, Columns] = vars(run)
    if _COLUMNS not in kept:
        kept[_COLUMNS] = _read(run)
    return kept[_COLUMNS]


def measured_keys(runs: Sequence[Run]) -> dict[Key, None]:
    """All that any of these measured, in the order in which it came."""
    shapes = {id(shape): shape for shape in [columns(run).shape for run in runs]}
    return dict.fromkeys([key for shape in shapes.values() for key in shape.places])


def _read(run: Run) -> Columns:
    samples = run.samples
    intervals = [sample.interval for sample in samples]
    values = [sample.value for sample in samples]
    gaps = tuple([place for place, value in enumerate(values) if value is None])
    curves = tuple([place for place, sample in enumerate(samples) if sample.step is not None])
    return Columns(
        shape=_shape(tuple(map(_read_head, samples)), gaps, curves),
        values=values,  # type: ignore[arg-type]  # no counted place has None
        begins=[each.begin for each in intervals],
        ends=[each.end for each in intervals],
    )


@lru_cache(maxsize=1024)
def _shape(
    heads: Sequence[tuple[str, str, str | None, str, int, bool]], gaps: Sequence[int], curves: Sequence[int]
) -> Shape:
    missing, drawn = set(gaps), set(curves)
    found: dict[Key, list[int]] = {}
    for place, (metric, arm, node, point, _, _) in enumerate(heads):
        if place not in drawn:
            found.setdefault((metric, arm, node, point), []).append(place)

    def places(every: Sequence[int]) -> Places:
        valued = [place for place in every if place not in missing]
        timed = tuple(place for place in every if not heads[place][5])
        counted = tuple(place for place in timed if place not in missing)
        return Places(timed, counted, turns(counted), turns(valued))

    def turns(those: Sequence[int]) -> tuple[tuple[int, tuple[int, ...]], ...]:
        by_turn: dict[int, list[int]] = {}
        for place in those:
            if heads[place][4] > 0:
                by_turn.setdefault(heads[place][4], []).append(place)
        return tuple((turn, tuple(by_turn[turn])) for turn in sorted(by_turn))

    in_turns = tuple(place for place, head in enumerate(heads) if head[4] > 0 and not head[5])
    return Shape(
        places={key: places(every) for key, every in found.items()},
        in_turns=in_turns,
        turns=len({heads[place][4] for place in in_turns}),
    )
