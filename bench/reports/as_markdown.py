"""Writes the report as Markdown, for an issue, a pull request or a wiki."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from bench.analysis import Report
from bench.analysis.caveats.evidence import Severity
from bench.model import Run
from bench.reports import document
from bench.reports.document import Document, Section
from bench.reports.sections import compose
from bench.reports.tables import Cell, Column, Row, Table

_MEANINGS = re.compile(r"([\\`*_\[\]<>#|~$&])")
_SIGNS: dict[Severity, str] = {
    "refuses": "**Blocks the verdict:** ",
    "weakens": "**Weakens the verdict:** ",
    "note": "",
}


def render(report: Report, runs: Sequence[Run] = (), *, short: bool = False) -> str:
    """The report as GitHub's Markdown: the sentences and the tables of the report for a terminal."""
    return write(compose(report, runs), short=short)


def write(content: Document, *, short: bool = False) -> str:
    """Any document as Markdown."""
    lines = [*_opening(content), *(_short_lines(content) if short else _lines(content))]
    return "\n".join(lines).rstrip() + "\n"


def _opening(content: Document) -> Iterator[str]:
    yield f"# {escaped(content.title)}"
    yield ""
    yield f"**{escaped(content.question)}**"
    yield ""
    yield "\\\n".join(escaped(sentence) for sentence in content.answer)


def _short_lines(content: Document) -> Iterator[str]:
    for section in content.short_sections:
        if section.short:
            yield from _heading(section.short.title)
            yield from table(section.short.table)
    if content.caveats:
        yield from _heading(document.CAVEATS)
        shown = content.caveats[: document.MOST_CAVEATS]
        yield from (f"- {_SIGNS[severity]}{escaped(words)}" for severity, words in shown)
        if left := len(content.caveats) - len(shown):
            yield f"- {left} more, less severe"
    yield ""
    yield from (f"- {escaped(what)}: `{command}`" for what, command in content.more)


def _lines(content: Document) -> Iterator[str]:
    if content.caveats:
        yield from _heading(document.CAVEATS)
        yield from (f"- {_SIGNS[severity]}{escaped(words)}" for severity, words in content.caveats)
    yield from _heading(document.DESIGN)
    yield from (f"- {escaped(name)}: {escaped(words)}" for name, words in content.design)
    for chapter in content.chapters:
        yield from _heading(chapter.title)
        for section in chapter.sections:
            yield from _section(section)
    if content.legend:
        yield from _heading(document.LEGEND)
        yield from (f"- {escaped(name)}: {escaped(words)}" for name, words in content.legend)


def _heading(words: str) -> Iterator[str]:
    yield ""
    yield f"## {escaped(words)}"
    yield ""


def _section(section: Section) -> Iterator[str]:
    if section.title:
        yield f"### {escaped(section.title)}"
        yield ""
    if section.table:
        yield from table(section.table)
        yield ""
    if section.listing:
        # Indented by four, nothing is markup, and no line can end it.
        yield from (f"    {line}" for line in document.shortened(section))
        yield ""
    if section.notes:
        yield from (f"- {escaped(note)}" for note in section.notes)
        yield ""


def table(found: Table) -> Iterator[str]:
    """The lines of a table."""
    yield _row([_code(column, column.head) for column in found.columns])
    yield _row(["---:" if column.is_number else "---" for column in found.columns])
    for row in found.rows:
        yield _row([_cell(column, cell, row) for column, cell in zip(found.columns, row.cells, strict=True)])


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _code(column: Column, words: str) -> str:
    """What is drawn with letters keeps its spaces."""
    return f"`{words.replace('|', '¦')}`" if column.is_picture and words.strip() else escaped(words)


def _cell(column: Column, cell: Cell, row: Row) -> str:
    words = _code(column, cell.words)
    if cell.tone == "strong":
        words = f"**{words}**"
    return f"{words} (headline)" if row.is_headline and cell is row.cells[0] else words


def escaped(words: str) -> str:
    """Words in which nothing is markup: a name from elsewhere makes no link, no HTML and no column."""
    return _MEANINGS.sub(r"\\\1", " ".join(words.split()))
