"""Shows the headline of every cell: a row and a ratio each."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from bench.analysis import Report
from bench.analysis.stats.estimates import FEWEST_FOR_VERDICT, Estimate
from bench.model import Run
from bench.reports import tables
from bench.reports.document import Chapter, Section
from bench.reports.sections import ratios
from bench.reports.tables import Column, Table

TITLE = "The headline, cell by cell"


def chapters(report: Report, _: Sequence[Run] = ()) -> Iterator[Chapter]:
    """The overview of several cells; one is its own."""
    if len(report.cells) > 1 and report.runs.get("ok"):
        section = Section(
            table=table(report), source="the headline of every cell, below.", draw=partial(ratios.of_headlines, report)
        )
        yield Chapter(title=TITLE, sections=(section,), is_overview=True)


def table(report: Report) -> Table:
    """A line a cell: the headline on each topology, the ratio, a picture of its interval, the verdict."""
    topologies = [topology.name for topology in report.topologies]
    rows = [(cell, row) for cell in report.cells if (row := cell.headline) is not None]
    compared = [row.comparison for _, row in rows if row.comparison]
    axis = LetterAxis.of([each.ratio for each in compared if each.ratio and each.ratio.n >= FEWEST_FOR_VERDICT])
    heads = [(tables.ratio_head(compared[0]), True), ("verdict", False)] if compared else []
    picture = [Column(axis.head, is_picture=True)] if axis else []
    lines = []
    several = len({cell.experiment for cell in report.cells}) > 1
    for cell, row in rows:
        scale, name = tables.row_scale(row), f"{cell.experiment} {cell.cell}" if several else cell.cell
        values = [tables.side_in_words(row.sides.get(topology), scale, row) for topology in topologies]
        bar = [axis.bar(row.comparison.ratio if row.comparison else None)] if axis else []
        ratio_cells = tables.ratio_and_verdict(row) if compared else []
        named = " ".join(filter(None, (name, cell.title, *(f"({mark})" for mark in cell.marks))))
        lines.append(tables.row([named, scale.unit, *values, *bar, *ratio_cells]))
    return tables.table(
        [("cell", False), ("unit", False), *((name, True) for name in topologies), *picture, *heads], lines
    )


@dataclass(frozen=True)
class LetterAxis:
    """From the least to the greatest of several intervals, and 1 with them, on the scale of ratios."""

    low: float
    high: float
    cells: int = 17

    @classmethod
    def of(cls, ratios: Sequence[Estimate]) -> LetterAxis | None:
        """The axis that holds all of `ratios`, if there are any."""
        if not ratios:
            return None
        ends = [end for each in ratios for end in (each.value, each.low, each.high) if end is not None and end > 0]
        return cls(min([*ends, 1 / 1.05]), max([*ends, 1.05]))

    @property
    def head(self) -> str:
        """What the ends are."""
        return f"{self.low:.2f} {'(| is 1)':^{self.cells - 10}} {self.high:.2f}"

    def _cell(self, ratio: float) -> int:
        part = math.log(ratio / self.low) / math.log(self.high / self.low)
        return round(part * (self.cells - 1))

    def bar(self, ratio: Estimate | None) -> str:
        """The interval as a line with its estimate on it; | stands at 1."""
        marks = [" "] * self.cells
        marks[self._cell(1.0)] = "|"
        if ratio is None:
            return ""
        if ratio.low is not None and ratio.high is not None:
            begin, end = self._cell(ratio.low), self._cell(ratio.high)
            marks[begin : end + 1] = "-" * (end - begin + 1)
            if begin <= self._cell(1.0) <= end:
                marks[self._cell(1.0)] = "+"
        marks[self._cell(ratio.value)] = "o"
        return "".join(marks)
