"""`bench export`: a session in one file, for others to check."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bench import store
from bench.capsules import packing
from bench.commands.options import DEFAULT_OUT, Out, SessionName

Into = Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where to put it.")]
HERE = Path()


def command(session: SessionName = "latest", into: Into = HERE, out: Out = DEFAULT_OUT) -> None:
    """Pack a session into one file that others can check: plan, raw samples, facts, pins, report. Prints its path.

    Example: bench export latest
    """
    typer.echo(packing.pack(store.find(out, session), into))
