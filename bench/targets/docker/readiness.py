"""Whether a cluster of containers answers: its Jobs API, its nodes, their agents and its exporter."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bench.errors import TargetFailed
from bench.model import Topology
from bench.targets import node_names
from bench.targets.docker import engine
from bench.targets.docker.plan import (
    AGENT_PORT,
    DASHBOARD_PORT,
    EXPORTER_PORT,
    NODE,
    labels,
    published_url,
)
from bench.targets.readiness import EXPORTER, get

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container

POLL_SECONDS = 0.2
# Until a node's agent listens, a submission is answered "No available agent". Asked inside, as its address may be no
# one else's: on a Mac the containers are in a machine of their own.
_ASK_AGENT = (
    "import http.client as h;"
    f"c = h.HTTPConnection('127.0.0.1', {AGENT_PORT}, timeout=2);"
    "c.request('GET', '/api/healthz');"
    "raise SystemExit(c.getresponse().status != 200)"
)


@dataclass
class Watch:
    """Looks at the cluster of one appliance, again and again."""

    client: DockerClient
    appliance: str
    token: str = field(repr=False)
    _with_agent: set[str] = field(default_factory=set)  # containers whose agent has answered

    def containers(self) -> dict[str, Container]:
        """Nodes and exporter by name, the head first, as they are now."""
        wanted = engine.by_label(labels(self.appliance, "cluster"))
        with engine.in_words("a list of what it runs"):
            found = self.client.containers.list(all=True, filters=wanted, ignore_removed=True)
        by_name = {each.labels[NODE]: each for each in found}
        return dict(sorted(by_name.items(), key=lambda item: (item[0] != "head", len(item[0]), item[0])))

    def missing(self, there: Mapping[str, Container], topology: Topology) -> list[str]:
        """Who is not ready yet, by name. Raises TargetFailed where a node is not what it should be."""
        head = there.get("head")
        base = published_url(head.attrs, DASHBOARD_PORT) if head else ""
        alive = self._alive(base) if base else {}
        late = [
            name
            for name in node_names(topology)
            if name not in there or not self._is_ready(there[name], name, alive, topology)
        ]
        exporter = published_url(head.attrs, EXPORTER_PORT) if head else ""
        if not exporter or get(f"{exporter}/healthz")[0] != 200:
            late.append(EXPORTER)
        return late

    def wait(self, topology: Topology, deadline_seconds: float) -> dict[str, Container]:
        """All of it, once it is ready. Raises TargetFailed when a container ends, or at the deadline."""
        deadline = time.monotonic() + deadline_seconds
        while True:
            there = self.containers()
            raise_for_ended(there)
            late = self.missing(there, topology)
            if not late:
                return there
            if time.monotonic() > deadline:
                joined = topology.nodes - sum(name != EXPORTER for name in late)
                said = "; ".join(f"{name}: {_said(there[name]) if name in there else 'gone'}" for name in late)
                raise TargetFailed(f"{joined} of {topology.nodes} nodes joined in {deadline_seconds:.0f} s. {said}.")
            time.sleep(POLL_SECONDS)

    def _alive(self, base: str) -> dict[str, dict[str, Any]]:
        if get(f"{base}/api/jobs/", self.token)[0] != 200:
            return {}
        status, body = get(f"{base}/api/v0/nodes", self.token)
        if status != 200:
            return {}
        nodes = json.loads(body)["data"]["result"]["result"]
        return {node["node_ip"]: node for node in nodes if node["state"] == "ALIVE"}

    def _is_ready(
        self, container: Container, name: str, alive: Mapping[str, Mapping[str, Any]], topology: Topology
    ) -> bool:
        networks = container.attrs["NetworkSettings"]["Networks"].values()
        registered = [alive[network["IPAddress"]] for network in networks if network["IPAddress"] in alive]
        if not registered:
            return False
        cpus = registered[0]["resources_total"].get("CPU", 0)
        if cpus != topology.cpus_per_node:
            raise TargetFailed(f"{name} has {cpus:g} CPUs, and not {topology.cpus_per_node}.")
        identity = str(container.id)
        if identity not in self._with_agent and _agent_answers(container):
            self._with_agent.add(identity)
        return identity in self._with_agent


def raise_for_ended(there: Mapping[str, Container]) -> None:
    """Raise TargetFailed, with its own last words, for a container that has ended while it was starting."""
    for name, container in there.items():
        if why := why_ended(container):
            raise TargetFailed(f"{name} ended while it was starting, {why}.")


def why_ended(container: Container) -> str:
    """How a container ended, with its own last words; empty for one that runs."""
    if container.status not in ("exited", "dead"):
        return ""
    state = container.attrs["State"]
    how = "it was killed, as its memory was full" if state.get("OOMKilled") else f"exit code {state['ExitCode']}"
    return f"{how}: {_said(container)}"


def _agent_answers(container: Container) -> bool:
    with engine.in_words(f"a look into {container.name}"):
        return bool(container.exec_run(["python", "-c", _ASK_AGENT]).exit_code == 0)


def _said(container: Container) -> str:
    return engine.last_line(container).rstrip(".") or "it said nothing"
