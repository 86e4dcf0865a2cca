"""The Ray cluster of a deployment, as pods: made, waited for with open eyes, and taken away."""

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
PATIENCE_SECONDS = 5.0  # a pod may be unschedulable for a moment, while another one lets go of its node
POLL_SECONDS = 1.0  # each look is a process of kubectl and work of the API server, beside Ray that starts
RAY_CLUSTERS = "rayclusters.ray.io"


@dataclass(frozen=True)
class RayPods:
    """Those of one deployment, in the namespace of its name."""

    kubectl: Kubectl
    deployment: str

    def start(self, cluster: Object) -> float:
        """Ask for a Ray cluster. Gives the moment when it must be ready."""
        self.kubectl.apply([cluster])
        return time.monotonic() + READY_SECONDS

    def wait_for_head(self, until: float) -> str:
        """The name of the head's pod, as soon as it runs. Raises TargetFailed and DoesNotFit."""

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
        """Return when as many pods as asked for are ready, on as many Kubernetes nodes, and all nodes answer.

        `late` is given the nodes' addresses by name, and names those that do not answer.
        """

        def missing(pods: Sequence[Object]) -> list[str]:
            ready = sum(pod_troubles.is_ready(pod) for pod in pods)
            if not ready == len(pods) == topology.nodes:
                return [f"{ready} of {topology.nodes} pods are ready" if pods else "no pod is there"]
            return [readiness.describe(names)] if (names := late(_addresses(pods))) else []

        _check_spread(self._wait(missing, until), nodes_wanted)

    def addresses(self) -> dict[str, str]:
        """The addresses of the pods, by the node's name."""
        return _addresses(self._look()[0])

    def _wait(self, missing: Callable[[Sequence[Object]], Sequence[str]], until: float) -> list[Object]:
        """The pods, once nothing is missing of them."""
        pods, _events = readiness.wait_until_ready(
            self._look,
            missing=lambda seen: missing(seen[0]),
            raise_for_failure=lambda seen, _late: self._raise_for_trouble(*seen, until=until),
            timeout_error=lambda seen, late: _timeout_error(*seen, late=late),
            until=until,
            poll_seconds=POLL_SECONDS,
        )
        return pods

    def trouble(self) -> pod_troubles.Trouble | None:
        """What is wrong with the pods now, or befell them since they were ready."""
        pods, events = self._look()
        return pod_troubles.trouble(pods, events) or pod_troubles.restart(pods)

    def images(self) -> dict[str, str]:
        """What Ray really runs on each node: the image's digest, as the node's container runtime has it."""
        pods, _ = self._look()
        return {pod_troubles.name_of(pod): digest for pod in pods if (digest := _digest_of_ray(pod))}

    def ask(self, words: Sequence[str]) -> dict[str, str]:
        """What a command prints in the container of Ray, by the node's name; a pod in which it fails is left out."""
        said: dict[str, str] = {}
        for pod in self._look()[0]:
            inside = ("exec", pod["metadata"]["name"], "--namespace", self.deployment, "--container", "ray", "--")
            with suppress(TargetFailed):
                said[pod_troubles.name_of(pod)] = self.kubectl.run(*inside, *words)
        return said

    def token(self) -> str:
        """What Ray's ports want to hear; the operator has made it."""
        found = self.kubectl.get("secret", RAY_CLUSTER, "--namespace", self.deployment)
        return base64.b64decode(found[0]["data"]["auth_token"]).decode() if found else ""

    def places(self) -> list[fitting.Place]:
        """What the Kubernetes nodes could give, were these pods gone."""
        found = self.kubectl.get("nodes,pods", "--all-namespaces")
        pods = [each for each in found if each["kind"] == "Pod" and not self._is_own(each)]
        return fitting.places([each for each in found if each["kind"] == "Node"], pods)

    def end(self) -> None:
        """Delete the Ray cluster, and wait until its pods and its Secret have gone with it."""
        if not self.kubectl.get("crd", kuberay.DEFINITION):
            return
        where = ("--namespace", self.deployment)
        # In the foreground: the next cluster has the same name, and must not meet what is still being collected.
        self.kubectl.run(
            *("delete", RAY_CLUSTERS, RAY_CLUSTER, *where),
            *("--ignore-not-found", "--cascade=foreground", "--wait=false"),
        )
        kuberay.wait_gone(self.kubectl, RAY_CLUSTERS, RAY_CLUSTER, time.monotonic() + GONE_SECONDS, *where)

    def _raise_for_trouble(self, pods: Sequence[Object], events: Sequence[Object], *, until: float) -> None:
        """Raise what no waiting mends."""
        is_patient = until - time.monotonic() >= READY_SECONDS - PATIENCE_SECONDS
        if not is_patient and pod_troubles.trouble(pods, events):
            found = pod_troubles.trouble(pods, events, self.places())
            if found is not None:
                raise self._with_log(found).error()

    def _with_log(self, found: pod_troubles.Trouble) -> pod_troubles.Trouble:
        """The same with the reason that the container's log has, where it can be read."""
        if found.log_of is None:
            return found
        pod, container = found.log_of
        where = ("--namespace", self.deployment, "--container", container, f"--tail={LOG_LINES}")
        with suppress(TargetFailed):
            if reason := error_in_output(self.kubectl.run("logs", pod, *where)):
                return replace(found, what=f"{found.what}: {reason}")
        return found

    def _look(self) -> tuple[list[Object], list[Object]]:
        found = self.kubectl.get(f"pods,events,{RAY_CLUSTERS}", "--namespace", self.deployment)
        pods = [each for each in found if each["kind"] == "Pod" and self._is_own(each)]
        clusters = [each for each in found if each["kind"] == "RayCluster" and each["metadata"]["name"] == RAY_CLUSTER]
        # Events outlive what they tell of, and the next pod may have the name: only the id tells them apart.
        known = {each["metadata"]["uid"] for each in (*pods, *clusters)}
        return pods, [each for each in found if each["kind"] == "Event" and each["involvedObject"].get("uid") in known]

    def _is_own(self, pod: Object) -> bool:
        metadata = pod["metadata"]
        return bool(
            metadata["namespace"] == self.deployment and metadata.get("labels", {}).get("ray.io/cluster") == RAY_CLUSTER
        )


def _timeout_error(pods: Sequence[Object], events: Sequence[Object], *, late: Sequence[str]) -> TargetFailed:
    """At the deadline: what is missing, and what was last heard of it."""
    said = pod_troubles.waiting(pods, events) or ("" if pods else "The operator has made no pod: does it run?")
    return TargetFailed(f"After {READY_SECONDS:.0f} s {', '.join(late)}. {said}".rstrip(". ") + ".", pod_troubles.LOOK)


def _addresses(pods: Sequence[Object]) -> dict[str, str]:
    return {pod_troubles.name_of(pod): str(pod.get("status", {}).get("podIP", "")) for pod in pods}


def _digest_of_ray(pod: Object) -> str:
    """Such as sha256:12ab…; empty as long as the container has not begun. Runtimes put the repository before it."""
    statuses = pod.get("status", {}).get("containerStatuses", [])
    return next((str(each["imageID"]).rpartition("@")[2] for each in statuses if each["name"] == "ray"), "")


def _check_spread(pods: Sequence[Object], nodes_wanted: int) -> None:
    used = {pod["spec"]["nodeName"] for pod in pods}
    if len(used) < nodes_wanted:
        raise TargetFailed(
            f"The {len(pods)} pods are on {', '.join(sorted(used))}, and there was room on {nodes_wanted} nodes.",
            "Try again.",
        )
