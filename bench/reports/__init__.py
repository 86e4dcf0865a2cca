"""What a session means, written down: an index of formats, each a function from a Report, and the runs it is of, to text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bench.analysis import Report
from bench.analysis.two_sessions import TwoSessions
from bench.model import Run
from bench.reports import csv, html, json, junit, markdown, mllog, openmetrics, perf_metrics, text, two_sessions

FORMATS: dict[str, Callable[..., str]] = {
    "text": text.render,
    "markdown": markdown.render,
    "json": json.render,
    "csv": csv.render,
    "html": html.render,
    "mllog": mllog.render,
    "openmetrics": openmetrics.render,
    "perf-metrics": perf_metrics.render,
    "junit": junit.render,
}

OF_TWO_SESSIONS: dict[str, Callable[[TwoSessions], str]] = {
    "text": lambda found: text.write(two_sessions.compose(found)),
    "markdown": lambda found: markdown.write(two_sessions.compose(found)),
    "json": json.render,
}


def render(format: str, report: Report, runs: Sequence[Run] = (), **layout: str) -> str:
    """`report` in one of FORMATS. `runs` are those it was built from: their profiles, and in some their samples too.

    `layout`: how it is written, where the format has more than one way.
    """
    return FORMATS[format](report, runs, **layout)
