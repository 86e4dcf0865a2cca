"""p-values corrected for the number of comparisons in a report."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from bench.analysis.caveats.evidence import about
from bench.analysis.cells import CellReport
from bench.analysis.number_format import plural
from bench.analysis.rows import MetricRow
from bench.analysis.stats import estimates
from bench.model import MOST_PRIMARY


def adjusted(cells: Sequence[CellReport], *, primary: Collection[str] = ()) -> list[CellReport]:
    """Holm for the headlines of the cells in `primary`, Benjamini-Hochberg for the rest.

    Where no cell was named beforehand, all headlines are primary as long as they are 5 or fewer, and none of more.
    """
    compared = [(cell, row) for cell in cells for row in _rows(cell) if _p(row) is not None]
    headlines = [row for cell, row in compared if row.headline and (not primary or about(cell) in primary)]
    if len(headlines) > MOST_PRIMARY:
        headlines = []
    chosen = {id(row) for row in headlines}
    others = [row for _, row in compared if id(row) not in chosen]
    new: dict[int, MetricRow] = {}
    for rows, method, name in ((headlines, "holm", "Holm"), (others, "fdr_bh", "Benjamini-Hochberg")):
        p_values = [p for row in rows if (p := _p(row)) is not None]
        corrected = estimates.adjusted(p_values, "holm" if method == "holm" else "fdr_bh")
        for row, p in zip(rows, corrected, strict=True):
            new[id(row)] = _with_p(row, p, f"{name}, {plural(len(rows), 'comparison')}")
    return [
        replace(
            cell,
            rows=tuple(new.get(id(row), row) for row in cell.rows),
            usage=tuple(new.get(id(row), row) for row in cell.usage),
            sweeps=tuple(new.get(id(row), row) for row in cell.sweeps),
        )
        for cell in cells
    ]


def _rows(cell: CellReport) -> tuple[MetricRow, ...]:
    return (*cell.rows, *cell.usage, *cell.sweeps)


def _p(row: MetricRow) -> float | None:
    return row.comparison.p if row.comparison else None


def _with_p(row: MetricRow, p: float, adjustment: str) -> MetricRow:
    if row.comparison is None:
        return row
    return replace(row, comparison=replace(row.comparison, p_adjusted=p, adjustment=adjustment))
