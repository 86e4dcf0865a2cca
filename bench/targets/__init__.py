"""Where a topology is stood up: the contract of a target, and the index of those there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib import import_module
from typing import Literal, Protocol, TypeVar

from bench.errors import BadInput, BenchError, did_you_mean
from bench.model import IdleLoad, Topology
from bench.targets.bounds import check_name

A = TypeVar("A")

RAYS_OWN: Mapping[str, str] = {}  # settings: all as Ray has them where nothing is set

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

    def __post_init__(self) -> None:
        check_name(self.name)  # here, so that no command, plan or target can leave it out


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
class Standing:
    """What of an appliance is there now. `cluster` is None when nothing answers."""

    cluster: Cluster | None
    leftovers: tuple[str, ...] = ()  # what `down` would end: processes, namespaces, links, folders
    options: Options | None = None  # that it was stood up with, where they are known
    lack: str = ""  # why it is not up, where that is known: who does not answer, or has ended


def node_names(topology: Topology) -> tuple[str, ...]:
    """What the nodes of a topology are called on every target, the head first."""
    return ("head", *(f"worker-{index}" for index in range(1, topology.nodes)))


class Target(Protocol):
    """A place that can stand a topology up and take it away without a trace."""

    name: str

    def check(self, topology: Topology) -> None:
        """Raise DoesNotFit or BadInput, before anything starts, where `topology` cannot stand here."""
        ...

    def up(self, topology: Topology, ray_settings: Mapping[str, str] = RAYS_OWN) -> Cluster:
        """Stand `topology` up, in place of whatever this appliance had up. Raises TargetFailed.

        `ray_settings` are Ray's own, in force on every node: `preallocate_plasma_memory` is the variable of that name with RAY_ before it.
        """
        ...

    def down(self) -> tuple[str, ...]:
        """End all that this appliance ever started, after a crash too; says what was ended."""
        ...

    def status(self) -> Standing:
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


_MODULES = {
    "local": "bench.targets.local.target",
    "docker": "bench.targets.docker.target",
    "k8s": "bench.targets.k8s.target",
}
NAMES = tuple(_MODULES)
NOTHING_IS_UP = "nothing is up"


def create(name: str, options: Options) -> Target:
    """The target called `name`. Raises BadInput, naming those there are."""
    if name not in _MODULES:
        raise BadInput(
            f"There is no target {name}.", f"{did_you_mean(name, NAMES)}There are: auto, {', '.join(NAMES)}."
        )
    make: Callable[[Options], Target] = import_module(_MODULES[name]).create
    return make(options)


def ask_each(
    names: Sequence[str], options: Options, question: Callable[[Target], A]
) -> tuple[dict[str, A], list[BenchError]]:
    """What each target answers, and what kept the others from it: an engine that is away hides no other target."""
    answers: dict[str, A] = {}
    troubles: list[BenchError] = []
    for name in names:
        target = create(name, options)
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
    """A target, with what was said about it and what it was stood up with; and why it is this one."""

    target: Target
    options: Options
    why: str

    def describe(self) -> str:
        """Which target, why it is this one, and what it does otherwise than asked."""
        said = f"Target {self.target.name}: {self.why}."
        return f"{said} {note}" if (note := self.target.note()) else said


def choose(name: str, options: Options) -> Choice:
    """The target called `name`, or for `auto` the one that is up, `local` where none is.

    What is up keeps the options that it was stood up with, but for those that are said anew.
    """
    for candidate in NAMES if name == "auto" else (name,):
        standing = create(candidate, options).status()
        if standing.cluster is not None:
            kept = _over(standing.options or options, options)
            return Choice(
                target=create(candidate, kept), options=kept, why="it is up" if name == "auto" else "it was named"
            )
    found, why = ("local", NOTHING_IS_UP) if name == "auto" else (name, "it was named")
    return Choice(target=create(found, options), options=options, why=why)


def _over(had: Options, said: Options) -> Options:
    """`had`, with every option of `said` that is not left at its default."""
    anew = {each.name: getattr(said, each.name) for each in fields(Options) if getattr(said, each.name) != each.default}
    return replace(had, **anew)
