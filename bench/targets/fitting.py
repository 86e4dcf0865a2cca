"""Whether a topology's pods find room: what each is to have, against what the Kubernetes nodes can really give."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bench.errors import DoesNotFit
from bench.model import Topology
from bench.targets.kubectl import Object
from bench.targets.rendering import requests, size

RESOURCES = {"cpu": "CPUs", "memory": "memory", "ephemeral-storage": "disk"}


@dataclass(frozen=True, kw_only=True)
class Place:
    """A Kubernetes node: what it has left for us, or why nothing may go there."""

    name: str
    allocatable: Mapping[str, float]
    free: Mapping[str, float]
    is_preferred: bool
    boot_id: str
    closed: str = ""


def places(nodes: Iterable[Object], pods: Iterable[Object]) -> list[Place]:
    """Allocatable less what runs there, of every node. Leave the pods out that are about to be replaced."""
    used: dict[str, dict[str, float]] = {}
    for pod in pods:
        node = pod["spec"].get("nodeName")
        if node and pod.get("status", {}).get("phase") not in ("Succeeded", "Failed"):
            so_far = used.setdefault(node, dict.fromkeys(RESOURCES, 0.0))
            for name, amount in requests(pod["spec"]).items():
                so_far[name] += amount
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
    conditions = {each["type"]: each["status"] for each in node["status"].get("conditions", [])}
    if conditions.get("Ready") != "True":
        return "is not ready"
    if node["spec"].get("unschedulable"):
        return "is cordoned"
    taints = [each["key"] for each in node["spec"].get("taints", []) if each["effect"] != "PreferNoSchedule"]
    # That of a node that was not ready outlives its reason by a moment.
    taints = [key for key in taints if key != "node.kubernetes.io/not-ready"]
    return f"is tainted {taints[0]}" if taints else ""


def assign(name: str, asked: Sequence[Mapping[str, float]], there: Sequence[Place]) -> list[str]:
    """A node for every pod, each its own as long as there are enough. Raises DoesNotFit with the numbers."""
    _check_hosts(name, asked, there)
    left = {place.name: dict(place.free) for place in there}
    taken = dict.fromkeys(left, 0)
    chosen: list[str] = []
    # The largest first: it has the fewest places to go to.
    for pod in sorted(asked, key=lambda pod: -pod["cpu"]):
        open_places = [
            place
            for place in there
            if not place.closed and all(amount <= left[place.name][kind] + 1e-6 for kind, amount in pod.items())
        ]
        if not open_places:
            raise DoesNotFit(_too_little(name, asked, there, placed=len(chosen)), "Ask for less, or make room.")
        best = min(open_places, key=lambda place: (taken[place.name], not place.is_preferred))
        taken[best.name] += 1
        for kind, amount in pod.items():
            left[best.name][kind] -= amount
        chosen.append(best.name)
    return chosen


def check_machine(topology: Topology) -> None:
    """Raise DoesNotFit where a cluster of kind on this machine would have too few CPUs; it has none of its own."""
    wanted, has = topology.totals["CPUs"], os.cpu_count() or 1
    if wanted > has:
        raise DoesNotFit(
            f"Topology {topology.name!r} asks for {wanted} CPUs, and this machine, of which kind makes nodes, has {has}.",
            "Ask for fewer CPUs: --cpus.",
        )


def _check_hosts(name: str, asked: Sequence[Mapping[str, float]], there: Sequence[Place]) -> None:
    """Nodes that are containers of one machine each say that they have all of it: it can be given once."""
    open_places = [place for place in there if not place.closed]
    hosts: dict[str, list[Place]] = {}
    for place in open_places:
        hosts.setdefault(place.boot_id or place.name, []).append(place)
    capacity = sum(max(place.allocatable["cpu"] for place in group) for group in hosts.values())
    wanted = sum(pod["cpu"] for pod in asked)
    if wanted > capacity and len(hosts) < len(open_places):
        raise DoesNotFit(
            f"Topology {name!r} asks for {wanted:g} CPUs, and the {len(open_places)} Kubernetes nodes share"
            f" {len(hosts)} machine{'s' if len(hosts) > 1 else ''} with {capacity:g}.",
            "Ask for fewer CPUs: --cpus.",
        )


def _too_little(name: str, asked: Sequence[Mapping[str, float]], there: Sequence[Place], *, placed: int) -> str:
    pod = max(asked, key=lambda pod: pod["cpu"])
    free = "; ".join(
        f"{place.name} {place.closed}" if place.closed else f"{place.name} has {_words(place.free)} free"
        for place in there
    )
    return (
        f"Topology {name!r} asks for {len(asked)} pod{'s' if len(asked) > 1 else ''} of {_words(pod)},"
        f" and there is room for {placed}: {free or 'the cluster has no nodes'}."
    )


def _words(amounts: Mapping[str, float]) -> str:
    memory_gib, disk_gib = amounts["memory"] / 2**30, amounts["ephemeral-storage"] / 2**30
    return f"{amounts['cpu']:g} CPUs, {memory_gib:.1f} GiB of memory and {disk_gib:.0f} GiB of disk"
