"""Warm-up by rule: how many of an invocation's first turns do not count, the same number on both sides of every pair.

It is decided here and not while a run goes: an invocation that decides by itself would count other turns than its partner.
The record keeps every sample; what is discarded is marked in the copy that is analysed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from statistics import fmean, median, stdev
from types import MappingProxyType

from bench.analysis.samples import Samples
from bench.model import STEADY_TURNS, Metric, Run, Sample, Session, Value

MOST_VARIATION = 0.05  # of a steady window: its standard deviation over its mean
MOST_WARMUPS = 20  # turns; what has not settled by then is not a matter of warming up


CellKey = tuple[str, frozenset[tuple[str, Value]]]
"""An experiment and all params: what makes a cell the same in two sessions, whatever it is called there."""


def marked(
    session: Session, runs: Mapping[str, Run], least: Mapping[CellKey, int] = MappingProxyType({})
) -> dict[str, Run]:
    """`runs` by Spec, with the turns marked as warm-ups that the rule discards beyond those that were declared.

    `least`: how many at the least, where a cell is held against the same of another session, which needs as many.
    """
    found = dict(runs)
    for key, (those, discarded) in _by_cell(session, runs).items():
        turns = max(discarded, least.get(key, 0))
        found |= {run.spec.id: _with_warmups(run, turns) for run in those if turns > run.spec.warmups}
    return found


def level(runs: Collection[Run]) -> dict[str, Run]:
    """Runs of cells that are held against each other, by Spec, each with as many turns marked as the one with the most.

    The rule discards by cell. Where cells are the two sides of a comparison, both discard what the slower one needs.
    """
    turns = max((discarded(run) for run in runs), default=0)
    return {run.spec.id: _with_warmups(run, turns) if turns > discarded(run) else run for run in runs}


def discarded(run: Run) -> int:
    """How many first turns of `run` do not count."""
    marked_turns = [sample.turn for sample in run.samples if sample.warmup and sample.since is None]
    return max(marked_turns, default=0)


def by_cell(session: Session, runs: Mapping[str, Run]) -> dict[CellKey, int]:
    """How many first turns of each cell's invocations do not count, by the session alone."""
    return {key: discarded for key, (_, discarded) in _by_cell(session, runs).items()}


def _by_cell(session: Session, runs: Mapping[str, Run]) -> dict[CellKey, tuple[list[Run], int]]:
    cells: dict[tuple[str, str], list[Run]] = {}
    for run in runs.values():
        cells.setdefault((run.spec.experiment, run.spec.cell), []).append(run)
    found: dict[CellKey, tuple[list[Run], int]] = {}
    for (experiment, _), those in cells.items():
        metrics, arms = session.metrics.get(experiment, ()), session.arms.get(experiment, ())
        subject = next((arm.name for arm in arms if arm.role == "subject"), "")
        discarded = warmups(those, metrics[0], subject) if metrics else 0
        found[experiment, frozenset(those[0].spec.params.items())] = those, discarded
    return found


def warmups(runs: Sequence[Run], metric: Metric, arm: str) -> int:
    """How many first turns of one cell's invocations do not count: what the slower of its topologies needs to settle.

    At least those that were declared. What settles is the course over the turns that is common to the invocations of a
    topology, so that noise of one of them discards nothing.
    """
    usable = [run for run in runs if run.status == "ok"]
    declared = max((run.spec.warmups for run in usable), default=0)
    courses = [
        course([run for run in usable if run.spec.topology.name == name], metric, arm)
        for name in dict.fromkeys(run.spec.topology.name for run in usable)
    ]
    return max((settled(each, declared) for each in courses), default=declared)


def course(runs: Sequence[Run], metric: Metric, arm: str) -> list[float]:
    """The median over `runs` of each turn's value, as a multiple of the median of its own invocation; warm-ups too."""
    relative = []
    for run, values in zip(runs, Samples(runs).series(metric, arm, warmups=True), strict=True):
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


def _with_warmups(run: Run, turns: int) -> Run:
    """`run` with its first `turns` turns marked; what is outside of turns stays as it is."""
    return replace(
        run,
        samples=tuple(_counted_or_not(sample, turns) for sample in run.samples),
        usage=tuple(replace(u, warmup=True) if 0 < u.turn <= turns else u for u in run.usage),
    )


def _counted_or_not(sample: Sample, turns: int) -> Sample:
    """`sample`, marked where it is of the first `turns` turns; of figures over several turns those of the rest count."""
    if sample.since is not None:
        return replace(sample, warmup=sample.since != turns + 1)
    return replace(sample, warmup=True) if 0 < sample.turn <= turns else sample
