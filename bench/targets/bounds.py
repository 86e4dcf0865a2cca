"""Checks the names and sizes that no target accepts."""

from __future__ import annotations

import re

from bench.errors import BadInput
from bench.model import Topology

# An RFC 1123 label, as a namespace's name must be; shorter, because names of nodes and networks contain it.
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?")
_RESERVED = re.compile(r"default|kube-.*|kuberay-.*")  # namespaces of Kubernetes and of KubeRay's operator
_SMALLEST_OBJECT_STORE_BYTES = 75 * 2**20  # Ray refuses less
_MOST_NODES = 40


def check_name(name: str) -> None:
    """Raise BadInput for an invalid deployment name, which is the name of its Kubernetes namespace, too."""
    if not _NAME.fullmatch(name):
        raise BadInput(
            f"--name {name[:50]!r} is not a valid deployment name.",
            "Use 1 to 32 lower-case letters, digits and hyphens, with a letter or digit at both ends.",
        )
    if _RESERVED.fullmatch(name):
        raise BadInput(
            f"--name {name} is reserved: it is a namespace of Kubernetes or KubeRay.", "Use another name, as raymeter."
        )


def check_sizes(topology: Topology) -> None:
    """Raise BadInput for a topology that no target can make."""
    numbers = {
        "nodes": topology.nodes,
        "CPUs per node": topology.cpus_per_node,
        "threads per node": topology.threads_per_node,
    }
    for name, number in numbers.items():
        if number < 1:
            raise BadInput(f"Topology {topology.name!r} has {number} {name}.", "Use at least 1.")
    if topology.nodes > _MOST_NODES:
        raise BadInput(f"{topology.nodes} nodes are too many for one machine.", f"Use at most {_MOST_NODES}.")
    store, memory = topology.object_store_bytes_per_node, topology.memory_bytes_per_node
    if store < _SMALLEST_OBJECT_STORE_BYTES:
        raise BadInput(f"An object store of {mib(store)} is too small for Ray.", "Use at least 75 MiB.")
    if store >= memory:
        raise BadInput(
            f"The object store of {mib(store)} must be smaller than the node's memory of {mib(memory)}.",
            "Use more memory or a smaller object store.",
        )


def mib(size_bytes: int) -> str:
    """A size in MiB."""
    return f"{size_bytes / 2**20:.0f} MiB"
