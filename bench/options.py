"""Declares every option that several commands take, once: type, bounds, default and help.

A field of `RunRequest` is an option of `bench run` and `bench plan`, a key of plan files and of their schema, and is kept in the
Session. An option of one target is a field of that target's `Options`. `bench/terminal/asking.py` makes the command line of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from typer import Argument, Option
from typer.models import ParameterInfo

from bench.errors import BadInput
from bench.stacks import PROFILERS

TARGETS = ("local", "docker", "k8s")
"""The targets there are: each is a package of bench/targets."""
DEFAULT_OUT = Path("results")
LEAST_SCALE = 1e-6
UNITS_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0}

_Value = bool | int | float | str


@dataclass(frozen=True)
class OneOf:
    """Beside the option in an annotation: the words that it takes, where a Literal cannot list them."""

    words: tuple[str, ...]


@dataclass(frozen=True)
class Repeatable:
    """Beside a text option in an annotation: given several times, its texts are joined by commas."""


@dataclass(frozen=True)
class OfTargets:
    """Beside a mapping in an annotation: it has the targets' options that were given, all or `only` some."""

    only: tuple[str, ...] = ()


WORK, SESSION, CLUSTER, REPORT = "What to measure", "Session", "Cluster", "Report"
DEPLOYMENT = "Deployment"
"""Panels of the help. An option without a panel is listed last."""

TargetOptions = Annotated[Mapping[str, _Value], OfTargets()]
"""What was given of all options of all targets, by name."""
DeploymentOptions = Annotated[Mapping[str, _Value], OfTargets(only=("name", "context"))]
"""What was given of those that say which deployment is meant."""

Seed = Annotated[
    int, Option(min=0, metavar="N", rich_help_panel=WORK, help="Seed of the run order, the data and the weights.")
]
TargetName = Annotated[
    str,
    Option(
        "--target",
        metavar="TARGET",
        rich_help_panel=DEPLOYMENT,
        help=f"Where to run: {', '.join(TARGETS)}, or auto: the running one.",
    ),
    OneOf(("auto", *TARGETS)),
]


@dataclass(frozen=True, kw_only=True)
class Workload:
    """Which work is done."""

    profile: Annotated[
        str,
        Option(metavar="PROFILE", rich_help_panel=WORK, help="Preset of parameters and sizes, e.g. tiny, lab, full."),
    ] = "tiny"
    sets: Annotated[
        tuple[str, ...],
        Option(
            "--set",
            metavar="NAME=V1,V2",
            rich_help_panel=WORK,
            help="Values of a parameter, each measured, e.g. batch=1,10.",
        ),
    ] = ()
    only_arms: Annotated[
        str,
        Option(
            "--arms",
            metavar="ARM,ARM",
            rich_help_panel=WORK,
            help="Arms to measure beside the subject. [default: the profile's]",
        ),
    ] = ""
    scale: Annotated[
        float,
        Option(
            min=LEAST_SCALE,
            max=1.0,
            metavar="SHARE",
            rich_help_panel=WORK,
            help="Share of the profile's sizes, e.g. 0.1, for small machines.",
        ),
    ] = 1.0
    seed: Seed = 1


