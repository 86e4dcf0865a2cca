"""A metric goes from session to session, and a change of its level is marked where it begins."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from made_up_sessions import a_session_on_disk

from bench import analysis
from bench.commands import history as command
from bench.errors import BadInput
from bench.history import metric_history
from bench.model import Metric
from bench.record import store


def test_a_metric_goes_from_session_to_session_with_the_numbers_of_their_reports(tmp_path: Path) -> None:
    first = a_session_on_disk(tmp_path, "20260105-100000-inference-lab-0001", blocks=6)
    a_session_on_disk(tmp_path, "20260206-100000-inference-lab-0002", blocks=6, multi=0.5)
    told: list[int] = []
    found = metric_history.of_metric(tmp_path, "throughput_inputs_per_second", reading=told.append)
    assert told == [2]
    session = store.load_session(first)
    headline = analysis.build(session, store.load_runs(first, session)).cells[0].headline
    assert headline is not None
    assert headline.comparison is not None
    single, ratio = headline.sides["single"].estimate, headline.comparison.ratio
    assert single is not None
    assert ratio is not None
    assert [(each.session[:8], each.topology, each.verdict) for each in found] == [
        ("20260105", "single", ""),
        ("20260105", "multi", ""),
        ("20260105", "multi/single", "slower"),
        ("20260206", "single", ""),
        ("20260206", "multi", ""),
        ("20260206", "multi/single", "slower"),
    ]
    assert (found[0].value, found[0].low, found[0].n) == (single.value, single.low, 6)
    assert (found[2].value, found[2].low) == (ratio.value, ratio.low)
    assert metric_history.of_metric(tmp_path, "throughput_inputs_per_second", reading=told.append) == found
    assert told == [2]
    assert len(metric_history.of_metric(tmp_path, "throughput_inputs_per_second", since="2026-02")) == 3


def test_a_copy_of_a_session_counts_once_in_history_and_in_what_runs_took(tmp_path: Path) -> None:
    folder = a_session_on_disk(tmp_path, blocks=2)
    once = metric_history.of_metric(tmp_path, "throughput_inputs_per_second")
    for name in (f"{folder.name} (copy)", "a copy", "another"):
        shutil.copytree(folder, tmp_path / name)
    assert metric_history.of_metric(tmp_path, "throughput_inputs_per_second") == once
    shutil.rmtree(folder)
    assert metric_history.of_metric(tmp_path, "throughput_inputs_per_second") == once


def test_a_metric_that_no_session_has_is_refused_with_those_that_there_are(tmp_path: Path) -> None:
    a_session_on_disk(tmp_path, blocks=1)
    with pytest.raises(BadInput, match="throughput_inputs_per_second"):
        metric_history.of_metric(tmp_path, "speed")
    with pytest.raises(BadInput, match="No session in"):
        metric_history.of_metric(tmp_path / "none", "speed")


def a_series(sessions: int) -> list[metric_history.Number]:
    rate = Metric(name="throughput", unit="inputs/s", better="higher", kind="rate")
    return [
        metric_history.Number(
            session=f"s{number:02d}",
            created=f"2026-01-{number + 1:02d}",
            experiment="inference",
            cell="c01",
            params="{}",
            metric=rate,
            topology=topology,
            value=(1000.0 if number < 6 or topology == "single" else 700.0) + number % 3,
            low=None,
            high=None,
            level=None,
            n=6,
            verdict="",
        )
        for number in range(sessions)
        for topology in ("single", "multi")
    ]


def test_a_change_of_level_is_marked_at_its_session_and_in_its_series_alone() -> None:
    numbers = a_series(12)
    marked = metric_history.with_changes(numbers)
    ((place, change),) = [(each, each.changed) for each in marked if each.changed]
    assert (place.session, place.topology) == ("s06", "multi")
    assert (change.since, change.ratio) == ("s05", pytest.approx(0.7, rel=0.01))
    assert [replace(each, changed=None) for each in marked] == numbers


def test_under_10_sessions_nothing_is_marked_and_the_command_says_why() -> None:
    few = metric_history.with_changes(a_series(9))
    assert [each.changed for each in few] == [None] * 18
    assert "  not enough history to detect changes: 9 of 10 sessions" in command._lines(few)
    said = command._lines(metric_history.with_changes(a_series(12)))
    assert "  no changes of level in 12 sessions" in said
    assert "  1 change of level in 12 sessions" in said
    (line,) = [line for line in said if "^" in line]
    assert "changed between s05 and s06: from 1.00 to 0.701, 30 % less (worse, p 0.00" in line
