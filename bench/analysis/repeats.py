"""The few repeats of a cell one by one: how long a pass of the subject's work took in each, and what the headline was."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.analysis.rows import Question, Specs
from bench.analysis.table import Selection, Table
from bench.model import Metric

if TYPE_CHECKING:
    from bench.analysis.table import Positions

MOST = 10  # on one topology: more are read from their median and interval


@dataclass(frozen=True, kw_only=True)
class Repeat:
    """One sample of the headline; or all that count of an invocation, where there are many."""

    topology: str
    block: int
    turn: int | None  # None: all that count
    seconds: float  # of a pass: all of the work, done once
    value: float  # of the headline


def repeats(question: Question, specs: Specs, metric: Metric, arm: str) -> tuple[Repeat, ...]:
    """The samples of each topology, where they are at most MOST on any; or else its invocations; or else nothing."""
    usable = {name: question.usable(those) for name, those in specs.items()}
    if max((len(runs.at) for runs in usable.values()), default=0) > MOST:
        return ()
    rows = {name: _counted(runs, metric, arm) for name, runs in usable.items()}
    if all(len(those) <= MOST for those in rows.values()):
        return tuple(each for name, those in rows.items() for each in _samples(name, question.table, those))
    return tuple(each for name, runs in usable.items() for each in _invocations(name, runs, rows[name], metric, arm))


def _counted(usable: Selection, metric: Metric, arm: str) -> Positions:
    """The samples of the headline that count, at no point of a sweep."""
    table, rows = usable.table, usable.samples
    is_its = table.timed(metric.name, arm, rows) & table.samples.named(rows, point="")
    return rows[is_its & ~table.is_gap[rows] & ~table.warm_samples[rows]]


def _samples(topology: str, table: Table, rows: Positions) -> Iterator[Repeat]:
    names = ("turn", "passes", "value")
    turns, passes, values = (table.samples.read(name)[rows].tolist() for name in names)
    runs, seconds = table.samples.run[rows].tolist(), table.samples.seconds[rows].tolist()
    for run, turn, done, value, took in zip(runs, turns, passes, values, seconds, strict=True):
        block = table.runs[run].spec.block
        yield Repeat(topology=topology, block=block, turn=int(turn), seconds=took / done, value=value)


def _invocations(topology: str, usable: Selection, rows: Positions, metric: Metric, arm: str) -> Iterator[Repeat]:
    samples = usable.table.samples
    for at, block, value in zip(usable.at, usable.blocks, usable.outcomes(metric, arm), strict=True):
        own = rows[samples.run[rows] == at]
        if isinstance(value, float) and len(own):
            seconds = float(samples.seconds[own].sum() / samples.read("passes")[own].sum())
            yield Repeat(topology=topology, block=block, turn=None, seconds=seconds, value=value)


def of(found: Sequence[Repeat], topology: str) -> list[Repeat]:
    """Those on one topology."""
    return [each for each in found if each.topology == topology]
