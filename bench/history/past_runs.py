"""Reads from the last sessions what the next plan needs: how long runs take, and how far pairs spread."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from statistics import fmean, median, variance

from bench.errors import RecordDamaged
from bench.model import Run
from bench.planning.needs import JOB_SECONDS
from bench.planning.plan import QUIET_CHECK_SECONDS, Known, run_key, time_key
from bench.record import store

SESSIONS = 10  # the last ones; older ones say little of this machine now
MOST_CLUSTER_SECONDS = 600.0  # to stand one up: a longer gap is a session that was stopped, and went on later


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
            if run.status == "ok":
                seconds[time_key(run.spec)].append(_seconds(run))
        waits += {
            run.spec.block: run.quiet_check.waited_seconds + QUIET_CHECK_SECONDS for run in runs if run.quiet_check
        }.values()
        for topology, took in _cluster_seconds(runs):
            clusters[topology].append(took)
    return Known(
        runs={key: median(values) for key, values in seconds.items()},
        clusters={topology: median(values) for topology, values in clusters.items()},
        quiet_check=fmean(waits) if waits else None,
    )


def _seconds(run: Run) -> float:
    return JOB_SECONDS + (run.covered.seconds if run.covered else 0.0)


def _cluster_seconds(runs: Sequence[Run]) -> Iterator[tuple[str, float]]:
    """Of each cluster but the first: its topology, and what it took from the end of a good run to the begin of the next.

    Less a job's share of that, which is in every run, and the wait for a quiet machine. By the monotonic clock that all
    drivers on one machine share: runs of several machines say nothing.
    """
    timed = sorted((run for run in runs if run.covered and run.status == "ok" and run.facts), key=_begin)
    for before, after in pairwise(timed):
        if before.covered is None or after.covered is None or _head(before) != _head(after):
            continue
        if (before.spec.block, before.spec.topology.name) != (after.spec.block, after.spec.topology.name):
            is_new_block = before.spec.block != after.spec.block
            waited = (
                after.quiet_check.waited_seconds + QUIET_CHECK_SECONDS if is_new_block and after.quiet_check else 0.0
            )
            took = after.covered.begin - before.covered.end - JOB_SECONDS - waited
            if 0 < took < MOST_CLUSTER_SECONDS:
                yield after.spec.topology.name, took


def _begin(run: Run) -> float:
    return run.covered.begin if run.covered else 0.0


def _head(run: Run) -> str:
    return run.facts.nodes[0].boot_id if run.facts and run.facts.nodes else ""


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
