"""`bench dashboards`: write the boards of Grafana from the code."""

from __future__ import annotations

from typing import Annotated

import typer

from bench.commands.answers import say_json
from bench.commands.options import AsJson
from bench.errors import RecordDamaged
from bench.sessions import store

Check = Annotated[bool, typer.Option("--check", help="Write nothing; fail where a file is not what it would be.")]


def command(check: Check = False, as_json: AsJson = False) -> None:
    """Write Grafana's boards into grafana/dashboards, from the code.

    Example: bench dashboards --check
    """
    from bench.dashboards import FOLDER, generate

    if not FOLDER.is_dir():
        raise RecordDamaged(f"{FOLDER} is not there.", "The boards are written in a checkout of the project.")
    made = generate()
    there = {path.name: path.read_text() for path in FOLDER.glob("*.json")}
    drifted = sorted(name for name in made.keys() | there.keys() if made.get(name) != there.get(name))
    if check and drifted:
        raise RecordDamaged(
            f"Not what the code says: {', '.join(drifted)} in {FOLDER.name}.", "Write them anew with `task dashboards`."
        )
    written = [name for name in drifted if name in made]
    for name in written:
        store.write_whole(FOLDER / name, made[name].encode())
    removed = [name for name in drifted if name not in made]
    for name in removed:
        (FOLDER / name).unlink()
    if as_json:
        say_json("written", {"written": written, "removed": removed})
        return
    for name in written:
        typer.echo(f"{name} was written anew.")
    for name in removed:
        typer.echo(f"{name} was removed: no board has this name.")
