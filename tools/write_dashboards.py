"""Writes Grafana's boards into grafana/ from the code: `task dashboards`."""

from __future__ import annotations

from typing import Annotated

import typer

from bench.errors import RecordDamaged
from bench.prometheus import boards
from bench.record.store import write_whole
from tools import command_line, dashboards

Check = Annotated[bool, typer.Option("--check", help="Write nothing; fail where a file differs from the code.")]


def command(check: Check = False) -> None:
    """Write Grafana's boards into grafana/, from the code."""
    folder = boards.FOLDER
    if not folder.is_dir():
        raise RecordDamaged(f"{folder} is not there.", "The boards are written in a checkout of the project.")
    made = dashboards.generate()
    there = {path.name: path.read_text() for path in folder.glob("*.json")}
    drifted = sorted(name for name in made.keys() | there.keys() if made.get(name) != there.get(name))
    if check and drifted:
        raise RecordDamaged(
            f"Not what the code says: {', '.join(drifted)} in {folder.name}.", "Write them anew with `task dashboards`."
        )
    for name in drifted:
        if name in made:
            write_whole(folder / name, made[name].encode())
            typer.echo(f"{name} was written anew.")
        else:
            (folder / name).unlink()
            typer.echo(f"{name} was removed: no board has this name.")


if __name__ == "__main__":
    command_line.run(command)
