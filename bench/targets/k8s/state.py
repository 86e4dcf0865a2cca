"""What a deployment in a Kubernetes cluster has made, written to disk before it is made.

Most of it is in its namespace and needs no list. This has what is not: the cluster itself, and the processes on this
machine that forward ports. The operator is everybody's, and labelled where raymeter installed it.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

from bench.model import IdleLoad, Topology
from bench.targets.k8s import Options
from bench.targets.state import StateFolder


@dataclass(frozen=True, kw_only=True)
class State:
    """All that `down` must know."""

    context: str
    kubeconfig: str | None  # KUBECONFIG as it was: the context is found there and nowhere else
    kind_cluster: str | None = None  # that we have made
    options: Options | None = None  # what was said when Ray was stood up
    topology: Topology | None = None
    settled: str = ""  # the hash of the manifests that were applied, Ray's own left out
    ports: dict[str, int] = field(default_factory=dict)  # local ones, by what they lead to
    pods: str = ""  # marks the processes that forward to pods of the Ray cluster that there is
    services: str = ""  # and those that forward to what stays
    idle_load: IdleLoad | None = None  # measured once, after the first Ray cluster was ready


def folder_of(deployment: str) -> StateFolder[State]:
    """The folder of a deployment in Kubernetes."""
    fix = f"Delete the namespace {deployment} in its cluster, and then that folder."
    return StateFolder("k8s", deployment, State, fix)


def new_mark() -> str:
    """What the processes of one `up` are found by."""
    return secrets.token_hex(4)
