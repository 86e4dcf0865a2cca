"""Writes a report in any of its formats, each a function from a Report, and the runs it is of, to text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bench.analysis import Report
from bench.model import Run
from bench.reports import as_csv, as_html, as_json, as_markdown, as_text, two_sessions
from bench.reports.interop import junit, mllog, openmetrics, perf_metrics

FORMATS: dict[str, Callable[..., str]] = {
    "text": as_text.render,
    "markdown": as_markdown.render,
    "json": as_json.render,
    "csv": as_csv.render,
    "html": as_html.render,
    "mllog": mllog.render,
    "openmetrics": openmetrics.render,
    "perf-metrics": perf_metrics.render,
    "junit": junit.render,
}

OF_TWO_SESSIONS: dict[str, Callable[..., str]] = {
    "text": lambda found, **layout: as_text.write(two_sessions.compose(found), **layout),
    "markdown": lambda found: as_markdown.write(two_sessions.compose(found)),
    "json": as_json.render,
}


def render(format: str, report: Report, runs: Sequence[Run] = (), **layout: object) -> str:
    """`report` in one of FORMATS. `runs` are those it was built from: their profiles, and in some their samples too.

    `layout`: how it is written, where the format has more than one way.
    """
    return FORMATS[format](report, runs, **layout)
