"""Timelines of a report: whose are drawn, and which phases a run has."""

from __future__ import annotations

from dataclasses import replace

import pytest
from made_up import MULTI, SINGLE, SessionShape, made_up

from bench import analysis
from bench.analysis.cells import CellReport
from bench.analysis.timelines import FEWEST_BLOCKS, MOST_BLOCKS, MOST_RUNS, drawn, phases, ranked, shown


def median_of(cell: CellReport) -> int:
    return next(block for block, rank in ranked(cell).items() if rank == "median")


def test_the_block_in_the_middle_comes_first_and_the_fastest_and_the_slowest_are_known() -> None:
    session, runs = made_up(cells=1, blocks=7)
    cell = analysis.build(session, runs).cells[0]
    assert cell.headline
    values = cell.headline.sides[MULTI.name].values
    ordered = sorted(values, key=lambda block: values[block])
    assert {rank: block for block, rank in ranked(cell).items() if rank} == {
        "slowest": ordered[0],
        "median": ordered[3],
        "fastest": ordered[-1],
    }
    first, *others = ranked(cell)
    assert first == ordered[3]
    assert others == sorted(others)


@pytest.mark.parametrize(("blocks", "drawn_blocks"), [(1, 1), (2, 2), (6, 6), (7, 3), (12, 3)])
def test_all_of_a_few_blocks_are_drawn_and_of_more_the_median_the_fastest_and_the_slowest(
    blocks: int, drawn_blocks: int
) -> None:
    session, runs = made_up(SessionShape(cells=1, blocks=blocks))
    cell = analysis.build(session, runs).cells[0]
    found = shown(cell, runs)
    assert {run.spec.block for run in found} <= set(ranked(cell))
    assert len({run.spec.block for run in found}) == drawn_blocks
    assert found[0].spec.block == median_of(cell)
    assert {run.spec.topology.name for run in found} == {SINGLE.name, MULTI.name}
    assert len(found) == 2 * drawn_blocks


def test_a_block_without_a_good_run_on_one_topology_is_not_drawn() -> None:
    session, runs = made_up(cells=1, blocks=3)
    whole = median_of(analysis.build(session, runs).cells[0])
    broken = [
        replace(run, status="invalid", reasons=("a node was lost",))
        if (run.spec.block, run.spec.topology.name) == (whole, SINGLE.name)
        else run
        for run in runs
    ]
    cell = analysis.build(session, broken).cells[0]
    assert len(ranked(cell)) == 2
    assert whole not in {run.spec.block for run in shown(cell, broken)}
    none = [replace(run, status="failed", reasons=("it did not start",)) for run in runs]
    assert shown(analysis.build(session, none).cells[0], none) == []


def test_every_cell_is_drawn_the_worst_of_an_experiment_first() -> None:
    session, runs = made_up(cells=3)
    cells = analysis.build(session, runs).cells
    found = drawn(cells, runs)
    assert found[0].spec.cell == min(cells, key=lambda cell: cell.gain).cell
    assert {run.spec.cell for run in found} == {cell.cell for cell in cells}
    assert len(found) == len(cells) * MOST_BLOCKS * 2 <= MOST_RUNS


def test_of_many_cells_no_more_runs_are_drawn_than_the_page_has_room_for() -> None:
    session, runs = made_up(cells=8)
    cells = analysis.build(session, runs).cells
    assert len(drawn(cells, runs)) == 8 * FEWEST_BLOCKS * 2 <= MOST_RUNS
    session, runs = made_up(cells=12)
    cells = analysis.build(session, runs).cells
    found = drawn(cells, runs)
    assert len(found) == MOST_RUNS
    assert found[0].spec.cell == min(cells, key=lambda cell: cell.gain).cell


def test_phases_are_start_up_warm_up_turns_and_turns_that_count_of_watched_and_unwatched_arms() -> None:
    session, runs = made_up(cells=1, blocks=1, samples=2)
    run = runs[0]
    found = phases(run, warmups=run.spec.warmups)
    assert [each.begin for each in found] == sorted(each.begin for each in found)
    assert {each.name for each in found} == {"idle", "start-up", "warm-up", "counted"}
    first = min(each.begin for each in found if each.turn > 0)
    (start_up,) = [each for each in found if each.name == "start-up"]
    assert start_up.end == first
    arms = {arm.name for arm in session.arms["inference"]}
    assert {each.arm for each in found if each.name == "counted"} == arms
    turns = [each for each in found if each.arm == "ray"]
    assert [each.name for each in turns] == ["warm-up"] * run.spec.warmups + ["counted"] * 2
    assert {each.name for each in phases(run, warmups=99) if each.turn} == {"warm-up"}
