"""Who waits for a session reads values with units first, then ratios with intervals, block by block."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from made_up import SINGLE, made_up

from bench import analysis
from bench.analysis import Report
from bench.reports.interim import MOST_CELLS, ratios, values


def after(blocks: int, *, swapped: int = 0, **shape: Any) -> Report:
    session, runs = made_up(**shape)
    return analysis.build(
        session,
        [
            replace(run, usage=tuple(replace(each, swapped_bytes=2**24) for each in run.usage))
            if run.spec.block == swapped
            else run
            for run in runs
            if run.spec.block <= blocks
        ],
    )


def test_the_first_block_gives_each_cell_its_values_with_their_unit_and_the_ratio() -> None:
    assert list(values(after(1, cells=2))) == [
        "batch=1: throughput single 2.97 k inputs/s, multi 2.64 k inputs/s; multi/single 0.888",
        "batch=10: throughput single 15.1 k inputs/s, multi 12.7 k inputs/s; multi/single 0.841",
    ]


def test_each_block_gives_one_line_with_the_ratio_of_each_cell() -> None:
    assert ratios(after(1, cells=2)) == "batch=1: multi/single 0.888; batch=10: multi/single 0.841"
    assert ratios(after(3, cells=1)) == "multi/single 0.879 [0.847, 0.892]~; ~ is below 95 % until block 6"
    assert "~" not in ratios(after(6, cells=1))


def test_one_topology_has_values_and_no_ratio() -> None:
    found = after(1, cells=1, topologies=(SINGLE,))
    assert list(values(found)) == ["throughput single 2.97 k inputs/s"]
    assert ratios(found) == "single 2.97 k inputs/s"


def test_a_value_that_is_missing_says_why() -> None:
    session, runs = made_up(cells=1, blocks=1)
    found = analysis.build(session, [replace(runs[0], status="failed", reasons=("its driver ended",)), runs[1]])
    (line,) = values(found)
    assert f"{runs[0].spec.topology.name} missing (failed: its driver ended)" in line
    assert ratios(found) == "multi/single missing"


def test_blocks_that_do_not_count_are_named() -> None:
    assert ratios(after(2, swapped=2, cells=1)).endswith("excluded for interference: block 2")
    assert list(values(after(1, swapped=1, cells=1)))[-1] == "excluded for interference: block 1"


def test_a_session_of_many_cells_shows_some_and_says_how_many_more() -> None:
    found = after(1, cells=MOST_CELLS + 2)
    assert list(values(found))[-1] == "2 cells more"
    assert ratios(found).endswith("2 cells more")
