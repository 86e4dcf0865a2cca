"""The options that several commands have, each declared once."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from inspect import Parameter, Signature, signature
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_type_hints

import typer
from msgspec import Meta

from bench import params, record_options
from bench.errors import BadInput, DoesNotFit, did_you_mean
from bench.model import Value, as_builtins
from bench.planning.budget import price_of, seconds_of, share_of
from bench.planning.plan import Wish, chosen_levels
from bench.runner import session_lock
from bench.targets import Isolation, Options
from bench.terminal import completion
from bench.terminal.output import say
from bench.terminal.paths import as_path

if TYPE_CHECKING:
    from bench.planning.plan_file import Plan

Experiments = Annotated[
    list[str],
    typer.Argument(
        metavar="EXPERIMENT...", help="What to measure; see `bench list`.", autocompletion=completion.experiment
    ),
]
Profile = Annotated[
    str, typer.Option(help="Choice of cells and sizes: tiny, lab or full.", autocompletion=completion.profile)
]
Set = Annotated[
    list[str],
    typer.Option(
        "--set",
        metavar="NAME=V1,V2",
        help="Vary a parameter over these values.",
        autocompletion=completion.setting,
    ),
]
Chaos = Annotated[
    str,
    typer.Option(
        metavar="PLAN",
        help="Faults to inject, e.g. worker:5+driver:3; for experiments that tolerate them. See docs/experiments/clustering.md.",
    ),
]
TopologyName = Annotated[
    str, typer.Option("--topology", help="both, single or multi.", autocompletion=completion.one_of("topology"))
]
Nodes = Annotated[int, typer.Option(min=1, help="Nodes of `multi`.")]
Cpus = Annotated[int | None, typer.Option(metavar="CPUS", help="CPUs of all nodes together. [default: all there are]")]
MemoryMib = Annotated[int, typer.Option(metavar="MIB", help="Memory of all nodes together.")]
ObjectStoreMib = Annotated[int, typer.Option(metavar="MIB", help="Object store of all nodes together.")]
Blocks = Annotated[int | None, typer.Option(metavar="N", help="Repetitions of the whole. [default: the profile's]")]
Samples = Annotated[
    int | None, typer.Option(metavar="N", help="Of each cell in each run; see `bench pilot`. [default: the profile's]")
]
Seed = Annotated[int, typer.Option(min=0, help="Draws the order, the data and the weights.")]
TargetName = Annotated[
    str,
    typer.Option(
        "--target",
        help="Where: local, docker, k8s, or auto for what is up.",
        autocompletion=completion.one_of("target"),
    ),
]
Out = record_options.Out
Force = Annotated[bool, typer.Option("--force", help="Even if a session runs on the deployment. It will fail.")]
Appliance = Annotated[str, typer.Option("--name", help="Of the appliance; two names do not meet.")]
IsolationName = Annotated[
    str,
    typer.Option(
        "--isolation",
        help="Of local nodes: auto, namespace or loopback.",
        autocompletion=completion.one_of("isolation"),
    ),
]
LinkRate = Annotated[str | None, typer.Option(metavar="RATE", help="Shape each node's link: 1gbit, 100mbit.")]
Image = Annotated[str | None, typer.Option(help="What containers and pods run. [default: what `bench image` builds]")]
Dev = Annotated[
    bool, typer.Option("--dev", help="Send the code of this checkout to the containers; the record says so.")
]
Context = Annotated[
    str | None, typer.Option(help="Kubernetes: which of kubectl's contexts. [default: one of kind or minikube]")
]
AllowNoise = Annotated[
    bool, typer.Option("--allow-noise", help="Use blocks that others disturbed too, and say so in the report.")
]
AllowUnequal = Annotated[
    bool,
    typer.Option(
        "--allow-unequal", help="Give verdicts though facts (not data) differ that confound them, and stamp the report."
    ),
]
Budget = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Most time for the whole: 20m. What has no room is dropped and named."),
]
Price = Annotated[
    str | None,
    typer.Option(metavar="PRICE", help="Of one CPU: 0.04EUR. Reports then say what a million units of work cost."),
]
Precision = Annotated[
    str | None, typer.Option(metavar="PERCENT", help="End when every headline's interval is within it: 3%.")
]
Primary = Annotated[
    str,
    typer.Option(
        metavar="CELLS",
        help="Cells that the session is about: c01,c03, at most 5. [default: all, where they are 5 or fewer]",
    ),
]
LoadWith = Annotated[
    str | None, typer.Option(metavar="COMMAND", help="Kubernetes: what carries {image} to its nodes, for you.")
]
OperatorManifests = Annotated[
    str | None,
    typer.Option(
        metavar="FOLDER",
        envvar="RAYMETER_OPERATOR_MANIFESTS",
        help="Kubernetes: KubeRay's config/default, if not from its repository.",
    ),
]
ProfileWith = Annotated[
    str,
    typer.Option(
        metavar="PROFILER",
        help="Profile driver and workers by py-spy, pyinstrument or memray, at a cost: the report is stamped.",
        autocompletion=completion.one_of("profile_with"),
    ),
]
SessionName = Annotated[
    str,
    typer.Argument(
        metavar="SESSION", help="Its id, the beginning of it, a folder, or latest.", autocompletion=completion.session
    ),
]
AsJson = record_options.AsJson

DEFAULT_OUT = record_options.DEFAULT_OUT

OF_TARGET: dict[str, Any] = {
    "name": Appliance,
    "isolation": IsolationName,
    "link_rate": LinkRate,
    "image": Image,
    "dev": Dev,
    "context": Context,
    "load_with": LoadWith,
    "operator_manifests": OperatorManifests,
}
"""How each field of a target's Options is asked for; its default is the field's."""


def target_options(*, isolation: str, operator_manifests: str | None = None, **said: Any) -> Options:
    """What was said about the target. Raises BadInput."""
    if isolation not in get_args(Isolation):
        raise BadInput(
            f"--isolation {isolation}: there is no such.",
            f"{did_you_mean(isolation, get_args(Isolation))}There are: {', '.join(get_args(Isolation))}.",
        )
    # A session may be resumed from another folder.
    folder = None if operator_manifests is None else str(as_path(operator_manifests).resolve())
    return Options(isolation=isolation, operator_manifests=folder, **said)  # type: ignore[arg-type]  # checked above


def asking_target(work: Callable[..., None]) -> Callable[..., None]:
    """A command with all that can be said of a target, handed to `work` as one value in the place of its `options`."""
    defaults = {each.name: each.default for each in fields(Options)}
    hints = get_type_hints(work, include_extras=True)
    asked: list[Parameter] = []
    for parameter in signature(work).parameters.values():
        if parameter.name == "options":
            asked += [
                Parameter(name, Parameter.KEYWORD_ONLY, default=defaults[name], annotation=annotation)
                for name, annotation in OF_TARGET.items()
            ]
        else:
            asked.append(parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[parameter.name]))

    def command(**said: Any) -> None:
        work(options=target_options(**{name: said.pop(name) for name in OF_TARGET}), **said)

    command.__signature__ = Signature(asked)  # type: ignore[attr-defined]  # what typer reads a command's options from
    command.__annotations__ = {each.name: each.annotation for each in asked}
    command.__doc__ = work.__doc__
    return command


def as_options(options: Options) -> dict[str, Value]:
    """Options as a session keeps them: those that were not said are left out."""
    return {name: value for name, value in as_builtins(options).items() if value is not None}


@contextmanager
def changing(target: str, name: str, *, force: bool) -> Iterator[None]:
    """Hold a deployment while it is stood up or taken down; by `force`, without a lock that is not to be had. Raises DoesNotFit."""
    with ExitStack() as held:
        try:
            held.enter_context(session_lock.changing(target, name, typed_command()))
        except DoesNotFit as error:
            if not force:
                raise
            say(f"{error.what} --force: it is not asked.")
        yield


def typed_command() -> str:
    """What the person typed, to be typed again."""
    return " ".join(["bench", *map(_quoted, sys.argv[1:])])


def _quoted(word: str) -> str:
    """`word` for a shell; bytes that are not UTF-8 as escapes, which bash, zsh and ksh understand within $'...'."""
    if not any("\udc80" <= letter <= "\udcff" for letter in word):
        return shlex.quote(word)
    text = os.fsencode(word.replace("\\", "\\\\").replace("'", "\\'")).decode(errors="backslashreplace")
    return f"$'{text}'"


PLANNED: dict[str, Any] = {
    "profile": Profile,
    "topology": TopologyName,
    "nodes": Nodes,
    "cpus": Cpus,
    "memory_mib": MemoryMib,
    "object_store_mib": ObjectStoreMib,
    "blocks": Blocks,
    "samples": Samples,
    "seed": Seed,
    "target": TargetName,
    "allow_noise": AllowNoise,
    "allow_unequal": AllowUnequal,
    "budget": Budget,
    "price_per_cpu_hour": Price,
    "precision": Precision,
    "primary": Primary,
    "profile_with": ProfileWith,
    **OF_TARGET,
    "out": Out,
}
"""What a plan file has beside its experiments: each of these as its option has it."""


def planned_options() -> dict[str, params.Parameter]:
    """The options that a plan file may have, as they are declared for the command line."""
    found = {}
    for name, annotation in PLANNED.items():
        kind, option = get_args(annotation)[:2]
        one: Any = next((each for each in get_args(kind) if each is not NoneType), kind)  # of `int | None`: int
        if name in completion.CHOICES:
            one = Literal.__getitem__(completion.CHOICES[name])
        meta = Meta(ge=option.min, le=option.max, description=option.help, extra={"unit": option.metavar or ""})
        found[name] = params.as_declared(name, Annotated[str if one is Path else one, meta], default="")
    return found


def as_plan(wish: Wish, options: Options, out: Path) -> Plan:
    """A command line as a plan file has it: all that has a value, so that it means the same when a default changes."""
    from bench.planning.plan_file import Plan

    said = {
        **vars(wish),
        **vars(options),
        "out": str(out),
        "budget": None if wish.budget_seconds is None else f"{wish.budget_seconds:.0f}s",
        "price_per_cpu_hour": wish.price_per_cpu_hour or None,
        "precision": None if wish.precision is None else f"{100 * wish.precision:.10g}%",
        "primary": wish.primary or None,
        "profile_with": wish.profile_with or None,
    }
    return Plan(
        options={name: said[name] for name in PLANNED if said[name] is not None},
        experiments={name: chosen_levels(wish, name) for name in dict.fromkeys(wish.experiments)},
    )


def _load_plan(context: typer.Context, path: Path | None) -> Any:
    """Read the plan before the other options are: what it says takes the place of their defaults."""
    if path is None:
        return None
    from bench.planning import plan_file  # with a parser of YAML, which few commands need

    found = plan_file.load(path, planned_options())
    context.default_map = {**found.options, "experiments": list(found.experiments)}
    return found


PlanName = Annotated[
    Any,
    typer.Option(
        "--plan",
        metavar="FILE",
        parser=as_path,
        is_eager=True,
        callback=_load_plan,
        help="Take what is not said here from a plan file, TOML or YAML.",
    ),
]


def asking(work: Callable[..., None]) -> Callable[..., None]:
    """A command with all the options of a wish, which hands it to `work`: `run` and `plan` take the same ones.

    `work` has a wish, options and out, and any options of its own after them.
    """
    own = list(signature(work).parameters.values())[3:]

    def command(
        *,
        experiments: Experiments,
        plan_file: PlanName = None,
        profile: Profile = "tiny",
        sets: Set = [],  # noqa: B006, typer reads it and never changes it
        chaos: Chaos = "",
        topology: TopologyName = "both",
        nodes: Nodes = 2,
        cpus: Cpus = None,
        memory_mib: MemoryMib = 4096,
        object_store_mib: ObjectStoreMib = 1024,
        blocks: Blocks = None,
        samples: Samples = None,
        seed: Seed = 1,
        target: TargetName = "auto",
        allow_noise: AllowNoise = False,
        allow_unequal: AllowUnequal = False,
        budget: Budget = None,
        price_per_cpu_hour: Price = None,
        precision: Precision = None,
        primary: Primary = "",
        profile_with: ProfileWith = "",
        options: Options,
        out: Out = DEFAULT_OUT,
        **said: Any,
    ) -> None:
        wish = Wish(
            experiments=tuple(experiments),
            profile=profile,
            sets=(*sets, *([f"chaos={chaos}"] if chaos else [])),
            levels=plan_file.experiments if plan_file else {},
            topology=topology,
            nodes=nodes,
            cpus=cpus,
            memory_mib=memory_mib,
            object_store_mib=object_store_mib,
            blocks=blocks,
            samples=samples,
            seed=seed,
            target=target,
            command=typed_command(),
            allow_noise=allow_noise,
            allow_unequal=allow_unequal,
            budget_seconds=None if budget is None else seconds_of(budget),
            price_per_cpu_hour="" if price_per_cpu_hour is None else price_of(price_per_cpu_hour),
            precision=None if precision is None else share_of(precision),
            primary=primary,
            profile_with=profile_with,
        )
        work(wish, options, out, **said)

    asked = [each for each in signature(command).parameters.values() if each.kind is Parameter.KEYWORD_ONLY]
    hints = get_type_hints(work, include_extras=True)
    command.__signature__ = Signature(  # type: ignore[attr-defined]  # what asking_target reads
        [*asked, *(each.replace(kind=Parameter.KEYWORD_ONLY) for each in own)]
    )
    command.__annotations__ |= {each.name: hints[each.name] for each in own}
    command.__doc__ = work.__doc__
    return asking_target(command)
