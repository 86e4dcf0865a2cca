"""Describes what a deployment in a Kubernetes cluster has made; written to disk before it is made.

Most of it is in its namespace and needs no list. This has what is not: the cluster itself, and the processes on this
machine that forward ports. The operator is shared, and labelled where raymeter installed it.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

from bench.model import IdleLoad, Topology
from bench.targets.k8s import Options
from bench.targets.state import StateFolder


@dataclass(frozen=True, kw_only=True)
class State:
    """Everything that `down` needs to know."""

    context: str
    kubeconfig: str | None  # KUBECONFIG of `up`, which has the context
    kind_cluster: str | None = None  # if raymeter made it
    options: Options | None = None  # of the Ray cluster
    topology: Topology | None = None
    settled: str = ""  # hash of the applied manifests without Ray's
    ports: dict[str, int] = field(default_factory=dict)  # local ports, by what they lead to
    pods: str = ""  # id of the processes that forward ports to the Ray cluster's pods
    services: str = ""  # id of those that forward to Prometheus and Grafana
    idle_load: IdleLoad | None = None  # measured once, for the first Ray cluster


def folder_of(deployment: str) -> StateFolder[State]:
    """The folder of a deployment in Kubernetes."""
    fix = f"Delete the namespace {deployment} in its cluster, and then that folder."
    return StateFolder("k8s", deployment, State, fix)


def new_mark() -> str:
    """An id to find the processes of one `up` by."""
    return secrets.token_hex(4)
