"""Writes messages to standard error, at the level that the user chose."""

from __future__ import annotations

import os
import shutil
import sys
from enum import IntEnum
from typing import TypedDict

import typer

from bench.sanitize import clean_text


class Level(IntEnum):
    """How much is written; errors always are."""

    QUIET = 0
    USUAL = 1
    VERBOSE = 2


_level = Level.USUAL


def set_level(level: Level) -> None:
    """Set the level; the command line does it once, before a command starts."""
    global _level  # noqa: PLW0603, one process has one user
    _level = level


def level() -> Level:
    """The level in force."""
    return _level


def say(text: str, *, at: Level = Level.USUAL) -> None:
    """Write a line to standard error, unless the level is lower."""
    if _level >= at:
        typer.echo(clean_text(text), err=True)


class PageLayout(TypedDict):
    """How a text report is written for a terminal."""

    width: int
    colour: bool


def page_layout() -> PageLayout:
    """As wide as the terminal, from 60 to 100 columns; in colours, unless NO_COLOR is set or output goes elsewhere."""
    is_plain = not sys.stdout.isatty() or bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    return {"width": max(60, min(shutil.get_terminal_size((100, 40)).columns, 100)), "colour": not is_plain}
