"""Makes, observes and deletes the pods of a deployment's Ray cluster."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from bench.errors import TargetFailed, error_in_output
from bench.model import Topology
from bench.record.files import LOG_LINES
from bench.targets import readiness
from bench.targets.k8s import fitting, kuberay, pod_troubles
from bench.targets.k8s.kubectl import Kubectl, Object
from bench.targets.k8s.rendering import RAY_CLUSTER

READY_SECONDS = 180.0
GONE_SECONDS = 60.0
PATIENCE_SECONDS = 5.0  # a pod may be unschedulable until another has left its node
POLL_SECONDS = 1.0  # each poll is a kubectl process and work for the API server while Ray starts
RAY_CLUSTERS = "rayclusters.ray.io"


@dataclass(frozen=True)
class RayPods:
    """The pods of one deployment, in the namespace of its name."""

    kubectl: Kubectl
    deployment: str

    def start(self, cluster: Object) -> float:
        """Create the RayCluster. Returns its deadline on the monotonic clock."""
        self.kubectl.apply([cluster])
        return time.monotonic() + READY_SECONDS

    def wait_for_head(self, until: float) -> str:
        """The name of the head's pod, once it runs. Raises TargetFailed and DoesNotFit."""

        def running_heads(pods: Sequence[Object]) -> list[str]:
            return [
                str(pod["metadata"]["name"])
                for pod in pods
                if pod_troubles.name_of(pod) == "head" and pod.get("status", {}).get("phase") == "Running"
            ]

        pods = self._wait(lambda pods: [] if running_heads(pods) else ["the head does not run"], until)
        return running_heads(pods)[0]

    def wait_until_ready(
        self, topology: Topology, until: float, *, nodes_wanted: int, late: Callable[[Mapping[str, str]], Sequence[str]]
    ) -> None:
        """Return when all pods are ready, on `nodes_wanted` Kubernetes nodes, and all Ray nodes answer.

        `late` is given the nodes' addresses by name, and names those that do not answer.
        """

        def missing(pods: Sequence[Object]) -> list[str]:
            ready = sum(pod_troubles.is_ready(pod) for pod in pods)
            if not ready == len(pods) == topology.nodes:
                return [f"pods ready: {ready} of {topology.nodes}" if pods else "no pod exists"]
            return [readiness.describe(names)] if (names := late(_addresses(pods))) else []

        _check_spread(self._wait(missing, until), nodes_wanted)

    def addresses(self) -> dict[str, str]:
        """The addresses of the pods, by the Ray node's name."""
        return _addresses(self._look()[0])

    def _wait(self, missing: Callable[[Sequence[Object]], Sequence[str]], until: float) -> list[Object]:
        """The pods, once nothing is missing of them."""
        pods, _events = readiness.wait_until_ready(
            self._look,
            missing=lambda pods_and_events: missing(pods_and_events[0]),
            raise_for_failure=lambda pods_and_events, _late: self._raise_for_trouble(*pods_and_events, until=until),
            timeout_error=lambda pods_and_events, late: _timeout_error(*pods_and_events, late=late),
            until=until,
            poll_seconds=POLL_SECONDS,
        )
        return pods

    def trouble(self) -> pod_troubles.Trouble | None:
        """The first failure of the pods, or restart since they were ready."""
        pods, events = self._look()
        return pod_troubles.trouble(pods, events) or pod_troubles.restart(pods)

    def images(self) -> dict[str, str]:
        """The digest of the image that really runs on each node, from its container runtime."""
        pods, _ = self._look()
        return {pod_troubles.name_of(pod): digest for pod in pods if (digest := _digest_of_ray(pod))}

    def ask(self, command: Sequence[str]) -> dict[str, str]:
        """Output of a command in Ray's container, by the node's name, without pods in which it fails."""
        outputs: dict[str, str] = {}
        for pod in self._look()[0]:
            inside = ("exec", pod["metadata"]["name"], "--namespace", self.deployment, "--container", "ray", "--")
            with suppress(TargetFailed):
                outputs[pod_troubles.name_of(pod)] = self.kubectl.run(*inside, *command)
        return outputs

    def token(self) -> str:
        """The token of Ray's ports, which the operator made."""
        secrets = self.kubectl.get("secret", RAY_CLUSTER, "--namespace", self.deployment)
        return base64.b64decode(secrets[0]["data"]["auth_token"]).decode() if secrets else ""

    def places(self) -> list[fitting.Place]:
        """The Kubernetes nodes and their free resources without these pods."""
        resources = self.kubectl.get("nodes,pods", "--all-namespaces")
        pods = [resource for resource in resources if resource["kind"] == "Pod" and not self._is_own(resource)]
        return fitting.places([resource for resource in resources if resource["kind"] == "Node"], pods)

    def end(self) -> None:
        """Delete the RayCluster, and wait until its pods and its Secret are gone."""
        if not self.kubectl.get("crd", kuberay.DEFINITION):
            return
        where = ("--namespace", self.deployment)
        # In the foreground, as the next cluster has the same name.
        self.kubectl.run(
            *("delete", RAY_CLUSTERS, RAY_CLUSTER, *where),
            *("--ignore-not-found", "--cascade=foreground", "--wait=false"),
        )
        kuberay.wait_gone(self.kubectl, RAY_CLUSTERS, RAY_CLUSTER, time.monotonic() + GONE_SECONDS, *where)

    def _raise_for_trouble(self, pods: Sequence[Object], events: Sequence[Object], *, until: float) -> None:
        """Raise a failure of the pods that does not end by waiting."""
        is_patient = until - time.monotonic() >= READY_SECONDS - PATIENCE_SECONDS
        if not is_patient and pod_troubles.trouble(pods, events):
            trouble = pod_troubles.trouble(pods, events, self.places())
            if trouble is not None:
                raise self._with_log(trouble).error()

    def _with_log(self, trouble: pod_troubles.Trouble) -> pod_troubles.Trouble:
        """The same, with the reason from the container's log if that can be read."""
        if trouble.log_of is None:
            return trouble
        pod, container = trouble.log_of
        where = ("--namespace", self.deployment, "--container", container, f"--tail={LOG_LINES}")
        with suppress(TargetFailed):
            if reason := error_in_output(self.kubectl.run("logs", pod, *where)):
                return replace(trouble, what=f"{trouble.what}: {reason}")
        return trouble

    def _look(self) -> tuple[list[Object], list[Object]]:
        resources = self.kubectl.get(f"pods,events,{RAY_CLUSTERS}", "--namespace", self.deployment)
        pods = [resource for resource in resources if resource["kind"] == "Pod" and self._is_own(resource)]
        clusters = [
            resource
            for resource in resources
            if resource["kind"] == "RayCluster" and resource["metadata"]["name"] == RAY_CLUSTER
        ]
        # Events outlive their objects, and the next pod may have the same name; only the uid is unique.
        known = {resource["metadata"]["uid"] for resource in (*pods, *clusters)}
        return pods, [
            resource
            for resource in resources
            if resource["kind"] == "Event" and resource["involvedObject"].get("uid") in known
        ]

    def _is_own(self, pod: Object) -> bool:
        metadata = pod["metadata"]
        return bool(
            metadata["namespace"] == self.deployment and metadata.get("labels", {}).get("ray.io/cluster") == RAY_CLUSTER
        )


