"""Checks that a cluster of containers answers: Jobs API, nodes, their agents and the exporter."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bench.errors import TargetFailed
from bench.model import Topology
from bench.targets import node_names, readiness
from bench.targets.docker import engine
from bench.targets.docker.plan import (
    AGENT_PORT,
    DASHBOARD_PORT,
    EXPORTER_PORT,
    NODE,
    labels,
    published_url,
)
from bench.targets.steps import SILENT, Steps

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container

POLL_SECONDS = 0.2
# Until a node's agent listens, a submission is answered "No available agent". Asked in the
# container, as its address may not be reachable: on a Mac the containers are in a virtual machine.
_ASK_AGENT = (
    "import http.client as h;"
    f"c = h.HTTPConnection('127.0.0.1', {AGENT_PORT}, timeout=2);"
    "c.request('GET', '/api/healthz');"
    "raise SystemExit(c.getresponse().status != 200)"
)


@dataclass
class Watch:
    """Observes the cluster of one deployment."""

    client: DockerClient
    deployment: str
    token: str = field(repr=False)
    _with_agent: set[str] = field(default_factory=set)  # containers whose agent has answered

    def containers(self) -> dict[str, Container]:
        """The present containers of nodes and exporter by name, the head first."""
        wanted = engine.by_label(labels(self.deployment, "cluster"))
        with engine.translate_errors("a list of its containers"):
            containers = self.client.containers.list(all=True, filters=wanted, ignore_removed=True)
        by_name = {container.labels[NODE]: container for container in containers}
        return dict(sorted(by_name.items(), key=lambda item: (item[0] != "head", len(item[0]), item[0])))

    def missing(self, containers: Mapping[str, Container], topology: Topology) -> list[str]:
        """Names of nodes that are not ready, and the exporter. Raises TargetFailed for a node of another size."""
        head = containers.get("head")
        return readiness.missing_nodes(
            topology,
            {name: _address(containers[name]) if name in containers else "" for name in node_names(topology)},
            dashboard_url=published_url(head.attrs, DASHBOARD_PORT) if head else "",
            exporter_url=published_url(head.attrs, EXPORTER_PORT) if head else "",
            token=self.token,
            agent_answers=lambda name: self._agent_answers(containers[name]),
        )

    def wait(self, topology: Topology, deadline_seconds: float, steps: Steps = SILENT) -> dict[str, Container]:
        """The containers, once all are ready. Raises TargetFailed when a container ends, or at the deadline."""

        def timeout_error(containers: Mapping[str, Container], late: Sequence[str]) -> TargetFailed:
            output = "; ".join(
                f"{name}: {_reason(containers[name]) if name in containers else 'its container is gone'}"
                for name in late
            )
            registered = readiness.describe_registered(topology, late)
            return TargetFailed(f"Nodes registered in {deadline_seconds:.0f} s: {registered}. {output}.")

        with readiness.registering(topology, steps) as report:
            return readiness.wait_until_ready(
                self.containers,
                missing=lambda containers: report(self.missing(containers, topology)),
                raise_for_failure=lambda containers, _late: raise_for_ended(containers),
                timeout_error=timeout_error,
                until=time.monotonic() + deadline_seconds,
                poll_seconds=POLL_SECONDS,
            )

    def _agent_answers(self, container: Container) -> bool:
        identity = str(container.id)
        if identity not in self._with_agent and _agent_answers(container):
            self._with_agent.add(identity)
        return identity in self._with_agent


def _address(container: Container) -> str:
    networks = container.attrs["NetworkSettings"]["Networks"].values()
    return next((str(network["IPAddress"]) for network in networks if network["IPAddress"]), "")


def raise_for_ended(containers: Mapping[str, Container]) -> None:
    """Raise TargetFailed, with the reason in its log, for a container that ended while it was starting."""
    for name, container in containers.items():
        if why := why_ended(container):
            raise TargetFailed(f"{name} ended while it was starting, {why}.")


def why_ended(container: Container) -> str:
    """How a container ended, with the reason in its log; empty for one that runs."""
    if container.status not in ("exited", "dead"):
        return ""
    state = container.attrs["State"]
    how = "it was killed, as it was out of memory" if state.get("OOMKilled") else f"exit code {state['ExitCode']}"
    return f"{how}: {_reason(container)}"


def _agent_answers(container: Container) -> bool:
    with engine.translate_errors(f"a command in {container.name}"):
        return bool(container.exec_run(["python", "-c", _ASK_AGENT]).exit_code == 0)


def _reason(container: Container) -> str:
    return engine.error_in_log(container) or "its log is empty"
