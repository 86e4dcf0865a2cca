"""When a cluster of containers is ready, and what is said where it will never be."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from builders import a_topology

from bench.errors import TargetFailed
from bench.targets import readiness
from bench.targets.docker.plan import NODE
from bench.targets.docker.readiness import Watch, raise_for_ended

HEAD_PORTS = {"8265/tcp": [{"HostPort": "1"}], "8090/tcp": [{"HostPort": "2"}]}


def a_container(address: str = "172.18.0.2", *, agent: int = 0, **changes: Any) -> Any:
    fields: dict[str, Any] = {
        "id": address,
        "name": "a",
        "status": "running",
        "attrs": {
            "NetworkSettings": {"Networks": {"raymeter-a": {"IPAddress": address}}, "Ports": HEAD_PORTS},
            "State": {"ExitCode": 3, "OOMKilled": False},
        },
        "exec_run": lambda command: SimpleNamespace(exit_code=agent),
        "logs": lambda tail: b"first\nthe last word\n\n",
    }
    return SimpleNamespace(**{**fields, **changes})


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[int, bytes]]:
    """What the head answers, by path; 0 to all else."""
    said: dict[str, tuple[int, bytes]] = {}
    monkeypatch.setattr(readiness, "get", lambda url, token="": said.get("/" + url.split("/", 3)[3], (0, b"")))
    return said


def ray_nodes(**cpus_by_address: float) -> tuple[int, bytes]:
    nodes = [
        {
            "node_ip": address.removeprefix("n").replace("_", "."),
            "state": "ALIVE",
            "resources_total": {"CPU": cpus, "memory": 2**31, "object_store_memory": 2**29},
        }
        for address, cpus in cpus_by_address.items()
    ]
    return 200, json.dumps({"data": {"result": {"result": nodes}}}).encode()


def test_it_is_ready_when_the_api_all_nodes_their_agents_and_the_exporter_answer(answers: dict[str, Any]) -> None:
    pair = a_topology("multi", nodes=2)
    there = {"head": a_container(), "worker-1": a_container("172.18.0.3")}
    watch = Watch(client=None, deployment="a", token="t")  # type: ignore[arg-type]  # it is not asked
    assert watch.missing(there, pair) == ["head", "worker-1", "exporter"]
    answers["/api/jobs/"] = 200, b"[]"
    answers["/api/v0/nodes"] = ray_nodes(n172_18_0_2=1)
    assert watch.missing(there, pair) == ["worker-1", "exporter"]
    answers["/api/v0/nodes"] = ray_nodes(n172_18_0_2=1, n172_18_0_3=1)
    answers["/healthz"] = 200, b"ok"
    assert watch.missing(there, pair) == []
    late = {**there, "worker-1": a_container("172.18.0.3", agent=1, id="another")}
    assert watch.missing(late, pair) == ["worker-1"]


def test_a_node_with_other_cpus_than_asked_for_is_no_slower_number_but_a_failure(answers: dict[str, Any]) -> None:
    answers["/api/jobs/"] = 200, b"[]"
    answers["/api/v0/nodes"] = ray_nodes(n172_18_0_2=1)
    watch = Watch(client=None, deployment="a", token="t")  # type: ignore[arg-type]  # it is not asked
    with pytest.raises(TargetFailed, match="head has another size: CPUs 1 instead of 2"):
        watch.missing({"head": a_container()}, a_topology(cpus=2))


@pytest.mark.parametrize(("is_full", "said"), [(False, "exit code 3"), (True, "out of memory")])
def test_a_container_that_ended_is_told_of_with_its_last_words(is_full: bool, said: str) -> None:
    state = {"State": {"ExitCode": 3, "OOMKilled": is_full}}
    with pytest.raises(TargetFailed, match=rf"worker-1 ended while it was starting, .*{said}: the last word\."):
        raise_for_ended({"head": a_container(), "worker-1": a_container(status="exited", attrs=state)})


def test_waiting_lists_the_containers_once_a_poll(answers: dict[str, Any]) -> None:
    answers.update({"/api/jobs/": (200, b"[]"), "/healthz": (200, b"ok")})
    lists: list[None] = []
    nodes = {"head": "172.18.0.2", "worker-1": "172.18.0.3"}

    def containers_of_poll(**_: Any) -> list[Any]:
        lists.append(None)
        if len(lists) == 3:
            answers["/api/v0/nodes"] = ray_nodes(n172_18_0_2=1, n172_18_0_3=1)
        return [a_container(address, labels={NODE: name}) for name, address in nodes.items()]

    client = SimpleNamespace(containers=SimpleNamespace(list=containers_of_poll))
    there = Watch(client, deployment="a", token="t").wait(a_topology("multi", nodes=2), 30)  # type: ignore[arg-type]  # as far as it is asked
    assert list(there) == ["head", "worker-1"]
    assert len(lists) == 3
