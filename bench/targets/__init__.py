"""Where a topology is stood up: the contract of a target, and the index of those there are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Literal, Protocol

from bench.errors import BadInput
from bench.model import Topology

Isolation = Literal["auto", "namespace", "loopback"]


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a person may say about a target. Each target refuses what it has no use for."""

    name: str = "raymeter"  # of the appliance; two of them on one machine do not meet
    isolation: Isolation = "auto"
    link_rate: str | None = None  # 1gbit, 100mbit: what each node may send
    image: str | None = None  # what containers and pods run; None: what `bench image` builds
    dev: bool = False  # send the code of this checkout, in place of the image's
    context: str | None = None  # of Kubernetes, as kubectl knows it; None: the current one, else one that kind makes
    load_with: str | None = None  # the user's own command that carries {image} to the Kubernetes nodes
    operator_manifests: str | None = None  # a folder in place of KubeRay's repository


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """A topology that stands and answers."""

    topology: Topology
    dashboard_url: str
    exporter_url: str
    token: str = field(repr=False)
    nodes: tuple[str, ...]  # their names, the head first
    link: str  # what joins the nodes
    python: str = "python"  # what runs a driver there
    prometheus_url: str | None = None
    grafana_url: str | None = None


@dataclass(frozen=True, kw_only=True)
class Standing:
    """What of an appliance is there now. `cluster` is None when nothing answers."""

    cluster: Cluster | None
    leftovers: tuple[str, ...] = ()  # what `down` would end: processes, namespaces, links, folders


class Target(Protocol):
    """A place that can stand a topology up and take it away without a trace."""

    name: str

    def check(self, topology: Topology) -> None:
        """Raise DoesNotFit or BadInput, before anything starts, where `topology` cannot stand here."""
        ...

    def up(self, topology: Topology) -> Cluster:
        """Stand `topology` up, in place of whatever this appliance had up. Raises TargetFailed."""
        ...

    def down(self) -> tuple[str, ...]:
        """End all that this appliance ever started, after a crash too; says what was ended."""
        ...

    def status(self) -> Standing:
        """Look, and change nothing."""
        ...


_MODULES = {"local": "bench.targets.local", "docker": "bench.targets.docker", "k8s": "bench.targets.k8s"}
NAMES = tuple(_MODULES)


def create(name: str, options: Options) -> Target:
    """The target called `name`. Raises BadInput, naming those there are."""
    if name not in _MODULES:
        raise BadInput(f"There is no target {name}.", f"There are: auto, {', '.join(NAMES)}.")
    make: Callable[[Options], Target] = import_module(_MODULES[name]).create
    return make(options)


def choose(name: str, options: Options) -> tuple[Target, str]:
    """The target called `name`, or for `auto` the one that is up, `local` where none is; and why it is that one."""
    if name != "auto":
        return create(name, options), "it was named"
    for candidate in NAMES:
        target = create(candidate, options)
        if target.status().cluster is not None:
            return target, "it is up"
    return create("local", options), "nothing is up"
