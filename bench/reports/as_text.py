"""Writes the report for a terminal: its short form, which fits on a screen, or all of it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from textwrap import fill
from typing import TYPE_CHECKING, Literal

from bench.analysis import Report
from bench.model import Run
from bench.reports import document
from bench.reports.document import Chapter, Document
from bench.reports.sections import compose
from bench.reports.tables import Table

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

WIDTH = 100
SCREEN = 40  # lines of the short form
_FEWER = (6, 4, 2)  # rows of the tables that can do with fewer, where all of them have no room
_ROOM = 400  # for tables: a number that is cut off is worse than a line that is long
_SIGNS = {"refuses": "!!", "weakens": " !", "note": "  "}
_MEANINGS = "!! blocks the verdict, ! weakens the verdict"
_STYLES = {"refuses": "bold red", "weakens": "yellow", "note": ""}
_TONES = {"good": "green", "bad": "red", "open": "yellow", "strong": "bold", "": ""}


def render(
    report: Report, runs: Sequence[Run] = (), *, short: bool = False, colour: bool = False, width: int = WIDTH
) -> str:
    """The report as lines no longer than `width`: all of it, or in its short form, which fits on a screen."""
    return write(compose(report, runs), short=short, colour=colour, width=width)


def write(content: Document, *, short: bool = False, colour: bool = False, width: int = WIDTH) -> str:
    """Any document as lines. Its short form has as many caveats as fit on a screen with the rest, and two at the least.

    Where that is too much, tables of many rows have fewer, and at last one caveat is left.
    """
    if not short:
        return _written(_parts(content, width), colour=colour)
    sizes: list[tuple[int, int | None]] = [
        *((caveats, None) for caveats in range(document.MOST_CAVEATS, document.FEWEST_CAVEATS, -1)),
        *((document.FEWEST_CAVEATS, rows) for rows in (None, *_FEWER)),
        (1, _FEWER[-1]),
    ]
    for caveats, rows in sizes:
        page = _written(_short_parts(content, width, caveats, rows), colour=colour)
        if page.count("\n") <= SCREEN:
            break
    return page


def _written(parts: Iterable[RenderableType], *, colour: bool) -> str:
    page = StringIO()
    console = _console(page, colour=colour)
    for part in parts:
        console.print(part, markup=False)
    return _lines(page)


def chapters(those: Sequence[Chapter], *, colour: bool = False, width: int = WIDTH) -> str:
    """Chapters alone, as lines."""
    parts = (
        part
        for number, chapter in enumerate(those)
        for part in ([""] if number else []) + list(_chapter(chapter, width))
    )
    return _written(parts, colour=colour)


def _console(page: StringIO, *, colour: bool = False) -> Console:
    from rich.console import Console

    return Console(
        file=page, width=_ROOM, color_system="standard" if colour else None, force_terminal=colour, highlight=False
    )


def _lines(page: StringIO) -> str:
    return "\n".join(line.rstrip() for line in page.getvalue().split("\n")).rstrip() + "\n"


def _short_parts(content: Document, width: int, caveats: int, rows: int | None) -> Iterator[RenderableType]:
    yield from _opening(content, width)
    for section in content.short_sections:
        if short := section.short:
            yield ""
            found = short.fewer(rows) if rows and short.fewer else short.table
            yield from _grid(found, width, title=short.title)
    if content.caveats:
        shown = content.caveats[:caveats]
        left = len(content.caveats) - len(shown)
        count = f"the worst {len(shown)} of {len(content.caveats)}; " if left else ""
        yield ""
        yield from map(_title, textwrap.wrap(f"{document.CAVEATS} ({count}{_MEANINGS})", width))
        yield _signed(
            [
                (_SIGNS[severity], textwrap.shorten(words, width - 4, placeholder=" ..."), _STYLES[severity])
                for severity, words in shown
            ],
            width,
        )
    if content.more:
        yield ""
        yield _entries(content.more, width)


def _parts(content: Document, width: int) -> Iterator[RenderableType]:
    yield from _opening(content, width)
    if content.caveats:
        yield ""
        yield from map(_title, textwrap.wrap(f"{document.CAVEATS} ({_MEANINGS})", width))
        yield _signed([(_SIGNS[severity], words, _STYLES[severity]) for severity, words in content.caveats], width)
    yield ""
    yield _title(document.DESIGN)
    yield _entries(content.design, width, indent=2)
    for chapter in content.chapters:
        yield ""
        yield from _chapter(chapter, width)
    if content.legend:
        yield ""
        yield _title(document.LEGEND)
        yield _entries(content.legend, width, indent=2)


def _opening(content: Document, width: int) -> Iterator[RenderableType]:
    """What is asked, and the answer."""
    yield from _wrapped(content.title, width)
    yield from map(_title, textwrap.wrap(content.question, width))
    for sentence in content.answer:
        yield from _wrapped(sentence, width)


def _wrapped(words: str, width: int, indent: str = "", further: str = "") -> Iterator[RenderableType]:
    from rich.text import Text

    yield Text(fill(_clean(words), width, initial_indent=indent, subsequent_indent=further, break_on_hyphens=False))


def _clean(words: str) -> str:
    """Words without control characters: a name from elsewhere must not move the cursor."""
    return "".join(each if each.isprintable() or each == "\n" else " " for each in words)


def _title(words: str) -> RenderableType:
    from rich.text import Text

    return Text(_clean(words), style="bold")


def _chapter(chapter: Chapter, width: int) -> Iterator[RenderableType]:
    from rich.text import Text

    yield from map(_title, textwrap.wrap(chapter.title, width))
    for section in chapter.sections:
        if section.title:
            yield ""
            yield from (
                Text(line, style="italic")
                for line in textwrap.wrap(_clean(section.title), width, initial_indent="  ", subsequent_indent="    ")
            )
        if section.table:
            yield from _grid(section.table, width, marks=not chapter.is_overview)
        for line in document.shortened(section):
            yield Text(f"   {_clean(line)}")
        for sentence in section.notes:
            yield from _wrapped(sentence, width, "   ", "     ")


def _grid(found: Table, width: int, *, marks: bool = False, title: str = "") -> Iterator[RenderableType]:
    """A table; with `marks` its rows are indented, and the headline has a * in front. `title`: of the first column.

    One that is too wide is written in parts, each with the columns that tell its rows apart; what is drawn with letters is left
    out before that.
    """
    columns = list(range(len(found.columns)))
    sizes = [_size(found, column, marks=marks, title=title) for column in columns]
    if sum(sizes) > width:
        columns = [column for column in columns if not found.columns[column].is_picture]
    keys = columns[: _keys(found)]
    part: list[int] = []
    for column in columns[len(keys) :]:
        room = width - sum(sizes[each] for each in (*keys, *part))
        if part and room < (sizes[column] if found.columns[column].is_number else min(sizes[column], _WRAPPED)):
            yield _part(found, [*keys, *part], width, marks=marks, title=title)
            part = []
        part.append(column)
    yield _part(found, [*keys, *part], width, marks=marks, title=title)


def _keys(found: Table) -> int:
    """How many of the first columns tell all rows apart; one, where none do."""
    counts = range(1, len(found.columns))
    rows = [tuple(cell.words for cell in row.cells) for row in found.rows]
    return next((count for count in counts if len({row[:count] for row in rows}) == len(rows)), 1)


_WRAPPED = 26  # columns are enough for words that are wrapped
_PADDING = 2  # of a cell, both sides together


def _size(found: Table, column: int, *, marks: bool, title: str) -> int:
    """How wide a column is."""
    words = [found.columns[column].head, *(row.cells[column].words for row in found.rows)]
    if column == 0:
        words = [title, *(f"  {each}" if marks or title else each for each in words)]
    return max(map(len, words)) + _PADDING


def _part(found: Table, columns: Sequence[int], width: int, *, marks: bool, title: str) -> RenderableType:
    """Some columns of a table, no wider than `width`: words that are too long for it are wrapped, numbers never are."""
    from rich.table import Table as Drawn
    from rich.text import Text

    wide = sum(_size(found, column, marks=marks, title=title) for column in columns) > width
    drawn = Drawn(box=None, header_style="dim", pad_edge=True, padding=(0, 1, 0, 1), width=width if wide else None)
    for position, column in enumerate(columns):
        about = found.columns[column]
        head = Text(title, style="bold not dim") if title and position == 0 else Text(_clean(about.head))
        justify: Literal["right", "left"] = "right" if about.is_number else "left"
        drawn.add_column(head, justify=justify, no_wrap=about.is_number or not wide, overflow="fold")
    for row in found.rows:
        mark = "  " if title else ("* " if row.is_headline else "  ") if marks else ""
        first, *others = [row.cells[column] for column in columns]
        drawn.add_row(
            Text(mark + _clean(first.words), style=_TONES[first.tone]),
            *(Text(_clean(cell.words), style=_TONES[cell.tone]) for cell in others),
        )
    return drawn


def _entries(rows: Sequence[tuple[str, str]], width: int, indent: int = 0) -> RenderableType:
    """Names and what they stand for, the second wrapped in its own column."""
    return _signed([(name, words, "") for name, words in rows], width, indent)


def _signed(rows: Sequence[tuple[str, str, str]], width: int, indent: int = 0) -> RenderableType:
    """Sentences with a name or a sign in front, and a style."""
    from rich.table import Table as Drawn
    from rich.text import Text

    drawn = Drawn(box=None, show_header=False, pad_edge=True, padding=(0, 1, 0, indent), width=width)
    drawn.add_column(no_wrap=True)
    drawn.add_column(ratio=1)
    for name, words, style in rows:
        drawn.add_row(Text(_clean(name), style=style), Text(_clean(words), style=style))
    return drawn
