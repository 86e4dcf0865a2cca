"""Prints what commands answer with `--json`."""

from __future__ import annotations

from typing import Any

import msgspec
import typer

from bench.answers import envelope
from bench.model import to_json


def say_json(schema: str, data: Any) -> None:
    """Print `data` for programs, unrounded, in the envelope: every command that has `--json` does it here."""
    say_plain(envelope(schema, data))


def say_plain(value: Any) -> None:
    """Print a JSON value by itself, where what it is like is another's to say."""
    typer.echo(msgspec.json.format(to_json(value), indent=2).decode())
