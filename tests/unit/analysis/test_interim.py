"""While a session goes on, the headline so far is what a report of the same runs would say."""

from __future__ import annotations

from dataclasses import replace

import pytest
from made_up import made_up

from bench import analysis
from bench.analysis.interim import interim
from bench.model import Run, Session


def first_blocks(count: int, **shape: int) -> tuple[Session, list[Run]]:
    session, runs = made_up(**shape)
    return session, [run for run in runs if run.spec.block <= count]


@pytest.mark.parametrize("blocks", [1, 2, 6])
def test_values_and_ratios_are_those_of_a_report_of_the_same_runs(blocks: int) -> None:
    session, runs = first_blocks(blocks)
    rows = [cell.headline for cell in analysis.build(session, runs).cells]
    for cell, row in zip(interim(session, runs).cells, rows, strict=True):
        assert row is not None
        assert cell.headline.sides == row.sides
        assert cell.headline.comparison is not None
        assert row.comparison is not None
        assert cell.headline.comparison.ratio == row.comparison.ratio


def test_one_pair_has_a_ratio_and_two_have_an_interval() -> None:
    for blocks, has_interval in ((1, False), (2, True)):
        for cell in interim(*first_blocks(blocks)).cells:
            assert cell.headline.comparison is not None
            assert cell.headline.comparison.ratio is not None
            assert (cell.headline.comparison.ratio.low is not None) == has_interval


def test_a_block_that_others_disturbed_is_named_and_not_counted() -> None:
    session, runs = first_blocks(3)
    swapped = [
        replace(run, usage=tuple(replace(each, swapped_bytes=2**24) for each in run.usage))
        if run.spec.block == 2
        else run
        for run in runs
    ]
    found = interim(session, swapped)
    assert list(found.excluded) == [2]
    assert "swapped" in found.excluded[2]
    assert {cell.headline.comparison.pairs for cell in found.cells if cell.headline.comparison} == {2}
    assert not interim(replace(session, allow_noise=True), swapped).excluded