def _timeout_error(pods: Sequence[Object], events: Sequence[Object], *, late: Sequence[str]) -> TargetFailed:
    """The error at the deadline: what is missing, and its last events."""
    state = pod_troubles.waiting(pods, events) or (
        "" if pods else "The operator has created no pod; check that it runs."
    )
    return TargetFailed(
        f"The Ray cluster was not ready after {READY_SECONDS:.0f} s: {', '.join(late)}. {state}".rstrip(". ") + ".",
        pod_troubles.LOOK,
    )


def _addresses(pods: Sequence[Object]) -> dict[str, str]:
    return {pod_troubles.name_of(pod): str(pod.get("status", {}).get("podIP", "")) for pod in pods}


def _digest_of_ray(pod: Object) -> str:
    """The digest of Ray's image, such as sha256:12ab…; empty before the container has started."""
    statuses = pod.get("status", {}).get("containerStatuses", [])
    return next((str(status["imageID"]).rpartition("@")[2] for status in statuses if status["name"] == "ray"), "")


def _check_spread(pods: Sequence[Object], nodes_wanted: int) -> None:
    used = {pod["spec"]["nodeName"] for pod in pods}
    if len(used) < nodes_wanted:
        raise TargetFailed(
            f"The {len(pods)} pods are on {', '.join(sorted(used))} only, though {nodes_wanted} nodes had room.",
            "Try again.",
        )
