"""Puts what a session measured beside what a study published, table by table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from bench.analysis.rows import Question
from bench.analysis.table import Selection
from bench.analysis.usage import quantities
from bench.model import Metric, Spec, Value
from bench.studies import Entry, Study, StudyFigure, StudyRow, StudyTable

MIB = 2**20


@dataclass(frozen=True, kw_only=True)
class BesideFigure:
    """One figure of a study and ours: repeats in order, and their means."""

    published: tuple[Entry, ...]
    ours: tuple[float, ...]

    @property
    def published_mean(self) -> Entry | None:
        numbers = [entry for entry in self.published if not isinstance(entry, str)]
        return fmean(numbers) if numbers else next(iter(self.published), None)

    @property
    def our_mean(self) -> float | None:
        return fmean(self.ours) if self.ours else None


@dataclass(frozen=True, kw_only=True)
class BesideRow:
    """One row of a study's table; `cell`: ours that does the same, empty where the session has none."""

    what: str
    topology: str
    cell: str
    figures: tuple[BesideFigure, ...]


@dataclass(frozen=True, kw_only=True)
class BesideTable:
    """One table of a study, with our figures."""

    table: StudyTable
    rows: tuple[BesideRow, ...]

    @property
    def is_measured(self) -> bool:
        """Whether the session has a cell of it."""
        return any(row.cell for row in self.rows)


@dataclass(frozen=True, kw_only=True)
class BesideStudy:
    """A study, and what of it a session did."""

    experiment: str
    study: Study
    tables: tuple[BesideTable, ...]
    settings: tuple[tuple[str, str, str], ...]  # in what, as published, ours


def beside_studies(question: Question) -> Iterator[BesideStudy]:
    """Each study of which the session has a cell."""
    for experiment, study in question.session.studies.items():
        tables = tuple(
            BesideTable(table=table, rows=tuple(_row(question, experiment, table, row) for row in table.rows))
            for table in study.tables
        )
        yield BesideStudy(
            experiment=experiment, study=study, tables=tables, settings=tuple(_settings(question, experiment, study))
        )


def _row(question: Question, experiment: str, table: StudyTable, row: StudyRow) -> BesideRow:
    cells = [spec.cell for spec in question.session.specs if spec.experiment == experiment and row.matches(spec.params)]
    cell = min(cells, default="")
    specs = question.specs(experiment, cell, row.topology) if cell else []
    return BesideRow(
        what=row.what,
        topology=row.topology,
        cell=cell if specs else "",
        figures=tuple(
            BesideFigure(published=published, ours=tuple(_ours(question, experiment, specs, row, figure)))
            for figure, published in zip(table.figures, row.published, strict=True)
        ),
    )


def _ours(
    question: Question, experiment: str, specs: Sequence[Spec], row: StudyRow, figure: StudyFigure
) -> Iterator[float]:
    """Our repeats of a figure, invocation by invocation, in the figure's unit."""
    metrics = question.session.metrics[experiment]
    arm = row.arm or next(arm.name for arm in question.session.arms[experiment] if arm.role == "subject")
    usable = question.usable(specs)
    uses = question.uses(specs, arm, metrics[0])
    if quantity := next((each for each in quantities("unit") if each.metric.name == figure.metric), None):
        yield from (value * figure.factor for value in quantity.read(uses) if value is not None)
        return
    metric = next((metric for metric in metrics if metric.name == figure.metric), None)
    if metric is None:
        return
    for value, spec in _values(usable, metric, arm, figure):
        amount = spec.params.get(figure.of)
        ours = amount / value if isinstance(amount, int | float) and value else value
        yield ours * figure.factor


def _values(usable: Selection, metric: Metric, arm: str, figure: StudyFigure) -> Iterator[tuple[float, Spec]]:
    if not figure.pick:
        for run, values in zip(usable.runs, usable.turns(metric, arm), strict=True):
            yield from ((value, run.spec) for value in values)
        return
    pick = min if figure.pick == "fewest" else max
    keys = [key for key in usable.keys if key[:3] == (metric.name, arm, None) and key[3]]
    for at, run in zip(usable.at, usable.runs, strict=True):
        points = [each for key in keys if (each := usable.table.outcomes(key, "mean").get(at)) is not None]
        numbers = [value for value in points if isinstance(value, float)]
        # A point without a value would have taken longer than was waited for, so that the most is not known.
        if numbers and (figure.pick == "fewest" or len(numbers) == len(points)):
            yield pick(numbers), run.spec


def _settings(question: Question, experiment: str, study: Study) -> Iterator[tuple[str, str, str]]:
    specs = [spec for spec in question.session.specs if spec.experiment == experiment]
    topologies = {spec.topology.name: spec.topology for spec in specs}.values()
    links = {run.facts.link for run in question.runs.values() if run.facts and len(run.facts.nodes) > 1}
    known = {
        "CPUs": [f"{topology.totals['CPUs']}" for topology in topologies],
        "memory": [f"{topology.totals['memory'] / MIB:,.0f} MiB" for topology in topologies],
        "nodes": [f"{topology.name}: {topology.nodes}" for topology in topologies],
        "link": sorted(links),
        "": [],
    }
    for setting in study.settings:
        values = [spec.params[setting.param] for spec in specs] if setting.param else []
        ours = [setting.words.get(str(value)) or _words(value) for value in values] or known[setting.ours]
        yield setting.name, setting.published, setting.always or ", ".join(dict.fromkeys(ours))
    if question.session.scale != 1:
        yield "scale", "1", f"{question.session.scale:g}: {'; '.join(question.session.scaled)}"


def _words(value: Value) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
