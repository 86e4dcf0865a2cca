"""Waits until a Ray cluster, or the monitoring beside it, responds: one loop and one list of checks for every target."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from bench import http_client
from bench.errors import BenchError, TargetFailed
from bench.model import Topology
from bench.targets.steps import Steps

EXPORTER = "exporter"
TOLERANCE = 0.01  # of a node's resources: Ray subtracts the object store's headers, and rounds
HEALTH = {"prometheus": "/-/ready", "grafana": "/api/health"}
MONITORING_ASK_SECONDS = 2.0

Observation = TypeVar("Observation")
Late = TypeVar("Late", bound=Sequence[str])


def get(url: str, token: str = "", timeout_seconds: float = 10.0) -> tuple[int, bytes]:
    """Return status and body of `url`; status 0 if nothing responds."""
    try:
        answer = http_client.get(url, token=token, timeout_seconds=timeout_seconds)
    except http_client.RequestException:
        return 0, b""
    return answer.status_code, answer.content


def wait_until_ready(
    observe: Callable[[], Observation],
    *,
    missing: Callable[[Observation], Sequence[str]],
    raise_for_failure: Callable[[Observation, Sequence[str]], None],
    timeout_error: Callable[[Observation, Sequence[str]], BenchError],
    until: float,
    poll_seconds: float,
) -> Observation:
    """Observe until nothing is missing, and return that observation. Raises at `until`, a time of the monotonic clock.

    The observation of each poll is passed to everything: to `missing`, to `raise_for_failure`, which raises for failures that do not
    end by waiting, and to `timeout_error`.
    """
    while late := missing(observation := observe()):
        raise_for_failure(observation, late)
        if time.monotonic() > until:
            raise timeout_error(observation, late)
        time.sleep(poll_seconds)
    return observation


def missing_nodes(
    topology: Topology,
    addresses: Mapping[str, str],
    *,
    dashboard_url: str,
    exporter_url: str,
    token: str,
    agent_answers: Callable[[str], bool] = lambda _name: True,
) -> list[str]:
    """Nodes of `addresses` that are not ready, and the exporter, by name. Raises TargetFailed for a node of another size.

    Until a node's agent listens, submissions fail with "No available agent": `agent_answers` says whether it does.
    """
    alive = _alive(dashboard_url, token)
    late = []
    for name, address in addresses.items():
        if address in alive:
            _check_size(topology, name, alive[address])
        if address not in alive or not agent_answers(name):
            late.append(name)
    if not exporter_url or get(f"{exporter_url}/healthz")[0] != 200:
        late.append(EXPORTER)
    return late


def missing_monitoring(urls: Mapping[str, str | None]) -> list[str]:
    """Those of Prometheus and Grafana, by name and address, that do not answer."""
    return [
        name
        for name, url in urls.items()
        if url is None or get(f"{url}{HEALTH[name]}", timeout_seconds=MONITORING_ASK_SECONDS)[0] != 200
    ]


def describe(late: Sequence[str]) -> str:
    """Say in a sentence which names do not answer; empty if all do."""
    return f"{', '.join(late)} {'does' if len(late) == 1 else 'do'} not answer" if late else ""


@contextmanager
def registering(topology: Topology, steps: Steps) -> Iterator[Callable[[Late], Late]]:
    """Report the step in which the nodes register. Yields a function that reports the late names and returns them."""
    with steps.step("waiting for the nodes to register,", "nodes registered") as report_progress:

        def report(late: Late) -> Late:
            report_progress(describe_registered(topology, late))
            return late

        yield report


def describe_registered(topology: Topology, late: Sequence[str]) -> str:
    """Say how many nodes have registered if `late` have not."""
    return f"{topology.nodes - sum(name != EXPORTER for name in late)} of {topology.nodes}"


def _alive(dashboard_url: str, token: str) -> dict[str, Mapping[str, float]]:
    """Return the resources of the registered nodes, by address; none if the Jobs API does not respond."""
    if not dashboard_url or get(f"{dashboard_url}/api/jobs/", token)[0] != 200:
        return {}
    status, body = get(f"{dashboard_url}/api/v0/nodes", token)
    if status != 200:
        return {}
    nodes: list[dict[str, Any]] = json.loads(body)["data"]["result"]["result"]
    return {node["node_ip"]: node["resources_total"] for node in nodes if node["state"] == "ALIVE"}


def _check_size(topology: Topology, name: str, registered: Mapping[str, float]) -> None:
    wanted = {
        "CPU": ("CPUs", topology.cpus_per_node),
        "memory": ("bytes of memory", topology.memory_bytes_per_node),
        "object_store_memory": ("bytes of object store", topology.object_store_bytes_per_node),
    }
    for resource, (unit, amount) in wanted.items():
        if abs(registered.get(resource, 0) - amount) > TOLERANCE * amount:
            raise TargetFailed(
                f"{name} has another size: {unit} {registered.get(resource, 0):.0f} instead of {amount}."
            )
