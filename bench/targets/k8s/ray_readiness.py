"""Whether a Ray cluster behind forwarded ports is the one that its topology asks for."""

from __future__ import annotations

import json

from bench.model import Topology
from bench.targets.readiness import get

TOLERANCE = 0.01  # Ray takes the store's headers off, and rounds


def lack(topology: Topology, *, dashboard_url: str, exporter_url: str, token: str) -> str:
    """What is missing, in words; empty when all answers and every node has what it should have."""
    status, _ = get(f"{dashboard_url}/api/jobs/", token)
    if status != 200:
        return f"the Jobs API answers {status or 'nothing'}"
    status, body = get(f"{dashboard_url}/api/v0/nodes", token)
    if status != 200:
        return f"Ray's list of nodes answers {status or 'nothing'}"
    nodes = [node for node in json.loads(body)["data"]["result"]["result"] if node["state"] == "ALIVE"]
    if len(nodes) != topology.nodes:
        return f"{len(nodes)} of {topology.nodes} nodes have registered"
    for node in nodes:
        if text := wrong(topology, node["node_ip"], node["resources_total"]):
            return text
    if get(f"{exporter_url}/healthz")[0] != 200:
        return "the exporter does not answer"
    return ""


def wrong(topology: Topology, node: str, has: dict[str, float]) -> str:
    """What a node has other than its topology says; empty where it is right."""
    asked = {
        "CPU": topology.cpus_per_node,
        "memory": topology.memory_bytes_per_node,
        "object_store_memory": topology.object_store_bytes_per_node,
    }
    for name, amount in asked.items():
        if abs(has.get(name, 0) - amount) > TOLERANCE * amount:
            return f"the node {node} has {has.get(name, 0):.0f} {name}, and not {amount}"
    return ""
