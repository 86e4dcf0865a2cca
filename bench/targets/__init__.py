"""Defines what a target is, lists the targets, and chooses one for a command."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib import import_module
from typing import Annotated, Any, Protocol, TypeVar

import msgspec
from typer import Option

from bench.errors import BadInput, BenchError, did_you_mean
from bench.model import IdleLoad, Topology, Value
from bench.options import CLUSTER, DEPLOYMENT, TARGETS, declared
from bench.targets.bounds import check_name
from bench.targets.link import bits_per_second
from bench.targets.steps import SILENT, Steps

A = TypeVar("A")

RAYS_OWN: Mapping[str, str] = {}  # no settings: Ray's own defaults

Given = Mapping[str, Value]
"""Target options by name that differ from their defaults; of any target, until one is chosen."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options that every target takes. A target declares its own in its package, as `Options` that inherit from these."""

    name: Annotated[
        str,
        Option(
            "--name",
            metavar="NAME",
            rich_help_panel=DEPLOYMENT,
            help="Deployment name; deployments with different names are independent.",
        ),
    ] = "raymeter"
    link_rate: Annotated[
        str | None,
        Option(
            metavar="RATE",
            rich_help_panel=CLUSTER,
            help="Bandwidth of each node's link, e.g. 1gbit, 100mbit. [default: no limit]",
        ),
    ] = None

    def __post_init__(self) -> None:
        # Here, so that every command, plan and target checks them.
        check_name(self.name)
        if self.link_rate is not None:
            bits_per_second(self.link_rate)

    def given(self) -> dict[str, Value]:
        """Options that differ from their defaults, as a session stores them."""
        return {
            option.name: value for option in fields(self) if (value := getattr(self, option.name)) != option.default
        }


@dataclass(frozen=True, kw_only=True)
class ContainerOptions(Options):
    """Options of targets whose nodes are containers."""

    image: Annotated[
        str | None,
        Option(
            metavar="IMAGE",
            rich_help_panel="Targets docker and k8s",
            help="Container image of all nodes. [default: built by `bench image`]",
        ),
    ] = None
    dev: Annotated[
        bool,
        Option(
            "--dev",
            rich_help_panel="Targets docker and k8s",
            help="Send this checkout's code to the containers; the report says so.",
        ),
    ] = False


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """A running Ray cluster of one topology."""

    topology: Topology
    dashboard_url: str
    exporter_url: str
    token: str = field(repr=False)
    nodes: tuple[str, ...]  # names, the head first
    link: str  # the network between the nodes
    python: str = "python"  # the interpreter that runs a driver on the cluster
    environment: Mapping[str, str] = field(default_factory=dict)  # variables that a driver gets beside its Spec
    prometheus_url: str | None = None
    grafana_url: str | None = None


@dataclass(frozen=True, kw_only=True)
class TargetStatus:
    """The present state of a deployment. `cluster` is None if it does not respond."""

    cluster: Cluster | None
    remains: tuple[str, ...] = ()  # what `down` would remove: processes, namespaces, links, folders
    options: Options | None = None  # with which it was made, if they are known
    not_ready: str = ""  # why it is not up, if that is known


def public(target: str, status: TargetStatus) -> dict[str, object]:
    """The status as JSON shows it, without the token."""
    public_fields = ("topology", "nodes", "link", "dashboard_url", "exporter_url", "prometheus_url", "grafana_url")
    cluster = status.cluster and {name: getattr(status.cluster, name) for name in public_fields}
    return {
        "target": target,
        "cluster": cluster,
        "remains": status.remains,
        "not_ready": status.not_ready,
        "options": status.options,
    }


def node_names(topology: Topology) -> tuple[str, ...]:
    """Names of a topology's nodes on every target, the head first."""
    return ("head", *(f"worker-{index}" for index in range(1, topology.nodes)))


