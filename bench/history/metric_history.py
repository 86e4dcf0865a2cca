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
"""An experiment, its params as JSON, a topology: numbers of one metric with all three equal form one series."""


@dataclass(frozen=True, kw_only=True)
class Number:
    """A metric's value in one cell of one session: on one topology, or as `multi/single`, the ratio, which has a verdict."""

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
    changed: Change | None = None  # set where a new level begins


@dataclass(frozen=True, kw_only=True)
class Change:
    """A change of a metric's level between two consecutive sessions."""

    since: str  # id of the last session on the old level
    before: float
    after: float
    ratio: float | None
    p: float


def series(numbers: Sequence[Number]) -> dict[Series, list[Number]]:
    """Group numbers into series, each in the order of time."""
    grouped: dict[Series, list[Number]] = {}
    for number in numbers:
        grouped.setdefault((number.experiment, number.params, number.topology), []).append(number)
    return grouped


def with_changes(numbers: Sequence[Number]) -> list[Number]:
    """Return the same numbers, with `changed` set at the first one of every new level. Series that are too short have none."""
    from bench.analysis.stats.change_points import FEWEST, change_points

    marked: dict[int, Number] = {}
    for numbers_of_series in series(numbers).values():
        if len(numbers_of_series) < FEWEST:
            continue
        for point in change_points([number.value for number in numbers_of_series]):
            first = numbers_of_series[point.position]
            change = Change(
                since=numbers_of_series[point.position - 1].session,
                before=point.before,
                after=point.after,
                ratio=point.ratio,
                p=point.p,
            )
            marked[id(first)] = replace(first, changed=change)
    return [marked.get(id(number), number) for number in numbers]


def of_metric(
    out: Path, metric: str, *, experiment: str = "", since: str = "", reading: Callable[[int], None] = lambda _: None
) -> list[Number]:
    """Return every session's numbers of `metric`, oldest first. `reading` is called with the number of reports to be built.

    Raises BadInput if no session has the metric, with the names of those that there are.
    """
    sessions = _sessions(out)
    if new := sum(not report_file.is_kept(summary) for summary in sessions):
        reading(new)
    known: set[str] = set()
    matching = []
    for number in _numbers(out, sessions):
        known.add(number.metric.name)
        if number.metric.name == metric and number.created >= since and experiment in ("", number.experiment):
            matching.append(number)
    if not matching:
        hint = (
            f"{did_you_mean(metric, known)}Choose from: {', '.join(sorted(known))}."
            if known
            else f"No session in {out} has numbers."
        )
        raise BadInput(f"No session has the metric {metric}{' that is asked for' if metric in known else ''}.", hint)
    return matching


def _sessions(out: Path) -> list[Summary]:
    """Return the sessions that have finished runs, oldest first, without copies of a session that is there itself."""
    by_id: dict[str, Summary] = {}
    for name, summary in summaries.read_all(out):
        entry = summary.entry
        if entry.ok and (name == entry.id or entry.id not in by_id):
            by_id[entry.id] = summary
    return sorted(by_id.values(), key=lambda summary: summary.entry.created)


def _numbers(out: Path, sessions: Sequence[Summary]) -> Iterator[Number]:
    for summary in sessions:
        try:
            report = report_file.load(out / summary.entry.folder, summary)
        except RecordDamaged:  # `bench list sessions` and `bench show` report it
            continue
        yield from numbers(report)


def numbers(report: Report) -> Iterator[Number]:
    """Yield each metric of a report on each topology, and the ratio with its verdict."""
    for cell in report.cells:
        params = to_json(dict(cell.params)).decode()
        for row in (*cell.rows, *cell.usage):
            comparison = row.comparison
            estimates: dict[str, tuple[Estimate | None, str]] = {
                n: (side.estimate, "") for n, side in row.sides.items()
            }
            if comparison and comparison.ratio:
                judged = "refused" if comparison.refused else comparison.verdict or ""
                estimates[f"{comparison.candidate}/{comparison.baseline}"] = (comparison.ratio, judged)
            for topology, (estimate, verdict) in estimates.items():
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
