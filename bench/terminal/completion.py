"""What the shell offers where a name is asked for. Nothing here may be slow or fail: a person has pressed Tab."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import get_args

import typer

from bench import experiments
from bench.errors import BenchError
from bench.params import declared
from bench.planning.plan import TOPOLOGIES
from bench.record import store
from bench.stacks import PROFILERS
from bench.targets import NAMES, Isolation

MOST_SESSIONS = 50  # the newest: more can nobody choose from
CHOICES = {
    "topology": TOPOLOGIES,
    "target": ("auto", *NAMES),
    "isolation": get_args(Isolation),
    "profile_with": tuple(PROFILERS),
    "delimiter": ("comma", "semicolon", "tab"),
}
"""Of options that take one of a few words."""


def one_of(name: str) -> Callable[[str], list[str]]:
    """What completes the option `name` of CHOICES."""

    def complete(incomplete: str) -> list[str]:
        return _beginning(incomplete, CHOICES[name])

    return complete


def experiment(incomplete: str) -> list[str]:
    """Experiments by name."""
    return _beginning(incomplete, experiments.NAMES)


def profile(context: typer.Context, incomplete: str) -> list[str]:
    """The profiles of the experiments that were named already, or else of all."""
    return _beginning(incomplete, dict.fromkeys(each for of in _named(context) for each in of.PROFILES))


def setting(context: typer.Context, incomplete: str) -> list[str]:
    """The params of the experiments that were named already, or else of all, ready for their values."""
    return _beginning(incomplete, dict.fromkeys(f"{each}=" for of in _named(context) for each in declared(of.Params)))


def session(context: typer.Context, incomplete: str) -> list[str]:
    """Ids of sessions, the newest first, and `latest`."""
    out = Path(context.params.get("out") or store.DEFAULT_FOLDER)
    try:
        found = [folder.name for folder in store.session_folders(out)]
    except (OSError, BenchError):
        found = []
    return _beginning(incomplete, ["latest", *found[::-1]])[:MOST_SESSIONS]


def _named(context: typer.Context) -> list[experiments.Experiment]:
    said = context.params.get("experiments") or context.params.get("experiment") or ()
    names = [said] if isinstance(said, str) else list(said)
    return [experiments.load(name) for name in names if name in experiments.NAMES] or [
        experiments.load(name) for name in experiments.NAMES
    ]


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
