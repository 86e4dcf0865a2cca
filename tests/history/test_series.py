"""What earlier sessions took tells how long the next one will."""

from __future__ import annotations

import math
import shutil
from dataclasses import replace
from pathlib import Path
from statistics import variance

import pytest
from analysis.made_up import a_facts
from builders import a_sample, a_session, a_spec, a_topology
from made_up_sessions import a_session_on_disk

from bench import analysis
from bench.cluster.recorder import Recorder
from bench.commands import history as command
from bench.errors import BadInput
from bench.history import series
from bench.model import Closing, Gate, Interval, Metric, from_json, to_json
from bench.planning.plan import GATE_SECONDS, JOB_SECONDS, NOTHING_KNOWN, run_key, time_key
from bench.record import store


def a_session_that_took(out: Path, name: str, seconds: float, status: str = "ok") -> None:
    spec = a_spec(session=name)
    folder = store.create(out, a_session((spec,), id=name))
    recorder = Recorder(store.run_folder(folder, spec), spec)
    recorder.sample(a_sample(interval=Interval(10.0, 11.0)))
    recorder.sample(a_sample(interval=Interval(11.0, 10.0 + seconds)))
    recorder.close(status, () if status == "ok" else ("broken",))  # type: ignore[arg-type]


def test_the_median_of_good_runs_is_what_a_run_takes(tmp_path: Path) -> None:
    for number, seconds in enumerate((5.0, 7.0, 90.0)):
        a_session_that_took(tmp_path, f"s{number}", seconds)
    a_session_that_took(tmp_path, "s9", 1.0, status="failed")
    known = series.known(tmp_path, "local").runs
    assert known == {time_key(a_spec()): pytest.approx(7.0 + JOB_SECONDS)}
    assert series.known(tmp_path, "k8s") == NOTHING_KNOWN
    more_cpus = replace(a_spec(), topology=replace(a_spec().topology, cpus_per_node=64))
    assert time_key(more_cpus) not in known


def test_what_lies_between_runs_is_what_a_cluster_takes_less_the_job_and_the_wait(tmp_path: Path) -> None:
    begins = {(1, "single"): 100.0, (1, "multi"): 130.0, (2, "multi"): 175.0, (2, "single"): 9000.0}  # each lasts 10 s
    specs = tuple(
        a_spec(session="s1", id=f"b{block:02d}-{name}", block=block, topology=a_topology(name))
        for block, name in begins
    )
    folder = store.create(tmp_path, a_session(specs, id="s1"))
    for spec in specs:
        begin = begins[spec.block, spec.topology.name]
        path = store.run_folder(folder, spec)
        recorder = Recorder(path, spec)
        recorder.facts(a_facts(spec.topology))
        recorder.sample(a_sample(interval=Interval(begin, begin + 10.0)))
        recorder.close("ok", ())
        gate = Gate(is_quiet=True, waited_seconds=4.0 * (spec.block - 1), busy=0.0, pressure=0.0, boot_id="")
        closing = from_json((path / "run.json").read_bytes(), Closing)
        store.write_whole(path / "run.json", to_json(replace(closing, gate=gate)))
    known = series.known(tmp_path, "local")
    # 20 s from single to multi; 35 s to the next block, which waited; hours to what was resumed say nothing
    assert known.clusters == {"multi": pytest.approx((20 - JOB_SECONDS + 35 - JOB_SECONDS - 4 - GATE_SECONDS) / 2)}
    assert known.gate == pytest.approx(2.0 + GATE_SECONDS)


def test_a_damaged_session_does_not_stop_a_plan(tmp_path: Path) -> None:
    a_session_that_took(tmp_path, "s1", 5.0)
    (tmp_path / "s1" / "session.json").write_text("{")
    assert series.known(tmp_path, "local") == NOTHING_KNOWN


def test_an_empty_folder_says_nothing(tmp_path: Path) -> None:
    assert series.known(tmp_path / "none", "local") == NOTHING_KNOWN


def test_a_metric_goes_from_session_to_session_with_the_numbers_of_their_reports(tmp_path: Path) -> None:
    first = a_session_on_disk(tmp_path, "20260105-100000-inference-lab-0001", blocks=6)
    a_session_on_disk(tmp_path, "20260206-100000-inference-lab-0002", blocks=6, multi=0.5)
    told: list[int] = []
    found = series.of_metric(tmp_path, "throughput_inputs_per_second", reading=told.append)
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
    assert series.of_metric(tmp_path, "throughput_inputs_per_second", reading=told.append) == found
    assert told == [2]
    assert len(series.of_metric(tmp_path, "throughput_inputs_per_second", since="2026-02")) == 3


def test_a_copy_of_a_session_counts_once_in_history_and_in_what_runs_took(tmp_path: Path) -> None:
    folder = a_session_on_disk(tmp_path, blocks=2)
    once = series.of_metric(tmp_path, "throughput_inputs_per_second")
    for name in (f"{folder.name} (copy)", "a copy", "another"):
        shutil.copytree(folder, tmp_path / name)
    assert series.of_metric(tmp_path, "throughput_inputs_per_second") == once
    shutil.rmtree(folder)
    assert series.of_metric(tmp_path, "throughput_inputs_per_second") == once


def test_a_metric_that_no_session_has_is_refused_with_those_that_there_are(tmp_path: Path) -> None:
    a_session_on_disk(tmp_path, blocks=1)
    with pytest.raises(BadInput, match="throughput_inputs_per_second"):
        series.of_metric(tmp_path, "speed")
    with pytest.raises(BadInput, match="No session in"):
        series.of_metric(tmp_path / "none", "speed")


def a_series(sessions: int) -> list[series.Number]:
    rate = Metric(name="throughput", unit="inputs/s", better="higher", kind="rate")
    return [
        series.Number(
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
    marked = series.with_changes(numbers)
    ((place, change),) = [(each, each.changed) for each in marked if each.changed]
    assert (place.session, place.topology) == ("s06", "multi")
    assert (change.since, change.ratio) == ("s05", pytest.approx(0.7, rel=0.01))
    assert [replace(each, changed=None) for each in marked] == numbers


def test_under_10_sessions_nothing_is_marked_and_the_command_says_why() -> None:
    few = series.with_changes(a_series(9))
    assert [each.changed for each in few] == [None] * 18
    assert "  not enough history to look for changes: 9 of 10 sessions" in command._lines(few)
    said = command._lines(series.with_changes(a_series(12)))
    assert "  no changes of level in 12 sessions" in said
    assert "  1 change of level in 12 sessions" in said
    (line,) = [line for line in said if "^" in line]
    assert "changed between s05 and s06: from 1.00 to 0.701, 30 % less (worse, p 0.00" in line


def test_how_far_pairs_spread_is_pooled_over_sessions_each_about_its_own_ratio(tmp_path: Path) -> None:
    first = a_session_on_disk(tmp_path, "20260105-100000-inference-lab-0001", blocks=6)
    second = a_session_on_disk(tmp_path, "20260206-100000-inference-lab-0002", blocks=6, multi=0.5)
    variances = []
    for folder in (first, second):
        session = store.load_session(folder)
        row = analysis.build(session, store.load_runs(folder, session)).cells[0].headline
        assert row is not None
        one, two = row.sides["single"].values, row.sides["multi"].values
        variances.append(variance([math.log(two[block] / one[block]) for block in one]))
    ((key, found),) = series.spreads(tmp_path).items()
    assert key == run_key(session.specs[0])
    assert (found.pairs, found.sessions) == (12, 2)
    assert found.deviation == pytest.approx(math.sqrt(sum(variances) / 2))
    assert series.spreads(tmp_path / "none") == {}
