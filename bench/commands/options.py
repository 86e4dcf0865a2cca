"""The options that several commands have, each declared once."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from bench import store
from bench.model import Value, as_builtins
from bench.plan import Wish
from bench.targets import Isolation, Options

Experiments = Annotated[list[str], typer.Argument(metavar="EXPERIMENT...", help="What to measure; see `bench list`.")]
Profile = Annotated[str, typer.Option(help="Choice of cells and sizes: tiny, lab or full.")]
Set = Annotated[list[str], typer.Option("--set", metavar="NAME=V1,V2", help="Vary a parameter over these values.")]
TopologyName = Annotated[str, typer.Option("--topology", help="both, single or multi.")]
Nodes = Annotated[int, typer.Option(min=1, help="Nodes of `multi`.")]
Cpus = Annotated[int | None, typer.Option(metavar="CPUS", help="CPUs of all nodes together. [default: all there are]")]
MemoryMib = Annotated[int, typer.Option(metavar="MIB", help="Memory of all nodes together.")]
ObjectStoreMib = Annotated[int, typer.Option(metavar="MIB", help="Object store of all nodes together.")]
Blocks = Annotated[int | None, typer.Option(metavar="N", help="Repetitions of the whole. [default: the profile's]")]
Seed = Annotated[int, typer.Option(min=0, help="Draws the order, the data and the weights.")]
TargetName = Annotated[str, typer.Option("--target", help="Where: local, docker, k8s, or auto for what is up.")]
Out = Annotated[Path, typer.Option(metavar="FOLDER", help="Where the sessions are.")]
Appliance = Annotated[str, typer.Option("--name", help="Of the appliance; two names do not meet.")]
IsolationName = Annotated[str, typer.Option("--isolation", help="Of local nodes: auto, namespace or loopback.")]
LinkRate = Annotated[str | None, typer.Option(metavar="RATE", help="Shape each node's link: 1gbit, 100mbit.")]
Image = Annotated[str | None, typer.Option(help="What containers and pods run. [default: what `bench image` builds]")]
Dev = Annotated[
    bool, typer.Option("--dev", help="Send the code of this checkout to the containers; the record says so.")
]
Context = Annotated[
    str | None, typer.Option(help="Kubernetes: which of kubectl's contexts. [default: one of kind or minikube]")
]
LoadWith = Annotated[
    str | None, typer.Option(metavar="COMMAND", help="Kubernetes: what carries {image} to its nodes, for you.")
]
OperatorManifests = Annotated[
    str | None, typer.Option(metavar="FOLDER", help="Kubernetes: KubeRay's config/default, if not from its repository.")
]
SessionName = Annotated[
    str, typer.Argument(metavar="SESSION", help="Its id, the beginning of it, a folder, or latest.")
]

DEFAULT_OUT = store.DEFAULT_FOLDER


def target_options(*, isolation: str, **said: Any) -> Options:
    """What was said about the target. Raises BadInput."""
    from typing import get_args

    from bench.errors import BadInput

    if isolation not in get_args(Isolation):
        raise BadInput(f"--isolation {isolation}: there is no such.", f"There are: {', '.join(get_args(Isolation))}.")
    return Options(isolation=isolation, **said)  # type: ignore[arg-type]  # checked above


def as_options(options: Options) -> dict[str, Value]:
    """Options as a session keeps them: those that were not said are left out."""
    return {name: value for name, value in as_builtins(options).items() if value is not None}


def typed_command() -> str:
    """What the person typed, to be typed again."""
    return shlex.join(["bench", *sys.argv[1:]])


def asking(work: Callable[[Wish, Options, Path], None]) -> Callable[..., None]:
    """A command with all the options of a wish, which hands it to `work`: `run` and `plan` take the same ones."""

    def command(
        experiments: Experiments,
        profile: Profile = "tiny",
        sets: Set = [],  # noqa: B006, typer reads it and never changes it
        topology: TopologyName = "both",
        nodes: Nodes = 2,
        cpus: Cpus = None,
        memory_mib: MemoryMib = 4096,
        object_store_mib: ObjectStoreMib = 1024,
        blocks: Blocks = None,
        seed: Seed = 1,
        target: TargetName = "auto",
        name: Appliance = "raymeter",
        isolation: IsolationName = "auto",
        link_rate: LinkRate = None,
        image: Image = None,
        dev: Dev = False,
        context: Context = None,
        load_with: LoadWith = None,
        operator_manifests: OperatorManifests = None,
        out: Out = DEFAULT_OUT,
    ) -> None:
        options = target_options(
            name=name,
            isolation=isolation,
            link_rate=link_rate,
            image=image,
            dev=dev,
            context=context,
            load_with=load_with,
            operator_manifests=operator_manifests,
        )
        wish = Wish(
            experiments=tuple(experiments),
            profile=profile,
            sets=tuple(sets),
            topology=topology,
            nodes=nodes,
            cpus=cpus,
            memory_mib=memory_mib,
            object_store_mib=object_store_mib,
            blocks=blocks,
            seed=seed,
            target=target,
            command=typed_command(),
        )
        work(wish, options, out)

    command.__doc__ = work.__doc__
    return command
