"""What each change of a parameter brought, as the short table, the whole tables, the picture, and CSV."""

from __future__ import annotations

import csv
from dataclasses import replace
from io import StringIO

from made_up import RATE, made_up
from made_up_changes import STARTUP, session_of

from bench import analysis
from bench.analysis.number_format import ratio
from bench.reports import as_csv, sections
from bench.reports.sections import contrast_pictures, contrasts


def test_of_many_changes_the_short_table_has_some_of_each_parameter_in_order_and_a_count():
    report = analysis.build(*made_up(cells=11))
    (section,) = [each for each in sections.compose(report).short_sections if "Changes" in each.short.title]
    names = [row.cells[0].words for row in section.short.table.rows]
    assert [name.split(" ")[0] for name in names] == ["actors", "actors", "actors", "batch", "batch", "..."]
    assert names[-1] == f"... {len(report.contrasts) - 5} more changes"


def test_a_change_has_the_values_of_both_cells_the_factors_and_their_ratio_in_its_table():
    report = analysis.build(*made_up(cells=2))
    (contrast,) = report.contrasts
    table = contrasts.overview(report.contrasts)
    assert [column.head for column in table.columns][3:6] == ["before", "after", "after/before"]
    rows = [[cell.words for cell in row.cells] for row in table.rows]
    assert [row[:2] for row in rows] == [["batch 1 -> 10", on] for on in ("single", "multi", "multi/single")]
    for row, comparison in zip(rows, contrast.headline.comparisons, strict=True):
        assert row[5] == ratio(comparison.ratio)
    assert rows[2][-1] == "undecided"


def test_a_change_of_several_parameters_at_once_is_noted_where_it_is_shown():
    report = analysis.build(*made_up(cells=2))
    both = replace(
        report.contrasts[0],
        parameters=("actors", "batch"),
        before={"actors": 1, "batch": 1},
        after={"actors": 2, "batch": 10},
    )
    (chapter,) = contrasts.chapters(replace(report, contrasts=(both,)))
    said = "actors and batch were changed at once and cannot be told apart"
    assert chapter.sections[0].notes == (said,)
    assert chapter.sections[1].notes == (said,)
    assert chapter.sections[1].title == "actors=2, batch=10 instead of actors=1, batch=1 (c02 beside c01)"


def test_the_factors_of_all_changes_are_drawn_with_intervals_by_topology():
    report = analysis.build(*made_up(cells=6))
    (picture,) = contrast_pictures.factors(report, report.contrasts)
    drawn = str(picture.svg)
    assert drawn.count('class="interval"') == 2 * len(report.contrasts)
    assert drawn.count('class="mark"') == 2 * len(report.contrasts) + 2  # and the legend
    assert "Batch 1 -&gt; 10, actors=2" in drawn or "batch 1 -&gt; 10, actors=2" in drawn


def test_the_csv_has_each_factor_with_its_interval_and_the_cell_that_it_is_against():
    cells = [({"batch": batch}, {"single": rate, "multi": rate}) for batch, rate in ((1, 10.0), (10, 98.0))]
    report = analysis.build(*session_of(cells, noise=0.01))
    lines = [line for line in csv.DictReader(StringIO(as_csv.render(report))) if line["against"]]
    headline = [line for line in lines if line["headline"] == "yes"]
    assert [(line["what"], line["topology"]) for line in headline] == [
        ("contrast", "single"),
        ("contrast", "multi"),
        ("interaction", "multi/single"),
    ]
    for line, comparison in zip(headline, report.contrasts[0].headline.comparisons, strict=True):
        assert float(line["value"]) == comparison.ratio.value
        assert float(line["low"]) == comparison.ratio.low
        assert (line["cell"], line["against"], line["params"]) == ("c02", "c01", '{"batch":10}')
        assert line["verdict"] == comparison.verdict


def test_a_change_of_the_amount_of_work_has_it_beside_its_factor_and_in_a_note():
    cells = [({"samples": n}, {"single": 10 / n, "multi": 10 / n}) for n in (10, 16)]
    session, runs = session_of(cells, metrics=(replace(STARTUP, is_total=True), RATE))
    report = analysis.build(replace(session, amounts={"work": ("samples",)}), runs)
    (chapter,) = contrasts.chapters(report)
    first, each, _ = chapter.sections
    assert first.short.table.rows[0].cells[0].words == "10 -> 16 (1.60 times the samples)"
    assert first.short.table.rows[0].cells[-1].words == "differs"
    said = "samples 10 -> 16: 1.60 times the samples, so that a longer startup time is not slower"
    assert said in first.notes
    assert said in each.notes
    (picture,) = contrast_pictures.factors(report, report.contrasts)
    assert "is better" not in picture.reads


def test_a_change_of_the_unit_of_work_says_so_beside_its_factor_and_in_a_note():
    cells = [({"points": n}, {"single": 10 / n, "multi": 10 / n}) for n in (1, 10)]
    session, runs = session_of(cells)
    report = analysis.build(replace(session, changed_units={"work": {"points": "job"}}), runs)
    (chapter,) = contrasts.chapters(report)
    first, each, _ = chapter.sections
    row = first.short.table.rows[0]
    assert (row.cells[0].words, row.cells[-1].words) == ("1 -> 10 (each job is different work)", "differs")
    said = "points 1 -> 10: each job is different work, so that no factor is called faster or slower"
    assert said in first.notes
    assert said in each.notes
    words = {cell.words for section in (first, each) for line in section.table.rows for cell in line.cells}
    assert not words & {"faster", "slower"}
