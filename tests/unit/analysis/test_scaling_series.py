"""Cells that differ in their number of workers alone become one card of scaling, on each topology and for each arm."""

from __future__ import annotations

from dataclasses import replace

import pytest
from made_up import RATE
from made_up_changes import run_of, session_with

from bench import experiments
from bench import params as parameters
from bench.analysis.rows import Question
from bench.analysis.scaling_series import ScalingSeries, scaling_series
from bench.analysis.stats.estimates import FEWEST_FOR_VERDICT
from bench.analysis.table import Table
from bench.metrics import seconds
from bench.model import Arm, Interval, Run, Sample, Value
from bench.reports.sections import scaling

TO_TARGET = seconds("time_to_target_seconds", means="time to target")
ARM = Arm(name="ray", help="", role="subject")
CONTROL = Arm(name="ray-unwatched", help="", role="control")


def run(number: int, params: dict[str, Value], *, rate: float, block: int = 1, to_target: float | None = None) -> Run:
    values = {RATE.name: rate} | ({} if to_target is None else {TO_TARGET.name: to_target})
    return run_of(number, params, [(name, ARM.name, value) for name, value in values.items()], block=block)


def asked(*runs: Run) -> Question:
    session = session_with(
        runs,
        metrics={"work": (RATE, TO_TARGET)},
        scaling={"work": ("workers",)},
        arms={"work": (ARM, CONTROL)},
    )
    return Question(
        session=session,
        runs={each.spec.id: each for each in runs},
        topologies=("single",),
        margin=0.02,
        table=Table(runs),
    )


def some_runs() -> list[Run]:
    return [
        run(number, {"model": model, "workers": workers}, rate=speed * workers**0.5 * (1 + block / 10), block=block)
        for block in (1, 2)
        for number, (model, workers, speed) in enumerate(
            [("small", 1, 10.0), ("small", 4, 10.0), ("large", 1, 2.0), ("large", 4, 2.0)]
        )
    ]


def found() -> tuple[ScalingSeries, ...]:
    return scaling_series(asked(*some_runs()))


def test_cells_that_differ_in_workers_alone_are_one_scaling_series() -> None:
    small, large = found()
    assert (small.parameter, small.params, small.arm) == ("workers", {"model": "small"}, "ray")
    assert large.params == {"model": "large"}
    assert [point.workers for point in small.card.points] == [1, 4]
    assert [point.speed_up for point in large.card.points] == [1.0, 2.0]
    assert [point.is_crowded for point in small.card.points] == [False, True]
    assert [point.n for point in small.card.points] == [2, 2]


def test_runs_that_failed_are_no_points() -> None:
    broken = [replace(each, status="invalid") if each.spec.params["workers"] == 4 else each for each in some_runs()]
    assert scaling_series(asked(*broken)) == ()


def test_a_parameter_that_is_not_marked_has_no_scaling_series() -> None:
    question = asked(*some_runs())
    assert scaling_series(replace(question, session=replace(question.session, scaling={}))) == ()


def test_a_series_by_time_to_target_is_beside_the_one_by_rate_and_each_is_named() -> None:
    # More workers do more samples a second, and need longer to the target: 1.3 times by rate, 0.4 by time.
    runs = [
        run(number, {"workers": workers}, rate=rate, to_target=time, block=block)
        for block in (1, 2)
        for number, (workers, rate, time) in enumerate([(1, 10.0, 20.0), (2, 13.0, 50.0)])
    ]
    by_rate, by_time = scaling_series(asked(*runs))
    assert [point.speed_up for point in by_rate.card.points] == pytest.approx([1.0, 1.3])
    assert [point.speed_up for point in by_time.card.points] == pytest.approx([1.0, 0.4])
    assert (by_rate.metric, by_time.metric) == (RATE, TO_TARGET)
    assert scaling.title(by_time) == "Time to target: ray on single"
    assert [row.cells[1].words for row in scaling.table(by_time).rows] == ["20 s", "50 s"]
    assert [column.head for column in scaling.table(by_time).columns][:2] == ["workers", "time to target"]


