"""Holds what a report says in words, tables and pictures: text, Markdown and HTML write it, each in its own way."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from bench.analysis import Report
from bench.analysis.caveats.evidence import Severity
from bench.analysis.cells import CellReport
from bench.model import Run
from bench.reports.drawing.picture import Look, Picture
from bench.reports.tables import Table

CAVEATS = "Caveats"
DESIGN = "How it was measured"
LEGEND = "How to read this"
LISTED = 12  # lines of a listing, where there is little room


@dataclass(frozen=True, kw_only=True)
class Section:
    """A table with what it is called, remarks on it, and its pictures. The first section of a cell needs no title."""

    title: str = ""
    table: Table | None = None
    notes: tuple[str, ...] = ()
    listing: tuple[str, ...] = ()  # lines as they are; where there is little room, the first of them
    source: str = ""  # where its numbers come from; said where there is room
    draw: Callable[[], Iterable[Picture]] = tuple  # called by formats that show pictures; tuple: there are none


@dataclass(frozen=True, kw_only=True)
class Chapter:
    """Sections under one title: those of a cell, of an experiment, or an overview, which stands above the cells."""

    title: str
    sections: tuple[Section, ...]
    short: str = ""  # in a list of contents; empty: the title
    is_overview: bool = False

    def pictures(self) -> tuple[Picture, ...]:
        """Those of all its sections, drawn."""
        return tuple(picture for section in self.sections for picture in section.draw())


@dataclass(frozen=True, kw_only=True)
class Document:
    """All that a report says."""

    title: str
    question: str
    answer: tuple[str, ...]
    caveats: tuple[tuple[Severity, str], ...]
    design: tuple[tuple[str, str], ...]
    chapters: tuple[Chapter, ...]
    legend: tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class CellView:
    """What the sections of a cell are made from: the cell, its report, and the runs of the report."""

    cell: CellReport
    report: Report
    runs: Sequence[Run] = ()

    @property
    def look(self) -> Look:
        return Look.of(self.report)

    @property
    def topologies(self) -> tuple[str, ...]:
        return self.look.topologies

    @property
    def record(self) -> str:
        """The files that its tables are made from."""
        return f"results/{self.report.session}/runs/*-{self.cell.experiment}-{self.cell.cell}/samples.jsonl"

    def runs_of(self, block: str = "b*") -> str:
        """The files that a picture is drawn from."""
        names = self.topologies
        which = names[0] if len(names) == 1 else "{" + ",".join(names) + "}"
        return f"runs/{block}-{which}-{self.cell.experiment}-{self.cell.cell}/samples.jsonl"

    def name(self, kind: str, more: str = "") -> str:
        """A name that no other picture of the page has."""
        return name_of(f"{kind}-{self.cell.experiment}-{self.cell.cell}-{more}")


def name_of(words: str) -> str:
    """Words as a name in HTML."""
    return re.sub(r"[^A-Za-z0-9]+", "-", words).strip("-")


def cell_title(cell: CellReport) -> str:
    """A cell, and what makes it what it is."""
    marks = f" ({', '.join(cell.marks)})" if cell.marks else ""
    return f"{cell.experiment} {cell.cell}" + (f": {cell.title}" if cell.title else "") + marks


def shortened(section: Section) -> tuple[str, ...]:
    """The first lines of a listing, and where the others are."""
    left = len(section.listing) - LISTED
    return section.listing if left <= 1 else (*section.listing[:LISTED], f"... {left} more lines: {section.source}")
