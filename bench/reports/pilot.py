"""Says what a pilot session tells of a longer one: the effect that more blocks or samples would show, and their time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bench.analysis import Report
from bench.analysis.levels import Allocation
from bench.analysis.number_format import percent
from bench.analysis.stats import power
from bench.counts import plural
from bench.reports import tables
from bench.reports.document import Chapter, Section, cell_title
from bench.reports.sections.metrics import describe_allocation
from bench.reports.tables import Table

BLOCKS = (6, 12, 20, 40, 60)


@dataclass(frozen=True, kw_only=True)
class Longer:
    """A session of so many blocks with so many samples an invocation. None: not to be said."""

    blocks: int
    samples: int
    smallest_effect: float | None  # relative, that it could show
    seconds: float | None


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """What a cell's pilot says of longer sessions."""

    experiment: str
    cell: str
    allocation: Allocation
    longer: tuple[Longer, ...]


def outlooks(report: Report) -> Iterator[Outlook]:
    """The same as the chapters, for a program. Nothing of a cell whose levels cannot be told apart."""
    for cell in report.cells:
        if (found := cell.allocation) is not None:
            longer = tuple(_longer(found, blocks, samples) for blocks in BLOCKS for samples in _choices(found))
            yield Outlook(experiment=cell.experiment, cell=cell.cell, allocation=found, longer=longer)


def _longer(found: Allocation, blocks: int, samples: int) -> Longer:
    return Longer(
        blocks=blocks,
        samples=samples,
        smallest_effect=power.smallest_effect(found.deviation(samples), blocks),
        seconds=found.seconds(blocks, samples),
    )


def _choices(found: Allocation) -> dict[int, str]:
    """Samples an invocation that are looked at, and what they are called."""
    choices = {found.samples: "as now"}
    if found.best_samples is not None:
        choices[found.best_samples] = "best" if found.best_samples != found.samples else "as now, best"
    return choices


def chapters(report: Report) -> Iterator[Chapter]:
    """What the cells of this session say of a longer one. Nothing of a cell whose levels cannot be told apart."""
    for cell in report.cells:
        if cell.allocation is not None:
            found = cell.allocation
            notes = (
                describe_allocation(found),
                (
                    f"estimated from {plural(found.pairs, 'pair')}, whose interval of the ratio reaches"
                    f" {percent(found.half_width)} either way: a pilot is rough"
                ),
            )
            yield Chapter(title=cell_title(cell), sections=(Section(table=_table(found), notes=notes),))


def _table(found: Allocation) -> Table:
    """The effect that so many blocks of so many samples could show, and how long they take."""
    choices = _choices(found)
    rows = []
    for blocks in BLOCKS:
        cells: list[tables.Cell | str] = [str(blocks)]
        for samples in choices:
            each = _longer(found, blocks, samples)
            cells += [
                "-" if each.smallest_effect is None else percent(each.smallest_effect),
                "-" if each.seconds is None else f"{each.seconds / 60:.1f}",
            ]
        rows.append(tables.row(cells))
    heads = [
        head
        for samples, name in choices.items()
        for head in ((f"{plural(samples, 'sample')} ({name}) show", True), ("minutes", True))
    ]
    return tables.table([("blocks", True), *heads], rows)
