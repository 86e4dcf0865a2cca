"""Finds when runs were measured, as other tools want it: Unix seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from bench.model import Run


def created_seconds(created: str) -> float:
    """An ISO 8601 moment as Unix seconds."""
    return datetime.fromisoformat(created).timestamp()


def offsets(created: str, runs: Sequence[Run]) -> Mapping[str, float]:
    """Of each run's folder: what makes Unix seconds of the seconds of its clock.

    A record has the monotonic clock of each driver and one moment of the wall, that of the plan: there the first sample
    begins here. A clock that began anew, since its machine did, goes on where the one before it ended.
    """
    spans: dict[str, list[float]] = {}
    for run in runs:
        spans.setdefault(_clock(run), []).extend(
            moment for sample in run.samples for moment in (sample.interval.begin, sample.interval.end)
        )
    now, found = created_seconds(created), {}
    for clock, moments in spans.items():
        found[clock] = now - min(moments, default=0.0)
        now += max(moments, default=0.0) - min(moments, default=0.0)
    return {run.spec.folder: found[_clock(run)] for run in runs}


def _clock(run: Run) -> str:
    """Whose clock a run has: that of the head node's machine since it started."""
    return run.facts.nodes[0].boot_id if run.facts and run.facts.nodes else ""
