"""Whether a cluster of containers answers: its Jobs API, its nodes, their agents and its exporter."""

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
    """Looks at the cluster of one deployment, again and again."""

    client: DockerClient
    deployment: str
    token: str = field(repr=False)
    _with_agent: set[str] = field(default_factory=set)  # containers whose agent has answered

    def containers(self) -> dict[str, Container]:
        """Nodes and exporter by name, the head first, as they are now."""
        wanted = engine.by_label(labels(self.deployment, "cluster"))
        with engine.translate_errors("a list of what it runs"):
            found = self.client.containers.list(all=True, filters=wanted, ignore_removed=True)
        by_name = {each.labels[NODE]: each for each in found}
        return dict(sorted(by_name.items(), key=lambda item: (item[0] != "head", len(item[0]), item[0])))

    def missing(self, there: Mapping[str, Container], topology: Topology) -> list[str]:
        """Who is not ready yet, by name. Raises TargetFailed where a node is not what it should be."""
        head = there.get("head")
        return readiness.missing_nodes(
            topology,
            {name: _address(there[name]) if name in there else "" for name in node_names(topology)},
            dashboard_url=published_url(head.attrs, DASHBOARD_PORT) if head else "",
            exporter_url=published_url(head.attrs, EXPORTER_PORT) if head else "",
            token=self.token,
            agent_answers=lambda name: self._agent_answers(there[name]),
        )

    def wait(self, topology: Topology, deadline_seconds: float, steps: Steps = SILENT) -> dict[str, Container]:
        """All of it, once it is ready. Raises TargetFailed when a container ends, or at the deadline."""

        def timeout_error(there: Mapping[str, Container], late: Sequence[str]) -> TargetFailed:
            output = "; ".join(f"{name}: {_reason(there[name]) if name in there else 'gone'}" for name in late)
            registered = readiness.describe_registered(topology, late)
            return TargetFailed(f"{registered} nodes registered in {deadline_seconds:.0f} s. {output}.")

        with readiness.registering(topology, steps) as report:
            return readiness.wait_until_ready(
                self.containers,
                missing=lambda there: report(self.missing(there, topology)),
                raise_for_failure=lambda there, _late: raise_for_ended(there),
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
    return f"{how}: {_reason(container)}"


def _agent_answers(container: Container) -> bool:
    with engine.translate_errors(f"a look into {container.name}"):
        return bool(container.exec_run(["python", "-c", _ASK_AGENT]).exit_code == 0)


def _reason(container: Container) -> str:
    return engine.error_in_log(container) or "its log is empty"
