"""Runs a tool as a command: an expected failure is one line and its exit code, as with `bench`."""

from __future__ import annotations

import sys
from collections.abc import Callable

import typer

from bench.errors import BenchError


def run(command: Callable[..., None]) -> None:
    """Parse the command line for `command` and run it; ends the process with the exit code of what happened."""
    try:
        typer.run(command)
    except BenchError as error:
        typer.echo(f"{sys.argv[0]}: {error}", err=True)
        sys.exit(error.exit_code)
