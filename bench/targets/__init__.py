"""Where a topology is stood up: the contract of a target, and the index of those there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib import import_module
from typing import Annotated, Any, Protocol, TypeVar

import msgspec
from typer import Option

from bench.errors import BadInput, BenchError, did_you_mean
from bench.model import IdleLoad, Topology, Value
from bench.options import DEPLOYMENT, TARGETS, declared
from bench.targets.bounds import check_name
from bench.targets.steps import SILENT, Steps

A = TypeVar("A")

RAYS_OWN: Mapping[str, str] = {}  # settings: all as Ray has them where nothing is set

Given = Mapping[str, Value]
"""Options of targets by name, those that are not at their default: of any target, until one is chosen."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """What every target takes. A target declares what else it takes in its package, as `Options` that inherit from these."""

    name: Annotated[
        str,
        Option(
            "--name",
            metavar="NAME",
            rich_help_panel=DEPLOYMENT,
            help="Deployment name; deployments with different names are independent.",
        ),
    ] = "raymeter"

    def __post_init__(self) -> None:
        check_name(self.name)  # here, so that no command, plan or target can leave it out

    def given(self) -> dict[str, Value]:
        """Those that are not at their default, as a session keeps them."""
        return {each.name: value for each in fields(self) if (value := getattr(self, each.name)) != each.default}


@dataclass(frozen=True, kw_only=True)
class ContainerOptions(Options):
    """What a target takes whose nodes are containers."""

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
    """A topology that stands and answers."""

    topology: Topology
    dashboard_url: str
    exporter_url: str
    token: str = field(repr=False)
    nodes: tuple[str, ...]  # their names, the head first
    link: str  # what joins the nodes
    python: str = "python"  # what runs a driver there
    environment: Mapping[str, str] = field(default_factory=dict)  # what a driver is told besides its Spec
    prometheus_url: str | None = None
    grafana_url: str | None = None


@dataclass(frozen=True, kw_only=True)
class TargetStatus:
    """What of a deployment is there now. `cluster` is None when nothing answers."""

    cluster: Cluster | None
    remains: tuple[str, ...] = ()  # what `down` would end: processes, namespaces, links, folders
    options: Options | None = None  # that it was stood up with, where they are known
    not_ready: str = ""  # why it is not up, where that is known: who does not answer, or has ended


def public(target: str, status: TargetStatus) -> dict[str, object]:
    """What may be said to everyone: the token may not."""
    said = ("topology", "nodes", "link", "dashboard_url", "exporter_url", "prometheus_url", "grafana_url")
    cluster = status.cluster and {name: getattr(status.cluster, name) for name in said}
    return {
        "target": target,
        "cluster": cluster,
        "remains": status.remains,
        "not_ready": status.not_ready,
        "options": status.options,
    }


def node_names(topology: Topology) -> tuple[str, ...]:
    """What the nodes of a topology are called on every target, the head first."""
    return ("head", *(f"worker-{index}" for index in range(1, topology.nodes)))


class Target(Protocol):
    """A place that can stand a topology up and take it away without a trace."""

    name: str

    def check(self, topology: Topology, steps: Steps = SILENT) -> None:
        """Raise BadInput, DoesNotFit or TargetFailed, before anything starts, where `topology` cannot be made here."""
        ...

    def up(self, topology: Topology, ray_settings: Mapping[str, str] = RAYS_OWN, steps: Steps = SILENT) -> Cluster:
        """Stand `topology` up, in place of whatever this deployment had up. Raises TargetFailed.

        `ray_settings` are Ray's own, in force on every node: `preallocate_plasma_memory` is the variable of that name with RAY_ before it.
        `steps` hears of each step, and of the time that it took.
        """
        ...

    def down(self) -> tuple[str, ...]:
        """End all that this deployment ever started, after a crash too; says what was ended."""
        ...

    def status(self) -> TargetStatus:
        """Look, and change nothing."""
        ...

    def trouble(self) -> str:
        """What befell the nodes since they were stood up: one that ended or was restarted, or whose memory was full.

        In words, for the record of a run; empty where nothing did, and where nobody can be asked.
        """
        ...

    def ended(self) -> str:
        """Why a cluster that does not answer will not answer again: its head has ended. Empty where it may come back."""
        ...

    def cpu_seconds(self) -> float | None:
        """CPU time that all of this deployment has used so far; None where others may be in it, or it cannot be counted."""
        ...

    def idle_load(self) -> IdleLoad | None:
        """What this deployment uses at rest, as measured after it was stood up; None where that is not measured."""
        ...

    def failed_starts(self) -> str:
        """Why nodes could not start workers, in the words of their raylets; empty where they could, or cannot be asked."""
        ...

    def note(self) -> str:
        """What it does otherwise than asked on this machine, in a sentence; empty where nothing."""
        ...

    def ask_nodes(self, words: Sequence[str]) -> Mapping[str, str]:
        """What a command prints on each node, by the node's name.

        A node on which it fails is left out, and so are nodes that are nothing but processes of this machine.
        """
        ...


NAMES = TARGETS
NOTHING_IS_UP = "nothing is up"


def options_of(name: str) -> type[Options]:
    """The options that the target `name` takes. Raises BadInput, naming the targets there are."""
    if name not in NAMES:
        raise BadInput(
            f"There is no target {name}.", f"{did_you_mean(name, NAMES)}There are: auto, {', '.join(NAMES)}."
        )
    found: type[Options] = import_module(f"bench.targets.{name}").Options
    return found


def declared_options() -> dict[str, Any]:
    """The annotation of each option of any target, by name."""
    return {option: annotation for name in NAMES for option, annotation in declared(options_of(name)).items()}


def defaults() -> dict[str, Any]:
    """The default of each option of any target, by name."""
    return {each.name: each.default for name in NAMES for each in fields(options_of(name))}


def create(name: str, given: Given) -> Target:
    """The target called `name`, with those options that it takes. Raises BadInput."""
    return _make(name, msgspec.convert(dict(given), options_of(name)))


def _make(name: str, options: Options) -> Target:
    make: Callable[[Options], Target] = import_module(f"bench.targets.{name}.target").create
    return make(options)


def ask_each(
    names: Sequence[str], given: Given, question: Callable[[Target], A]
) -> tuple[dict[str, A], list[BenchError]]:
    """What each target answers, and what kept the others from it: an engine that is away hides no other target."""
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
    """Raise them as one, of the kind of the first; nothing where there is none."""
    if troubles:
        raise type(troubles[0])(" ".join(map(str, troubles)))


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A target with its options, given now or when it was stood up, and why it is this one."""

    target: Target
    options: Options
    why: str

    def describe(self) -> str:
        """Which target, why it is this one, and what it does otherwise than asked."""
        said = f"Target {self.target.name}: {self.why}."
        return f"{said} {note}" if (note := self.target.note()) else said


