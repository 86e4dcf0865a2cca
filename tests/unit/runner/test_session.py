"""A plan is done one run at a time; whatever a run does, the record says how it ended."""

from __future__ import annotations

import math
import os
import shutil
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from builders import a_sample, a_session, a_spec, a_topology
from fakes import FakeHead, FakeTarget, Heard, a_fake_target, good_driver, run_all

from bench import analysis
from bench.analysis import report
from bench.cluster.incoming import SESSION_GAUGES
from bench.cluster.recorder import Recorder
from bench.errors import CannotWrite, RecordDamaged, TargetFailed
from bench.model import Extract, IdleLoad, Line, Run, RunResult, Session, Spec, from_json, to_json
from bench.prometheus import extract, run_view
from bench.prometheus.session_gauges import Gauge
from bench.record import line_format, store
from bench.runner import quiet_check
from bench.runner import run as run_module
from bench.runner.interrupts import Stop
from bench.runner.report_so_far import ReportSoFar
from bench.runner.session import remaining

SPECS = tuple(
    a_spec(id=f"b0{block}-{name}-inference-c01", block=block, topology=a_topology(name), deadline_seconds=3.0)
    for block, name in ((1, "single"), (1, "multi"), (2, "multi"), (2, "single"))
)


@pytest.fixture(autouse=True)
def _quick_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(run_module, "STATUS_SECONDS", 0.1)
    monkeypatch.setattr(run_module, "GRACE_SECONDS", 0.5)
    monkeypatch.setattr(quiet_check, "LOOK_SECONDS", 0.01)


@pytest.fixture
def head(tmp_path: Path) -> FakeHead:
    (tmp_path / "records").mkdir()
    return FakeHead(tmp_path / "records")


@pytest.fixture
def target(head: FakeHead) -> Iterator[FakeTarget]:
    with a_fake_target(head, a_topology()) as fake:
        yield fake


def do(tmp_path: Path, target: FakeTarget, specs: tuple[Spec, ...] = SPECS[:1], stop: Stop | None = None) -> list[Run]:
    """Plan and perform; the runs as they are read back."""
    session = a_session(specs)
    folder = store.create(tmp_path / "results", session)
    again(folder, session, target, stop)
    return store.load_runs(folder, session)


def again(folder: Path, session: Session, target: FakeTarget, stop: Stop | None = None) -> Heard:
    heard = Heard()
    run_all(folder, session, remaining(folder, session).todo, target, listener=heard, stop=stop)
    return heard


def test_every_run_comes_home_whole_and_reconciled(tmp_path: Path, target: FakeTarget) -> None:
    runs = do(tmp_path, target, SPECS)
    assert [run.status for run in runs] == ["ok"] * 4
    assert [run.samples[-1].value for run in runs] == [1001.0, 1001.0, 1002.0, 1002.0]
    assert [run.reconciled for run in runs] == [True] * 4
    assert {run.extract for run in runs} == {Extract(missing="there is no Prometheus beside this cluster")}
    assert {run.monitored for run in runs} == {False}


