"""What is asked of a Ray cluster's pods: events of these very pods, the image of each, and a command in each."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import pytest
from kubernetes_objects import a_container, a_pod, an_event

from bench.errors import TargetFailed
from bench.targets.k8s.ray_pods import RayPods


@dataclass
class Cluster:
    """kubectl for a cluster with these objects. A command fails in pods that are `dead`."""

    objects: list[dict[str, Any]]
    dead: tuple[str, ...] = ()
    ran: list[tuple[str, ...]] = field(default_factory=list)

    def get(self, *arguments: str) -> list[dict[str, Any]]:
        assert arguments[0] in ("pods,events,rayclusters.ray.io", "nodes,pods")
        return self.objects

    def run(self, *arguments: str) -> str:
        self.ran.append(arguments)
        if arguments[1] in self.dead:
            raise TargetFailed("`kubectl exec` failed: the container is not running.")
        return f"said in {arguments[1]}"


def pods(*objects: dict[str, Any], dead: tuple[str, ...] = ()) -> RayPods:
    return RayPods(Cluster(list(objects), dead), "raymeter")  # type: ignore[arg-type]


def with_uid(each: dict[str, Any], uid: str) -> dict[str, Any]:
    each["metadata" if "metadata" in each else "involvedObject"]["uid"] = uid
    return each


CLUSTER = {"kind": "RayCluster", "metadata": {"name": "raymeter", "uid": "now"}}


def test_an_event_of_a_cluster_that_had_the_name_before_is_no_trouble() -> None:
    refusal = an_event("FailedToCreateHeadPod", "is forbidden", about="raymeter", kind="RayCluster")
    assert pods(CLUSTER, with_uid(refusal, "before")).trouble() is None
    found = pods(CLUSTER, with_uid(refusal, "now")).trouble()
    assert found is not None
    assert "is forbidden" in found.what


def test_pods_of_another_cluster_in_the_namespace_are_not_ours() -> None:
    stranger = with_uid(a_pod("head", phase="Failed", reason="Evicted"), "other")
    stranger["metadata"]["labels"]["ray.io/cluster"] = "somebody's"
    assert pods(CLUSTER, stranger).trouble() is None


def test_a_restart_is_trouble_though_the_pod_runs_again() -> None:
    again = a_container(restartCount=1, state={"running": {}}, lastState={"terminated": {"exitCode": 1}})
    found = pods(CLUSTER, with_uid(a_pod("worker-1", containerStatuses=[again]), "w")).trouble()
    assert found is not None
    assert found.what.startswith("worker-1: its container ray was restarted")


def test_the_image_is_the_one_that_the_nodes_runtime_says() -> None:
    def running(name: str, image: str) -> dict[str, Any]:
        statuses = [a_container("exporter", imageID="other@sha256:e"), a_container(imageID=image)]
        return with_uid(a_pod(name, containerStatuses=statuses), name)

    there = pods(running("head", "docker.io/raymeter/ray@sha256:abc"), running("worker-1", "sha256:def"))
    assert there.images() == {"head": "sha256:abc", "worker-1": "sha256:def"}
    assert pods(with_uid(a_pod("head", containerStatuses=[a_container(imageID="")]), "h")).images() == {}


def test_a_pod_in_which_a_command_fails_is_left_out() -> None:
    head, worker = with_uid(a_pod("head"), "h"), with_uid(a_pod("worker-1"), "w")
    there = pods(head, worker, dead=(worker["metadata"]["name"],))
    assert there.ask(("cat", "x")) == {"head": f"said in {head['metadata']['name']}"}
    (words, _) = there.kubectl.ran  # type: ignore[attr-defined]
    assert words[-4:] == ("ray", "--", "cat", "x")


def test_the_log_of_a_container_that_does_not_start_is_part_of_the_error() -> None:
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}
    broken = with_uid(a_pod("head", containerStatuses=[a_container(state=waiting)]), "h")
    there = pods(CLUSTER, broken)
    with pytest.raises(
        TargetFailed, match=rf"CrashLoopBackOff \(back-off 10s\): said in {broken['metadata']['name']}\."
    ):
        there._raise_for_trouble([broken], [], until=time.monotonic())
    there = pods(CLUSTER, broken, dead=(broken["metadata"]["name"],))  # its log cannot be read
    with pytest.raises(TargetFailed, match=r"CrashLoopBackOff \(back-off 10s\)\."):
        there._raise_for_trouble([broken], [], until=time.monotonic())
