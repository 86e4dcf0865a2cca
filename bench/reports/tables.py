"""Holds tables as values, and the cells that several of them have: each format writes them in its own way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from bench.analysis.comparison import Comparison, Side, Verdict
from bench.analysis.number_format import Scale, plain, ratio, scale_for, with_interval
from bench.analysis.rows import MetricRow
from bench.model import Metric

Tone = Literal["", "good", "bad", "open", "strong"]
"""What a cell says beside its words; no words depend on it."""
TONES: Mapping[str, Tone] = {"faster": "good", "slower": "bad", "equivalent": "good", "undecided": "open"}
NOTHING = "-"
LIKE_IDLE = "like idle"  # what the legend explains


@dataclass(frozen=True)
class Column:
    """The head of a column, and what it holds."""

    head: str
    is_number: bool = False
    is_picture: bool = False  # drawn with letters: what can draw draws it anew


@dataclass(frozen=True)
class Cell:
    """Words of a table."""

    words: str
    tone: Tone = ""


@dataclass(frozen=True)
class Row:
    """One line; the headline is marked."""

    cells: tuple[Cell, ...]
    is_headline: bool = False


@dataclass(frozen=True)
class Table:
    """Columns, and rows that have a cell for each of them."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]

    def __post_init__(self) -> None:
        wrong = [row for row in self.rows if len(row.cells) != len(self.columns)]
        if wrong:
            raise ValueError(f"a table of {len(self.columns)} columns has a row of {len(wrong[0].cells)} cells")


def table(columns: Iterable[Column | tuple[str, bool]], rows: Iterable[Row]) -> Table:
    """A table from the heads of its columns, and whether they hold numbers. Rows that are short end in empty cells."""
    heads = tuple(each if isinstance(each, Column) else Column(*each) for each in columns)
    return Table(heads, tuple(_filled(row, len(heads)) for row in rows))


def row(cells: Sequence[Cell | str], *, is_headline: bool = False) -> Row:
    """A row of cells, or of words alone."""
    return Row(tuple(Cell(each) if isinstance(each, str) else each for each in cells), is_headline)


def _filled(found: Row, width: int) -> Row:
    return Row(found.cells + (Cell(""),) * (width - len(found.cells)), found.is_headline)


def ratio_head(comparison: Comparison) -> str:
    """multi/single."""
    return f"{comparison.candidate}/{comparison.baseline}"


def row_scale(row: MetricRow) -> Scale:
    """The unit and prefix that fit all values of a row."""
    return scale_of(row.metric, [side.estimate.value for side in row.sides.values() if side.estimate])


def scale_of(metric: Metric, values: Iterable[float]) -> Scale:
    """The unit and prefix that fit `values`, for a column that says the unit: of a ratio too."""
    scale = scale_for(metric, values)
    return Scale(scale.divisor, "ratio") if metric.kind == "ratio" else scale


def format_side(side: Side | None, scale: Scale, row: MetricRow) -> str:
    """A median and its interval, and how many values it has where that is not clear from the pairs."""
    if side is None or side.estimate is None:
        return NOTHING
    if side.like_idle:
        return LIKE_IDLE
    pairs = row.comparison.pairs if row.comparison else side.estimate.n
    few = f" (n {side.estimate.n})" if pairs and side.estimate.n != pairs else ""
    return with_interval(side.estimate, scale) + few


def format_median(side: Side | None, scale: Scale, _: MetricRow) -> str:
    """A median alone, for a table that has the interval of the ratio."""
    if side is None or side.estimate is None:
        return NOTHING
    return LIKE_IDLE if side.like_idle else plain(side.estimate.value / scale.divisor)


def at_most(found: Table, most: int) -> Table:
    """A table without its last rows, where it has more than `most`, and how many they are."""
    if len(found.rows) <= most:
        return found
    left = len(found.rows) - most + 1
    return table(found.columns, (*found.rows[: most - 1], row([f"... {left} more"])))


def without_unit(title: str, found: Table) -> tuple[str, Table]:
    """A table whose rows have one unit, without the column of it, and a title that has it."""
    at = next((number for number, column in enumerate(found.columns) if column.head == "unit"), None)
    units = {row.cells[at].words for row in found.rows} - {""} if at is not None else set()
    if at is None or len(units) > 1:
        return title, found
    rows = tuple(Row(row.cells[:at] + row.cells[at + 1 :], row.is_headline) for row in found.rows)
    return ", ".join((title, *(unit for unit in units if unit not in title.split()))), Table(
        found.columns[:at] + found.columns[at + 1 :], rows
    )


def ratio_and_verdict(row: MetricRow) -> list[Cell | str]:
    """Two cells of a table."""
    found = row.comparison
    if found is None or found.ratio is None:
        return [NOTHING, ""]
    return [ratio(found.ratio), Cell(verdict(row.metric, found), TONES.get(found.verdict or "", ""))]


def verdict(metric: Metric, found: Comparison) -> str:
    """The verdict in a word; sizes, shares and counts are no faster or slower, but higher or lower."""
    if found.verdict is None:
        return "refused" if found.refused else "too few"
    return found.verdict if found.ratio is None else verdict_word(metric, found.verdict, found.ratio.value)


def verdict_word(metric: Metric, found: Verdict, ratio: float) -> str:
    """faster and slower as they are said of `metric`."""
    if found in ("faster", "slower") and metric.kind not in ("rate", "time"):
        return "higher" if ratio > 1 else "lower"
    return found
