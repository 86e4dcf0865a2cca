"""What a session means, written down: an index of formats, each a function from a Report to text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bench.analysis import Report
from bench.model import Run
from bench.reports import csv, html, json, markdown, text

FORMATS: dict[str, Callable[[Report], str]] = {
    "text": text.render,
    "markdown": markdown.render,
    "json": json.render,
    "csv": csv.render,
    "html": html.render,
}


def render(format: str, report: Report, runs: Sequence[Run] = ()) -> str:
    """`report` in one of FORMATS. `runs` are those it was built from: HTML draws their samples too."""
    return html.render(report, runs) if format == "html" else FORMATS[format](report)
