"""Turns, orders, passes and checksums: what an experiment is given to measure with."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from time import sleep
from typing import Any

import pytest
from builders import a_sample, a_spec

from bench.cluster import invocation as invocation_module
from bench.cluster.invocation import QUIET, Invocation, InvocationTurn, look_at_clock
from bench.cluster.recorder import Recorder
from bench.experiments.toolkit.faults import FaultInjector
from bench.model import Arm, Spec
from bench.record import line_format
from bench.record.store import DONE, FILES, SAMPLES, read_samples

RAY = Arm(name="ray", help="", role="subject")
PEER = Arm(name="peer", help="")
UNWATCHED = Arm(name="unwatched", help="", role="control", probed=False)
ARMS = (RAY, PEER, UNWATCHED)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RAYMETER_RECORDS", str(tmp_path))
    return tmp_path / "run"


def an_invocation(folder: Path, spec: Spec | None = None) -> Invocation:
    spec = spec or a_spec()
    return Invocation(spec=spec, probes=(), recorder=Recorder(folder, spec))


@pytest.fixture(autouse=True)
def _no_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Invocation, "_begin_probes", lambda self: None)
    monkeypatch.setattr(Invocation, "_ask_probes", lambda self, _: [])
    monkeypatch.setattr(Invocation, "_record_usage", lambda self, *_, **__: None)


def nobody(result: Any) -> Mapping[str, float]:
    return {}


def test_warm_ups_come_first_and_are_marked(folder: Path) -> None:
    turns = list(an_invocation(folder, a_spec(warmups=2, samples=3)).turns())
    assert [turn.warmup for turn in turns] == [True, True, False, False, False]


def test_the_order_of_arms_differs_by_turn_and_not_by_topology(folder: Path) -> None:
    def orders(**changes: Any) -> list[list[str]]:
        invocation = Invocation(spec=a_spec(samples=20, **changes), probes=(), recorder=None)  # type: ignore[arg-type]
        return [[arm.name for arm in turn.order(ARMS)] for turn in invocation.turns()]

    assert orders() == orders()
    assert len({tuple(order) for order in orders()}) > 1
    assert all(sorted(order) == sorted(arm.name for arm in ARMS) for order in orders())
    assert orders(block=2) != orders(block=1)


def test_short_work_is_repeated_until_a_sample_is_long_enough(folder: Path) -> None:
    invocation = an_invocation(folder, a_spec(warmups=1, samples=1, sample_seconds=0.2))
    warmup, steady = (turn.measure(RAY, lambda: sleep(0.02), nobody) for turn in invocation.turns())
    assert len(warmup.results) == 1
    assert len(steady.results) > 1
    assert steady.interval.seconds > warmup.interval.seconds


def test_arms_beside_the_subject_may_have_shorter_samples(folder: Path) -> None:
    spec = a_spec(warmups=1, samples=1, sample_seconds=0.3, peer_sample_seconds=0.05)
    invocation = an_invocation(folder, spec)
    for turn in invocation.turns():
        done = {arm.name: turn.measure(arm, lambda: sleep(0.02), nobody) for arm in (RAY, PEER)}
    assert done["ray"].interval.seconds >= 0.3
    assert len(done["ray"].results) > 2 * len(done[PEER.name].results) > 2


def test_work_is_credited_to_nodes_of_the_subject_and_not_in_warm_ups(folder: Path) -> None:
    invocation = an_invocation(folder, a_spec(warmups=1, samples=2, sample_seconds=0.0))
    for turn in invocation.turns():
        turn.measure(RAY, lambda: 7, lambda done: {"head": float(done)})
        turn.measure(PEER, lambda: 7, lambda done: {"head": 100.0})
    assert invocation.work_by_node == {"head": 14.0}


@pytest.mark.parametrize("arm", ARMS)
def test_work_whose_results_are_not_there_makes_the_run_invalid(folder: Path, arm: Arm) -> None:
    invocation = an_invocation(folder, a_spec(warmups=0, samples=1, sample_seconds=0.0))
    for turn in invocation.turns():
        turn.measure(arm, lambda: [{"of": Future()}], lambda _: {"head": 1.0})
    (reason,) = invocation.reasons
    assert reason.startswith(f"{arm.name}: the measured work returned values that are not computed yet (1 x Future)")


def test_the_credit_of_every_interval_is_kept_to_be_compared_with_the_headline(folder: Path) -> None:
    invocation = an_invocation(folder, a_spec(warmups=0, samples=1, sample_seconds=0.0))
    assert invocation.total_work is None
    (turn,) = invocation.turns()
    done = turn.measure(RAY, lambda: 7, lambda done: {"head": float(done), "worker-1": 3.0})
    turn.measure(RAY, lambda: 7, lambda _: {"head": 5.0}, point="64 KiB")
    assert invocation.credited == {("ray", done.interval.begin, done.interval.end): 10.0}
    assert invocation.total_work == 15.0


def test_faults_are_injected_while_the_subject_is_at_work_and_in_no_warm_up(folder: Path) -> None:
    begun: list[int] = []
    came: list[float] = []

    class Told(FaultInjector):
        def begin(self) -> None:
            begun.append(1)

        def progress(self, done: float, total: float) -> None:
            came.append(done / total)

        def end(self) -> Iterator[str]:
            yield "a fault was not injected"

    faults = Told(plan="worker:1", workers="Worker", seed=1, attempt=1, nodes=())
    spec = a_spec(warmups=1, samples=1, sample_seconds=0.0)
    invocation = Invocation(spec=spec, probes=(), recorder=Recorder(folder, spec), faults=faults)
    warmup, counted = invocation.turns()
    warmup.measure(RAY, lambda: None, nobody)
    counted.measure(PEER, lambda: None, nobody)
    counted.measure(RAY, lambda: None, nobody, point="70 % poisson")
    assert (begun, invocation.reasons) == ([], [])
    counted.measure(RAY, lambda: invocation.progress(1, 4), nobody)
    assert (begun, came, invocation.reasons) == ([1], [0.25], ["a fault was not injected"])


def test_every_arm_waits_alike_for_a_whole_quota_before_its_interval_and_not_in_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    happened: list[object] = []
    monkeypatch.setattr(invocation_module, "sleep", happened.append)
    monkeypatch.setattr(Invocation, "_begin_probes", lambda self: happened.append("probes"))
    invocation = an_invocation(folder)
    invocation.pause_seconds = 0.1
    turn: InvocationTurn = next(invocation.turns())
    for arm in (RAY, UNWATCHED):
        turn.measure(arm, lambda: happened.append("work"), nobody)
    assert happened == ["probes", 0.1, "work", 0.1, "work"]


def test_counters_are_read_right_after_the_interval_and_before_results_are_credited(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    happened: list[object] = []
    monkeypatch.setattr(Invocation, "_ask_probes", lambda self, what: happened.append(what) or [])
    turn: InvocationTurn = next(an_invocation(folder).turns())
    turn.measure(RAY, lambda: happened.append("work"), lambda _: happened.append("credit") or {})
    assert happened == ["work", "end", "credit"]


def test_raymeter_is_silent_while_the_control_is_timed(folder: Path) -> None:
    quiet = Path(os.environ["RAYMETER_RECORDS"]) / QUIET
    turn: InvocationTurn = next(an_invocation(folder).turns())
    assert turn.measure(UNWATCHED, quiet.exists, nobody).results == [True]
    assert turn.measure(RAY, quiet.exists, nobody).results == [False]
    with pytest.raises(ZeroDivisionError):
        turn.measure(UNWATCHED, lambda: 1 / 0, nobody)
    assert not quiet.exists()


def test_a_checksum_that_changes_is_a_reason_and_is_recorded_once(folder: Path) -> None:
    invocation = an_invocation(folder)
    for digest in ("a", "a", "b", "b"):
        invocation.same_everywhere("answers", digest)
    (reason,) = invocation.reasons
    assert "the checksum of answers was b and a" in reason
    assert read_samples(folder / SAMPLES, is_closed=False).digests == {"answers": "a"}


def test_what_is_done_once_has_an_interval_of_its_own(folder: Path) -> None:
    measured = an_invocation(folder).time_once("ray", lambda: "up")
    assert measured.results == ["up"]
    assert (measured.turn, measured.warmup) == (0, False)


def test_a_run_says_why_it_is_invalid_and_which_nodes_have_nothing_to_do(folder: Path) -> None:
    invocation = an_invocation(folder)
    invocation.invalid("a call failed")
    invocation.invalid("a call failed")
    invocation.leaves_idle(["worker-1"])
    assert invocation.reasons == ["a call failed"]
    assert invocation.idle_by_plan == {"worker-1"}


def test_the_points_of_a_sweep_learn_their_passes_apart(folder: Path) -> None:
    invocation = an_invocation(folder, a_spec(warmups=1, samples=1, sample_seconds=0.05))
    for turn in invocation.turns():
        done = {point: turn.measure(RAY, work, nobody, point=point) for point, work in (("slow", slow), ("fast", fast))}
    assert done["slow"].point == "slow"
    assert len(done["slow"].results) < len(done["fast"].results)


def test_what_is_recorded_in_the_midst_is_on_disk_at_once_and_progress_now_and_then(folder: Path) -> None:
    invocation = an_invocation(folder)
    invocation.record(a_sample(0.5, step=3.0))
    for done in range(1000):
        invocation.progress(done, 1000)
    invocation.progress(1000, 1000)
    lines = [line_format.decode(text) for text in (folder / SAMPLES).read_bytes().splitlines()]
    assert [line.sample.step for line in lines if line.sample] == [3.0]
    assert [line.progress for line in lines if line.progress] == [(0.0, 1000.0), (1000.0, 1000.0)]


def test_threads_that_report_do_not_mix_their_lines(folder: Path) -> None:
    invocation = an_invocation(folder)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda number: invocation.record(a_sample(float(number))), range(200)))
    found = read_samples(folder / SAMPLES, is_closed=False)  # which checks the sequence of the lines
    assert sorted(sample.value or 0 for sample in found.samples) == [float(n) for n in range(200)]


def slow() -> None:
    sleep(0.02)


def fast() -> None:
    sleep(0.001)


def test_an_attempt_finds_what_those_before_it_had_done(folder: Path) -> None:
    spec = a_spec(attempt=3)
    runs = folder.parent / "runs"
    for attempt in (1, 2, 3):
        files = runs / a_spec(attempt=attempt).folder / FILES
        if attempt != 3:
            files.mkdir(parents=True)
    done = runs / a_spec(attempt=2).folder / FILES / DONE
    done.write_text("{}\n")
    assert an_invocation(runs / spec.folder, spec).earlier == [done]
    assert an_invocation(runs / a_spec(id="other").folder).earlier == []


def test_the_step_of_a_clock_that_ticks_is_a_tick() -> None:
    readings = (k // 7 * 0.25 for k in range(100_000))  # seven readings a tick
    assert look_at_clock(lambda: next(readings)).step_seconds == 0.25


def test_timing_nothing_costs_something() -> None:
    found = look_at_clock()
    assert found.step_seconds > 0
    assert found.empty_sample_seconds > 0


def test_a_pass_that_reuses_work_says_nothing_of_how_long_passes_are(folder: Path) -> None:
    invocation = an_invocation(folder, a_spec(warmups=0, samples=3, sample_seconds=0.05))
    reused = iter([True, False])

    def work() -> None:
        sleep(0.001)
        if next(reused, False):
            invocation.reuses_work()

    passes = [len(turn.measure(RAY, work, lambda _: {"head": 1.0}).results) for turn in invocation.turns()]
    assert passes[:2] == [1, 1]
    assert passes[2] > 1
