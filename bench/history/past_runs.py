"""Reads from the last sessions what the next plan needs: how long runs take, and how far pairs spread."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import fmean, median, variance

from bench.errors import RecordDamaged
from bench.planning.plan import QUIET_CHECK_SECONDS, Known, run_key, time_key
from bench.record import store

SESSIONS = 10  # the last ones; older ones say little of this machine now


def known(out: Path, target: str) -> Known:
    """What the last sessions in `out` took on `target`: medians of runs and clusters, the mean wait before a block."""
    seconds: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    clusters: defaultdict[str, list[float]] = defaultdict(list)
    waits: list[float] = []
    for folder in islice(store.newest(out), SESSIONS):
        try:
            session = store.load_session(folder)
            runs = store.load_runs(folder, session) if session.target == target else []
        except RecordDamaged:
            continue  # `bench show` says so; it is no reason not to plan
        for run in runs:
            if run.status == "ok" and run.seconds is not None:
                seconds[time_key(run.spec)].append(run.seconds)
            if run.cluster_seconds is not None:
                clusters[run.spec.topology.name].append(run.cluster_seconds)
        waits += {
            run.spec.block: run.quiet_check.waited_seconds + QUIET_CHECK_SECONDS for run in runs if run.quiet_check
        }.values()
    return Known(
        runs={key: median(values) for key, values in seconds.items()},
        clusters={topology: median(values) for topology, values in clusters.items()},
        quiet_check=fmean(waits) if waits else None,
    )


@dataclass(frozen=True, kw_only=True)
class PairSpread:
    """How far the log-ratios of a headline's pairs lay from their mean in earlier sessions: a pooled SD."""

    deviation: float
    pairs: int
    sessions: int


def spreads(out: Path) -> dict[str, PairSpread]:
    """By `plan.run_key`: what the last sessions in `out` say of pairs to come."""
    found: defaultdict[str, list[list[float]]] = defaultdict(list)
    for folder in islice(store.newest(out), SESSIONS):
        try:
            for key, logs in _headline_logs(folder):
                found[key].append(logs)
        except RecordDamaged:
            continue
    return {key: _pooled(sessions) for key, sessions in found.items()}


def _headline_logs(folder: Path) -> Iterator[tuple[str, list[float]]]:
    """Of each cell of a session with two pairs or more: its key, and the log-ratios of its headline."""
    from bench import analysis
    from bench.analysis.comparison import log_ratios

    session = store.load_session(folder)
    keys = {(spec.experiment, spec.cell): run_key(spec) for spec in session.specs}
    for cell in analysis.build(session, store.load_runs(folder, session)).cells:
        row = cell.headline
        if row is None or row.comparison is None:
            continue
        one, other = (row.sides[name].values for name in (row.comparison.baseline, row.comparison.candidate))
        logs = list(log_ratios(one, other).values())
        if len(logs) > 1:
            yield keys[cell.experiment, cell.cell], logs


def _pooled(sessions: list[list[float]]) -> PairSpread:
    """Each session about its own mean: between two sessions the ratio itself may have changed."""
    squares = sum((len(logs) - 1) * variance(logs) for logs in sessions)
    pairs = sum(map(len, sessions))
    return PairSpread(deviation=math.sqrt(squares / (pairs - len(sessions))), pairs=pairs, sessions=len(sessions))
