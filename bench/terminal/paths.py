"""Parses the paths that the user types: `parser=as_path`."""

from __future__ import annotations

from pathlib import Path

import typer

from bench.record.files import expand_home


def as_path(text: str | Path) -> Path:
    """The path in `text`: `~` is the home folder, as shells do not expand `--out=~/x` and plan files have no shell."""
    if not str(text).strip():
        raise typer.BadParameter(f"it must be a path, got {str(text)!r}.")
    return Path(expand_home(str(text)))
