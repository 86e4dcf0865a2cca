"""Delete sessions.

All that was measured in them is deleted. The command asks first; --yes skips the question.

Example: bench rm 20260101-120000-inference-tiny-1a2b
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from bench.counts import plural
from bench.errors import BadInput, CannotWrite, RecordDamaged
from bench.options import DEFAULT_OUT, AsJson, Out
from bench.record import store
from bench.runner import session_lock
from bench.terminal.answers import say_json

Names = Annotated[
    list[str],
    typer.Argument(metavar="SESSION...", help="Session ids or their starts, folders, or latest."),
]
Yes = Annotated[bool, typer.Option("--yes", help="Delete without asking.")]


def command(sessions: Names, yes: Yes = False, as_json: AsJson = False, out: Out = DEFAULT_OUT) -> None:
    folders = list(dict.fromkeys(store.find(out, name) for name in sessions))
    for folder in folders:
        with _at_rest(folder):
            pass  # a running session is refused before the question
    for folder in folders:
        typer.echo(
            f"{folder}: {plural(sum((run / 'samples.jsonl').is_file() for run in _runs(folder)), 'run')}", err=True
        )
    if not yes:
        if not sys.stdin.isatty():
            raise BadInput("Cannot prompt: standard input is not a terminal.", "Use --yes to confirm.")
        typer.confirm(f"Delete {plural(len(folders), 'session')} for good?", abort=True, err=True)
    for folder in folders:
        with _at_rest(folder):
            _remove(folder)
        if not as_json:
            typer.echo(f"Deleted {folder.name}.")
    if as_json:
        say_json("removed", [folder.name for folder in folders])


def _runs(folder: Path) -> list[Path]:
    return sorted(path for path in (folder / "runs").glob("*") if path.is_dir())


@contextmanager
def _at_rest(folder: Path) -> Iterator[None]:
    """Prevent the session in `folder` from being run. Raises BadInput if it is running, or if `folder` is a link."""
    if folder.is_symlink():
        raise BadInput(f"{folder} is a symbolic link.", "Name the folder that it points to.")
    try:
        session = store.load_session(folder)
    except RecordDamaged:  # a damaged session cannot run
        yield
        return
    with session_lock.at_rest(session):
        yield


def _remove(folder: Path) -> None:
    """Delete a session's folder. It is renamed first, so that an interrupted deletion leaves nothing that looks like a session."""
    gone = folder.with_name(f".removed-{folder.name}")
    try:
        folder.rename(gone)
        (gone / "session.json").unlink()
        shutil.rmtree(gone)
    except OSError as error:
        raise CannotWrite(f"{folder} cannot be deleted: {error.strerror}.", "Change its permissions.") from error
