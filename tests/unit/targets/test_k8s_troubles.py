"""What pods and events say becomes one line that a person can act on."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes_objects import a_container, a_node, a_pod, an_event

from bench.errors import DoesNotFit
from bench.targets.k8s.fitting import places
from bench.targets.k8s.pod_troubles import is_ready, restart, trouble, waiting

BACK_OFF = 'Back-off pulling image "nobody/nothing:1":\n failed to resolve reference'
CASES = {
    "an image that cannot be pulled": (
        a_pod(
            "worker-1",
            node="w1",
            initContainerStatuses=[
                a_container(
                    "wait-gcs-ready",
                    image="nobody/nothing:1",
                    state={"waiting": {"reason": "ImagePullBackOff", "message": BACK_OFF}},
                )
            ],
        ),
        ["worker-1", "nobody/nothing:1", "cannot be pulled on w1", "failed to resolve reference"],
    ),
    "a kill for memory": (
        a_pod(
            "head",
            node="w1",
            memory="2Gi",
            containerStatuses=[a_container(lastState={"terminated": {"reason": "OOMKilled", "exitCode": 137}})],
        ),
        ["head", "container ray", "w1", "memory limit of 2Gi"],
    ),
    "a container that ends again and again": (
        a_pod(
            "head",
            node="w1",
            containerStatuses=[
                a_container(
                    "exporter",
                    state={"waiting": {"reason": "CrashLoopBackOff"}},
                    lastState={"terminated": {"reason": "Error", "exitCode": 5}},
                )
            ],
        ),
        ["head", "exporter", "CrashLoopBackOff, exit code 5"],
    ),
    "an image without tc": (
        a_pod(
            "head",
            node="w1",
            initContainerStatuses=[
                a_container(
                    "limit-link",
                    state={
                        "waiting": {"reason": "RunContainerError", "message": 'exec: "tc": executable file not found'}
                    },
                )
            ],
        ),
        ["head: its container limit-link does not start on w1", 'exec: "tc"', "Leave --link-rate out", "task image"],
    ),
    "a pod that was evicted": (
        a_pod(
            "worker-1", node="w1", phase="Failed", reason="Evicted", message="The node was low on ephemeral-storage."
        ),
        ["worker-1", "w1", "Evicted", "ephemeral-storage"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_trouble_that_no_waiting_mends_is_one_line(case: str) -> None:
    pod, words = CASES[case]
    found = trouble([pod], [])
    assert found is not None
    text = str(found.error())
    assert [word for word in words if word not in text] == []
    assert "\n" not in text


def test_a_pod_that_finds_no_node_says_what_it_asks_for_and_what_there_is() -> None:
    message = "0/2 nodes are available: 1 Insufficient cpu."
    unscheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    pod = a_pod("head", cpu="2", memory="4Gi", conditions=[unscheduled])
    found = trouble([pod], [], places([a_node("w1", cpus="1900m")], []))
    assert found is not None
    text = str(found.error())
    assert isinstance(found.error(), DoesNotFit)
    assert "head fits onto no node: it needs 2 CPUs and 4.0 GiB; w1 has 1.9 CPUs and 8.0 GiB free" in text
    assert "Insufficient cpu" in text


def test_a_refused_admission_is_told_from_the_event_of_the_cluster() -> None:
    refusal = 'pods "raymeter-head" is forbidden: violates PodSecurity "restricted:latest"'
    event = an_event("FailedToCreateHeadPod", refusal, about="raymeter", kind="RayCluster")
    found = trouble([], [event])
    assert found is not None
    assert found.what == f"RayCluster raymeter: its pods cannot be created: {refusal}"
    assert "--link-rate" not in str(found.error())


@pytest.mark.parametrize(
    "refusal",
    [
        (
            'violates PodSecurity "restricted:latest": unrestricted capabilities (container "limit-link" must not include'
            ' "NET_ADMIN" in securityContext.capabilities.add)'
        ),
        (
            "unable to validate against any security context constraint: .initContainers[0].capabilities.add: Invalid value:"
            ' "NET_ADMIN": capability may not be added'
        ),
        "admission webhook denied the request: container <limit-link> has a disallowed capability",
    ],
)
def test_a_cluster_that_refuses_to_limit_links_is_told_from_the_event_with_what_that_needs(refusal: str) -> None:
    found = trouble([], [an_event("FailedToCreateHeadPod", refusal, about="raymeter", kind="RayCluster")])
    assert found is not None
    text = str(found.error())
    assert refusal in text
    assert "Leave --link-rate out, or provide what it needs" in text
    assert "\n" not in text


@pytest.mark.parametrize(
    "pod",
    [
        a_pod("head"),
        a_pod("head", node="w1", containerStatuses=[a_container(state={"waiting": {"reason": "ContainerCreating"}})]),
        a_pod("head", node="w1", containerStatuses=[a_container(state={"waiting": {"reason": "ErrImagePull"}})]),
        a_pod("head", node="w1", phase="Running", containerStatuses=[a_container(state={"running": {}})]),
    ],
)
def test_a_pod_on_its_way_is_no_trouble(pod: dict[str, Any]) -> None:
    assert not trouble([pod], [an_event("Pulled", "image is present", about="raymeter-head-x7k2p", warning=False)])


def test_at_the_deadline_each_late_pod_is_named_with_what_was_last_heard_of_it() -> None:
    late = a_pod("worker-1", node="w1", initContainerStatuses=[a_container("wait-gcs-ready", state={"running": {}})])
    ready = a_pod("head", node="w2", conditions=[{"type": "Ready", "status": "True"}])
    event = an_event("Started", "Started container", about=late["metadata"]["name"], warning=False)
    assert is_ready(ready)
    assert waiting([ready, late], [event]) == "worker-1 is waiting in wait-gcs-ready (Started: Started container)"


def test_a_pod_that_is_being_deleted_is_not_ready() -> None:
    pod = a_pod("head", conditions=[{"type": "Ready", "status": "True"}])
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:09Z"
    assert not is_ready(pod)


def test_a_container_that_was_begun_again_is_told_of_with_how_it_ended() -> None:
    ended = {"terminated": {"reason": "Error", "exitCode": 1}}
    again = a_container(restartCount=2, state={"running": {}}, lastState=ended)
    found = restart([a_pod("worker-1"), a_pod("head", node="w1", containerStatuses=[again])])
    assert found is not None
    assert found.what == "head: its container ray was restarted on w1 after Error, exit code 1, 2 times"
    assert restart([a_pod("head", containerStatuses=[a_container(restartCount=0)])]) is None
