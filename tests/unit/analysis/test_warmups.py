"""Warm-up by rule: what is discarded, that it is the same on both sides, and that nothing is lost."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from made_up import ARMS, LATENCIES, RATE, made_up

from bench import analysis
from bench.analysis.table import Table
from bench.analysis.warmups import MOST_WARMUPS, discarding, settled, warmups
from bench.context import Measured, over_turns
from bench.reports import as_text

FLAT = [1.0] * 12
RISING = [0.5, 0.7, 0.85, 0.95, *[1.0] * 8]
STEPPED = [0.6, 0.6, 0.6, 0.6, *[1.0] * 8]


@pytest.mark.parametrize(
    ("values", "declared", "discarded"),
    [
        (FLAT, 1, 1),
        (FLAT, 0, 0),
        (FLAT, 3, 3),
        (RISING, 0, 3),  # 0.95 and four of 1.0 vary by 2.3 %
        (STEPPED, 1, 4),
        (STEPPED[:8], 1, 1),  # no window of 5 that is steady: the rule has nothing to go by
        (FLAT[:3], 1, 1),
        ([], 1, 1),
        ([1.0, 2.0] * 30, 1, 1),
        ([0.5] + [1.0, 2.0] * MOST_WARMUPS + FLAT, 1, 1),  # steady too late
    ],
)
def test_turns_before_the_first_steady_window_are_discarded(values, declared, discarded):
    assert settled(values, declared) == discarded


def warming(runs, course, topologies=("single", "multi")):
    """`runs` of a subject whose n-th turn goes at the n-th speed of `course`."""
    return [
        replace(
            run,
            samples=tuple(
                replace(s, value=1000 * course[s.turn - 1]) if (s.metric, s.arm) == (RATE.name, "ray") else s
                for s in run.samples
            ),
        )
        if run.spec.topology.name in topologies
        else run
        for run in runs
    ]


def a_session(**shape):
    return made_up(**{"cells": 1, "blocks": 6, "samples": 11, "arms": ARMS[:2]} | shape)


def warm_turns(columns, warm):
    """The turns of which nothing counts; what is outside of turns is not looked at."""
    return {*columns.turn[warm].tolist()} - {0}


def test_both_sides_discard_what_the_slower_one_needs():
    session, runs = a_session()
    table = discarding(session, Table(warming(runs, STEPPED, ("multi",))))
    assert warm_turns(table.samples, table.warm_samples) == warm_turns(table.usage, table.warm_usage) == {1, 2, 3, 4}
    assert set(table.warmups) == {4}


def test_what_is_discarded_is_kept_as_it_was_recorded():
    session, runs = a_session()
    table = discarding(session, Table(warming(runs, STEPPED)))
    assert warm_turns(table.samples, table.samples.warmup) == {1}
    assert table.runs[0].samples == warming(runs, STEPPED)[0].samples


def with_percentiles(run):
    """`run` with a p90 that is the number of the first of the turns whose calls were merged, as an experiment leaves them."""
    of_turns = [s for s in run.samples if (s.metric, s.arm) == (RATE.name, "ray") and s.turn > run.spec.warmups]
    timed = [
        Measured(results=(), interval=s.interval, arm=s.arm, turn=s.turn, warmup=False, point="70 %") for s in of_turns
    ]
    merged = over_turns(timed, lambda those: [those[-1].sample(LATENCIES[1], float(those[0].turn))])
    return replace(run, samples=(*(s for s in run.samples if s.metric != LATENCIES[1].name), *merged))


def test_percentiles_are_merged_without_the_turns_that_are_discarded_on_both_sides():
    session, runs = a_session()
    for course, first in ((FLAT, 2), (STEPPED, 5)):
        warm = [with_percentiles(run) for run in warming(runs, course, ("multi",))]
        table = discarding(session, Table(warm))
        assert set(table.of(warm).outcomes(LATENCIES[1], "ray", point="70 %")) == {first}
        (cell,) = analysis.build(session, warm).cells
        assert cell.warmups == first - 1
        (row,) = (row for row in cell.sweeps if row.metric == LATENCIES[1])
        assert {value for side in row.sides.values() for value in side.values.values()} == {first}


def test_noise_of_single_invocations_discards_nothing():
    _, runs = a_session(blocks=20)
    draw = random.Random(1)
    noisy = [warming([run], [math.exp(draw.gauss(0, 0.07)) for _ in range(12)])[0] for run in runs]
    table = Table(noisy)
    assert max(warmups(table.of([run]), RATE, "ray") for run in noisy) > 1
    assert warmups(table.of(noisy), RATE, "ray") == 1


def test_samples_before_the_turns_are_no_warm_ups():
    session, runs = a_session()
    table = discarding(session, Table(warming(runs, STEPPED)))
    assert not any(table.warm_samples[table.samples.turn == 0])


def test_a_report_counts_what_has_settled_and_says_what_it_left_out():
    session, runs = a_session()
    report = analysis.build(session, warming(runs, STEPPED))
    row = report.cells[0].headline
    assert row.sides["single"].estimate.value == pytest.approx(1000.0)
    assert (report.cells[0].declared_warmups, report.cells[0].warmups) == (1, 4)
    assert "3 turns after the 1 warm-up declared did not count either" in " ".join(as_text.render(report).split())


@pytest.mark.parametrize("course", [FLAT, STEPPED])
def test_an_exclusion_does_not_depend_on_which_turns_the_values_discard(course):
    session, runs = a_session(blocks=8)
    disturbed = [
        replace(
            run,
            usage=tuple(
                replace(u, throttled_periods=int((run.spec.block, u.turn) == (3, 2)), periods=100) for u in run.usage
            ),
        )
        for run in warming(runs, course)
    ]
    report = analysis.build(session, disturbed)
    assert set(report.cells[0].headline.comparison.missing) == {3}