def test_runs_that_did_not_reach_the_target_are_counted_and_no_points() -> None:
    runs = [
        run(number, {"workers": workers}, rate=1.0, to_target=10.0, block=block)
        for block in (1, 2)
        for number, workers in enumerate((1, 2))
    ]
    missed = Sample(metric=TO_TARGET.name, value=None, reason="not reached", interval=Interval(0.0, 1.0), arm=ARM.name)
    runs[3] = replace(runs[3], samples=(runs[3].samples[0], missed))
    _, by_time = scaling_series(asked(*runs))
    assert (by_time.missing, by_time.without) == (1, ())
    assert [point.n for point in by_time.card.points] == [2, 1]
    assert next(scaling.notes(by_time)) == (
        "speed-ups are of the runs that have a time to target: 1 run has none and would take longer"
    )


def test_a_number_of_workers_with_which_no_training_reached_the_target_is_not_called_unmeasured() -> None:
    runs = [
        run(number, {"workers": workers}, rate=1.0, to_target=None if workers == 1 else 10.0 / workers, block=block)
        for block in (1, 2)
        for number, workers in enumerate((1, 2, 4))
    ]
    missed = Sample(metric=TO_TARGET.name, value=None, reason="not reached", interval=Interval(0.0, 1.0), arm=ARM.name)
    runs = [
        replace(each, samples=(*each.samples, missed)) if each.spec.params["workers"] == 1 else each for each in runs
    ]
    by_rate, by_time = scaling_series(asked(*runs))
    assert (by_rate.without, by_time.missing, by_time.without) == ((), 2, (1,))
    assert [(point.workers, point.speed_up) for point in by_time.card.points] == [(2, 1.0), (4, 2.0)]
    assert list(scaling.notes(by_time))[:2] == [
        "speed-ups are of the runs that have a time to target: 2 runs have none and would take longer",
        "speed-ups are against 2 workers, and no run with 1 has a time to target: what these lose against 1 does not show",
    ]


def test_the_table_has_a_row_a_number_of_workers_and_says_why_no_law_is_fitted() -> None:
    small, _ = found()
    rows = [[cell.words for cell in row.cells] for row in scaling.table(small).rows]
    assert rows[0][0] == "1"
    assert rows[1][:1] + rows[1][2:] == ["4", "2", "2.00", "50%", "0.333", "more workers than CPUs"]
    assert scaling.title(small) == "Throughput: ray on single, model=small"
    assert list(scaling.notes(small)) == [
        "no law is fitted: a law of scaling needs 6 distinct numbers of workers, and there are: 1, 4"
    ]


def test_a_speed_up_against_more_than_one_worker_says_what_it_is_against() -> None:
    runs = [run(number, {"workers": workers}, rate=float(workers)) for number, workers in enumerate((2, 4))]
    (series,) = scaling_series(asked(*runs))
    assert next(scaling.notes(series)).startswith("speed-ups are against 2 workers, and one was not measured")


def test_what_counts_workers_is_a_scaling_series_and_what_is_work_or_waits_in_a_queue_is_none() -> None:
    marked = {name: parameters.counts_of_workers(experiments.load(name).params) for name in experiments.NAMES}
    assert {name: counts for name, counts in marked.items() if counts} == {
        "inference": ("actors",),
        "parameter-server": ("workers",),
    }
    for name, counts in marked.items():
        assert not {*counts} & {*parameters.amounts_of_work(experiments.load(name).params)}


def test_an_experiment_with_a_scaling_series_has_peers_in_one_process_and_in_several() -> None:
    """A speed-up is nothing without its bases: one worker of Ray, one process without Ray, several without Ray."""
    scaling_series_of = {
        name: experiments.load(name)
        for name in experiments.NAMES
        if parameters.counts_of_workers(experiments.load(name).params)
    }
    assert scaling_series_of
    for name, each in scaling_series_of.items():
        peers = {arm.name for arm in each.arms if arm.role == "peer" and not arm.name.startswith("ray")}
        assert len(peers) >= 2, f"{name} has no other way to do its work in one process and in several: {peers}"


