"""`bench docs`: write the parts of the README that the code knows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bench import store
from bench.errors import RecordDamaged

Check = Annotated[bool, typer.Option("--check", help="Write nothing; fail where the file is not what it would be.")]
File = Annotated[Path, typer.Option(metavar="FILE", help="The file with the marked parts.")]


def command(check: Check = False, file: File = Path("README.md")) -> None:
    """Write the tables of commands, experiments and exit codes into the README, from the code.

    Example: bench docs --check
    """
    from bench.cli import app
    from bench.docs import fill

    if not file.is_file():
        raise RecordDamaged(f"{file} is not there.", "Run this in the folder of the project, or name it with --file.")
    before = file.read_text()
    after = fill(before, app)
    if before == after:
        return
    if check:
        raise RecordDamaged(f"{file} does not say what the code says.", "Write it anew with `task docs`.")
    store.write_whole(file, after.encode())
    typer.echo(f"{file} was written anew.")
