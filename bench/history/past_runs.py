"""Reads from the last sessions what the next plan needs: durations of runs, and the spread of pairs."""

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

SESSIONS = 10  # newest sessions that are read; older ones say little about the machine's present state


def known(out: Path, target: str) -> Known:
    """Return durations from the last sessions in `out` on `target`: medians of runs and clusters, mean wait before a block."""
    seconds: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    clusters: defaultdict[str, list[float]] = defaultdict(list)
    waits: list[float] = []
    for folder in islice(store.newest(out), SESSIONS):
        try:
            session = store.load_session(folder)
            runs = store.load_runs(folder, session) if session.target == target else []
        except RecordDamaged:
            continue  # `bench show` reports the damage, and a plan can do without this session
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
    """The pooled standard deviation of the log-ratios of a headline's pairs in earlier sessions."""

    deviation: float
    pairs: int
    sessions: int


def spreads(out: Path) -> dict[str, PairSpread]:
    """Return the spread of pairs in the last sessions in `out`, by `plan.run_key`."""
    log_ratios_by_key: defaultdict[str, list[list[float]]] = defaultdict(list)
    for folder in islice(store.newest(out), SESSIONS):
        try:
            for key, logs in _headline_logs(folder):
                log_ratios_by_key[key].append(logs)
        except RecordDamaged:
            continue
    return {key: _pooled(sessions) for key, sessions in log_ratios_by_key.items()}


def _headline_logs(folder: Path) -> Iterator[tuple[str, list[float]]]:
    """Yield the key and the headline's log-ratios of each cell that has two pairs or more."""
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
    """Pool variances, each session about its own mean: between two sessions the ratio itself may have changed."""
    squares = sum((len(logs) - 1) * variance(logs) for logs in sessions)
    pairs = sum(map(len, sessions))
    return PairSpread(deviation=math.sqrt(squares / (pairs - len(sessions))), pairs=pairs, sessions=len(sessions))
