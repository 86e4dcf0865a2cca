"""What earlier sessions say: how long a run took, for the next plan, and how a metric went from session to session."""

from __future__ import annotations

import math
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from pathlib import Path
from statistics import fmean, median, variance
from typing import TYPE_CHECKING

from bench.errors import BadInput, RecordDamaged, did_you_mean
from bench.history import session_index
from bench.model import Better, Kind, Metric, Run, to_json
from bench.planning.plan import GATE_SECONDS, JOB_SECONDS, Known, run_key, time_key
from bench.record import store

if TYPE_CHECKING:
    from bench.analysis.stats.estimates import Estimate

Series = tuple[str, str, str]
"""An experiment, its params, a topology: what makes numbers of one metric the same number."""

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
        waits += {run.spec.block: run.gate.waited_seconds + GATE_SECONDS for run in runs if run.gate}.values()
        for topology, took in _cluster_seconds(runs):
            clusters[topology].append(took)
    return Known(
        runs={key: median(values) for key, values in seconds.items()},
        clusters={topology: median(values) for topology, values in clusters.items()},
        gate=fmean(waits) if waits else None,
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
            waited = after.gate.waited_seconds + GATE_SECONDS if is_new_block and after.gate else 0.0
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


@dataclass(frozen=True, kw_only=True)
class Number:
    """One metric of one cell in one session: on one topology, or `multi/single`, which has a verdict."""

    session: str
    created: str
    experiment: str
    cell: str
    params: str  # JSON
    metric: Metric
    topology: str
    value: float
    low: float | None
    high: float | None
    level: float | None
    n: int
    verdict: str
    changed: Change | None = None  # a new level begins here


@dataclass(frozen=True, kw_only=True)
class Change:
    """From which session to which a metric changed its level, and by how much."""

    since: str  # the last session of the level before
    before: float
    after: float
    ratio: float | None
    p: float


def series(numbers: Sequence[Number]) -> dict[Series, list[Number]]:
    """Numbers of the same thing, each in the order of time."""
    found: dict[Series, list[Number]] = {}
    for number in numbers:
        found.setdefault((number.experiment, number.params, number.topology), []).append(number)
    return found


def with_changes(numbers: Sequence[Number]) -> list[Number]:
    """The same numbers, the first of every new level marked; a series of too few sessions has no marks."""
    from bench.analysis.stats.change_points import FEWEST, change_points

    marked: dict[int, Number] = {}
    for those in series(numbers).values():
        for point in change_points([each.value for each in those]) if len(those) >= FEWEST else ():
            at = those[point.position]
            change = Change(
                since=those[point.position - 1].session,
                before=point.before,
                after=point.after,
                ratio=point.ratio,
                p=point.p,
            )
            marked[id(at)] = replace(at, changed=change)
    return [marked.get(id(number), number) for number in numbers]


def of_metric(
    out: Path, metric: str, *, experiment: str = "", since: str = "", reading: Callable[[int], None] = lambda _: None
) -> list[Number]:
    """Every session's numbers of `metric`, oldest first. `reading` is told how many sessions are read for the first time.

    Raises BadInput where no session has the metric, and says which there are.
    """
    with session_index.opened(out) as index:
        new = session_index.unnumbered(index)
        if new:
            reading(len(new))
        for folder in new:
            try:
                session_index.keep_numbers(index, folder, list(numbers(out / folder)))
            except RecordDamaged:
                continue  # `bench list sessions` and `bench show` say so
        rows = index.execute(
            "select n.*, s.id as session, s.created from numbers n join sessions s using (folder)"  # noqa: S608, it is ours
            f" where {session_index.NO_COPY} and n.metric = ? and s.created >= ? and (? = '' or n.experiment = ?)"
            " order by s.created, n.rowid",
            (metric, since, experiment, experiment),
        ).fetchall()
        if not rows:
            known = [row[0] for row in index.execute("select distinct metric from numbers order by metric")]
            there = (
                f"{did_you_mean(metric, known)}There are: {', '.join(known)}."
                if known
                else f"No session in {out} has numbers."
            )
            raise BadInput(
                f"No session has the metric {metric}{' that is asked for' if metric in known else ''}.", there
            )
    return [_number(row) for row in rows]


def _number(row: sqlite3.Row) -> Number:
    better: Better = "higher" if row["better"] == "higher" else "lower"
    kind: Kind = row["kind"]
    return Number(
        metric=Metric(name=row["metric"], unit=row["unit"], better=better, kind=kind),
        **{
            name: row[name]
            for name in (
                *("session", "created", "experiment", "cell", "params", "topology"),
                *("value", "low", "high", "level", "n", "verdict"),
            )
        },
    )


def numbers(folder: Path) -> Iterator[dict[str, object]]:
    """Of a session's report: each metric on each topology, and the ratio with its verdict."""
    from bench import analysis

    session = store.load_session(folder)
    for cell in analysis.build(session, store.load_runs(folder, session)).cells:
        for row in (*cell.rows, *cell.usage):
            found = row.comparison
            named: dict[str, tuple[Estimate | None, str]] = {n: (side.estimate, "") for n, side in row.sides.items()}
            if found and found.ratio:
                said = "refused" if found.refused else found.verdict or ""
                named[f"{found.candidate}/{found.baseline}"] = (found.ratio, said)
            for topology, (estimate, verdict) in named.items():
                if estimate:
                    yield {
                        "experiment": cell.experiment,
                        "cell": cell.cell,
                        "params": to_json(dict(cell.params)).decode(),
                        "metric": row.metric.name,
                        "unit": row.metric.unit,
                        "kind": row.metric.kind,
                        "better": row.metric.better,
                        "headline": row.headline,
                        "topology": topology,
                        "value": estimate.value,
                        "low": estimate.low,
                        "high": estimate.high,
                        "level": estimate.level,
                        "n": estimate.n,
                        "verdict": verdict,
                    }
