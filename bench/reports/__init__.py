"""What a session means, written down: an index of formats, each a function from a Report to text."""

from __future__ import annotations

from collections.abc import Callable

from bench.analysis import Report
from bench.reports import csv, json, markdown, text

FORMATS: dict[str, Callable[[Report], str]] = {
    "text": text.render,
    "markdown": markdown.render,
    "json": json.render,
    "csv": csv.render,
}
