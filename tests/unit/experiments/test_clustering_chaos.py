"""Faults are drawn from the seed, injected once, and refused where they make no sense."""

from __future__ import annotations

import resource
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from outcomes import a_journal, an_outcome

from bench.errors import BadInput, RunFailed
from bench.experiments.clustering import Params
from bench.experiments.toolkit import faults
from bench.experiments.toolkit.faults import FaultInjector
from bench.experiments.toolkit.journal import HALF_A_ROW_BYTES
from bench.options import RunRequest
from bench.planning import plan
from bench.record.store import DONE


def test_a_chaos_plan_is_the_same_for_the_same_seed_and_in_order() -> None:
    found = faults.draw_faults("worker:5+driver:3", 1)
    assert Counter(fault.kind for fault in found) == {"worker": 5, "driver": 3}
    assert found == faults.draw_faults("worker:5+driver:3", 1) != faults.draw_faults("worker:5+driver:3", 2)
    assert [fault.share for fault in found] == sorted(fault.share for fault in found)


@pytest.mark.parametrize("text", ["worker:0", "worker:x", "wolf", "worker:5;driver", "worker:1000"])
def test_a_chaos_plan_that_is_none_is_refused_with_the_kinds_there_are(text: str) -> None:
    with pytest.raises(BadInput, match="is not valid in a chaos plan") as refused:
        Params(chaos=text)
    assert "worker, raylet, pause, driver, head, fill-disk, join" in refused.value.hint


def an_injector(plan: str, monkeypatch: pytest.MonkeyPatch, *, attempt: int = 1, agent: Any = None) -> FaultInjector:
    """In an interval, with two workers on the head."""
    injector = FaultInjector(plan=plan, workers="Nobody", seed=1, attempt=attempt, nodes=())
    injector._agents["head"] = agent
    monkeypatch.setattr(injector, "_worker_processes", lambda *_: [("head", 42), ("head", 43)])
    injector.begin()
    return injector


def test_faults_that_were_injected_before_are_not_injected_again(monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[int] = []
    agent = SimpleNamespace(kill=SimpleNamespace(remote=killed.append))
    injector = an_injector("worker:4", monkeypatch, agent=agent)
    injector.progress(faults.draw_faults("worker:4", 1)[1].share, 1.0)
    injector.progress(1.0, 1.0)
    assert sorted(killed) == [42, 43]  # and the first one not twice, though it is listed until Ray has noticed


def test_a_disk_is_not_filled_when_nothing_more_will_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    filled: list[str] = []
    injector = an_injector("fill-disk", monkeypatch)
    injector.fill_disk = lambda: filled.append("once")
    injector.progress(1.0, 1.0)
    assert filled == []  # and so the run says that the fault was not injected
    injector.progress(0.95, 1.0)
    assert filled == ["once"]
    assert list(injector.end()) == []


def test_every_attempt_has_one_fault_behind_it_that_ended_the_one_before() -> None:
    plan = faults.draw_faults("driver:2+head:1+worker:1", 3)
    for attempt, ends in ((1, 3), (2, 2), (4, 0), (5, 0)):
        left = faults.still_to_come(plan, attempt, 0.0)
        assert len(left) == ends + 1
        assert [each.share for each in left] == sorted(each.share for each in left)


def a_shape(*, target: str = "local", **fields: Any) -> RunRequest:
    return RunRequest(topology="single", cpus=1, blocks=1, target=target, **fields)


def test_chaos_is_refused_where_a_loss_makes_a_run_invalid() -> None:
    with pytest.raises(BadInput, match="network tolerates no faults") as refused:
        plan.make(a_shape(experiments=("network",), sets=("chaos=worker:1",)))
    assert "clustering" in refused.value.hint


def test_a_node_joins_on_this_machine_alone() -> None:
    (spec,) = plan.make(a_shape(experiments=("clustering",), sets=("chaos=join:1",))).specs
    assert spec.arms == ("ray", "empty-parts")  # the peers do not tolerate it
    with pytest.raises(BadInput, match="--arms: serial cannot be measured with these parameters"):
        plan.make(a_shape(experiments=("clustering",), sets=("chaos=join:1",), only_arms="serial"))
    with pytest.raises(BadInput, match="on k8s"):
        plan.make(a_shape(experiments=("clustering",), sets=("chaos=join:1",), target="k8s"))


def test_a_journal_that_is_filled_up_holds_whole_rows_and_half_a_one_and_the_next_attempt_does_the_rest(
    tmp_path: Path,
) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with a_journal(tmp_path) as journal:
        journal.append("1/1", [an_outcome(0)])
    full = a_journal(tmp_path)
    full.fill_disk()
    with pytest.raises(RunFailed, match="Its earlier rows are complete") as failed, full:
        full.append("1/1", [an_outcome(1)])
    assert "bench resume" in failed.value.hint
    assert resource.getrlimit(resource.RLIMIT_FSIZE) == limits
    whole, half = (tmp_path / DONE).read_bytes().split(b"\n")
    assert len(half) == HALF_A_ROW_BYTES < len(whole)
    (tmp_path / "next").mkdir()
    with a_journal(tmp_path / "next", [tmp_path / DONE]) as again:
        assert [each.part for each in again.done("1/1")] == [0]


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"points": 10, "clusters": 11}, "must be at most points .10., got 11"),
        ({"jobs": 2, "failing": 2}, "must be less than jobs"),
        ({"job": "empty", "source": "local"}, "has no input"),
        ({"input": "/mine.npy"}, "source must be local or pulled"),
        ({"input": "mine.npy", "source": "local"}, "must be an absolute path"),
        ({"input": "/mine.pkl", "source": "local"}, "must be a file that ends in"),
    ],
)
def test_what_does_not_go_together_is_refused(fields: dict[str, Any], refusal: str) -> None:
    with pytest.raises(BadInput, match=refusal):
        Params(**fields)
