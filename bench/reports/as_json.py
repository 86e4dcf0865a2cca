"""Writes a whole report, or a comparison of two sessions, as JSON, for programs."""

from __future__ import annotations

from collections.abc import Sequence

from bench.analysis import Report
from bench.analysis.two_sessions import TwoSessions
from bench.model import Run, to_json


def render(report: Report | TwoSessions, _: Sequence[Run] = ()) -> str:
    """Every field of it, by its name; what is not known is null."""
    import msgspec

    return msgspec.json.format(to_json(report), indent=2).decode()