@dataclass(frozen=True, kw_only=True)
class ClusterOptions:
    """The nodes, and what all of them have together."""

    topology: Annotated[
        Literal["both", "single", "multi"],
        Option(
            metavar="TOPOLOGY", rich_help_panel=CLUSTER, help="single (one node), multi (several), or both in turn."
        ),
    ] = "both"
    nodes: Annotated[int, Option(min=1, metavar="N", rich_help_panel=CLUSTER, help="Number of nodes of multi.")] = 2
    cpus: Annotated[
        int | None,
        Option(metavar="CPUS", rich_help_panel=CLUSTER, help="CPUs of all nodes together, e.g. 8. [default: all]"),
    ] = None
    memory_mib: Annotated[
        int, Option(metavar="MIB", rich_help_panel=CLUSTER, help="Memory of all nodes together, in MiB.")
    ] = 4096
    object_store_mib: Annotated[
        int,
        Option(metavar="MIB", rich_help_panel=CLUSTER, help="Object stores of all nodes, part of the memory, in MiB."),
    ] = 1024


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """How a report judges a session."""

    contrast: Annotated[
        str,
        Option(
            metavar="NAMES",
            rich_help_panel=REPORT,
            help="Parameters to contrast, e.g. batch,actors; at once: batch+actors.",
        ),
        Repeatable(),
    ] = ""
    allow_noise: Annotated[
        bool,
        Option("--allow-noise", rich_help_panel=REPORT, help="Use blocks with interference too; the report says so."),
    ] = False
    allow_unequal: Annotated[
        bool,
        Option(
            "--allow-unequal",
            rich_help_panel=REPORT,
            help="Give verdicts though facts of the nodes differ; the report says so.",
        ),
    ] = False
    price_per_cpu_hour: Annotated[
        str,
        Option(
            metavar="PRICE",
            rich_help_panel=REPORT,
            help="Price of one CPU for an hour, e.g. 0.04EUR; adds costs to the report.",
        ),
    ] = ""


@dataclass(frozen=True, kw_only=True)
class RunRequest(ReportOptions, ClusterOptions, Workload):
    """What the user asks for: one session."""

    experiments: Annotated[
        tuple[str, ...], Argument(metavar="EXPERIMENT...", help="Experiments to measure; see `bench list`.")
    ] = ()
    levels: Annotated[
        Mapping[str, Mapping[str, tuple[_Value, ...]]],
        Option(
            "--plan",
            metavar="FILE",
            rich_help_panel=WORK,
            help="Plan file (.toml, .yaml); options given here override it.",
        ),
    ] = field(default_factory=dict)  # of each experiment, the values over which its parameters are varied
    chaos: Annotated[
        str,
        Option(metavar="FAULTS", rich_help_panel=WORK, help="Faults to inject, e.g. worker:5+driver:3."),
    ] = ""
    blocks: Annotated[
        int | None,
        Option(
            metavar="N",
            rich_help_panel=SESSION,
            help="Repetitions of all runs; 6 or more give a verdict. [default: the profile's]",
        ),
    ] = None
    samples: Annotated[
        int | None,
        Option(
            metavar="N",
            rich_help_panel=SESSION,
            help="Samples of each metric in a run; see `bench pilot`. [default: the profile's]",
        ),
    ] = None
    target: TargetName = "auto"
    budget: Annotated[
        str,
        Option(
            metavar="TIME", rich_help_panel=SESSION, help="Time limit, e.g. 20m or 1h30m; what is left out is named."
        ),
    ] = ""
    precision: Annotated[
        str,
        Option(metavar="PERCENT", rich_help_panel=SESSION, help="Stop when all intervals are this narrow, e.g. 3%."),
    ] = ""
    primary: Annotated[
        str,
        Option(
            metavar="CELLS",
            rich_help_panel=SESSION,
            help="Cells in question, at most 5, e.g. c01,c03. [default: all, up to 5]",
        ),
    ] = ""
    profile_with: Annotated[
        str,
        Option(
            metavar="PROFILER",
            rich_help_panel=SESSION,
            help=f"Profile all processes; slows the run: {', '.join(PROFILERS)}.",
        ),
        OneOf(tuple(PROFILERS)),
    ] = ""
    options: Mapping[str, _Value] = field(default_factory=dict)  # of the target, those that are not at their default
    command: str = ""  # what the user typed

    @property
    def budget_seconds(self) -> float | None:
        """Time limit of the whole session, clusters and waits included; None: no limit. Raises BadInput."""
        return seconds_of(self.budget) if self.budget else None

    @property
    def precision_share(self) -> float | None:
        """How far each headline's interval may reach to each side: 0.03 is 3 %; None: not asked for. Raises BadInput."""
        return share_of(self.precision) if self.precision else None


