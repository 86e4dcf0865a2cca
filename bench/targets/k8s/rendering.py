"""Renders the manifests for one topology: puts in numbers, names and image, and the limit of the nodes' links."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from bench.model import Topology
from bench.targets import link, node_names
from bench.targets.k8s.kubectl import Object

NAMESPACE = "raymeter"  # in the manifests; each deployment has its own
RAY_CLUSTER = "raymeter"
MIB = 2**20
SHARED_MEMORY_SHARE = 1.25  # of the object store: Ray and shared tensors need more
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
LIMIT_LINK = "limit-link"  # the init container
STANDARD = "pod-security.kubernetes.io/enforce"


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Everything in which a deployment may differ from the manifests."""

    topology: Topology
    deployment: str
    image: str
    link_rate: str | None = None
    ray_settings: Mapping[str, str] = field(default_factory=dict)  # Ray's own, without the RAY_ before them


def render(objects: Iterable[Object], shape: Shape) -> list[Object]:
    """The manifests for `shape`; numbers, names and the image change, and with a link rate the links are limited."""
    return [_render_one(copy.deepcopy(resource), shape) for resource in objects]


def ray_cluster(objects: Iterable[Object]) -> Object:
    """The RayCluster among the objects."""
    return next(resource for resource in objects if resource["kind"] == "RayCluster")


def pod_templates(cluster: Object) -> dict[str, Object]:
    """The pod templates of a RayCluster, by the node's name."""
    spec = cluster["spec"]
    groups = spec.get("workerGroupSpecs", [])
    return {"head": spec["headGroupSpec"]["template"]} | {group["groupName"]: group["template"] for group in groups}


def _render_one(resource: Object, shape: Shape) -> Object:
    metadata = resource["metadata"]
    if resource["kind"] == "Namespace":
        metadata["name"] = shape.deployment
        metadata.setdefault("labels", {})["raymeter.io/deployment"] = shape.deployment
        if shape.link_rate:
            metadata["labels"][STANDARD] = "privileged"  # the least that allows NET_ADMIN
    elif metadata.get("namespace") == NAMESPACE:
        metadata["namespace"] = shape.deployment
    for subject in resource.get("subjects", []):
        if subject.get("namespace") == NAMESPACE:
            subject["namespace"] = shape.deployment
    if resource["kind"] == "RayCluster":
        _render_ray_cluster(resource["spec"], shape)
    return resource


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
        elif variable["name"] == "RAYMETER_LINK":
            variable["value"] = link.describe(variable["value"], shape.link_rate)
    ray["env"] += [{"name": f"RAY_{name}", "value": value} for name, value in shape.ray_settings.items()]
    shared = next(volume for volume in pod["volumes"] if volume["name"] == "shared-memory")
    shared["emptyDir"]["sizeLimit"] = in_mib(
        math.ceil(topology.object_store_bytes_per_node * SHARED_MEMORY_SHARE / MIB) * MIB
    )
    if shape.link_rate:
        _limit_link(pod, shape.link_rate)


def _limit_link(pod: Object, rate: str) -> None:
    """Limit what the pod can send, before Ray starts: all containers of a pod share its eth0."""
    ray, limits = pod["containers"][0], {"cpu": "100m", "memory": "64Mi"}
    limit_link = {
        "name": LIMIT_LINK,
        "image": ray["image"],
        "imagePullPolicy": ray["imagePullPolicy"],
        "command": link.shaping_command(rate),
        "securityContext": {
            "runAsNonRoot": False,
            "runAsUser": 0,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN"]},
        },
        "resources": {"requests": dict(limits), "limits": dict(limits)},
    }
    pod.setdefault("initContainers", []).append(limit_link)


def _set(resources: Object, *, cpu: int, memory_bytes: int) -> None:
    # Requests equal limits: pods of the class Guaranteed are killed last.
    for which in ("requests", "limits"):
        resources[which] |= {"cpu": str(cpu), "memory": in_mib(memory_bytes)}


def in_mib(number: int) -> str:
    """A size as a Kubernetes quantity, in MiB if it is a whole number of them."""
    return f"{number // MIB}Mi" if number % MIB == 0 else str(number)


def requests(pod_spec: Object) -> dict[str, float]:
    """A pod's requests as the scheduler counts them: CPUs, bytes of memory and of ephemeral storage."""
    requested = {name: _requested(pod_spec, name) for name in ("cpu", "memory", "ephemeral-storage")}
    of_pod = (pod_spec.get("resources") or {}).get("requests") or {}
    return requested | {name: size(amount) for name, amount in of_pod.items() if name in requested}


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
