"""What a session, taken as a pilot, says of a longer one: the effect that more blocks or samples would show, and their time."""

from __future__ import annotations

from collections.abc import Iterator

from bench.analysis import Report, stats
from bench.analysis.levels import Allocation
from bench.analysis.numbers import percent, plural
from bench.reports import grid, levels
from bench.reports.document import Chapter, Section, cell_title
from bench.reports.grid import Table

BLOCKS = (6, 12, 20, 40, 60)


def chapters(report: Report) -> Iterator[Chapter]:
    """What the cells of this session say of a longer one. Nothing of a cell whose levels cannot be told apart."""
    for cell in report.cells:
        if cell.allocation is not None:
            found = cell.allocation
            notes = (
                levels.sentence(found),
                (
                    f"estimated from {plural(found.pairs, 'pair')}, whose interval of the ratio reaches"
                    f" {percent(found.half_width)} either way: a pilot is rough"
                ),
            )
            yield Chapter(title=cell_title(cell), sections=(Section(table=_table(found), notes=notes),))


def _table(found: Allocation) -> Table:
    """The effect that so many blocks of so many samples could show, and how long they take."""
    choices = {found.samples: "as now"}
    if found.best_samples is not None:
        choices[found.best_samples] = "best" if found.best_samples != found.samples else "as now, best"
    rows = []
    for blocks in BLOCKS:
        cells: list[grid.Cell | str] = [str(blocks)]
        for samples in choices:
            effect = stats.smallest_effect(found.deviation(samples), blocks)
            seconds = found.seconds(blocks, samples)
            cells += ["-" if effect is None else percent(effect), "-" if seconds is None else f"{seconds / 60:.1f}"]
        rows.append(grid.row(cells))
    heads = [
        head
        for samples, name in choices.items()
        for head in ((f"{plural(samples, 'sample')} ({name}) show", True), ("minutes", True))
    ]
    return grid.table([("blocks", True), *heads], rows)
