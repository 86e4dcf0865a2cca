"""Writes the result of the blocks so far while a session runs: a line a cell at first, then one line a block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from bench.analysis.comparison import Side
from bench.analysis.interim import Interim, InterimCell
from bench.analysis.number_format import label, plain, plural, ratio, scale_for
from bench.analysis.stats.estimates import FEWEST_FOR_VERDICT
from bench.model import Metric

MOST_CELLS = 8  # that are named; a session of more has its report


def values(found: Interim) -> Iterator[str]:
    """A line for each cell: the value on each topology with its unit, and the ratio; then what they must not be read without."""
    for cell in islice(found.cells, MOST_CELLS):
        row = cell.headline
        measured = ", ".join(f"{name} {value}" for name, value in _values(row.metric, row.sides).items())
        compared = f"; {_ratio(cell)}" if row.comparison else ""
        yield f"{_prefixed(found, cell)}{label(row.metric)} {measured}{compared}"
    yield from _rest(found)
    yield from _notes(found)


def ratios(found: Interim) -> str:
    """One line: the ratio of each cell so far, with its interval from two blocks on; without two topologies the value."""
    parts = [f"{_prefixed(found, cell)}{_ratio(cell)}" for cell in islice(found.cells, MOST_CELLS)]
    return "; ".join([*parts, *_rest(found), *_notes(found)])


def _values(metric: Metric, sides: Mapping[str, Side]) -> dict[str, str]:
    estimates = {name: side.estimate for name, side in sides.items()}
    scale = scale_for(metric, [each.value for each in estimates.values() if each])
    return {
        name: plain(estimate.value, scale) if estimate else f"missing ({next(iter(sides[name].missing.values()), '')})"
        for name, estimate in estimates.items()
    }


def _ratio(cell: InterimCell) -> str:
    row = cell.headline
    if row.comparison is None:
        return ", ".join(f"{name} {value}" for name, value in _values(row.metric, row.sides).items())
    names = f"{row.comparison.candidate}/{row.comparison.baseline}"
    return f"{names} {ratio(row.comparison.ratio) if row.comparison.ratio else 'missing'}"


def _prefixed(found: Interim, cell: InterimCell) -> str:
    """What tells a cell from the others, with a colon; empty where it is the only one."""
    experiment = cell.experiment if len({each.experiment for each in found.cells}) > 1 else ""
    name = " ".join(filter(None, (experiment, cell.title)))
    return f"{name}: " if name else ""


def _rest(found: Interim) -> list[str]:
    left = len(found.cells) - MOST_CELLS
    return [f"{plural(left, 'cell')} more"] if left > 0 else []


def _notes(found: Interim) -> Iterator[str]:
    """What the ratios must not be read without."""
    comparisons = [cell.headline.comparison for cell in found.cells]
    if any(each and each.ratio and each.ratio.low and each.pairs < FEWEST_FOR_VERDICT for each in comparisons):
        yield f"~ is below 95 % until block {FEWEST_FOR_VERDICT}"
    if found.excluded:
        blocks = ", ".join(map(str, sorted(found.excluded)))
        yield f"excluded for interference: {'block' if len(found.excluded) == 1 else 'blocks'} {blocks}"
