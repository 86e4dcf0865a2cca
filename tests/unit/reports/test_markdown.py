from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from golden_files import check_golden
from made_up import ARMS, METRICS, SINGLE, made_up

from bench import analysis
from bench.reports import as_markdown, sections

GOLDEN = Path(__file__).with_name("golden")
FEW = {"metrics": (*METRICS[:2], METRICS[-1]), "arms": (ARMS[0], ARMS[2], ARMS[3], ARMS[5])}


@pytest.mark.parametrize(
    ("name", "shape"),
    [("two-topologies", {"cells": 2, "blocks": 12}), ("one-topology", {"cells": 1, "topologies": (SINGLE,)})],
)
def test_a_report_in_markdown_reads_like_its_golden_file(name, shape):
    report = analysis.build(*made_up(**FEW, **shape))
    check_golden(as_markdown.render(report), GOLDEN / f"{name}.md")
    check_golden(as_markdown.render(report, short=True), GOLDEN / f"{name}-short.md")


def test_every_row_of_a_table_has_as_many_columns_as_its_head():
    lines = as_markdown.render(analysis.build(*made_up(cells=2))).splitlines()
    width = 0
    for line in lines:
        bars = line.replace("\\|", "").count("|")
        if bars and width:
            assert bars == width, line
        width = bars


def test_a_hostile_name_stays_words():
    session, runs = made_up(cells=1)
    session = replace(session, command="bench run `x` <script>alert(1)</script> | [a](http://b) *c*\n# d")
    page = as_markdown.render(analysis.build(session, runs))
    line = next(line for line in page.splitlines() if line.startswith("- do it again"))
    assert line == r"- do it again: bench run \`x\` \<script\>alert(1)\</script\> \| \[a\](http://b) \*c\* \# d"


def test_every_word_of_the_document_is_there():
    said = sections.compose(analysis.build(*made_up(cells=2)))
    page = as_markdown.render(analysis.build(*made_up(cells=2)))
    cells = [
        (column, cell)
        for chapter in said.chapters
        for section in chapter.sections
        if section.table
        for row in section.table.rows
        for column, cell in zip(section.table.columns, row.cells, strict=True)
    ]
    assert len(cells) > 200
    words = [
        each.words.replace("|", "¦") if column.is_picture else as_markdown.escaped(each.words) for column, each in cells
    ]
    assert [each for each in words if each not in page] == []
