"""Pack a session into one file, a capsule.

A capsule holds the plan, raw samples, facts, pins, report and the extract of Prometheus, so that others can verify
them. Prints the path of the file.

Example: bench export latest
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bench.capsules import packing
from bench.history import otava as series_tables
from bench.options import DEFAULT_OUT, AsJson, Out, SessionName
from bench.record import store
from bench.terminal.answers import say_json
from bench.terminal.output import say

Into = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        metavar="FOLDER",
        help="Folder to write the capsule to. [default: this one]",
        show_default=False,
    ),
]
Otava = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Add the session to Apache Otava tables here, in place of a capsule.",
    ),
]
HERE = Path()


def command(
    session: SessionName = "latest",
    into: Into = HERE,
    otava: Otava = None,
    as_json: AsJson = False,
    out: Out = DEFAULT_OUT,
) -> None:
    if otava is not None:
        tables = series_tables.add(store.find(out, session), otava)
        if as_json:
            say_json("tables", {"path": str(otava), "tables": [str(path) for path in tables]})
            return
        say(
            f"Added a row to {len(tables)} tables. Analyse them with `otava analyze` and {otava / series_tables.CONFIG}."
        )
        typer.echo(otava)
        return
    packed = packing.pack(store.find(out, session), into)
    if as_json:
        say_json("capsule", {"path": str(packed.path), "damaged": packed.damaged, "extract": packed.extract})
        return
    for damaged in packed.damaged:
        say(f"Damaged, packed unchanged and left out of the report: {damaged}.")
    say(f"Contains {packed.extract}.")
    typer.echo(packed.path)