class Target(Protocol):
    """A place that makes clusters and removes them completely."""

    name: str

    def check(self, topology: Topology, steps: Steps = SILENT) -> None:
        """Check that `topology` can be made, before anything starts. Raises BadInput, DoesNotFit or TargetFailed."""
        ...

    def up(self, topology: Topology, ray_settings: Mapping[str, str] = RAYS_OWN, steps: Steps = SILENT) -> Cluster:
        """Make a cluster of `topology`, in place of the one that this deployment has. Raises TargetFailed.

        `ray_settings` are Ray's own, in force on every node: `preallocate_plasma_memory` is the variable of that name with RAY_ before it.
        `steps` hears of each step, and of the time that it took.
        """
        ...

    def down(self) -> tuple[str, ...]:
        """Remove everything that this deployment ever started, also after a crash. Returns what was removed."""
        ...

    def status(self) -> TargetStatus:
        """The present state; nothing is changed."""
        ...

    def trouble(self) -> str:
        """Faults of nodes since they were started: a node that ended, was restarted or ran out of memory.

        A text for the record of a run; empty if there were none, or if the nodes cannot be asked.
        """
        ...

    def ended(self) -> str:
        """Why a cluster will not answer again, such as a head that has ended. Empty if it may come back."""
        ...

    def cpu_seconds(self) -> float | None:
        """CPU time of this deployment so far; None if it cannot be counted, or not without that of others."""
        ...

    def idle_load(self) -> IdleLoad | None:
        """CPUs that this deployment uses at rest, as measured after it was made; None if that is not measured."""
        ...

    def failed_starts(self) -> str:
        """Why nodes could not start workers, from their raylets' logs; empty if they could, or if the logs cannot be read."""
        ...

    def note(self) -> str:
        """A sentence on what this target does differently on this machine; empty if nothing."""
        ...

    def ask_nodes(self, command: Sequence[str]) -> Mapping[str, str]:
        """Output of a command on each node, by the node's name.

        A node on which it fails is left out, and so are nodes that are nothing but processes of this machine.
        """
        ...


NAMES = TARGETS
NOTHING_IS_UP = "no deployment is up"


def options_of(name: str) -> type[Options]:
    """The options of the target `name`. Raises BadInput for an unknown target."""
    if name not in NAMES:
        raise BadInput(
            f"There is no target {name}.", f"{did_you_mean(name, NAMES)}Choose from: auto, {', '.join(NAMES)}."
        )
    declaration: type[Options] = import_module(f"bench.targets.{name}").Options
    return declaration


def declared_options() -> dict[str, Any]:
    """The annotation of each option of any target, by name."""
    return {option: annotation for name in NAMES for option, annotation in declared(options_of(name)).items()}


def defaults() -> dict[str, Any]:
    """The default of each option of any target, by name."""
    return {option.name: option.default for name in NAMES for option in fields(options_of(name))}


def create(name: str, given: Given) -> Target:
    """The target `name`, with the options among `given` that it takes. Raises BadInput."""
    return _make(name, msgspec.convert(dict(given), options_of(name)))


def _make(name: str, options: Options) -> Target:
    make: Callable[[Options], Target] = import_module(f"bench.targets.{name}.target").create
    return make(options)


def ask_each(
    names: Sequence[str], given: Given, question: Callable[[Target], A]
) -> tuple[dict[str, A], list[BenchError]]:
    """Answers of all targets that can be asked, and the errors of the others: one failure hides no other target."""
    answers: dict[str, A] = {}
    troubles: list[BenchError] = []
    for name in names:
        target = create(name, given)
        try:
            answers[name] = question(target)
        except BenchError as error:
            troubles.append(error)
    return answers, troubles


def raise_all(troubles: Sequence[BenchError]) -> None:
    """Raise all of them as one error of the first one's class; nothing if there are none."""
    if troubles:
        raise type(troubles[0])(" ".join(map(str, troubles)))


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A chosen target with its options, and the reason for the choice."""

    target: Target
    options: Options
    reason: str  # empty: the user named it

    def describe(self, then: str = "") -> str:
        """The target and why it was chosen, unless the user named it; what it does differently on this machine; `then`."""
        chosen_for = f"Target {self.target.name}: {self.reason}." if self.reason else ""
        return " ".join(filter(None, (chosen_for, self.target.note(), then)))


def choose(name: str, given: Given, otherwise: Callable[[Given], Choice] | None = None) -> Choice:
    """The target `name`, or for `auto` the one that is up; if none is, `local` or the choice of `otherwise`.

    A deployment that is up keeps the options that it was made with, except those given now. Raises BadInput for an option
    that the target does not take.
    """
    for candidate in NAMES if name == "auto" else (name,):
        status = create(candidate, given).status()
        if status.cluster is not None:
            previous = status.options.given() if status.options else {}
            return chosen(candidate, {**previous, **given}, "it is up" if name == "auto" else "")
    if name != "auto":
        return chosen(name, given, "")
    return otherwise(given) if otherwise else chosen("local", given, NOTHING_IS_UP)


def chosen(name: str, given: Given, reason: str) -> Choice:
    """The target `name`, chosen because of `reason`. Raises BadInput for an option that it does not take."""
    kind = options_of(name)
    if foreign := given.keys() - declared(kind).keys():
        listed = ", ".join(f"--{option.replace('_', '-')}" for option in sorted(foreign))
        takers = [target for target in NAMES if foreign <= declared(options_of(target)).keys()]
        hint = f", or use --target {' or '.join(takers)}" if takers else ", or use another --target"
        raise BadInput(f"The target {name} does not take {listed}.", f"Leave it out{hint}.")
    options = msgspec.convert(dict(given), kind)
    return Choice(target=_make(name, options), options=options, reason=reason)
