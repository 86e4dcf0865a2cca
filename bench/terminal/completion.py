"""Completes names in the shell. Nothing here may be slow or fail: a user has pressed Tab."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from bench.errors import BenchError
from bench.options import DEFAULT_OUT
from bench.record import store

if TYPE_CHECKING:
    from bench.experiments import Experiment

MOST_SESSIONS = 50  # the newest: more are no help


def of_option(name: str, words: Sequence[str]) -> Callable[..., list[str]] | None:
    """What completes the option or argument `name`, which takes one of `words`, or others where there are none."""
    return (lambda incomplete: _beginning(incomplete, words)) if words else _OF_NAMES.get(name)


def experiment(incomplete: str) -> list[str]:
    """Experiments by name."""
    from bench import experiments

    return _beginning(incomplete, experiments.NAMES)


def profile(context: typer.Context, incomplete: str) -> list[str]:
    """The profiles of the experiments that were named already, or else of all."""
    return _beginning(incomplete, dict.fromkeys(name for of in _named(context) for name in of.profiles))


def setting(context: typer.Context, incomplete: str) -> list[str]:
    """The params of the experiments that were named already, or else of all, ready for their values."""
    from bench.params import declared

    return _beginning(incomplete, dict.fromkeys(f"{name}=" for of in _named(context) for name in declared(of.params)))


def session(context: typer.Context, incomplete: str) -> list[str]:
    """Ids of sessions, the newest first, and `latest`."""
    out = Path(context.params.get("out") or DEFAULT_OUT)
    try:
        ids = [folder.name for folder in store.session_folders(out)]
    except (OSError, BenchError):
        ids = []
    return _beginning(incomplete, ["latest", *ids[::-1]])[:MOST_SESSIONS]


_OF_NAMES: dict[str, Callable[..., list[str]]] = {
    "experiments": experiment,
    "experiment": experiment,
    "profile": profile,
    "sets": setting,
    "session": session,
    "sessions": session,
}
"""What completes the options and arguments of these names, wherever a command has one."""


def _named(context: typer.Context) -> list[Experiment[Any]]:
    from bench import experiments

    given = context.params.get("experiments") or context.params.get("experiment") or ()
    names = [given] if isinstance(given, str) else list(given)
    return [experiments.load(name) for name in names if name in experiments.NAMES] or [
        experiments.load(name) for name in experiments.NAMES
    ]


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
