"""Whether pods find room, by what nodes can give less what runs there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from builders import a_topology
from kubernetes_objects import a_node, a_pod

from bench.errors import DoesNotFit
from bench.targets.k8s.fitting import assign, check_machine, places
from bench.targets.k8s.rendering import requests, size

GIB = 2**30
WORKERS = [a_node("w1"), a_node("w2")]
CONTROL = a_node("control", taint="node-role.kubernetes.io/control-plane")


def asked(*cpus: float, gib: float = 2) -> list[dict[str, float]]:
    return [{"cpu": cpu, "memory": gib * GIB, "ephemeral-storage": 4 * GIB} for cpu in cpus]


@pytest.mark.parametrize(
    ("text", "number"),
    [("100m", 0.1), ("2", 2), ("512Mi", 2**29), ("24684096Ki", 24684096 * 1024), ("1G", 1e9), ("1e3", 1000), (0, 0)],
)
def test_a_quantity_is_a_number(text: str, number: float) -> None:
    assert size(text) == pytest.approx(number)


def test_each_pod_gets_a_node_of_its_own_while_there_are_enough() -> None:
    assert sorted(assign("multi", asked(1, 1), places(WORKERS, []))) == ["w1", "w2"]


def test_two_pods_share_a_node_where_there_is_only_one() -> None:
    assert assign("multi", asked(1, 1), places([a_node("only")], [])) == ["only", "only"]


def test_whole_cpus_find_the_worker_that_is_free() -> None:
    busy = a_pod("prometheus", node="w1", cpu="50m", memory="1Gi")
    assert assign("single", asked(2), places(WORKERS, [busy])) == ["w2"]


def test_what_has_ended_takes_no_room() -> None:
    done = [a_pod(f"job-{node}", node=node, cpu="2", phase="Succeeded") for node in ("w1", "w2")]
    assert assign("single", asked(2), places(WORKERS, done))


def test_a_labelled_node_is_preferred() -> None:
    labelled = a_node("w2", labels={"raymeter.io/role": "measured"})
    assert assign("single", asked(1), places([a_node("w1"), labelled], [])) == ["w2"]


def test_too_little_is_refused_with_what_is_asked_and_what_is_free_on_which_node() -> None:
    busy = [a_pod(f"other-{node}", node=node, cpu="100m", memory="1Gi") for node in ("w1", "w2")]
    with pytest.raises(DoesNotFit) as refused:
        assign("single", asked(2), places([CONTROL, *WORKERS], busy))
    text = str(refused.value)
    assert "1 pod of 2 CPUs, 2.0 GiB" in text
    assert "w1 has 1.9 CPUs, 7.0 GiB" in text
    assert "control is tainted node-role.kubernetes.io/control-plane" in text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("node", "why"), [(a_node("w", ready="False"), "is not ready"), (a_node("w", cordoned=True), "is cordoned")]
)
def test_a_node_that_takes_no_pods_is_no_room(node: dict[str, Any], why: str) -> None:
    with pytest.raises(DoesNotFit, match=why):
        assign("single", asked(1), places([node], []))


def test_a_node_that_has_just_become_ready_is_room() -> None:
    assert assign("single", asked(1), places([a_node("w", taint="node.kubernetes.io/not-ready")], [])) == ["w"]


def test_nodes_that_share_a_machine_cannot_give_it_twice() -> None:
    containers = [a_node(name, cpus="4", boot_id="one machine") for name in ("w1", "w2")]
    assert len(assign("multi", asked(2, 2), places(containers, []))) == 2
    with pytest.raises(DoesNotFit, match="needs 8 CPUs, and the 2 Kubernetes nodes share 1 machine with 4"):
        assign("multi", asked(4, 4), places(containers, []))


@pytest.mark.parametrize(
    ("memory", "words"),
    [("3Gi", "needs 4.0 GiB of memory, and the 2 Kubernetes nodes share 1 machine with 3.0 GiB")],
)
def test_their_memory_can_be_given_once_too(memory: str, words: str) -> None:
    containers = [a_node(name, memory=memory, boot_id="one machine") for name in ("w1", "w2")]
    with pytest.raises(DoesNotFit, match=words):
        assign("multi", asked(1, 1), places(containers, []))


def test_their_disk_can_be_given_once_too() -> None:
    containers = [a_node(name, boot_id="one machine") for name in ("w1", "w2")]
    pods = [{**pod, "ephemeral-storage": 60 * GIB} for pod in asked(1, 1)]
    with pytest.raises(DoesNotFit, match=r"needs 120 GiB of disk, and .* 1 machine with 100 GiB"):
        assign("multi", pods, places(containers, []))


def test_no_pod_is_put_where_the_spread_constraint_would_not_let_it() -> None:
    full = a_pod("other", node="w2", cpu="2")
    with pytest.raises(DoesNotFit, match=r"room for 1, as they are spread evenly: w1 has 2 CPUs.*w2 has 0 CPUs"):
        assign("multi", asked(1, 1), places(WORKERS, [full]))
    assert assign("single", asked(1), places(WORKERS, [full])) == ["w1"]
    # A node that takes no pods at all is not counted.
    assert assign("multi", asked(1, 1), places([CONTROL, WORKERS[0]], [])) == ["w1", "w1"]


def test_more_pods_than_nodes_go_round() -> None:
    assert sorted(assign("multi", asked(0.5, 0.5, 0.5), places(WORKERS, []))) == ["w1", "w1", "w2"]


def test_no_node_at_all_is_said() -> None:
    with pytest.raises(DoesNotFit, match="the cluster has no nodes"):
        assign("single", asked(1), [])


def test_a_machine_that_is_too_small_for_any_kind_cluster_is_refused_before_one_is_made() -> None:
    with pytest.raises(DoesNotFit, match="needs 4096 CPUs"):
        check_machine(a_topology(cpus=4096))
    with pytest.raises(DoesNotFit, match=r"needs 1048576\.0 GiB of memory"):
        check_machine(replace(a_topology(cpus=1), memory_bytes_per_node=2**50))


def test_a_pod_is_counted_as_the_scheduler_counts_it() -> None:
    limits_only = {
        "containers": [{"resources": {"limits": {"cpu": "500m"}}}, {"resources": {"requests": {"cpu": "1"}}}]
    }
    assert requests(limits_only)["cpu"] == 1.5
    assert requests({**limits_only, "initContainers": [{"resources": {"requests": {"cpu": "3"}}}]})["cpu"] == 3
    assert requests({**limits_only, "resources": {"requests": {"cpu": "1"}}})["cpu"] == 1
