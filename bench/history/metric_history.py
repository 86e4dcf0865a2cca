"""Follows a metric from session to session, and marks where its level changed."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bench.errors import BadInput, RecordDamaged, did_you_mean
from bench.history import session_index
from bench.model import Better, Kind, Metric, to_json
from bench.record import store

if TYPE_CHECKING:
    from bench.analysis.stats.estimates import Estimate

Series = tuple[str, str, str]
"""An experiment, its params, a topology: what makes numbers of one metric the same number."""


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
    better: Better | None = row["better"]
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
