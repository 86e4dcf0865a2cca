"""Follows a metric from session to session, and marks where its level changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bench.errors import BadInput, RecordDamaged, did_you_mean
from bench.history import report_file, summaries
from bench.history.summaries import Summary
from bench.model import Metric, to_json

if TYPE_CHECKING:
    from bench.analysis import Report
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
    sessions = _sessions(out)
    if new := sum(not report_file.is_kept(summary) for summary in sessions):
        reading(new)
    known: set[str] = set()
    found = []
    for number in _numbers(out, sessions):
        known.add(number.metric.name)
        if number.metric.name == metric and number.created >= since and experiment in ("", number.experiment):
            found.append(number)
    if not found:
        there = (
            f"{did_you_mean(metric, known)}Choose from: {', '.join(sorted(known))}."
            if known
            else f"No session in {out} has numbers."
        )
        raise BadInput(f"No session has the metric {metric}{' that is asked for' if metric in known else ''}.", there)
    return found


def _sessions(out: Path) -> list[Summary]:
    """Those that may have numbers, oldest first; of a session and its copies the one in the folder with its name."""
    found: dict[str, Summary] = {}
    for name, summary in summaries.read_all(out):
        entry = summary.entry
        if entry.ok and (name == entry.id or entry.id not in found):
            found[entry.id] = summary
    return sorted(found.values(), key=lambda summary: summary.entry.created)


def _numbers(out: Path, sessions: Sequence[Summary]) -> Iterator[Number]:
    for summary in sessions:
        try:
            report = report_file.load(out / summary.entry.folder, summary)
        except RecordDamaged:  # `bench list sessions` and `bench show` say so
            continue
        yield from numbers(report)


def numbers(report: Report) -> Iterator[Number]:
    """Each metric of a report on each topology, and the ratio with its verdict."""
    for cell in report.cells:
        params = to_json(dict(cell.params)).decode()
        for row in (*cell.rows, *cell.usage):
            found = row.comparison
            named: dict[str, tuple[Estimate | None, str]] = {n: (side.estimate, "") for n, side in row.sides.items()}
            if found and found.ratio:
                judged = "refused" if found.refused else found.verdict or ""
                named[f"{found.candidate}/{found.baseline}"] = (found.ratio, judged)
            for topology, (estimate, verdict) in named.items():
                if estimate:
                    yield Number(
                        session=report.session,
                        created=report.created,
                        experiment=cell.experiment,
                        cell=cell.cell,
                        params=params,
                        metric=row.metric,
                        topology=topology,
                        value=estimate.value,
                        low=estimate.low,
                        high=estimate.high,
                        level=estimate.level,
                        n=estimate.n,
                        verdict=verdict,
                    )
