"""What earlier sessions took tells how long the next one will, and how far its pairs will spread."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from statistics import variance

import pytest
from builders import a_sample, a_session, a_spec, a_topology
from made_up import a_facts
from made_up_sessions import a_session_on_disk

from bench import analysis
from bench.cluster.recorder import Recorder
from bench.history import past_runs
from bench.model import Interval, QuietCheck, RunResult, from_json, to_json
from bench.planning.needs import JOB_SECONDS
from bench.planning.plan import NOTHING_KNOWN, QUIET_CHECK_SECONDS, run_key, time_key
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
    known = past_runs.known(tmp_path, "local").runs
    assert known == {time_key(a_spec()): pytest.approx(7.0 + JOB_SECONDS)}
    assert past_runs.known(tmp_path, "k8s") == NOTHING_KNOWN
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
        quiet_check = QuietCheck(
            is_quiet=True, waited_seconds=4.0 * (spec.block - 1), busy=0.0, pressure=0.0, boot_id=""
        )
        result = from_json((path / "run.json").read_bytes(), RunResult)
        store.write_whole(path / "run.json", to_json(replace(result, quiet_check=quiet_check)))
    known = past_runs.known(tmp_path, "local")
    # 20 s from single to multi; 35 s to the next block, which waited; hours to what was resumed say nothing
    assert known.clusters == {
        "multi": pytest.approx((20 - JOB_SECONDS + 35 - JOB_SECONDS - 4 - QUIET_CHECK_SECONDS) / 2)
    }
    assert known.quiet_check == pytest.approx(2.0 + QUIET_CHECK_SECONDS)


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
