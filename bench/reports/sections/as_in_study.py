"""Shows a study's own tables, with what the session measured beside each figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.analysis import Report
from bench.analysis.as_in_study import BesideFigure, BesideRow, BesideStudy, BesideTable
from bench.analysis.number_format import plain
from bench.model import Run
from bench.reports import tables
from bench.reports.document import Chapter, Section
from bench.reports.tables import NOTHING, Row, Table
from bench.studies import Entry, StudyFigure

MOST_REPEATS = 10  # that are rows of their own; of more the mean alone is shown


def chapters(report: Report, _: Sequence[Run] = ()) -> Iterator[Chapter]:
    """A chapter for each study of which the session has a cell."""
    for beside in report.studies:
        yield Chapter(
            title=f"{beside.experiment}: as in the study",
            sections=tuple(_sections(beside, is_scaled=report.scale != 1)),
        )


def _sections(beside: BesideStudy, *, is_scaled: bool) -> Iterator[Section]:
    yield Section(
        title=f"As in the study: {beside.study.title}",
        table=tables.table(
            [("set-up", False), ("study", False), ("this session", False)],
            [tables.row(list(setting)) for setting in beside.settings],
        ),
    )
    for each in beside.tables:
        yield Section(
            title=each.table.title,
            table=table(each) if each.is_measured else None,
            notes=tuple(_notes(each, is_scaled=is_scaled))
            if each.is_measured
            else ("no cell of this session repeats it",),
            source="published figures as the study has them; ours are samples in order, and their arithmetic mean",
        )


def table(beside: BesideTable) -> Table:
    """Without the column of what the study says of a figure, where it says nothing."""
    figures = beside.table.figures
    published = [any(row.figures[at].published for row in beside.rows) for at in range(len(figures))]
    heads = [("what", False), ("on", False), ("repeat", False)]
    for figure, is_published in zip(figures, published, strict=True):
        unit = f", {figure.unit}" if figure.unit else ""
        if is_published:
            heads += [(f"{figure.name}{unit}: study", True), *([("ours", True)] if figure.metric else [])]
        else:
            heads += [(f"{figure.name}{unit}: ours", True)]
    return tables.table(heads, (line for row in beside.rows for line in _lines(row, figures, published)))


def _lines(row: BesideRow, figures: Sequence[StudyFigure], published: Sequence[bool]) -> Iterator[Row]:
    """A line for each repeat, where there are several and not too many, and one of the means."""
    repeats = max(max(len(each.published), len(each.ours)) for each in row.figures)
    if 1 < repeats <= MOST_REPEATS:
        for number in range(repeats):
            found = [(_at(each.published, number), _at(each.ours, number)) for each in row.figures]
            yield tables.row([row.what, row.topology, str(number + 1), *_cells(found, figures, published)])
    means = [(each.published_mean, each.our_mean) for each in row.figures]
    name = "mean" if repeats > 1 else ""
    yield tables.row([row.what, row.topology, name, *_cells(means, figures, published)], is_headline=repeats > 1)


def _cells(
    found: Sequence[tuple[Entry | None, Entry | None]], figures: Sequence[StudyFigure], published: Sequence[bool]
) -> Iterator[str]:
    for (theirs, ours), figure, is_published in zip(found, figures, published, strict=True):
        if is_published:
            yield _words(theirs)
        if figure.metric:
            yield _words(ours)


def _words(entry: Entry | None) -> str:
    return NOTHING if entry is None else entry if isinstance(entry, str) else plain(entry)


def _at(entries: Sequence[Entry], number: int) -> Entry | None:
    """A repeat; what there is one of stands once, at the mean."""
    return entries[number] if len(entries) > 1 and number < len(entries) else None


def _notes(beside: BesideTable, *, is_scaled: bool) -> Iterator[str]:
    for topology in dict.fromkeys(row.topology for row in beside.rows):
        absent = [row.what for row in beside.rows if not row.cell and row.topology == topology]
        if absent:
            yield f"not in this session on {topology}: {', '.join(absent)}"
    for row in beside.rows:
        for figure, each in zip(beside.table.figures, row.figures, strict=True):
            if (factor := _factor(each)) and not (figure.grows and is_scaled):
                yield f"{row.what} on {row.topology}: {figure.name} is {factor} times the study's"


def _factor(each: BesideFigure) -> str:
    published, ours = each.published_mean, each.our_mean
    if ours is None or published is None or isinstance(published, str) or not published:
        return ""
    return plain(ours / published)