def test_a_window_is_asked_once_when_a_run_was_and_its_series_are_kept(
    tmp_path: Path, target: FakeTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    span = run_view.Span(begin=0.0, end=8.0, now=10.0, labels={})
    asked = []
    monkeypatch.setattr(run_view, "settled_differences", lambda *_: [])
    monkeypatch.setattr(run_view, "rules", tuple)
    monkeypatch.setattr(run_view, "span_of", lambda _, spec: asked.append(spec) or span)
    monkeypatch.setattr(extract, "scraped", lambda _, spec, over: ({(("__name__", "up"),): [(over.now, 1.0)]}, 1))
    target.cluster = replace(target.cluster, prometheus_url="http://nowhere")
    (run,) = do(tmp_path, target)
    assert asked == [run.spec]
    assert (run.status, run.reconciled, run.extract.series, run.extract.points) == ("ok", True, 1, 1)


def test_a_window_that_does_not_answer_is_told_and_the_metrics_page_is_asked_instead(
    tmp_path: Path, target: FakeTarget
) -> None:
    target.cluster = replace(target.cluster, prometheus_url="http://127.0.0.1:9")
    (run,) = do(tmp_path, target)
    assert (run.status, run.reconciled, run.alerts) == ("ok", True, ())
    assert run.extract == Extract(missing="Prometheus could not be asked")
    assert run.monitored


def test_every_topology_of_every_block_gets_a_fresh_cluster(tmp_path: Path, target: FakeTarget) -> None:
    do(tmp_path, target, SPECS)
    assert target.ups == ["single", "multi", "multi", "single"]


def test_a_run_that_sets_ray_otherwise_gets_a_cluster_that_was_started_so(tmp_path: Path, target: FakeTarget) -> None:
    usual, other = {}, {"object_manager_default_chunk_size": "1048576"}
    specs = tuple(
        replace(
            SPECS[0],
            id=f"b01-single-inference-c0{number}",
            cell=f"c0{number}",
            ray_settings=settings,
        )
        for number, settings in enumerate((usual, usual, other, other), start=1)
    )
    assert [run.status for run in do(tmp_path, target, specs)] == ["ok"] * 4
    assert target.settings == [usual, other]


def test_what_the_deployment_uses_at_rest_is_asked_before_each_block_and_kept_with_each_run(
    tmp_path: Path, target: FakeTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[float] = []

    def look(_pause: object, deployment: quiet_check.Deployment) -> quiet_check.Look:
        given.append(deployment.cpus_at_rest)
        return quiet_check.Look(0.01, 0.0, deployment=deployment.cpus_at_rest / (os.cpu_count() or 1))

    monkeypatch.setattr(quiet_check, "look", look)
    target.load = IdleLoad(cpus=0.25, ray_cpus=0.5)
    runs = do(tmp_path, target, SPECS)
    assert given == [0.75] * len({spec.block for spec in SPECS})
    assert {run.idle_load for run in runs} == {target.load}
    assert {run.quiet_check.deployment_cpus for run in runs if run.quiet_check} == {0.75}


def test_the_quiet_check_is_passed_once_a_block_and_every_run_keeps_what_it_saw(
    tmp_path: Path, target: FakeTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = iter((quiet_check.Look(0.9, 0.5), quiet_check.Look(0.01, 0.0)))
    monkeypatch.setattr(quiet_check, "look", lambda _pause, _deployment: next(seen))
    session = a_session(SPECS)
    folder = store.create(tmp_path / "results", session)
    heard = again(folder, session, target)
    runs = store.load_runs(folder, session)
    assert [(run.quiet_check.is_quiet, run.quiet_check.busy) for run in runs] == [(False, 0.9)] * 2 + [(True, 0.01)] * 2
    assert [block for block, _ in heard.waits] == [1]
    assert "begins on a busy machine" in heard.waits[0][1]


def test_the_end_of_each_block_is_heard_once_also_of_one_with_a_failed_run(
    tmp_path: Path, target: FakeTarget, head: FakeHead
) -> None:
    head.driver = lambda spec, folder: "FAILED" if spec.id == SPECS[1].id else good_driver(spec, folder)
    session = a_session(SPECS)
    folder = store.create(tmp_path / "results", session)
    assert again(folder, session, target).blocks == [1, 2]
    assert again(folder, session, target).blocks == [1]  # resumed: the failed run alone


def test_a_session_that_has_enough_ends_there_and_a_resumed_one_runs_no_cell_twice(
    tmp_path: Path, target: FakeTarget, head: FakeHead
) -> None:
    session = a_session(SPECS)
    folder = store.create(tmp_path / "results", session)
    why = run_all(folder, session, SPECS, target, enough=lambda spec: "it had enough" if spec.block == 2 else "")
    assert (why, target.ups) == ("it had enough", ["single", "multi"])
    assert store.end_early(folder, why).ended == store.load_session(folder).ended == "it had enough"
    assert [spec.id for spec in remaining(folder, session).todo] == [spec.id for spec in SPECS[2:]]
    again(folder, session, target)
    assert len(head.accepted) == len(set(head.accepted)) == 4
    assert store.end_early(folder, "") == session


def test_a_job_that_ray_calls_a_success_without_a_result_has_failed(
    tmp_path: Path, target: FakeTarget, head: FakeHead
) -> None:
    head.driver = lambda spec, folder: "SUCCEEDED"
    (run,) = do(tmp_path, target)
    assert run.status == "failed"
    assert "ended without a result" in run.reasons[0]


def test_a_driver_that_dies_leaves_its_samples_its_reason_and_the_end_of_its_log(
    tmp_path: Path, target: FakeTarget, head: FakeHead
) -> None:
    def dies(spec: Spec, folder: Path) -> str:
        Recorder(folder, spec).sample(a_sample(5.0))
        return "FAILED"

    head.driver = dies
    (run,) = do(tmp_path, target)
    assert (run.status, [sample.value for sample in run.samples]) == ("failed", [5.0])
    assert "Driver exited with code 3" in run.reasons[0]
    assert run.log_end == "the driver's log"


def test_a_driver_that_hangs_fails_at_its_deadline_with_its_samples_kept_and_who_waited_is_told(
    tmp_path: Path, target: FakeTarget, head: FakeHead, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hangs(spec: Spec, folder: Path) -> str:
        Recorder(folder, spec).sample(a_sample(5.0))
        time.sleep(8)
        return "SUCCEEDED"

    head.driver = hangs
    monkeypatch.setattr(run_module.JobsApi, "waiting", lambda _: "an actor of 4 CPUs waited")
    (run,) = do(tmp_path, target, (a_spec(deadline_seconds=0.5),))
    assert (run.status, len(run.samples)) == ("failed", 1)
    assert run.reasons == ("it did not end within its deadline of 0.5 s: an actor of 4 CPUs waited",)


def test_a_cluster_that_cannot_start_workers_ends_the_session_with_its_words(
    tmp_path: Path, target: FakeTarget, head: FakeHead
) -> None:
    def waits_for_workers(spec: Spec, folder: Path) -> str:
        target.not_started = "head: worker process 7 ended before it had registered: bash: No such file"
        time.sleep(8)
        return "SUCCEEDED"

    head.driver = waits_for_workers
    with pytest.raises(TargetFailed, match=r"cannot start workers: head: worker process 7 .*: No such file\. Correct"):
        do(tmp_path, target, SPECS[:2])
    session = a_session(SPECS[:2])
    (run,) = store.load_runs(tmp_path / "results" / session.id, session)
    assert run.status == "failed"
    assert "No such file" in run.reasons[0]
    assert set(head.jobs.values()) == {"STOPPED"}


def test_a_worker_that_did_not_start_in_an_earlier_run_is_nothing_to_the_next(
    tmp_path: Path, target: FakeTarget
) -> None:
    target.not_started = "head: worker process 7 ended before it had registered"
    assert [run.status for run in do(tmp_path, target, SPECS[:1])] == ["ok"]


def test_lines_that_were_lost_on_the_way_make_a_run_invalid(tmp_path: Path, target: FakeTarget, head: FakeHead) -> None:
    def loses(spec: Spec, folder: Path) -> str:
        Recorder(folder, spec).sample(a_sample(5.0))
        result = RunResult(status="ok", lines=3, sha256="of three lines")
        store.write_whole(folder / "run.json", to_json(result))
        return "SUCCEEDED"

    head.driver = loses
    (run,) = do(tmp_path, target)
    assert run.status == "invalid"
    assert "1 of 3 lines" in run.reasons[0]


def test_a_checksum_that_differs_from_an_earlier_run_makes_the_later_one_invalid(
    tmp_path: Path, target: FakeTarget, head: FakeHead
) -> None:
    def answers_by_topology(spec: Spec, folder: Path) -> str:
        recorder = Recorder(folder, spec)
        recorder.digest("answers", spec.topology.name)
        recorder.close("ok", ())
        return "SUCCEEDED"

    head.driver = answers_by_topology
    runs = do(tmp_path, target, SPECS[:2])
    assert [run.status for run in runs] == ["ok", "invalid"]
    assert "the checksum of answers" in runs[1].reasons[0]


def test_a_failed_run_does_not_end_the_session_and_the_next_gets_a_fresh_cluster(
    tmp_path: Path, target: FakeTarget, head: FakeHead
) -> None:
    specs = tuple(a_spec(id=f"b01-single-inference-c0{n}", cell=f"c0{n}") for n in (1, 2, 3))
    head.driver = lambda spec, folder: "FAILED" if spec.cell == "c01" else good_driver(spec, folder)
    runs = do(tmp_path, target, specs)
    assert [run.status for run in runs] == ["failed", "ok", "ok"]
    assert target.ups == ["single", "single"]


def test_resume_runs_exactly_what_is_missing(tmp_path: Path, target: FakeTarget, head: FakeHead) -> None:
    head.driver = lambda spec, folder: "FAILED" if spec.id == SPECS[1].id else good_driver(spec, folder)
    session = a_session(SPECS)
    folder = store.create(tmp_path / "results", session)
    run_all(folder, session, SPECS[:3], target)
    head.driver = good_driver

    work = remaining(folder, session)
    assert (len(work.kept), len(work.again), len(work.new)) == (2, 1, 1)
    heard = again(folder, session, target)
    assert heard.begun == [f"{SPECS[1].id}.attempt-2", SPECS[3].id]
    runs = store.load_runs(folder, session)
    assert [run.status for run in runs] == ["ok", "failed", "ok", "ok", "ok"]
    assert [run.status for run in store.last_attempts(runs)] == ["ok"] * 4
    assert remaining(folder, session).todo == ()


def test_resume_measures_a_block_that_was_excluded_again_as_a_whole(tmp_path: Path, target: FakeTarget) -> None:
    session = a_session(SPECS)
    folder = store.create(tmp_path / "results", session)
    run_all(folder, session, SPECS, target)
    work = remaining(folder, session, blocks={2})
    assert (len(work.kept), len(work.again), len(work.new)) == (2, 2, 0)
    assert [(spec.id, spec.attempt) for spec in work.todo] == [(spec.id, 2) for spec in SPECS if spec.block == 2]


def test_a_run_goes_on_with_what_attempts_did_that_came_to_no_end_and_not_with_what_one_did_that_ended(
    tmp_path: Path, target: FakeTarget, head: FakeHead, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[tuple[int, int]] = []

    def send(_done: object, attempt: Spec, _cluster: object) -> None:
        given.append((attempt.attempt, attempt_now))

    session = a_session(SPECS[:1])
    folder = store.create(tmp_path / "results", session)
    monkeypatch.setattr(run_module, "send_done_work", send)
    for attempt_now, outcome in enumerate(["FAILED", "FAILED", "SUCCEEDED", "FAILED", "SUCCEEDED"], start=1):
        head.driver = good_driver if outcome == "SUCCEEDED" else lambda _spec, _folder: "FAILED"
        run_all(folder, session, remaining(folder, session, blocks={1}).todo, target)
        files = store.run_folder(folder, replace(SPECS[0], attempt=attempt_now)) / store.FILES
        files.mkdir(exist_ok=True)
        (files / store.DONE).write_text("{}\n")
    assert given == [(1, 2), (1, 3), (2, 3), (4, 5)]


@pytest.mark.parametrize("status", ["SUCCEEDED", "FAILED"])
def test_a_plan_that_was_changed_since_a_run_was_started_is_refused_with_the_difference(
    tmp_path: Path, target: FakeTarget, head: FakeHead, status: str
) -> None:
    if status == "FAILED":
        head.driver = lambda _spec, _folder: status
    session = a_session(SPECS)
    folder = store.create(tmp_path / "results", session)
    run_all(folder, session, SPECS[:1], target)

    def changed(spec: Spec) -> Spec:
        return replace(spec, params={**spec.params, "inputs": 7}, samples=spec.samples + 1)

    edited = replace(session, specs=tuple(map(changed, SPECS)))
    with pytest.raises(RecordDamaged) as refused:
        remaining(folder, edited)
    (run,) = store.load_runs(folder, edited)  # for reports, exports and the rest
    assert run.status == "damaged"
    for said in (str(refused.value), *run.reasons):
        assert f"Run {SPECS[0].id} was started with different settings (" in said
        assert f"samples was {SPECS[0].samples} and is {SPECS[0].samples + 1}" in said
        assert "params.inputs was " in said
    assert "Restore them in " in str(refused.value)


def test_runs_of_one_cell_that_were_given_different_settings_before_they_began_are_refused(tmp_path: Path) -> None:
    session = a_session((a_spec(), a_spec(id="b02-single-inference-c01", block=2, params={"batch": 2})))
    folder = store.create(tmp_path / "results", session)
    with pytest.raises(
        RecordDamaged, match=r"b02-single-inference-c01 of one cell have different settings \(params\.batch"
    ):
        remaining(folder, session)


def test_a_stop_ends_the_job_keeps_what_was_measured_and_can_be_resumed(
    tmp_path: Path, target: FakeTarget, head: FakeHead
) -> None:
    begun = threading.Event()

    def slow(spec: Spec, folder: Path) -> str:
        Recorder(folder, spec).sample(a_sample(5.0))
        begun.set()
        time.sleep(5)
        return "SUCCEEDED"

    head.driver = slow
    stop = Stop()
    threading.Thread(target=lambda: (begun.wait(5), time.sleep(0.2), stop.ask()), daemon=True).start()
    runs = do(tmp_path, target, SPECS, stop)
    assert [(run.status, len(run.samples)) for run in runs] == [("stopped", 1)]
    assert list(head.jobs.values()) == ["STOPPED"]
    folder = tmp_path / "results" / "s1"
    head.driver = good_driver
    assert len(again(folder, a_session(SPECS), target).begun) == 4


def test_a_record_that_is_taken_away_ends_the_job_and_is_told(
    tmp_path: Path, target: FakeTarget, head: FakeHead
) -> None:
    over = threading.Event()

    def driver(spec: Spec, folder: Path) -> str:
        shutil.rmtree(tmp_path / "results")
        Recorder(folder, spec).sample(a_sample(1.0))
        over.wait(20)
        return "SUCCEEDED"

    head.driver = driver
    try:
        with pytest.raises(CannotWrite, match=r"b01-single-inference-c01.* cannot be written"):
            do(tmp_path, target)
        assert list(head.jobs.values()) == ["STOPPED"]
    finally:
        over.set()


def long_driver(spec: Spec, folder: Path) -> str:
    """A sample now, one in two seconds."""
    recorder = Recorder(folder, spec)
    recorder.sample(a_sample(1.0))
    time.sleep(2)
    recorder.sample(a_sample(2.0))
    recorder.close("ok", ())
    return "SUCCEEDED"


@pytest.mark.parametrize(
    "of_proxy", [(502, "bad gateway"), (404, "<html>no such route</html>"), (200, "<html></html>")]
)
def test_a_head_that_does_not_answer_for_a_while_is_waited_for_and_its_run_is_whole(
    tmp_path: Path, target: FakeTarget, head: FakeHead, monkeypatch: pytest.MonkeyPatch, of_proxy: tuple[int, str]
) -> None:
    monkeypatch.setattr(run_module, "SILENT_SECONDS", 0.3)
    head.driver = long_driver
    get, begun = head.get, time.monotonic()
    head.get = lambda path: of_proxy if time.monotonic() - begun < 1.5 else get(path)  # type: ignore[method-assign]
    spec = replace(SPECS[0], deadline_seconds=20.0)
    session = a_session((spec,))
    folder = store.create(tmp_path / "results", session)
    heard = again(folder, session, target)
    (run,) = store.load_runs(folder, session)
    assert (run.status, [sample.value for sample in run.samples]) == ("ok", [1.0, 2.0])
    assert heard.silences
    assert all("has not responded for" in each for each in heard.silences)
    assert len(target.ups) == 1


def test_a_record_that_is_whole_counts_though_the_jobs_api_stays_silent(
    tmp_path: Path, target: FakeTarget, head: FakeHead, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_module, "SILENT_SECONDS", 0.3)
    head.get = lambda path: (502, "bad gateway")  # type: ignore[method-assign]
    (run,) = do(tmp_path, target)
    assert (run.status, len(run.samples)) == ("ok", 2)


def test_a_cluster_that_does_not_come_back_fails_the_run_at_its_deadline(
    tmp_path: Path, target: FakeTarget, head: FakeHead
) -> None:
    head.get = lambda path: (502, "bad gateway")  # type: ignore[method-assign]
    head.driver = lambda spec, folder: time.sleep(9) or "FAILED"  # type: ignore[func-returns-value]
    (run,) = do(tmp_path, target)
    assert run.status == "failed"
    assert "deadline of 3 s: the cluster has not responded for" in run.reasons[0]


def test_a_cluster_whose_head_has_ended_fails_the_run_before_its_deadline(
    tmp_path: Path, target: FakeTarget, head: FakeHead, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_module, "SILENT_SECONDS", 0.3)
    head.get = lambda path: (502, "bad gateway")  # type: ignore[method-assign]
    head.driver = lambda spec, folder: time.sleep(2) or "FAILED"  # type: ignore[func-returns-value]
    target.why_ended = "Ray on head has ended"
    (run,) = do(tmp_path, target, (replace(SPECS[0], deadline_seconds=600.0),))
    assert run.status == "failed"
    assert run.reasons[0].startswith("Ray on head has ended; the cluster has not responded for")


RAISED = {"name": "bad", "end_time_ms": 2, "error_message": "User exception:\n  File x\nValueError: no such thing\n"}


def test_a_run_that_does_not_see_that_its_tasks_raised_is_invalid(
    tmp_path: Path, target: FakeTarget, head: FakeHead
) -> None:
    head.raised = [{**RAISED, "name": "later", "end_time_ms": 3}, RAISED]
    (run,) = do(tmp_path, target)
    assert (run.status, len(run.samples)) == ("invalid", 2)
    assert run.reasons == ("2 tasks raised an exception, bad first: ValueError: no such thing",)


def test_tasks_may_raise_where_a_run_is_struck_on_purpose(tmp_path: Path, target: FakeTarget, head: FakeHead) -> None:
    head.raised = [RAISED]
    (run,) = do(tmp_path, target, (replace(SPECS[0], faults="worker:1"),))
    assert run.status == "ok"


def test_a_head_that_cannot_say_whether_tasks_raised_is_a_caveat(
    tmp_path: Path, target: FakeTarget, head: FakeHead
) -> None:
    head.raised = [{"of": "another release of Ray"}]
    (run,) = do(tmp_path, target)
    assert run.status == "ok"
    assert [alert.partition(":")[0] for alert in run.alerts] == [run_module.UNASKED]


@pytest.mark.parametrize("ends", ["ok", "failed"])
def test_what_befell_the_nodes_makes_a_run_invalid_and_is_its_first_reason(
    tmp_path: Path, target: FakeTarget, head: FakeHead, ends: str
) -> None:
    def driver(spec: Spec, folder: Path) -> str:
        if ends == "ok":
            return good_driver(spec, folder)
        Recorder(folder, spec).close("failed", ("ActorDiedError: the actor died",))
        return "FAILED"

    head.driver = driver
    target.befell = "the memory of worker-1 was full, and the kernel killed 1 of its processes"
    (run,) = do(tmp_path, target)
    assert run.status == "invalid"
    assert run.reasons[0] == target.befell
    assert run.reasons[1:] == (() if ends == "ok" else ("ActorDiedError: the actor died",))


def test_the_next_attempt_is_given_back_what_the_one_before_had_done(
    tmp_path: Path, target: FakeTarget, head: FakeHead
) -> None:
    def dies(spec: Spec, folder: Path) -> str:
        recorder = Recorder(folder, spec)
        (recorder.files / store.DONE).write_text("half\n")
        (recorder.files / "profile.txt").write_text("not this\n")
        time.sleep(0.3)
        return "FAILED"

    found: list[dict[str, str]] = []

    def looks(spec: Spec, folder: Path) -> str:
        earlier = folder.parent / spec.id / store.FILES
        found.append({path.name: path.read_text() for path in earlier.iterdir()})
        return good_driver(spec, folder)

    head.driver = dies
    do(tmp_path, target)
    folder = tmp_path / "results" / a_session().id
    shutil.rmtree(head.records / a_session().id)  # the next attempt gets a fresh cluster
    head.driver = looks
    again(folder, store.load_session(folder), target)
    assert found == [{store.DONE: "half\n"}]


def a_line_with_null(spec: Spec, folder: Path) -> str:
    """A driver of another raymeter, which writes NaN as null."""
    if spec != SPECS[0]:
        return good_driver(spec, folder)
    Recorder(folder, spec)
    line = line_format.encode(Line(seq=1, sample=a_sample(1.0))).replace(b'"value":1.0', b'"value":null')
    (folder / store.SAMPLES).write_bytes(line)
    (folder / "run.json").write_bytes(to_json(RunResult(status="ok", lines=1, sha256=sha256(line).hexdigest())))
    return "SUCCEEDED"


def test_a_line_that_cannot_be_read_ends_its_run_and_no_other_and_resume_does_that_run_again(
    tmp_path: Path, head: FakeHead, target: FakeTarget
) -> None:
    head.driver = a_line_with_null
    session = a_session(SPECS[:2])
    folder = store.create(tmp_path / "results", session)
    heard = again(folder, session, target)
    assert [status for _, status in heard.ended] == ["failed", "ok"]
    runs = store.load_runs(folder, session)
    assert [run.status for run in runs] == ["damaged", "ok"]
    assert "samples.jsonl, line 1" in runs[0].reasons[0]
    head.driver = good_driver
    assert [name for name, _ in again(folder, session, target).ended] == [f"{SPECS[0].id}.attempt-2"]
    assert [run.status for run in store.load_runs(folder, session)] == ["damaged", "ok", "ok"]


def test_a_value_that_is_no_finite_number_costs_its_run_nothing_else(
    tmp_path: Path, head: FakeHead, target: FakeTarget
) -> None:
    def diverging(spec: Spec, folder: Path) -> str:
        recorder = Recorder(folder, spec)
        recorder.sample(a_sample(math.nan, turn=2))
        recorder.sample(a_sample(math.inf, turn=3))
        recorder.sample(a_sample(1000.0, turn=4))
        recorder.close("ok", ())
        return "SUCCEEDED"

    head.driver = diverging
    (run,) = do(tmp_path, target)
    assert (run.status, run.reconciled) == ("ok", True)
    assert [sample.reason or sample.value for sample in run.samples] == [
        "not a finite number: nan",
        "not a finite number: inf",
        1000.0,
    ]


def test_what_a_damaged_attempt_had_done_is_not_given_to_the_next_one(
    tmp_path: Path, target: FakeTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = a_session(SPECS[:1])
    folder = store.create(tmp_path / "results", session)
    again(folder, session, target)
    path = store.run_folder(folder, SPECS[0])
    (path / store.FILES).mkdir(exist_ok=True)
    (path / store.FILES / store.DONE).write_text("{}\n")
    samples = path / store.SAMPLES
    samples.write_bytes(samples.read_bytes()[:-1])
    monkeypatch.setattr(run_module, "send_done_work", lambda *_: pytest.fail("it was given back"))
    again(folder, session, target)
    assert [run.status for run in store.load_runs(folder, session)] == ["damaged", "ok"]


@pytest.fixture
def monitored(target: FakeTarget) -> FakeTarget:
    """A target with a Prometheus, which does not answer."""
    target.cluster = replace(target.cluster, prometheus_url="http://127.0.0.1:9")
    return target


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of runs in each report that is made."""
    made: list[int] = []

    def build(session: Session, runs: Sequence[Run]) -> analysis.Report:
        made.append(len(runs))
        return report.build(session, runs)

    monkeypatch.setattr(analysis, "build", build)
    return made


def test_the_report_of_a_block_is_made_once_for_all_who_ask(
    tmp_path: Path, monitored: FakeTarget, built: list[int]
) -> None:
    session = a_session(SPECS)
    folder, shown = store.create(tmp_path / "results", session), []

    class Terminal(Heard):
        def block_ended(self, block: int) -> None:
            shown.append(so_far.read())

    so_far = ReportSoFar(folder=folder, session=session)
    run_all(folder, session, SPECS, monitored, listener=Terminal(), so_far=so_far)
    assert built == [2, 4]
    assert [each.cells[0].headline.sides["single"].estimate.value for each in shown] == [1001.0, 1001.5]


def test_without_monitoring_no_report_is_made_for_the_boards(
    tmp_path: Path, target: FakeTarget, head: FakeHead, built: list[int]
) -> None:
    do(tmp_path, target, SPECS)
    assert built == []
    assert not (head.records / "s1" / SESSION_GAUGES).exists()


def test_the_exporter_gets_how_far_the_session_is_and_what_its_blocks_say(
    tmp_path: Path, monitored: FakeTarget, head: FakeHead
) -> None:
    do(tmp_path, monitored, SPECS)
    assert sent(head) == {
        ("bench_session_runs_done",): 4,
        ("bench_session_runs_wanted",): 4,
        ("bench_session_blocks_done",): 2,
        ("bench_session_left_seconds",): 0,
        ("bench_cell_value", "inference", "c01", "c01", "single", "median"): 1001.5,  # of 1001 and 1002
    }


def test_a_continued_session_has_its_earlier_results_on_the_boards_at_once(
    tmp_path: Path, monitored: FakeTarget, head: FakeHead
) -> None:
    session = a_session(SPECS)
    folder = store.create(tmp_path / "results", session)
    run_all(folder, session, SPECS[:3], monitored)
    shutil.rmtree(head.records / session.id)

    def ended_at_once(spec: Spec, folder: Path) -> str:
        assert sent(head)["bench_session_runs_done",] == 3
        assert sent(head)["bench_cell_value", "inference", "c01", "c01", "single", "median"] == 1001
        return good_driver(spec, folder)

    head.driver = ended_at_once
    again(folder, session, monitored)
    assert {run.status for run in store.load_runs(folder, session)} == {"ok"}


def sent(head: FakeHead) -> dict[tuple[str, ...], float]:
    """Some of what the exporter has of the session, by name and labels."""
    gauges = from_json((head.records / "s1" / SESSION_GAUGES).read_bytes(), tuple[Gauge, ...])
    names = ("runs_done", "runs_wanted", "blocks_done", "left_seconds")
    return {
        (gauge.name, *gauge.labels[1:]): gauge.value
        for gauge in gauges
        if gauge.name.removeprefix("bench_session_") in names or gauge.labels[-2:] == ("single", "median")
    }
