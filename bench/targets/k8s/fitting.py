"""Checks that a topology's pods fit onto the Kubernetes nodes, and assigns them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import psutil

from bench.counts import plural
from bench.errors import DoesNotFit
from bench.model import Topology
from bench.targets.k8s.kubectl import Object
from bench.targets.k8s.rendering import requests, size

NOT_READY = "is not ready"
RESOURCES = {"cpu": "CPUs", "memory": "memory", "ephemeral-storage": "disk"}
_OPTIONS = {"cpu": "--cpus", "memory": "--memory-mib", "ephemeral-storage": "fewer nodes"}


@dataclass(frozen=True, kw_only=True)
class Place:
    """A Kubernetes node: its free resources, or why it takes no pods."""

    name: str
    allocatable: Mapping[str, float]
    free: Mapping[str, float]
    is_preferred: bool
    boot_id: str
    closed: str = ""


def places(nodes: Iterable[Object], pods: Iterable[Object]) -> list[Place]:
    """The free resources of every node: allocatable less the requests of `pods`, without those to be replaced."""
    used: dict[str, dict[str, float]] = {}
    for pod in pods:
        node = pod["spec"].get("nodeName")
        if node and pod.get("status", {}).get("phase") not in ("Succeeded", "Failed"):
            requested = used.setdefault(node, dict.fromkeys(RESOURCES, 0.0))
            for name, amount in requests(pod["spec"]).items():
                requested[name] += amount
    return [_place(node, used.get(node["metadata"]["name"], {})) for node in nodes]


def _place(node: Object, used: Mapping[str, float]) -> Place:
    allocatable = {name: size(node["status"]["allocatable"].get(name, "0")) for name in RESOURCES}
    return Place(
        name=node["metadata"]["name"],
        allocatable=allocatable,
        free={name: amount - used.get(name, 0.0) for name, amount in allocatable.items()},
        is_preferred=node["metadata"].get("labels", {}).get("raymeter.io/role") == "measured",
        boot_id=node["status"].get("nodeInfo", {}).get("bootID", ""),
        closed=_why_closed(node),
    )


def _why_closed(node: Object) -> str:
    conditions = {entry["type"]: entry["status"] for entry in node["status"].get("conditions", [])}
    if conditions.get("Ready") != "True":
        return NOT_READY
    if node["spec"].get("unschedulable"):
        return "is cordoned"
    taints = [entry["key"] for entry in node["spec"].get("taints", []) if entry["effect"] != "PreferNoSchedule"]
    # The not-ready taint stays for a moment after the node is ready.
    taints = [key for key in taints if key != "node.kubernetes.io/not-ready"]
    return f"is tainted {taints[0]}" if taints else ""


def assign(name: str, pods: Sequence[Mapping[str, float]], nodes: Sequence[Place]) -> list[str]:
    """A node for every pod, as even as the manifests' spread constraint demands. Raises DoesNotFit with the numbers."""
    _check_hosts(name, pods, nodes)
    open_places = [place for place in nodes if not place.closed]
    left = {place.name: dict(place.free) for place in open_places}
    taken = dict.fromkeys(left, 0)
    chosen: list[str] = []
    # The largest pod first: it fits onto the fewest nodes.
    for pod in sorted(pods, key=lambda pod: -pod["cpu"]):
        fewest = min(taken.values(), default=0)
        with_room = [
            place
            for place in open_places
            # No node gets a second pod while another schedulable node has none, even if that is full.
            if taken[place.name] <= fewest
            and all(amount <= left[place.name][kind] + 1e-6 for kind, amount in pod.items())
        ]
        if not with_room:
            raise DoesNotFit(
                _too_little(name, pods, nodes, placed=len(chosen)), "Use fewer CPUs or less memory, or free some."
            )
        best = min(with_room, key=lambda place: not place.is_preferred)
        taken[best.name] += 1
        for kind, amount in pod.items():
            left[best.name][kind] -= amount
        chosen.append(best.name)
    return chosen


def check_machine(topology: Topology) -> None:
    """Raise DoesNotFit if this machine has too few CPUs or too little memory for a kind cluster."""
    cpus, has_cpus = topology.totals["CPUs"], os.cpu_count() or 1
    if cpus > has_cpus:
        raise DoesNotFit(
            f"Topology {topology.name!r} needs {plural(cpus, 'CPU')}, and this machine has {has_cpus}.",
            "Use fewer CPUs: --cpus.",
        )
    memory, has_memory = topology.totals["memory"], psutil.virtual_memory().total
    if memory > has_memory:
        raise DoesNotFit(
            f"Topology {topology.name!r} needs {memory / 2**30:.1f} GiB of memory, and this machine has"
            f" {has_memory / 2**30:.1f} GiB.",
            "Use less memory: --memory-mib.",
        )


def _check_hosts(name: str, pods: Sequence[Mapping[str, float]], nodes: Sequence[Place]) -> None:
    """Check nodes that are containers of one machine: each reports all its resources, which exist once."""
    open_places = [place for place in nodes if not place.closed]
    hosts: dict[str, list[Place]] = {}
    for place in open_places:
        hosts.setdefault(place.boot_id or place.name, []).append(place)
    if len(hosts) == len(open_places):
        return
    for resource, how in _OPTIONS.items():
        capacity = sum(max(place.allocatable[resource] for place in group) for group in hosts.values())
        wanted = sum(pod[resource] for pod in pods)
        if wanted > capacity:
            raise DoesNotFit(
                f"Topology {name!r} needs {_amount(resource, wanted)}, and the {len(open_places)} Kubernetes nodes share"
                f" {plural(len(hosts), 'machine')} with {_amount(resource, capacity)}.",
                f"Use less: {how}.",
            )


def _too_little(name: str, pods: Sequence[Mapping[str, float]], nodes: Sequence[Place], *, placed: int) -> str:
    pod = max(pods, key=lambda pod: pod["cpu"])
    free = "; ".join(
        f"{place.name} {place.closed}" if place.closed else f"{place.name} has {_describe(place.free)} free"
        for place in nodes
    )
    evenly = ", as they are spread evenly" if placed > 0 else ""
    return (
        f"Topology {name!r} needs {plural(len(pods), 'pod')} of {_describe(pod)},"
        f" and there is room for {placed}{evenly}: {free or 'the cluster has no nodes'}."
    )


def _describe(amounts: Mapping[str, float]) -> str:
    *first, last = (_amount(resource, amounts[resource]) for resource in RESOURCES)
    return f"{', '.join(first)} and {last}"


def _amount(resource: str, amount: float) -> str:
    """2 CPUs, 4.0 GiB of memory, 8 GiB of disk."""
    if resource == "cpu":
        return plural(amount, "CPU")
    return f"{amount / 2**30:.{1 if resource == 'memory' else 0}f} GiB of {RESOURCES[resource]}"
