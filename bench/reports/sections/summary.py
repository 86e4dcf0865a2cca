"""Shows the headline of every cell: a row and a ratio each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from bench.analysis import Report
from bench.analysis.caveats.evidence import about
from bench.analysis.cells import CellReport
from bench.analysis.comparison import Side
from bench.analysis.number_format import Scale, label
from bench.analysis.rows import MetricRow
from bench.analysis.stats.estimates import FEWEST_FOR_VERDICT, Estimate
from bench.model import Run
from bench.reports import tables
from bench.reports.document import Chapter, Section, Short
from bench.reports.drawing.axes import Axis
from bench.reports.drawing.picture import upper
from bench.reports.sections import ratios
from bench.reports.tables import Cell, Column, Table

TITLE = "The headline, cell by cell"
MOST_CELLS = 8  # of the short form
_LETTERS = 17  # wide, the picture of an interval


def chapters(report: Report, _: Sequence[Run] = ()) -> Iterator[Chapter]:
    """The overview of all cells."""
    if report.runs.get("ok"):
        section = Section(
            table=table(report),
            source="the headline of every cell, below.",
            draw=partial(ratios.of_headlines, report),
            short=short(report),
        )
        yield Chapter(title=TITLE, sections=(section,), is_overview=True)


def table(report: Report) -> Table:
    """A line a cell: the headline on each topology, the ratio, a picture of its interval, the verdict."""
    several = len({cell.experiment for cell in report.cells}) > 1
    names = {
        about(cell): " ".join(filter(None, (f"{cell.experiment} {cell.cell}" if several else cell.cell, cell.title)))
        for cell in report.cells
    }
    return _table("cell", report, names, report.cells, tables.format_side)


def short(report: Report) -> Short:
    """The same with medians alone where they are compared; of many cells the worst and the best."""
    title, found = tables.without_unit(_name_of_headline(report), _shortened(report, MOST_CELLS))
    if len(report.cells) <= MOST_CELLS:
        return Short(title=title, table=found)
    return Short(title=title, table=found, fewer=lambda most: tables.without_unit("", _shortened(report, most))[1])


def _shortened(report: Report, most: int) -> Table:
    several = len({cell.experiment for cell in report.cells}) > 1
    names = {
        about(cell): " ".join(filter(None, (cell.experiment if several else "", cell.cell, params)))
        for cell, params in zip(report.cells, _fewest_params(report.cells), strict=True)
    }
    shown, left_out = report.cells, len(report.cells) - most
    if left_out > 0:
        ordered = sorted(report.cells, key=lambda cell: (cell.gain, _merit(cell)))
        shown = (*ordered[: most // 2], *ordered[-(most // 2) :])
    found = _table("", report, names, shown, tables.format_median if len(report.topologies) > 1 else tables.format_side)
    if left_out > 0:
        half = len(shown) // 2
        between = tables.row([f"... {left_out} of {len(report.cells)} cells between"])
        found = tables.table(found.columns, (*found.rows[:half], between, *found.rows[half:]))
    return found


def _merit(cell: CellReport) -> float:
    """How well a cell does by itself, which orders cells on one topology."""
    row = cell.headline
    values = [side.estimate.value for side in row.sides.values() if side.estimate] if row else []
    return 0.0 if row is None or not values else values[-1] if row.metric.better == "higher" else -values[-1]


def _name_of_headline(report: Report) -> str:
    """The headline's name, where all cells have one."""
    names = {label(row.metric) for cell in report.cells if (row := cell.headline)}
    return upper(names.pop()) if len(names) == 1 else "Headline"


def _fewest_params(cells: Sequence[CellReport]) -> list[str]:
    """Of each cell, as few of its params as tell it from the others of its experiment."""
    chosen: dict[str, list[str]] = {}
    for experiment in dict.fromkeys(cell.experiment for cell in cells):
        those = [cell.params for cell in cells if cell.experiment == experiment]
        kept: list[str] = []
        for name in those[0]:
            if len({tuple(map(str, map(params.get, (*kept, name)))) for params in those}) > len(
                {tuple(map(str, map(params.get, kept))) for params in those}
            ):
                kept.append(name)
        chosen[experiment] = kept
    return [", ".join(f"{name}={cell.params[name]}" for name in chosen[cell.experiment]) for cell in cells]


def _table(
    head: str,
    report: Report,
    names: Mapping[str, str],
    cells: Sequence[CellReport],
    side: Callable[[Side | None, Scale, MetricRow], str],
) -> Table:
    topologies = [topology.name for topology in report.topologies]
    rows = [(cell, row) for cell in cells if (row := cell.headline) is not None]
    compared = [row.comparison for _, row in rows if row.comparison]
    axis = axis_of([each.ratio for each in compared if each.ratio and each.ratio.n >= FEWEST_FOR_VERDICT])
    heads = [(tables.ratio_head(compared[0]), True), ("pairs", True), ("verdict", False)] if compared else []
    ends = f"{axis.low:.2f} {'(| is 1)':^{_LETTERS - 10}} {axis.high:.2f}" if axis else ""
    picture = [Column(ends, is_picture=True)] if axis else []
    scales = {
        row.metric.name: _common_scale([each for _, each in rows if each.metric == row.metric]) for _, row in rows
    }
    lines = []
    for cell, row in rows:
        scale = scales[row.metric.name]
        values = [side(row.sides.get(topology), scale, row) for topology in topologies]
        drawn = [bar(axis, row.comparison.ratio if row.comparison else None)] if axis else []
        ratio_cells: list[Cell | str] = []
        if row.comparison:
            ratio, verdict = tables.ratio_and_verdict(row)
            ratio_cells = [ratio, str(row.comparison.pairs), "refused" if row.comparison.refused else verdict]
        named = " ".join((names[about(cell)], *(f"({mark})" for mark in cell.marks)))
        lines.append(tables.row([named, scale.unit, *values, *drawn, *ratio_cells]))
    return tables.table(
        [(head, False), ("unit", False), *((name, True) for name in topologies), *picture, *heads], lines
    )


def _common_scale(rows: Sequence[MetricRow]) -> Scale:
    """One for all cells, by the least of them: then units are equal, and no value loses its digits."""
    values = [abs(side.estimate.value) for row in rows for side in row.sides.values() if side.estimate]
    return tables.scale_of(rows[0].metric, [min(values)] if values else [])


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
