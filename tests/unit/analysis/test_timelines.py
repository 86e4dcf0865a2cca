"""Timelines of a report: whose are drawn, and which phases a run has."""

from __future__ import annotations

from dataclasses import replace

from made_up import MULTI, SINGLE, made_up

from bench import analysis
from bench.analysis.timelines import drawn, median_block, phases, shown


def test_the_block_in_the_middle_is_drawn_on_every_topology() -> None:
    session, runs = made_up(cells=1, blocks=7)
    cell = analysis.build(session, runs).cells[0]
    assert cell.headline
    values = cell.headline.sides[MULTI.name].values
    block = median_block(cell)
    assert block is not None
    assert sorted(values.values())[3] == values[block]
    assert [(run.spec.block, run.spec.topology.name) for run in shown(cell, runs)] == [
        (block, name) for name in dict.fromkeys(run.spec.topology.name for run in runs if run.spec.block == block)
    ]


def test_a_block_without_a_good_run_on_one_topology_is_not_drawn() -> None:
    session, runs = made_up(cells=1, blocks=3)
    whole = median_block(analysis.build(session, runs).cells[0])
    broken = [
        replace(run, status="invalid", reasons=("a node was lost",))
        if (run.spec.block, run.spec.topology.name) == (whole, SINGLE.name)
        else run
        for run in runs
    ]
    cell = analysis.build(session, broken).cells[0]
    assert median_block(cell) not in (whole, None)
    assert {run.spec.topology.name for run in shown(cell, broken)} == {SINGLE.name, MULTI.name}
    none = [replace(run, status="failed", reasons=("it did not start",)) for run in runs]
    assert shown(analysis.build(session, none).cells[0], none) == []


def test_of_each_experiment_one_cell_is_drawn() -> None:
    session, runs = made_up(cells=3)
    cells = analysis.build(session, runs).cells
    worst = min(cells, key=lambda cell: cell.gain)
    assert {run.spec.cell for run in drawn(cells, runs)} == {worst.cell}


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
