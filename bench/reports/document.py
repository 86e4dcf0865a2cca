"""Holds the sentences, tables and pictures of a report, which text, Markdown and HTML write."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from bench.analysis import Report
from bench.analysis.caveats.evidence import Severity
from bench.analysis.cells import CellReport, slowest
from bench.model import Run
from bench.reports.drawing.picture import Look, Picture
from bench.reports.tables import Table, Tone

CAVEATS = "Caveats"
DESIGN = "How it was measured"
LEGEND = "How to read this"
LISTED = 12  # lines of a listing, where there is little room
MOST_CAVEATS = 5  # of the short form
FEWEST_CAVEATS = 2  # of it, where other parts take the room


@dataclass(frozen=True, kw_only=True)
class Short:
    """What a section is in the short form: a table of a few rows. The head of its first column is its title."""

    title: str
    table: Table
    fewer: Callable[[int], Table] | None = (
        None  # the same with at most so many rows, the most telling ones, and a count of the rest
    )


@dataclass(frozen=True, kw_only=True)
class Section:
    """A table with what it is called, remarks on it, and its pictures. The first section of a cell needs no title."""

    title: str = ""
    table: Table | None = None
    notes: tuple[str, ...] = ()
    listing: tuple[str, ...] = ()  # lines as they are; where there is little room, the first of them
    source: str = ""  # where its numbers come from; said where there is room
    draw: Callable[[], Iterable[Picture]] = tuple  # called by formats that show pictures; tuple: there are none
    short: Short | None = None  # in the short form; None: the section is in the full form alone


@dataclass(frozen=True, kw_only=True)
class Chapter:
    """Sections under one title: those of a cell, of an experiment, or an overview, which stands above the cells."""

    title: str
    sections: tuple[Section, ...]
    short: str = ""  # in a list of contents; empty: the title
    is_overview: bool = False

    def other_pictures(self) -> tuple[Picture, ...]:
        """Those of its sections that are not in the short form, drawn."""
        return tuple(picture for section in self.sections if not section.short for picture in section.draw())


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One number that is worth a glance: large, with what it is below it."""

    value: str
    unit: str
    what: str
    more: str = ""  # its interval, what it is compared with
    tone: Tone = ""


@dataclass(frozen=True, kw_only=True)
class Document:
    """All that a report says. Its short form has the answer, what its sections have for it, and the worst caveats."""

    title: str
    question: str
    answer: tuple[str, ...]
    caveats: tuple[tuple[Severity, str], ...]  # the worst first
    design: tuple[tuple[str, str], ...]
    chapters: tuple[Chapter, ...]
    legend: tuple[tuple[str, str], ...]
    figures: tuple[Figure, ...] = ()
    more: tuple[tuple[str, str], ...] = ()  # what there is beside the short form, and what to type for it

    @property
    def short_sections(self) -> tuple[Section, ...]:
        """Those of the short form, in order."""
        return tuple(section for chapter in self.chapters for section in chapter.sections if section.short)


@dataclass(frozen=True, kw_only=True)
class CellView:
    """What the sections of a cell are made from: the cell, its report, and the runs of the report."""

    cell: CellReport
    report: Report
    runs: Sequence[Run] = ()

    @property
    def is_shown_first(self) -> bool:
        """Whether this cell stands for its experiment in the short form: the candidate does worst in it."""
        return self.cell is slowest([cell for cell in self.report.cells if cell.experiment == self.cell.experiment])

    @property
    def short_name(self) -> str:
        """The cell in a title of the short form; nothing, where it is the only one."""
        several = len({cell.experiment for cell in self.report.cells}) > 1
        named = f"{self.cell.experiment} {self.cell.cell}" if several else self.cell.cell
        return f", {named}" if len(self.report.cells) > 1 else ""

    def briefly(self, reason: str) -> str:
        """A reason without what the caveats say of each run that is not used."""
        for run in self.report.excluded:
            reason = reason.replace(f"{run.status}: {'; '.join(run.reasons)}", f"{run.status}, see {CAVEATS}")
        return reason

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