def seconds_of(text: str) -> float:
    """20m, 1h30m, 90s. Raises BadInput."""
    parts = re.fullmatch(r"(?=.)(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?", text.strip())
    seconds = (
        sum(int(n or 0) * unit for n, unit in zip(parts.groups(), UNITS_SECONDS.values(), strict=True)) if parts else 0
    )
    if not seconds:
        raise BadInput(f"--budget must be a time such as 20m, 90s or 1h30m, got {text!r}.")
    return float(seconds)


def price_of(text: str) -> str:
    """`0.04 EUR`, of any way to write it: amount first, then what it is counted in. Raises BadInput."""
    price = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([^\W\d_]{1,8}|[$€£¥])", text.strip())
    if not price or not float(price[1]) > 0:
        raise BadInput(f"--price-per-cpu-hour must be an amount and a currency such as 0.04EUR, got {text!r}.")
    return f"{price[1]} {price[2]}"


def share_of(text: str) -> float:
    """0.03, of 3%. Raises BadInput."""
    percent = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", text.strip())
    share = float(percent[1]) / 100 if percent else 0.0
    if not 0 < share < 1:
        raise BadInput(
            f"--precision must be a percentage such as 3%, got {text!r}.",
            "It is how far an interval may reach to each side of the ratio.",
        )
    return share


Out = Annotated[Path, Option(metavar="FOLDER", help="Folder that holds the sessions.")]
Calibrate = Annotated[
    bool | None,
    Option(
        "--calibrate/--no-calibrate",
        rich_help_panel=SESSION,
        help="Time this machine for the estimate. [default: if guesses exceed 10 min]",
        show_default=False,
    ),
]
AsJson = Annotated[bool, Option("--json", help="Print JSON with unrounded numbers.")]
Force = Annotated[bool, Option("--force", help="Proceed though a session runs on the deployment; it will fail.")]
SessionName = Annotated[str, Argument(metavar="SESSION", help="Session id or the start of one, a folder, or latest.")]
_PADDING = "0001-01-01T00:00:00"
_DATE_LENGTHS = (0, 4, 7, 10, 13, 16, 19, 25)  # as far as the year, the month and so on, the last with its zone


def _check_since(text: str) -> str:
    """Raise BadInput unless `text` is the beginning of an ISO date, since dates are compared as text."""
    try:
        padded = text + _PADDING[len(text) :]
        is_date = len(text) in _DATE_LENGTHS and datetime.fromisoformat(padded).isoformat() == padded
    except ValueError:
        is_date = False
    if not is_date:
        raise BadInput(f"--since must be a date such as 2026-01-31 or 2026-01, got {text!r}.")
    return text


Since = Annotated[
    str, Option(metavar="DATE", callback=_check_since, help="Only sessions since this date, e.g. 2026-01-31.")
]


def declared(group: type[Any]) -> dict[str, Any]:
    """The annotation of each option that the dataclass `group` declares, by the option's name."""
    hints = get_type_hints(group, include_extras=True)
    return {option.name: hints[option.name] for option in fields(group) if is_option(hints[option.name])}


def is_option(annotation: Any) -> bool:
    """Whether an annotation declares an option or argument of a command."""
    return get_origin(annotation) is Annotated and isinstance(get_args(annotation)[1], ParameterInfo)


def is_repeatable(annotation: Any) -> bool:
    """Whether an option may be given several times."""
    return any(isinstance(mark, Repeatable) for mark in get_args(annotation)[2:])


def choices(annotation: Any) -> tuple[str, ...]:
    """The words that an option takes; empty where it takes others than a few."""
    kind, *rest = get_args(annotation)
    return get_args(kind) if get_origin(kind) is Literal else next((m.words for m in rest if isinstance(m, OneOf)), ())
