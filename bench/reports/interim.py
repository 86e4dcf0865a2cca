"""Writes what the report so far says of each headline while a session runs: a line a cell at first, then one line a block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from bench.analysis import Report
from bench.analysis.cells import CellReport
from bench.analysis.comparison import Side
from bench.analysis.number_format import label, plain, ratio, scale_for
from bench.analysis.rows import MetricRow
from bench.analysis.stats.estimates import FEWEST_FOR_VERDICT
from bench.counts import plural
from bench.model import Metric

MOST_CELLS = 8  # that are named; a session of more has its report


def values(report: Report) -> Iterator[str]:
    """A line for each cell: the value on each topology with its unit, and the ratio; then what they must not be read without."""
    for cell, row in islice(_headlines(report), MOST_CELLS):
        measured = ", ".join(f"{name} {value}" for name, value in _values(row.metric, row.sides).items())
        compared = f"; {_ratio(row)}" if row.comparison else ""
        yield f"{_prefixed(report, cell)}{label(row.metric)} {measured}{compared}"
    yield from _rest(report)
    yield from _notes(report)


def ratios(report: Report) -> str:
    """One line: the ratio of each cell so far, with its interval from two blocks on; without two topologies the value."""
    parts = [f"{_prefixed(report, cell)}{_ratio(row)}" for cell, row in islice(_headlines(report), MOST_CELLS)]
    return "; ".join([*parts, *_rest(report), *_notes(report)])


def _headlines(report: Report) -> Iterator[tuple[CellReport, MetricRow]]:
    """Each cell with its headline, which every cell of a session has."""
    yield from ((cell, cell.headline) for cell in report.cells if cell.headline)


def _values(metric: Metric, sides: Mapping[str, Side]) -> dict[str, str]:
    estimates = {name: side.estimate for name, side in sides.items()}
    scale = scale_for(metric, [each.value for each in estimates.values() if each])
    return {
        name: plain(estimate.value, scale) if estimate else f"missing ({next(iter(sides[name].missing.values()), '')})"
        for name, estimate in estimates.items()
    }


def _ratio(row: MetricRow) -> str:
    if row.comparison is None:
        return ", ".join(f"{name} {value}" for name, value in _values(row.metric, row.sides).items())
    names = f"{row.comparison.candidate}/{row.comparison.baseline}"
    return f"{names} {ratio(row.comparison.ratio) if row.comparison.ratio else 'missing'}"


def _prefixed(report: Report, cell: CellReport) -> str:
    """What tells a cell from the others, with a colon; empty where it is the only one."""
    experiment = cell.experiment if len({each.experiment for each in report.cells}) > 1 else ""
    name = " ".join(filter(None, (experiment, cell.title)))
    return f"{name}: " if name else ""


def _rest(report: Report) -> list[str]:
    left = len(report.cells) - MOST_CELLS
    return [f"{plural(left, 'cell')} more"] if left > 0 else []


def _notes(report: Report) -> Iterator[str]:
    """What the ratios must not be read without."""
    comparisons = [row.comparison for _, row in _headlines(report)]
    if any(each and each.ratio and each.ratio.low and each.pairs < FEWEST_FOR_VERDICT for each in comparisons):
        yield f"~ is below 95 % until block {FEWEST_FOR_VERDICT}"
    if report.excluded_blocks:
        blocks = ", ".join(map(str, sorted(report.excluded_blocks)))
        yield f"excluded for interference: {'block' if len(report.excluded_blocks) == 1 else 'blocks'} {blocks}"