def choose(name: str, given: Given, otherwise: Callable[[Given], Choice] | None = None) -> Choice:
    """The target called `name`, or for `auto` the one that is up; where none is, `local` or what `otherwise` finds.

    What is up keeps the options that it was stood up with, but for those that are given anew. Raises BadInput for an option
    that the target does not take.
    """
    for candidate in NAMES if name == "auto" else (name,):
        status = create(candidate, given).status()
        if status.cluster is not None:
            had = status.options.given() if status.options else {}
            return chosen(candidate, {**had, **given}, "it is up" if name == "auto" else "it was named")
    if name != "auto":
        return chosen(name, given, "it was named")
    return otherwise(given) if otherwise else chosen("local", given, NOTHING_IS_UP)


def chosen(name: str, given: Given, why: str) -> Choice:
    """The target called `name`, and `why` it is that one. Raises BadInput for an option that it does not take."""
    kind = options_of(name)
    if foreign := given.keys() - declared(kind).keys():
        named = ", ".join(f"--{option.replace('_', '-')}" for option in sorted(foreign))
        takers = [each for each in NAMES if foreign <= declared(options_of(each)).keys()]
        hint = f" or use --target {' or '.join(takers)}" if takers else " or use another --target"
        raise BadInput(f"The target {name} does not take {named}.", f"Leave that out,{hint}.")
    options = msgspec.convert(dict(given), kind)
    return Choice(target=_make(name, options), options=options, why=why)
