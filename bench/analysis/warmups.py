"""Decides by a rule how many first turns of an invocation are warm-ups: the same number on both sides of every pair.

This is decided after the run: an invocation that decided by itself would discard other turns than its partner. The record keeps
every sample; the analysed table knows which are discarded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, median, stdev
from types import MappingProxyType

from bench.analysis.table import Selection, Table
from bench.model import STEADY_TURNS, Metric, Run, Session, Value

MOST_VARIATION = 0.05  # in a steady window: standard deviation divided by mean
MOST_WARMUPS = 20  # turns; if values are not steady by then, more warm-ups do not help


CellKey = tuple[str, frozenset[tuple[str, Value]]]
"""An experiment and all its params: what identifies a cell in two sessions, whatever name it has there."""


def discarding(session: Session, table: Table, least: Mapping[CellKey, int] = MappingProxyType({})) -> Table:
    """Return `table` without the turns that the rule discards beyond the declared warm-ups.

    `least`: the least number to discard by cell, for the comparison with a session that needs as many.
    """
    turns_of: dict[str, int] = {}
    for key, (selection, discarded) in _by_cell(session, table).items():
        turns = max(discarded, least.get(key, 0))
        turns_of |= {run.spec.id: turns for run in selection.runs if turns > run.spec.warmups}
    return table.discarding(turns_of)


def level(selection: Selection) -> Selection:
    """Discard as many turns of each run as of the run with the most.

    The rule discards by cell. If cells are the two sides of a comparison, both discard as many turns as the slower one needs.
    """
    turns = {run.spec.id: selection.table.warmups[at] for run, at in zip(selection.runs, selection.at, strict=True)}
    most = max(turns.values(), default=0)
    if all(count == most for count in turns.values()):
        return selection
    discarded = {key: selection.table.discarded.get(key, 0) if count == most else most for key, count in turns.items()}
    return Table(selection.runs, discarded).of(selection.runs)


def by_cell(session: Session, runs: Iterable[Run]) -> dict[CellKey, int]:
    """Return how many first turns of each cell's invocations are warm-ups, from this session alone."""
    return {key: discarded for key, (_, discarded) in _by_cell(session, Table(tuple(runs))).items()}


def _by_cell(session: Session, table: Table) -> dict[CellKey, tuple[Selection, int]]:
    cells: dict[tuple[str, str], list[Run]] = {}
    for run in table.runs:
        cells.setdefault((run.spec.experiment, run.spec.cell), []).append(run)
    by_cell: dict[CellKey, tuple[Selection, int]] = {}
    for (experiment, _), runs in cells.items():
        metrics, arms = session.metrics.get(experiment, ()), session.arms.get(experiment, ())
        subject = next((arm.name for arm in arms if arm.role == "subject"), "")
        selection = table.of(runs)
        discarded = warmups(selection, metrics[0], subject) if metrics else 0
        by_cell[experiment, frozenset(runs[0].spec.params.items())] = selection, discarded
    return by_cell


def warmups(selection: Selection, metric: Metric, arm: str) -> int:
    """Return how many first turns of one cell's invocations are warm-ups: as many as the slower topology needs to settle.

    At least as many as declared. The median over a topology's invocations must settle, so that noise in one invocation has no effect.
    """
    usable = [run for run in selection.runs if run.status == "ok"]
    declared = max((run.spec.warmups for run in usable), default=0)
    courses = [
        course(selection.table.of(run for run in usable if run.spec.topology.name == name), metric, arm)
        for name in dict.fromkeys(run.spec.topology.name for run in usable)
    ]
    return max((settled(values, declared) for values in courses), default=declared)


def course(selection: Selection, metric: Metric, arm: str) -> list[float]:
    """Return the median over runs of each turn's value, relative to the median of its invocation; including warm-ups."""
    relative = []
    for run, values in zip(selection.runs, selection.series(metric, arm, warmups=True), strict=True):
        middle = median(values[run.spec.warmups :]) if len(values) > run.spec.warmups else 0.0
        if middle > 0:
            relative.append([value / middle for value in values])
    return [median(turn) for turn in zip(*relative, strict=False)]


def settled(values: Sequence[float], declared: int) -> int:
    """Return how many of the first `values` precede the first steady window; `declared` if none is steady in time."""
    last = min(len(values) - STEADY_TURNS, MOST_WARMUPS)
    return next(
        (k for k in range(declared, last + 1) if _variation(values[k : k + STEADY_TURNS]) <= MOST_VARIATION), declared
    )


def _variation(values: Sequence[float]) -> float:
    return stdev(values) / fmean(values) if fmean(values) > 0 else 0.0
