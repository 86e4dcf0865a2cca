"""What earlier sessions took tells how long the next one will, and how far its pairs will spread."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from statistics import variance
from typing import Any

import pytest
from builders import a_sample, a_session, a_spec
from made_up_sessions import a_session_on_disk

from bench import analysis
from bench.cluster.recorder import Recorder
from bench.history import past_runs
from bench.model import Interval, QuietCheck, RunResult, from_json, to_json
from bench.planning.plan import NOTHING_KNOWN, QUIET_CHECK_SECONDS, run_key, time_key
from bench.record import store


def a_session_that_took(out: Path, name: str, seconds: float, status: str = "ok", **changes: Any) -> None:
    spec = a_spec(session=name)
    folder = store.create(out, a_session((spec,), id=name))
    path = store.run_folder(folder, spec)
    recorder = Recorder(path, spec)
    recorder.sample(a_sample(interval=Interval(10.0, 11.0)))
    recorder.close(status, () if status == "ok" else ("broken",))  # type: ignore[arg-type]
    result = from_json((path / "run.json").read_bytes(), RunResult)
    store.write_whole(path / "run.json", to_json(replace(result, seconds=seconds, **changes)))


def test_the_median_of_good_runs_is_what_a_run_takes(tmp_path: Path) -> None:
    for number, seconds in enumerate((5.0, 7.0, 90.0)):
        a_session_that_took(tmp_path, f"s{number}", seconds)
    a_session_that_took(tmp_path, "s9", 1.0, status="failed")
    known = past_runs.known(tmp_path, "local").runs
    assert known == {time_key(a_spec()): 7.0}
    assert past_runs.known(tmp_path, "k8s") == NOTHING_KNOWN
    more_cpus = replace(a_spec(), topology=replace(a_spec().topology, cpus_per_node=64))
    assert time_key(more_cpus) not in known


def test_clusters_take_the_median_of_those_that_were_stood_up_and_blocks_wait_the_mean(tmp_path: Path) -> None:
    def waited(seconds: float) -> QuietCheck:
        return QuietCheck(is_quiet=True, waited_seconds=seconds, busy=0.0, pressure=0.0, boot_id="")

    for number, (cluster_seconds, wait) in enumerate(((8.0, 0.0), (11.0, 4.0), (300.0, 2.0), (None, 2.0))):
        a_session_that_took(tmp_path, f"s{number}", 5.0, cluster_seconds=cluster_seconds, quiet_check=waited(wait))
    known = past_runs.known(tmp_path, "local")
    assert known.clusters == {a_spec().topology.name: 11.0}
    assert known.quiet_check == pytest.approx(2.0 + QUIET_CHECK_SECONDS)


def test_a_run_that_was_not_timed_says_nothing(tmp_path: Path) -> None:
    spec = a_spec(session="s1")
    folder = store.create(tmp_path, a_session((spec,), id="s1"))
    Recorder(store.run_folder(folder, spec), spec).close("ok", ())
    assert past_runs.known(tmp_path, "local") == NOTHING_KNOWN


def test_a_damaged_session_does_not_stop_a_plan(tmp_path: Path) -> None:
    a_session_that_took(tmp_path, "s1", 5.0)
    (tmp_path / "s1" / "session.json").write_text("{")
    assert past_runs.known(tmp_path, "local") == NOTHING_KNOWN


def test_an_empty_folder_says_nothing(tmp_path: Path) -> None:
    assert past_runs.known(tmp_path / "none", "local") == NOTHING_KNOWN


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
    ((key, found),) = past_runs.spreads(tmp_path).items()
    assert key == run_key(session.specs[0])
    assert (found.pairs, found.sessions) == (12, 2)
    assert found.deviation == pytest.approx(math.sqrt(sum(variances) / 2))
    assert past_runs.spreads(tmp_path / "none") == {}
