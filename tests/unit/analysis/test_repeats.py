"""Repeats one by one: samples where they are few, invocations where they are more, and nothing where these are many."""

from __future__ import annotations

from dataclasses import replace

import pytest
from made_up import SINGLE, made_up

from bench import analysis
from bench.analysis.repeats import MOST, Repeat
from bench.reports import FORMATS


def found(**shape: int) -> tuple[Repeat, ...]:
    session, runs = made_up(cells=1, **shape)
    return analysis.build(session, runs).cells[0].repeats


def test_a_few_samples_are_shown_each_with_its_own_value_and_turn() -> None:
    session, runs = made_up(cells=1, blocks=1, samples=5, topologies=(SINGLE,))
    cell = analysis.build(session, runs).cells[0]
    counted = [s for s in runs[0].samples if (s.metric, s.arm, s.warmup) == (cell.headline.metric.name, "ray", False)]
    assert [(each.block, each.turn, each.value) for each in cell.repeats] == [(1, s.turn, s.value) for s in counted]
    assert [each.seconds for each in cell.repeats] == pytest.approx([s.interval.seconds for s in counted])


def test_more_samples_are_shown_invocation_by_invocation_and_more_of_these_not_at_all() -> None:
    session, runs = made_up(cells=1, blocks=MOST, samples=3)
    cell = analysis.build(session, runs).cells[0]
    single = [each for each in cell.repeats if each.topology == "single"]
    assert {each.turn for each in cell.repeats} == {None}
    assert {each.block: each.value for each in single} == cell.headline.sides["single"].values
    assert found(blocks=MOST + 1, samples=3) == ()


def test_the_seconds_are_those_of_one_pass() -> None:
    session, runs = made_up(cells=1, blocks=2, samples=2)
    four = [replace(run, samples=[replace(sample, passes=4) for sample in run.samples]) for run in runs]
    once, often = (analysis.build(session, those).cells[0].repeats for those in (runs, four))
    assert [each.seconds for each in often] == pytest.approx([each.seconds / 4 for each in once])
    many = [replace(run, samples=[replace(sample, passes=4) for sample in run.samples]) for run in made_up(cells=1)[1]]
    by_invocation = analysis.build(made_up(cells=1)[0], many).cells[0].repeats
    assert by_invocation[0].seconds == pytest.approx(found()[0].seconds / 4)


def test_the_table_ends_in_the_mean_and_the_median() -> None:
    session, runs = made_up(cells=1, blocks=1, samples=5, topologies=(SINGLE,))
    report = analysis.build(session, runs)
    lines = FORMATS["markdown"](report, runs).partition("### Repeats")[2].splitlines()
    rows = [line.split("|")[1:-1] for line in lines if line.startswith("|")][2:9]
    names, values = [row[0].strip(" *") for row in rows], [float(row[2].strip(" *")) for row in rows]
    assert names == [*(f"block 1, turn {turn}" for turn in (2, 3, 4, 5, 6)), "mean", "median"]
    assert values[5] == pytest.approx(sum(values[:5]) / 5, rel=0.01)
    assert values[6] == sorted(values[:5])[2]
