"""A section that is added to the list is in every format that shows sections: nothing else has to know of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from default_sessions import default_session
from made_up import made_up

from bench import analysis, reports
from bench.analysis import Report
from bench.experiments import NAMES
from bench.model import Metric, Run
from bench.reports import sections, tables
from bench.reports.document import CellView, Chapter, Section
from bench.reports.drawing.picture import Picture, better
from bench.reports.drawing.svg import Canvas

WRITTEN = ("Weather on the day", "12.5 °C", "it rained on c01")
DRAWN = ("A cloud", "how it looked")


def weather(view: CellView) -> Iterator[Section]:
    def draw() -> Iterator[Picture]:
        about = {"title": "A cloud", "says": "how it looked", "reads": "look at it", "source": "the window"}
        yield Picture(canvas=Canvas(height=20), name=view.name("weather"), **about)

    table = tables.table([("sky", False), ("warmth", True)], [tables.row(["grey", "12.5 °C"])])
    yield Section(title="Weather on the day", table=table, notes=(f"it rained on {view.cell.cell}",), draw=draw)


def climate(report: Report, _: Sequence[Run]) -> Iterator[Chapter]:
    yield Chapter(title="The climate", sections=(Section(notes=(f"of {len(report.cells)} cells",)),))


def rendered(format: str) -> str:
    session, runs = made_up(cells=2)
    return reports.render(format, analysis.build(session, runs), runs)


@pytest.mark.parametrize("format", ["text", "markdown", "html"])
def test_one_line_in_the_list_puts_a_section_into_the_chapter_of_each_cell(monkeypatch, format):
    before = rendered(format)
    monkeypatch.setattr(sections, "SECTIONS", (*sections.SECTIONS, sections.each_cell(weather)))
    page = rendered(format)
    for words in WRITTEN:
        assert words in page
        assert words not in before
    assert page.count("Weather on the day") >= 2
    assert page.index("it rained on c01") < page.index("it rained on c02")
    assert all((words in page) is (format == "html") for words in DRAWN)


@pytest.mark.parametrize("format", ["text", "markdown", "html"])
def test_one_line_in_the_list_adds_a_chapter(monkeypatch, format):
    assert "The climate" not in rendered(format)
    monkeypatch.setattr(sections, "SECTIONS", (*sections.SECTIONS, climate))
    page = rendered(format)
    assert page.rindex("The climate") < page.index("of 2 cells")


def test_pictures_are_drawn_by_formats_that_show_them_alone(monkeypatch):
    def sections_of(_: CellView) -> Iterator[Section]:
        def draw() -> Iterator[Picture]:
            raise AssertionError
            yield

        yield Section(draw=draw)

    monkeypatch.setattr(sections, "SECTIONS", (*sections.SECTIONS, sections.each_cell(sections_of)))
    assert "raymeter report" in rendered("text")
    with pytest.raises(AssertionError):
        rendered("html")


@pytest.mark.parametrize("experiment", NAMES)
def test_every_row_of_a_table_with_a_column_of_units_has_one(experiment):
    session, runs = default_session(experiment)
    content = sections.compose(analysis.build(session, runs), runs)
    found = [section.table for chapter in content.chapters for section in chapter.sections if section.table]
    units = [
        (row.cells[0].words, row.cells[at].words)
        for table in found
        for at, column in enumerate(table.columns)
        if column.head == "unit"
        for row in table.rows
    ]
    assert len(units) > 5
    assert [name for name, unit in units if not unit] == []


@pytest.mark.parametrize(
    ("direction", "words"), [("lower", " Lower is better."), ("higher", " Higher is better."), (None, "")]
)
def test_a_direction_is_shown_only_where_there_is_one(direction, words):
    assert better(Metric(name="learning_rate", unit="1", kind="ratio", better=direction)) == words
