"""Shows the headline of every cell: a row and a ratio each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from bench.analysis import Report
from bench.analysis.stats.estimates import FEWEST_FOR_VERDICT, Estimate
from bench.model import Run
from bench.reports import tables
from bench.reports.document import Chapter, Section
from bench.reports.drawing.axes import Axis
from bench.reports.sections import ratios
from bench.reports.tables import Column, Table

TITLE = "The headline, cell by cell"
_LETTERS = 17  # wide, the picture of an interval


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
    axis = axis_of([each.ratio for each in compared if each.ratio and each.ratio.n >= FEWEST_FOR_VERDICT])
    heads = [(tables.ratio_head(compared[0]), True), ("verdict", False)] if compared else []
    ends = f"{axis.low:.2f} {'(| is 1)':^{_LETTERS - 10}} {axis.high:.2f}" if axis else ""
    picture = [Column(ends, is_picture=True)] if axis else []
    lines = []
    several = len({cell.experiment for cell in report.cells}) > 1
    for cell, row in rows:
        scale, name = tables.row_scale(row), f"{cell.experiment} {cell.cell}" if several else cell.cell
        values = [tables.format_side(row.sides.get(topology), scale, row) for topology in topologies]
        drawn = [bar(axis, row.comparison.ratio if row.comparison else None)] if axis else []
        ratio_cells = tables.ratio_and_verdict(row) if compared else []
        named = " ".join(filter(None, (name, cell.title, *(f"({mark})" for mark in cell.marks))))
        lines.append(tables.row([named, scale.unit, *values, *drawn, *ratio_cells]))
    return tables.table(
        [("cell", False), ("unit", False), *((name, True) for name in topologies), *picture, *heads], lines
    )


def axis_of(ratios: Sequence[Estimate]) -> Axis | None:
    """From the least to the greatest of several intervals, and 1 with them; a unit is a letter."""
    ends = [end for each in ratios for end in (each.value, each.low, each.high) if end is not None and end > 0]
    return Axis(min([*ends, 1 / 1.05]), max([*ends, 1.05]), 0, _LETTERS - 1, is_log=True) if ratios else None


def bar(axis: Axis, ratio: Estimate | None) -> str:
    """The interval as a line with its estimate on it; | stands at 1."""
    if ratio is None:
        return ""
    marks, one = [" "] * _LETTERS, round(axis.at(1.0))
    marks[one] = "|"
    if ratio.low is not None and ratio.high is not None:
        begin, end = round(axis.at(ratio.low)), round(axis.at(ratio.high))
        marks[begin : end + 1] = "-" * (end - begin + 1)
        if begin <= one <= end:
            marks[one] = "+"
    marks[round(axis.at(ratio.value))] = "o"
    return "".join(marks)
