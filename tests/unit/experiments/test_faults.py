"""Faults are injected in one place, into the actors that an experiment names, and a fault that was not is reported."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench.errors import BadInput
from bench.experiments import NAMES, load, parameter_server
from bench.experiments.clustering.workspace import Worker
from bench.experiments.inference.predictors import Predictor
from bench.experiments.parameter_server.worker import TrainingWorker
from bench.experiments.toolkit.faults import LATE, FaultInjector, draw_faults
from bench.experiments.toolkit.node_faults import NodeAgent
from bench.options import RunRequest
from bench.planning import needs, plan


def an_injector(text: str) -> FaultInjector:
    return FaultInjector(plan=text, workers="Nobody", seed=1, attempt=1, nodes=())


def a_shape(name: str, chaos: str) -> RunRequest:
    return RunRequest(
        experiments=(name,), sets=(f"chaos={chaos}", "data=synthetic-32"), topology="single", cpus=2, blocks=1
    )


@pytest.mark.parametrize(
    ("name", "actor"), [("clustering", Worker), ("inference", Predictor), ("parameter-server", TrainingWorker)]
)
def test_the_actors_that_an_experiment_names_are_there(name: str, actor: type[Any]) -> None:
    of, _, method = load(name).tolerates.workers.partition(".")  # type: ignore[attr-defined]
    assert of == actor.__name__
    assert not method or hasattr(actor, method)


@pytest.mark.parametrize("name", sorted({*NAMES} - {"clustering", "inference", "parameter-server"}))
def test_an_experiment_that_tolerates_no_fault_refuses_every_plan(name: str) -> None:
    with pytest.raises(BadInput, match=f"{name} tolerates no faults") as refused:
        needs.check_chaos(name, "worker:1")
    assert "inference, parameter-server, clustering" in refused.value.hint


def test_a_kind_that_an_experiment_does_not_tolerate_is_refused_with_those_that_it_does() -> None:
    assert plan.make(a_shape("parameter-server", "worker:2")).specs
    with pytest.raises(BadInput, match="raylet:1 is not valid") as refused:
        plan.make(a_shape("parameter-server", "worker:1+raylet:1"))
    assert "Kinds: worker." in refused.value.hint


def test_what_half_precision_lost_is_lost_with_its_worker() -> None:
    with pytest.raises(BadInput, match="half precision"):
        parameter_server.Params(chaos="worker:1", transport="compressed")


def test_outside_an_interval_nothing_is_injected_and_nothing_is_missed() -> None:
    injector = an_injector("worker:1")
    injector.progress(1.0, 1.0)
    assert list(injector.end()) == []


def test_a_node_that_did_not_join_is_told_with_its_last_words(monkeypatch: pytest.MonkeyPatch) -> None:
    injector = an_injector("join:1")
    injector._left = []
    monkeypatch.setattr(injector, "_ask", lambda *_: [["no port is free"], []])
    assert list(injector.end()) == ["a node that was to join did not: no port is free"]


def test_a_join_that_ended_has_last_words_and_one_that_goes_on_has_none(tmp_path: Path) -> None:
    agent = NodeAgent()
    for number, code in enumerate(
        ("raise SystemExit('no room')", "import time; time.sleep(60)", "raise SystemExit(3)")
    ):
        said = tmp_path / str(number)
        with said.open("wb") as log:
            agent._joins.append((subprocess.Popen([sys.executable, "-c", code], stdout=log, stderr=log), said))
    ends, goes_on, is_silent = (process for process, _ in agent._joins)
    ends.wait(30)
    is_silent.wait(30)
    assert agent.failed_joins() == ["no room", "exit code 3, and its log is empty"]
    goes_on.kill()
    goes_on.wait(30)


def test_actors_are_known_by_their_titles_and_those_at_a_method_by_it_too() -> None:
    titles = ("ray::Worker", "ray::Worker.do", "ray::Worker.ready", "ray::Worker2.do", "ray::IDLE")
    processes = [subprocess.Popen([title, "60"], executable="/bin/sleep") for title in titles]
    agent = NodeAgent()
    agent._raylet = os.getpid()
    at = {process.pid: title for process, title in zip(processes, titles, strict=True)}
    assert {at[each] for each in agent.workers("Worker")} == {"ray::Worker", "ray::Worker.do", "ray::Worker.ready"}
    assert [at[each] for each in agent.workers("Worker.do")] == ["ray::Worker.do"]
    assert [at[each] for each in agent.workers("Worker", "idle")] == ["ray::Worker"]
    agent.kill(processes[1].pid)
    assert processes[1].wait(30) == -signal.SIGKILL
    assert agent.workers("Worker.do") == []
    for process in processes:
        process.kill()
        process.wait(30)


def test_an_idle_worker_is_killed_where_none_was_busy_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    injector = FaultInjector(plan="worker:1", workers="Worker.do", seed=1, attempt=1, nodes=())
    asked: list[tuple[Any, ...]] = []

    def ask(_self: FaultInjector, *arguments: Any, names: Any) -> list[list[int]]:
        asked.append(arguments)
        return [[7] if arguments == ("workers", "Worker", "idle") else []]

    killed: list[int] = []
    kill = SimpleNamespace(remote=killed.append)
    injector._agents = {"head": SimpleNamespace(kill=kill)}
    monkeypatch.setattr(FaultInjector, "_nodes_up", lambda _: {"head"})
    monkeypatch.setattr(FaultInjector, "_ask", ask)
    (fault,) = draw_faults(injector.plan, injector.seed)
    injector._left, injector._is_new = [fault], False
    injector.progress(fault.share, 1.0)
    injector.progress(fault.share + LATE / 2, 1.0)
    assert asked == [("workers", "Worker.do", "any")] * 2
    assert killed == []
    injector.progress(fault.share + 2 * LATE, 1.0)
    assert killed == [7]
    assert list(injector.end()) == []
