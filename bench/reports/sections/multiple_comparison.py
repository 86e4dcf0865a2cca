"""Compares more than two arms or cells at once by their ranks inside blocks: a table of cells, a sentence of arms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.analysis import Report
from bench.analysis.cells import CellReport
from bench.analysis.multiple_comparison import MultipleComparison
from bench.analysis.number_format import label, plain, plural
from bench.model import Run
from bench.reports import tables
from bench.reports.document import Chapter, Section
from bench.reports.tables import Table

LEAST_P = 0.001  # below it the approximation of a p is good for no digit
HEADS = (("mean rank", True), ("not told apart from", False))


def chapters(report: Report, _: Sequence[Run] = ()) -> Iterator[Chapter]:
    """A chapter an experiment that has three cells or more."""
    for one in report.multiple_comparisons:
        if not one.cell:
            section = Section(
                title=title(one),
                table=table(one, report.cells),
                notes=(_friedman(one),),
                source="ranks of the subject's headline inside each block that has every cell",
            )
            yield Chapter(title=f"{one.experiment}: its cells beside each other", sections=(section,))


def title(one: MultipleComparison) -> str:
    """What stands side by side, and where."""
    return f"{label(one.metric)} of all cells on {one.topology}, by rank"


def table(one: MultipleComparison, cells: Sequence[CellReport]) -> Table:
    """A row a cell, the best first."""
    by_name = {cell.cell: cell for cell in cells if cell.experiment == one.experiment}
    return tables.table(
        [("cell", False), ("", False), (label(one.metric), True), *HEADS],
        [
            tables.row([name, by_name[name].title, _median(by_name[name], one), f"{rank:.2f}", _near(one, name)])
            for name, rank in one.found.mean_ranks.items()
        ],
    )


def _median(cell: CellReport, one: MultipleComparison) -> str:
    row = cell.headline
    if row is None:
        return tables.NOTHING
    scale = tables.row_scale(row)
    return f"{tables.format_side(row.sides.get(one.topology), scale, row)} {scale.unit}".strip()


def _near(one: MultipleComparison, name: str) -> str:
    if one.refused:
        return tables.NOTHING
    near = one.found.not_told_from(name)
    return "any other" if len(near) == len(one.found.mean_ranks) - 1 else ", ".join(near) or "none"


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
