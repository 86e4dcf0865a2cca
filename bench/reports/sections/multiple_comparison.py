"""Compares more than two arms of a cell at once by their ranks inside blocks, in a sentence a topology."""

from __future__ import annotations

from collections.abc import Iterator

from bench.analysis import Report
from bench.analysis.cells import CellReport
from bench.analysis.multiple_comparison import MultipleComparison
from bench.analysis.number_format import plain
from bench.counts import plural

LEAST_P = 0.001  # below it the approximation of a p is good for no digit


def of_arms(report: Report, cell: CellReport) -> Iterator[str]:
    """A sentence a topology, where a cell has three arms or more that do the same work."""
    for one in report.multiple_comparisons:
        if (one.experiment, one.cell) == (cell.experiment, cell.cell):
            ranks = ", ".join(f"{name} {rank:.2f}" for name, rank in one.found.mean_ranks.items())
            near = {
                frozenset((name, other)) for name in one.found.mean_ranks for other in one.found.not_told_from(name)
            }
            pairs = ", ".join(" and ".join(sorted(pair)) for pair in sorted(near, key=sorted))
            apart = f"; not told apart: {pairs}" if pairs and one.found.is_shown and not one.refused else ""
            yield f"mean ranks on {one.topology}: {ranks}; {_friedman(one)}{apart}"


def _friedman(one: MultipleComparison) -> str:
    """What Friedman's test says, and from where on two of them differ."""
    found = one.found
    if one.refused:
        return f"no verdict on them, for {one.refused}"
    shown = "they are not all the same" if found.is_shown else "no difference is shown"
    p = plain(found.p) if found.p >= LEAST_P else f"below {LEAST_P}"
    return (
        f"{shown} (Friedman, {plural(found.blocks, 'block')}, p {p}); two differ from"
        f" {found.critical_difference:.2f} ranks on (Nemenyi)"
    )
