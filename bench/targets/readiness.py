"""Whether a cluster answers: its Jobs API, its nodes, their agents and its exporter."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import Any

from bench import http_client
from bench.errors import TargetFailed
from bench.record.files import last_line
from bench.targets.state import Home, Ledger, Node

POLL_SECONDS = 0.1
EXPORTER = "exporter"


def get(url: str, token: str = "", timeout_seconds: float = 10.0) -> tuple[int, bytes]:
    """Status and body of `url`; status 0 where nothing answers."""
    try:
        answer = http_client.get(url, token=token, timeout_seconds=timeout_seconds)
    except http_client.RequestException:
        return 0, b""
    return answer.status_code, answer.content


def missing(ledger: Ledger, token: str) -> list[str]:
    """The processes that are not ready yet, by name: nodes, and the exporter."""
    late = [node.name for node in ledger.nodes if not _is_ready(ledger, node, _alive(ledger, token))]
    if get(f"{ledger.exporter_url}/healthz")[0] != 200:
        late.append(EXPORTER)
    return late


def in_words(late: Sequence[str]) -> str:
    """Who does not answer; empty where all do."""
    return f"{', '.join(late)} {'does' if len(late) == 1 else 'do'} not answer" if late else ""


def wait(ledger: Ledger, home: Home, started: Mapping[str, subprocess.Popen[bytes]], deadline_seconds: float) -> None:
    """Return when all is ready. Raises TargetFailed when a process ends, or at the deadline."""
    deadline = time.monotonic() + deadline_seconds
    token = home.token()
    late = list(started)
    while True:
        for name, process in started.items():
            if process.poll() is not None:
                raise TargetFailed(
                    f"{name} ended while it was starting, exit code {process.returncode}:"
                    f" {last_line(home.log(name)) or 'it said nothing'}."
                )
        late = missing(ledger, token)
        if not late:
            return
        if time.monotonic() > deadline:
            raise TargetFailed(_too_late(ledger, home, late, deadline_seconds))
        time.sleep(POLL_SECONDS)


def _alive(ledger: Ledger, token: str) -> dict[str, dict[str, Any]]:
    if get(f"{ledger.dashboard_url}/api/jobs/", token)[0] != 200:
        return {}
    status, body = get(f"{ledger.dashboard_url}/api/v0/nodes", token)
    if status != 200:
        return {}
    nodes = json.loads(body)["data"]["result"]["result"]
    return {node["node_ip"]: node for node in nodes if node["state"] == "ALIVE"}


def _is_ready(ledger: Ledger, node: Node, alive: Mapping[str, Mapping[str, Any]]) -> bool:
    if node.address not in alive:
        return False
    cpus = alive[node.address]["resources_total"].get("CPU", 0)
    if cpus != ledger.topology.cpus_per_node:
        raise TargetFailed(f"{node.name} has {cpus:g} CPUs, and not {ledger.topology.cpus_per_node}.")
    # Until a node's agent listens, a submission is answered "No available agent".
    return get(f"http://{node.address}:{node.ports.agent}/api/healthz")[0] == 200


def _too_late(ledger: Ledger, home: Home, late: list[str], deadline_seconds: float) -> str:
    joined = len(ledger.nodes) - sum(name != EXPORTER for name in late)
    last = "; ".join(f"{name}: {last_line(home.log(name)) or 'it said nothing'}" for name in late)
    return f"{joined} of {len(ledger.nodes)} nodes joined in {deadline_seconds:.0f} s. {last}."
