"""Writes the report for a terminal: question, answer, caveats, then the numbers, then how to read them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from io import StringIO
from textwrap import fill
from typing import TYPE_CHECKING

from bench.analysis import Report
from bench.model import Run
from bench.reports import document
from bench.reports.document import Chapter, Document
from bench.reports.sections import compose
from bench.reports.tables import Table

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

WIDTH = 116
_ROOM = 400  # for tables: a number that is cut off is worse than a line that is long
_SIGNS = {"refuses": "!!", "weakens": " !", "note": "  "}
_STYLES = {"refuses": "bold red", "weakens": "yellow", "note": ""}
_TONES = {"good": "green", "bad": "red", "open": "yellow", "strong": "bold", "": ""}


def render(report: Report, runs: Sequence[Run] = (), *, colour: bool = False, width: int = WIDTH) -> str:
    """The report as lines: sentences are wrapped at `width`, tables take what they need."""
    return write(compose(report, runs), colour=colour, width=width)


def write(content: Document, *, colour: bool = False, width: int = WIDTH) -> str:
    """Any document as lines."""
    page = StringIO()
    console = _console(page, colour=colour)
    for part in _parts(content, width):
        console.print(part, markup=False)
    return _lines(page)


def chapters(those: Sequence[Chapter], width: int = WIDTH) -> str:
    """Chapters alone, as lines."""
    page = StringIO()
    console = _console(page)
    for number, chapter in enumerate(those):
        for part in ([""] if number else []) + list(_chapter(chapter, width)):
            console.print(part, markup=False)
    return _lines(page)


def _console(page: StringIO, *, colour: bool = False) -> Console:
    from rich.console import Console

    return Console(
        file=page, width=_ROOM, color_system="standard" if colour else None, force_terminal=colour, highlight=False
    )


def _lines(page: StringIO) -> str:
    return "\n".join(line.rstrip() for line in page.getvalue().split("\n")).rstrip() + "\n"


def _parts(content: Document, width: int) -> Iterator[RenderableType]:
    yield from map(_title, textwrap.wrap(content.title, width))
    yield ""
    yield _entries([("Question", content.question), ("Answer", "\n".join(content.answer))], width)
    if content.caveats:
        yield ""
        yield _title(f"{document.CAVEATS} (!! blocks the verdict, ! weakens the verdict)")
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


def _clean(words: str) -> str:
    """Words without control characters: a name from elsewhere must not move the cursor."""
    return "".join(each if each.isprintable() or each == "\n" else " " for each in words)


def _title(words: str) -> RenderableType:
    from rich.text import Text

    return Text(_clean(words), style="bold")


def _chapter(chapter: Chapter, width: int) -> Iterator[RenderableType]:
    from rich.text import Text

    yield _title(chapter.title)
    for section in chapter.sections:
        if section.title:
            yield ""
            yield Text(f"  {_clean(section.title)}", style="italic")
        if section.table:
            yield _grid(section.table, marks=not chapter.is_overview)
        for line in document.shortened(section):
            yield Text(f"   {_clean(line)}")
        for sentence in section.notes:
            yield Text(fill(_clean(sentence), width, initial_indent="   ", subsequent_indent="     "))


def _grid(found: Table, *, marks: bool) -> RenderableType:
    """A table; with `marks` its rows are indented, and the headline has a * in front."""
    from rich.table import Table as Drawn
    from rich.text import Text

    drawn = Drawn(box=None, header_style="dim", pad_edge=True, padding=(0, 1, 0, 1))
    for column in found.columns:
        drawn.add_column(Text(_clean(column.head)), justify="right" if column.is_number else "left", no_wrap=True)
    for row in found.rows:
        mark = ("* " if row.is_headline else "  ") if marks else ""
        first, *others = row.cells
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
