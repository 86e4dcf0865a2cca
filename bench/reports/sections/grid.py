"""A table as a value: what every format writes in its own way, so that no number differs between them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

Tone = Literal["", "good", "bad", "open", "strong"]
"""What a cell says beside its words; no words depend on it."""


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