def test_a_law_is_told_with_its_intervals_and_with_what_cannot_be_told() -> None:
    runs = [
        run(
            number,
            {"workers": workers},
            rate=workers / (1 + 0.1 * (workers - 1) + 0.002 * workers * (workers - 1)) * (1 + 0.01 * (block % 3)),
            block=block,
        )
        for block in range(1, 7)
        for number, workers in enumerate((1, 2, 5, 10, 15, 20))
    ]
    (series,) = scaling_series(asked(*runs))
    (told,) = scaling.notes(series)
    assert told.startswith("fitted law (USL): contention 0.1")
    assert "best number of workers 21.2" in told


def test_an_arm_that_does_the_same_with_any_number_of_workers_has_no_card() -> None:
    question = asked(*some_runs())
    alone = replace(question.session, arms={"work": (replace(ARM, scales=False), CONTROL)})
    assert scaling_series(replace(question, session=alone)) == ()


def test_arms_are_held_against_each_other_where_each_does_most() -> None:
    small, _ = found()
    rates = zip(small.card.points, (3_000.0, 1_000.0), strict=True)
    points = [replace(point, rate=rate, n=FEWEST_FOR_VERDICT) for point, rate in rates]
    other = replace(small, arm="pool", card=replace(small.card, points=tuple(points)))
    best = replace(points[1], rate=2_000.0)
    first = replace(small, card=replace(small.card, points=(points[1], best)))
    assert list(scaling.at_best([first, other])) == [
        f"on single, model=small: ray does most with workers=4, 2 k {RATE.unit}; pool with workers=1, 1.50 times that"
    ]
    assert list(scaling.at_best([small])) == []
    fewer = replace(first, card=replace(first.card, points=(replace(best, n=FEWEST_FOR_VERDICT - 1),)))
    assert list(scaling.at_best([fewer, other])) == []


def test_serial_fractions_that_are_no_shares_are_explained() -> None:
    small, _ = found()
    base, four = small.card.points
    for fraction, words in ((1.7, "do less than the fewest"), (-0.2, "do more than as many times the fewest")):
        card = replace(small.card, points=(base, replace(four, serial_fraction=fraction)))
        (told, _) = scaling.notes(replace(small, card=card))
        assert told.endswith(words)


def test_every_step_of_a_scaling_series_discards_the_turns_that_the_slowest_one_to_settle_needs() -> None:
    def in_turns(one: Run) -> Run:
        value = next(sample.value for sample in one.samples if sample.metric == RATE.name) or 0.0
        speeds = [0.5, 0.7, *[1.0] * 6] if one.spec.params["workers"] == 4 else [1.04, 1.02, *[1.0] * 6]
        turns = [
            Sample(
                metric=RATE.name,
                value=value * speed,
                interval=Interval(float(turn), turn + 1.0),
                arm=ARM.name,
                turn=turn,
                warmup=one.spec.params["workers"] == 4 and turn <= 2,
            )
            for turn, speed in enumerate(speeds, start=1)
        ]
        return replace(one, samples=(*(s for s in one.samples if s.metric != RATE.name), *turns))

    for before, after in zip(found(), scaling_series(asked(*map(in_turns, some_runs()))), strict=True):
        assert [point.rate for point in after.card.points] == pytest.approx([p.rate for p in before.card.points])


def test_a_scaling_series_has_the_ceiling_that_its_own_runs_measured() -> None:
    most = Arm(name="all-cpus", help="", role="ceiling")
    runs = [
        replace(
            each,
            samples=(
                *each.samples,
                Sample(
                    metric=RATE.name,
                    value=50.0 if each.spec.params["model"] == "small" else 7.0,
                    interval=Interval(0.0, 1.0),
                    arm=most.name,
                ),
            ),
        )
        for each in some_runs()
    ]
    question = asked(*runs)
    session = replace(question.session, arms={"work": (ARM, CONTROL, most)})
    scaling_series_found = scaling_series(replace(question, session=session))
    assert {series.params["model"]: series.ceiling for series in scaling_series_found} == {"small": 50.0, "large": 7.0}
    assert {series.arm for series in scaling_series_found} == {"ray"}
    assert all(series.ceiling is None for series in found())
