"""The manifests with the numbers, the names and the image of one topology put in: pure functions on what kustomize gives."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from bench.model import Topology
from bench.targets import node_names
from bench.targets.k8s.kubectl import Object

NAMESPACE = "raymeter"  # what the manifests call it; a deployment has one of its own name
RAY_CLUSTER = "raymeter"
MIB = 2**20
SHARED_MEMORY_SHARE = 1.25  # of the object store: Ray wants some more than it, and so does who shares tensors
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True, kw_only=True)
class Shape:
    """All in which a stood-up deployment may differ from the manifests."""

    topology: Topology
    deployment: str
    image: str
    ray_settings: Mapping[str, str] = field(default_factory=dict)  # Ray's own, without the RAY_ before them


def render(objects: Iterable[Object], shape: Shape) -> list[Object]:
    """The manifests for `shape`. Nothing but numbers, names and the image is changed."""
    return [_render_one(copy.deepcopy(each), shape) for each in objects]


def ray_cluster(objects: Iterable[Object]) -> Object:
    """The RayCluster among them."""
    return next(each for each in objects if each["kind"] == "RayCluster")


def pod_templates(cluster: Object) -> dict[str, Object]:
    """The pods that a RayCluster asks for, by the node's name."""
    spec = cluster["spec"]
    groups = spec.get("workerGroupSpecs", [])
    return {"head": spec["headGroupSpec"]["template"]} | {group["groupName"]: group["template"] for group in groups}


def _render_one(each: Object, shape: Shape) -> Object:
    metadata = each["metadata"]
    if each["kind"] == "Namespace":
        metadata["name"] = shape.deployment
        metadata.setdefault("labels", {})["raymeter.io/deployment"] = shape.deployment
    elif metadata.get("namespace") == NAMESPACE:
        metadata["namespace"] = shape.deployment
    for subject in each.get("subjects", []):
        if subject.get("namespace") == NAMESPACE:
            subject["namespace"] = shape.deployment
    if each["kind"] == "RayCluster":
        _render_ray_cluster(each["spec"], shape)
    return each


def _render_ray_cluster(spec: Object, shape: Shape) -> None:
    head, worker = spec["headGroupSpec"], (spec.get("workerGroupSpecs") or [None])[0]
    for group in (head, worker):
        if group is not None:
            _render_group(group, shape)
    spec["workerGroupSpecs"] = [_named(worker, name) for name in node_names(shape.topology)[1:]]


def _named(worker: Object, name: str) -> Object:
    group = copy.deepcopy(worker)
    group["groupName"] = name
    group["template"]["metadata"]["labels"]["raymeter.io/node"] = name
    return group


def _render_group(group: Object, shape: Shape) -> None:
    topology, pod = shape.topology, group["template"]["spec"]
    group["rayStartParams"] |= {
        "num-cpus": str(topology.cpus_per_node),
        "memory": str(topology.memory_bytes_per_node),
        "object-store-memory": str(topology.object_store_bytes_per_node),
    }
    for container in pod["containers"]:
        container["image"] = shape.image
    ray, *beside = pod["containers"]
    _set(ray["resources"], cpu=topology.cpus_per_node, memory_bytes=topology.memory_bytes_per_node)
    if "resources" in pod:
        extra = sum(size_bytes(container["resources"]["requests"]["memory"]) for container in beside)
        _set(pod["resources"], cpu=topology.cpus_per_node, memory_bytes=topology.memory_bytes_per_node + extra)
    for variable in ray["env"]:
        if variable["name"] in THREAD_VARIABLES:
            variable["value"] = str(topology.threads_per_node)
    ray["env"] += [{"name": f"RAY_{name}", "value": value} for name, value in shape.ray_settings.items()]
    shared = next(volume for volume in pod["volumes"] if volume["name"] == "shared-memory")
    shared["emptyDir"]["sizeLimit"] = in_mib(
        math.ceil(topology.object_store_bytes_per_node * SHARED_MEMORY_SHARE / MIB) * MIB
    )


def _set(resources: Object, *, cpu: int, memory_bytes: int) -> None:
    # Requests are limits: a pod that is Guaranteed is throttled and killed last.
    for which in ("requests", "limits"):
        resources[which] |= {"cpu": str(cpu), "memory": in_mib(memory_bytes)}


def in_mib(number: int) -> str:
    """A size as a quantity: in MiB, or to the byte where it is no whole number of them."""
    return f"{number // MIB}Mi" if number % MIB == 0 else str(number)


def requests(pod_spec: Object) -> dict[str, float]:
    """What the scheduler will count for a pod: CPUs, bytes of memory and of ephemeral storage."""
    found = {name: _requested(pod_spec, name) for name in ("cpu", "memory", "ephemeral-storage")}
    whole = (pod_spec.get("resources") or {}).get("requests") or {}
    return found | {name: size(amount) for name, amount in whole.items() if name in found}


def _requested(pod_spec: Object, name: str) -> float:
    def of(container: Mapping[str, Object]) -> float:
        resources = container.get("resources") or {}
        amount = (resources.get("requests") or {}).get(name, (resources.get("limits") or {}).get(name, 0))
        return size(amount)

    together = sum(of(container) for container in pod_spec.get("containers", []))
    before = max((of(container) for container in pod_spec.get("initContainers", [])), default=0.0)
    return max(together, before)


_SUFFIXES = {
    **{f"{letter}i": 1024.0**power for power, letter in enumerate("KMGTPE", start=1)},
    **{letter: 1000.0**power for power, letter in enumerate("kMGTPE", start=1)},
    "m": 1e-3,
    "u": 1e-6,
    "n": 1e-9,
}


def size(quantity: str | float) -> float:
    """A Kubernetes quantity as a number: 100m, 2, 512Mi, 1e3."""
    text = str(quantity)
    for suffix in sorted(_SUFFIXES, key=len, reverse=True):
        if text.endswith(suffix):
            return float(text.removesuffix(suffix)) * _SUFFIXES[suffix]
    return float(text)


def size_bytes(quantity: str) -> int:
    """A quantity of bytes."""
    return round(size(quantity))
