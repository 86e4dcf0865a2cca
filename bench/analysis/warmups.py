"""Warm-up by rule: how many of an invocation's first turns do not count, the same number on both sides of every pair.

It is decided here and not while a run goes: an invocation that decides by itself would count other turns than its partner.
The record keeps every sample; the table that is analysed knows what is discarded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, median, stdev
from types import MappingProxyType

from bench.analysis.table import Selection, Table
from bench.model import STEADY_TURNS, Metric, Run, Session, Value

MOST_VARIATION = 0.05  # of a steady window: its standard deviation over its mean
MOST_WARMUPS = 20  # turns; what has not settled by then is not a matter of warming up


CellKey = tuple[str, frozenset[tuple[str, Value]]]
"""An experiment and all params: what makes a cell the same in two sessions, whatever it is called there."""


def discarding(session: Session, table: Table, least: Mapping[CellKey, int] = MappingProxyType({})) -> Table:
    """`table` without the turns that the rule discards beyond those that were declared.

    `least`: how many at the least, where a cell is held against the same of another session, which needs as many.
    """
    found: dict[str, int] = {}
    for key, (those, discarded) in _by_cell(session, table).items():
        turns = max(discarded, least.get(key, 0))
        found |= {run.spec.id: turns for run in those.runs if turns > run.spec.warmups}
    return table.discarding(found)


def level(those: Selection) -> Selection:
    """Runs of cells that are held against each other, each with as many turns discarded as the one with the most.

    The rule discards by cell. Where cells are the two sides of a comparison, both discard what the slower one needs.
    """
    turns = {run.spec.id: those.table.warmups[at] for run, at in zip(those.runs, those.at, strict=True)}
    most = max(turns.values(), default=0)
    if all(each == most for each in turns.values()):
        return those
    discarded = {key: those.table.discarded.get(key, 0) if each == most else most for key, each in turns.items()}
    return Table(those.runs, discarded).of(those.runs)


def by_cell(session: Session, runs: Iterable[Run]) -> dict[CellKey, int]:
    """How many first turns of each cell's invocations do not count, by the session alone."""
    return {key: discarded for key, (_, discarded) in _by_cell(session, Table(tuple(runs))).items()}


def _by_cell(session: Session, table: Table) -> dict[CellKey, tuple[Selection, int]]:
    cells: dict[tuple[str, str], list[Run]] = {}
    for run in table.runs:
        cells.setdefault((run.spec.experiment, run.spec.cell), []).append(run)
    found: dict[CellKey, tuple[Selection, int]] = {}
    for (experiment, _), runs in cells.items():
        metrics, arms = session.metrics.get(experiment, ()), session.arms.get(experiment, ())
        subject = next((arm.name for arm in arms if arm.role == "subject"), "")
        those = table.of(runs)
        discarded = warmups(those, metrics[0], subject) if metrics else 0
        found[experiment, frozenset(runs[0].spec.params.items())] = those, discarded
    return found


def warmups(those: Selection, metric: Metric, arm: str) -> int:
    """How many first turns of one cell's invocations do not count: what the slower of its topologies needs to settle.

    At least those that were declared. What settles is the course over the turns that is common to the invocations of a
    topology, so that noise of one of them discards nothing.
    """
    usable = [run for run in those.runs if run.status == "ok"]
    declared = max((run.spec.warmups for run in usable), default=0)
    courses = [
        course(those.table.of(run for run in usable if run.spec.topology.name == name), metric, arm)
        for name in dict.fromkeys(run.spec.topology.name for run in usable)
    ]
    return max((settled(each, declared) for each in courses), default=declared)


def course(those: Selection, metric: Metric, arm: str) -> list[float]:
    """The median over runs of each turn's value, as a multiple of the median of its own invocation; warm-ups too."""
    relative = []
    for run, values in zip(those.runs, those.series(metric, arm, warmups=True), strict=True):
        middle = median(values[run.spec.warmups :]) if len(values) > run.spec.warmups else 0.0
        if middle > 0:
            relative.append([value / middle for value in values])
    return [median(turn) for turn in zip(*relative, strict=False)]


def settled(values: Sequence[float], declared: int) -> int:
    """How many of the first `values` come before the first steady window; `declared` where none is steady in time."""
    last = min(len(values) - STEADY_TURNS, MOST_WARMUPS)
    return next(
        (k for k in range(declared, last + 1) if _variation(values[k : k + STEADY_TURNS]) <= MOST_VARIATION), declared
    )


def _variation(values: Sequence[float]) -> float:
    return stdev(values) / fmean(values) if fmean(values) > 0 else 0.0
