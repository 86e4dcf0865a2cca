"""The options of commands that read records alone, which need not wait for what plans and targets need."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from bench.errors import BadInput
from bench.record import store
from bench.terminal.paths import as_path

DEFAULT_OUT = store.DEFAULT_FOLDER

Out = Annotated[Path, typer.Option(metavar="FOLDER", help="Where the sessions are.", parser=as_path)]
AsJson = Annotated[bool, typer.Option("--json", help="As JSON, unrounded.")]
_WHOLE_DATE = "0001-01-01T00:00:00"
_DATE_LENGTHS = (0, 4, 7, 10, 13, 16, 19, 25)  # as far as the year, the month and so on, the last with its zone


def _check_since(said: str) -> str:
    """Dates are compared as text, and any text would do: only the beginning of an ISO date can be meant."""
    try:
        whole = said + _WHOLE_DATE[len(said) :]
        is_date = len(said) in _DATE_LENGTHS and datetime.fromisoformat(whole).isoformat() == whole
    except ValueError:
        is_date = False
    if not is_date:
        raise BadInput(f"--since {said} is no date.", "Say it as 2026-01-31, or less or more of it.")
    return said


Since = Annotated[str, typer.Option(metavar="DATE", callback=_check_since, help="Of sessions since then: 2026-01-31.")]
