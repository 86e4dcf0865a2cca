"""Converts the times of runs to Unix seconds, which other tools need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from bench.model import Run


def created_seconds(created: str) -> float:
    """Convert an ISO 8601 time to Unix seconds."""
    return datetime.fromisoformat(created).timestamp()


def offsets(created: str, runs: Sequence[Run]) -> Mapping[str, float]:
    """Return, by run folder, the offset from the seconds of the run's clock to Unix seconds.

    A record has times of each driver's monotonic clock, and one time of day, that of the plan: the first sample is put there. A clock
    that restarted with its machine continues where the one before it ended.
    """
    spans: dict[str, list[float]] = {}
    for run in runs:
        spans.setdefault(_clock(run), []).extend(
            moment for sample in run.samples for moment in (sample.interval.begin, sample.interval.end)
        )
    now, offset_of_clock = created_seconds(created), {}
    for clock, moments in spans.items():
        offset_of_clock[clock] = now - min(moments, default=0.0)
        now += max(moments, default=0.0) - min(moments, default=0.0)
    return {run.spec.folder: offset_of_clock[_clock(run)] for run in runs}


def _clock(run: Run) -> str:
    """Return the id of a run's clock: the boot of the head node's machine."""
    return run.facts.nodes[0].boot_id if run.facts and run.facts.nodes else ""
