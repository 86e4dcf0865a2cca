"""What a command says beside its answer, on standard error: as much of it as the person asked for."""

from __future__ import annotations

import shutil
from enum import IntEnum

import typer

from bench.sanitize import clean_text


class Level(IntEnum):
    """How much is said; errors always are."""

    QUIET = 0
    USUAL = 1
    VERBOSE = 2


_level = Level.USUAL


def set_level(level: Level) -> None:
    """From now on. The command line says it once, before any command begins."""
    global _level  # noqa: PLW0603, one process has one person
    _level = level


def level() -> Level:
    """How much is said now."""
    return _level


def say(text: str, *, at: Level = Level.USUAL) -> None:
    """A line of talk, where as much as that is asked for."""
    if _level >= at:
        typer.echo(clean_text(text), err=True)


def page_width() -> int:
    """How wide a report is printed: as wide as the terminal, 60 to 100 columns; 100 where there is none."""
    return max(60, min(shutil.get_terminal_size((100, 40)).columns, 100))
