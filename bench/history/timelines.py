"""Reads the timelines that the page of a report draws, and no others: a session has one for every node of every run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bench.analysis import Report
from bench.analysis.timelines import drawn
from bench.model import Run
from bench.record import store


def with_timelines(folder: Path, report: Report, runs: Sequence[Run], *, format: str = "html") -> Sequence[Run]:
    """The runs of a report, those that `format` draws over time with their timelines. Raises RecordDamaged."""
    if format != "html":
        return runs
    wanted = {run.spec.folder for run in drawn(report.cells, runs)}
    return [
        replace(run, timelines=store.load_timelines(folder, run.spec)) if run.spec.folder in wanted else run
        for run in runs
    ]
