from __future__ import annotations

import csv
import math
from dataclasses import replace
from io import StringIO

import made_up_breakdown
import pytest
from made_up import made_up

from bench import analysis
from bench.model import Metric
from bench.reports import FORMATS
from bench.reports.as_csv import COLUMNS


def lines_of(report):
    return list(csv.DictReader(StringIO(FORMATS["csv"](report))))


def test_medians_and_ratios_are_those_of_the_report_to_the_last_digit():
    report = analysis.build(*made_up(cells=1))
    headline = report.cells[0].headline
    lines = [line for line in lines_of(report) if line["headline"] == "yes"]
    medians = {line["topology"]: float(line["value"]) for line in lines if line["what"] == "median"}
    assert medians == {name: side.estimate.value for name, side in headline.sides.items()}
    ratio = next(line for line in lines if line["what"] == "ratio")
    found = headline.comparison
    assert (float(ratio["value"]), float(ratio["low"]), ratio["verdict"]) == (
        found.ratio.value,
        found.ratio.low,
        found.verdict,
    )
    assert ratio["topology"] == "multi/single"


def test_every_invocation_has_its_line_or_the_reason_that_it_has_none():
    report = analysis.build(*made_up(cells=1, blocks=3))
    lines = [
        line for line in lines_of(report) if line["what"] == "invocation" and line["metric"] == "latency_p99_seconds"
    ]
    assert len(lines) == 6
    assert {(line["value"], line["missing"]) for line in lines} == {("", "p99 needs 1,000 calls")}


def test_every_column_has_something_to_say_but_those_of_sweeps_and_curves():
    lines = lines_of(analysis.build(*made_up(cells=2)))
    silent = {name for name in COLUMNS if not any(line[name] for line in lines)}
    assert silent == {"point", "step"}


def test_a_name_that_a_spreadsheet_would_run_is_quoted():
    session, runs = made_up(cells=1, blocks=1)
    formula = '=HYPERLINK("http://elsewhere")'
    metrics = {
        "inference": (*session.metrics["inference"], Metric(name=formula, unit="1", better="lower", kind="ratio"))
    }
    lines = lines_of(analysis.build(replace(session, metrics=metrics), runs))
    assert {line["metric"] for line in lines if "HYPERLINK" in line["metric"]} == {f"'{formula}"}


def test_the_parts_of_the_network_breakdown_add_up_to_its_gap():
    lines = {
        line["metric"]: line
        for line in lines_of(analysis.build(*made_up_breakdown.a_session()))
        if line["what"] == "breakdown"
    }
    gap = float(lines.pop("gap")["value"])
    parts = [float(line["value"]) for line in lines.values() if line["value"] and line["topology"] == "multi-single"]
    assert len(parts) > 3
    assert math.isclose(sum(parts), gap, rel_tol=1e-9)


@pytest.mark.parametrize(
    "words", ["=1+1", "+1", "-1", "@SUM(A1)", " =1+1", "\t=1", "\n=1", "\xa0@a", "\uff1d1"], ids=ascii
)
def test_words_that_some_spreadsheet_would_run_are_quoted_behind_blanks_too(words):
    session, runs = made_up(cells=1, blocks=1)
    (line, *_) = lines_of(analysis.build(replace(session, id=words), runs))
    assert line["session"] == f"'{words}"


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_a_decimal_comma_changes_no_number(delimiter):
    report = analysis.build(*made_up(cells=2))
    text = FORMATS["csv"](report, delimiter=delimiter, decimal=",")
    lines = list(csv.DictReader(StringIO(text), delimiter=delimiter))
    usual = lines_of(report)
    numbers = ("value", "low", "high", "level", "p", "p_adjusted", "smallest_effect")
    assert any("," in line["value"] for line in lines)
    assert not any("." in line[name] for line in lines for name in numbers)
    back = [
        {name: line[name].replace(",", ".") if name in numbers else line[name] for name in COLUMNS} for line in lines
    ]
    assert back == usual


def test_semicolons_alone_leave_the_numbers_as_they_are():
    report = analysis.build(*made_up(cells=1))
    text = FORMATS["csv"](report, delimiter=";")
    assert list(csv.DictReader(StringIO(text), delimiter=";")) == lines_of(report)


@pytest.mark.parametrize(("words", "read"), [("a\r=1", "a\n=1"), ("\r=1", "'\n=1"), ("a\r\nb", "a\nb")], ids=ascii)
def test_a_carriage_return_begins_no_row(words, read):
    session, runs = made_up(cells=1, blocks=1)
    lines = lines_of(analysis.build(replace(session, id=words), runs))
    assert {line["session"] for line in lines} == {read}
