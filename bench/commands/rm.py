"""`bench rm`: take sessions away, after asking."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from bench import store
from bench.commands import completion
from bench.commands.options import DEFAULT_OUT, Out
from bench.errors import BadInput, CannotWrite

STILL_SECONDS = 60.0  # a record that nobody has written to for so long is not being written
Names = Annotated[
    list[str],
    typer.Argument(
        metavar="SESSION...", help="Ids, beginnings of them, folders, or latest.", autocompletion=completion.session
    ),
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


def command(sessions: Names, yes: Yes = False, out: Out = DEFAULT_OUT) -> None:
    """Take sessions away for good, with all that was measured in them. Asks first.

    Example: bench rm 20260101-120000-inference-tiny-1a2b
    """
    folders = list(dict.fromkeys(store.find(out, name) for name in sessions))
    for folder in folders:
        _check(folder)
    for folder in folders:
        typer.echo(f"{folder}: {sum((each / 'samples.jsonl').is_file() for each in _runs(folder))} runs", err=True)
    if not yes:
        if not sys.stdin.isatty():
            raise BadInput("Nobody is there to be asked.", "Say --yes, if you mean it.")
        typer.confirm(f"Take {len(folders)} of them away for good?", abort=True)
    for folder in folders:
        _remove(folder)
        typer.echo(f"{folder.name} is gone.")


def _runs(folder: Path) -> list[Path]:
    return sorted(path for path in (folder / "runs").glob("*") if path.is_dir())


def _check(folder: Path) -> None:
    """Raise BadInput unless `folder` is a session's own, and nobody writes to it."""
    if folder.is_symlink():
        raise BadInput(f"{folder} is a link.", "Name the folder that it leads to.")
    times = [path.stat().st_mtime for run in _runs(folder) for path in run.glob("*.json*")]
    open_runs = [run for run in _runs(folder) if not (run / "run.json").exists()]
    if open_runs and time.time() - max(times, default=0.0) < STILL_SECONDS:
        raise BadInput(
            f"{folder.name} was written to a moment ago: it may be running.", "End it with Ctrl-C, then wait a minute."
        )


def _remove(folder: Path) -> None:
    """Rename it first, so that what is left of it, if this is cut off, is no session."""
    gone = folder.with_name(f".removed-{folder.name}")
    try:
        folder.rename(gone)
        (gone / "session.json").unlink()
        shutil.rmtree(gone)
    except OSError as error:
        raise CannotWrite(f"{folder} cannot be taken away: {error.strerror}.", "Mend its rights.") from error
