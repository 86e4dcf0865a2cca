"""Prints the output of `--json`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import typer

from bench.errors import BadInput
from bench.model import to_json
from bench.terminal.schemas import envelope


def say_json(schema: str, data: Any) -> None:
    """Print `data` for programs, unrounded, in the envelope: every command that has `--json` does it here."""
    say_plain(envelope(schema, data))


def say_plain(value: Any) -> None:
    """Print a JSON value by itself, where what it is like is another's to say."""
    typer.echo(msgspec.json.format(to_json(value), indent=2).decode())


def refuse_beside_json(format: str, output: Path | None) -> None:
    """Raise BadInput where --json, which is printed, was asked for with another format or a file."""
    if output is not None or format != "text":
        raise BadInput("--json excludes --format and -o.", "Use --json alone, or --format json -o FILE.")
