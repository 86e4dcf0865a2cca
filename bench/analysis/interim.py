"""Reads what the blocks so far say of each cell's headline, while a session goes on. The report judges it at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.analysis import exclusions, interrupted_pairs
from bench.analysis.comparison import MARGIN, attempts_that_count
from bench.analysis.report import by_size, titles
from bench.analysis.rows import MetricRow, Question
from bench.analysis.table import Table
from bench.analysis.warmups import discarding
from bench.model import Run, Session


@dataclass(frozen=True, kw_only=True)
class InterimCell:
    """One cell: its headline on each topology, and the two side by side."""

    experiment: str
    title: str  # the params in which the cells of its experiment differ
    headline: MetricRow


@dataclass(frozen=True, kw_only=True)
class Interim:
    """All cells of a session, and the blocks that the values leave out since others disturbed them."""

    blocks: int  # of the whole session
    cells: tuple[InterimCell, ...]
    excluded: Mapping[int, str]  # block: the first reason


def interim(session: Session, runs: Sequence[Run]) -> Interim:
    """What `runs` say so far, by the same turns, pairs and excluded blocks as the report of them would."""
    recorded = Table(tuple(attempts_that_count(runs).values()))
    excluded = exclusions.of_runs(recorded, is_forced=session.allow_noise)
    table = discarding(session, recorded, {})
    question = Question(
        session=session,
        runs=exclusions.without(interrupted_pairs.without(table), excluded),
        topologies=tuple(topology.name for topology in by_size(session)),
        margin=MARGIN,
        table=table,
    )
    return Interim(
        blocks=max((spec.block for spec in session.specs), default=0),
        cells=tuple(
            InterimCell(experiment=experiment, title=title, headline=_headline(question, experiment, cell))
            for (experiment, cell), title in titles(session).items()
        ),
        excluded={} if excluded.is_forced else {block: reasons[0] for block, reasons in excluded.reasons.items()},
    )


def _headline(question: Question, experiment: str, cell: str) -> MetricRow:
    metric = question.session.metrics[experiment][0]
    subject = next(arm.name for arm in question.session.arms[experiment] if arm.role == "subject")
    specs = {name: question.specs(experiment, cell, name) for name in question.topologies}
    return question.row(specs, metric, subject, question.outcomes(metric, subject))
