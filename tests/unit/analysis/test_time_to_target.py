"""Trainings that miss their target stay in the median and in the share of those that reach it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from made_up import ARMS, METRICS, SINGLE, made_up

from bench.analysis import Report, build
from bench.analysis.time_to_target import TimeToTarget
from bench.metrics import ratio, seconds
from bench.model import Interval, Run, Sample
from bench.reports import as_text

TIME = seconds("took_seconds", means="time to target")
ACCURACY = ratio("right", "%", better="higher", axis="seconds", means="accuracy by seconds")
ARM = ARMS[0].name
WATCHED_SECONDS = 30.0


def with_training(run: Run, seconds: float | None) -> Run:
    sample = Sample(metric=TIME.name, value=None, reason="", interval=Interval(0.0, 1.0), arm=ARM, turn=2)
    reason = "the accuracy got to 80.0 %, and the target is 90 %"
    time = replace(sample, value=seconds, reason=reason if seconds is None else None)
    last = replace(sample, metric=ACCURACY.name, value=80.0, reason=None, step=WATCHED_SECONDS)
    others = (each for each in run.samples if each.metric not in (TIME.name, ACCURACY.name))
    return replace(run, samples=(*others, time, last))


def report(times: Sequence[float | None]) -> Report:
    """Of a block on one node for each of `times`; None: the target was missed."""
    session, runs = made_up(
        blocks=len(times), cells=1, metrics=(METRICS[0], TIME, ACCURACY), arms=ARMS[:1], topologies=[SINGLE]
    )
    return build(session, [with_training(run, times[run.spec.block - 1]) for run in runs])


def the_row(found: Report) -> TimeToTarget:
    (row,) = found.cells[0].times_to_target
    return row


def test_one_that_missed_counts_as_longer_than_it_was_watched() -> None:
    row = the_row(report([10.0, 12.0, None, 14.0, 11.0, 13.0]))
    assert (row.reached, row.runs) == (5, 6)
    assert row.median_seconds == 12.0
    assert the_row(report([10.0, 12.0, None, None, 11.0])).median_seconds == 12.0


def test_the_share_that_reaches_it_has_its_exact_interval() -> None:
    row = the_row(report([1.0] * 6))
    assert (row.low, row.high) == (pytest.approx(0.5407, abs=5e-5), 1.0)  # 0.025 ** (1 / 6)


def test_where_half_missed_the_report_says_how_long_they_were_watched() -> None:
    found = report([10.0, None, None])
    assert the_row(found).median_seconds is None
    told = as_text.render(found, width=200)
    assert "1 of 3" in told
    assert "over 30" in told


def test_an_experiment_without_a_target_has_no_such_table() -> None:
    session, runs = made_up(blocks=1, cells=1, topologies=[SINGLE])
    assert build(session, runs).cells[0].times_to_target == ()
