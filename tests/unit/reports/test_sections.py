"""A section that is added to the list is in every format that shows sections: nothing else has to know of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from made_up import made_up

from bench import analysis, reports
from bench.analysis import Report
from bench.model import Run
from bench.reports import sections, tables
from bench.reports.document import CellView, Chapter, Section
from bench.reports.drawing.picture import Picture
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
