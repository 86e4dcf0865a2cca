"""`bench export`: a session in one file, for others to check."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bench.capsules import packing
from bench.commands.answers import say_json
from bench.commands.options import DEFAULT_OUT, AsJson, Out, SessionName
from bench.commands.talk import say
from bench.sessions import store

Into = Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where to put it.")]
HERE = Path()


def command(
    session: SessionName = "latest", into: Into = HERE, as_json: AsJson = False, out: Out = DEFAULT_OUT
) -> None:
    """Pack a session into one file that others can check: plan, raw samples, facts, pins, report, and what Prometheus had of it. Prints its path.

    Example: bench export latest
    """
    packed = packing.pack(store.find(out, session), into)
    if as_json:
        say_json("capsule", {"path": str(packed.path), "extract": packed.extract})
        return
    say(f"It has {packed.extract}.")
    typer.echo(packed.path)
