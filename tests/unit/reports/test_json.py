from __future__ import annotations

from made_up import made_up

from bench import analysis
from bench.analysis import Report
from bench.model import from_json
from bench.reports import FORMATS


def test_json_has_the_numbers_of_the_report_and_can_be_read_back():
    session, runs = made_up(cells=1)
    report = analysis.build(session, runs)
    again = from_json(FORMATS["json"](report), Report)
    ratio, same = (each.cells[0].headline.comparison.ratio for each in (report, again))
    assert ratio == same


def test_every_format_renders_text_from_the_same_report():
    session, runs = made_up(cells=1, blocks=1)
    report = analysis.build(session, runs)
    for render in FORMATS.values():
        assert session.id in render(report)
