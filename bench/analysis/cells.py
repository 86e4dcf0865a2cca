"""One cell of a session: all that was measured in it, on each topology, and side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.analysis.arms import ArmRow, arm_row
from bench.analysis.comparison import Comparison, Outcome, Side, compare, not_usable, outcome, outcomes, side
from bench.analysis.usage import NOT_COUNTED, NodeRow, Quantity, node_rows, quantities, use_of
from bench.model import Arm, Metric, Run, Session, Spec, Value


@dataclass(frozen=True, kw_only=True)
class MetricRow:
    """One metric of one arm: on each topology, and the two side by side."""

    metric: Metric
    arm: str
    headline: bool
    sides: Mapping[str, Side]  # by topology
    comparison: Comparison | None = None  # None: one topology only, or nothing that a ratio would say


@dataclass(frozen=True, kw_only=True)
class NodeMetric:
    """One metric that an experiment measured on one node."""

    metric: Metric
    topology: str
    node: str
    side: Side


@dataclass(frozen=True, kw_only=True)
class CellReport:
    """One combination of params. `title` names those that vary over the cells of its experiment."""

    experiment: str
    cell: str
    title: str
    unit: str  # what a unit of work is called
    params: Mapping[str, Value]
    subject: str
    rows: tuple[MetricRow, ...]
    usage: tuple[MetricRow, ...]
    arms: tuple[ArmRow, ...]
    nodes: tuple[NodeRow, ...]
    node_metrics: tuple[NodeMetric, ...] = ()

    @property
    def headline(self) -> MetricRow | None:
        """The row that answers the question."""
        return next((row for row in self.rows if row.headline), None)


@dataclass(frozen=True, kw_only=True)
class Question:
    """What a cell is asked: of which session, which runs, which topologies."""

    session: Session
    runs: Mapping[str, Run]  # by Spec, the attempt that counts
    topologies: tuple[str, ...]  # the baseline first
    margin: float

    def specs(self, experiment: str, cell: str, topology: str) -> list[Spec]:
        """Those of one cell on one topology, by block."""
        found = [
            spec
            for spec in self.session.specs
            if (spec.experiment, spec.cell, spec.topology.name) == (experiment, cell, topology)
        ]
        return sorted(found, key=lambda spec: spec.block)

    def beside(self, metric: Metric, sides: Mapping[str, Side]) -> Comparison | None:
        """The last topology beside the first, where there are two."""
        if len(self.topologies) < 2:
            return None
        return compare(metric, sides, baseline=self.topologies[0], candidate=self.topologies[-1], margin=self.margin)


def build_cell(question: Question, experiment: str, cell: str, title: str) -> CellReport:
    """Everything about one cell."""
    metrics = question.session.metrics.get(experiment, ())
    arms = question.session.arms.get(experiment, ())
    subject = next((arm for arm in arms if arm.role == "subject"), Arm(name="", help="", role="subject"))
    by_topology = {name: question.specs(experiment, cell, name) for name in question.topologies}
    everything = [spec for specs in by_topology.values() for spec in specs]
    unit = unit_of_work(metrics[0]) if metrics else "unit"
    return CellReport(
        experiment=experiment,
        cell=cell,
        title=title,
        unit=unit,
        params=everything[0].params if everything else {},
        subject=subject.name,
        rows=_metric_rows(question, by_topology, metrics, subject.name),
        usage=_usage_rows(question, by_topology, metrics[0], subject.name, unit) if metrics else (),
        arms=_arm_rows(question, by_topology, metrics, arms, subject),
        nodes=_node_rows(question, by_topology, metrics[0], subject.name) if metrics else (),
        node_metrics=_node_metrics(question, by_topology, metrics, subject.name),
    )


def unit_of_work(headline: Metric) -> str:
    """What one of the headline's things is called: inputs/s counts inputs."""
    if headline.kind == "rate" and headline.unit.endswith("/s"):
        return headline.unit.removesuffix("/s").removesuffix("s") or "unit"
    return "unit"


def _metric_rows(
    question: Question, specs: Mapping[str, Sequence[Spec]], metrics: Sequence[Metric], arm: str
) -> tuple[MetricRow, ...]:
    rows = []
    for position, metric in enumerate(metrics):
        sides = {name: side(outcomes(those, question.runs, metric, arm)) for name, those in specs.items()}
        comparison = question.beside(metric, sides)
        rows.append(MetricRow(metric=metric, arm=arm, headline=position == 0, sides=sides, comparison=comparison))
    return tuple(rows)


def _usage_rows(
    question: Question, specs: Mapping[str, Sequence[Spec]], headline: Metric, arm: str, unit: str
) -> tuple[MetricRow, ...]:
    rows = []
    for quantity in quantities(unit):
        sides = {
            name: side({spec.block: _used(question.runs.get(spec.id), quantity, arm, headline) for spec in those})
            for name, those in specs.items()
        }
        comparison = question.beside(quantity.metric, sides) if quantity.compared else None
        rows.append(MetricRow(metric=quantity.metric, arm=arm, headline=False, sides=sides, comparison=comparison))
    return tuple(rows)


def _used(run: Run | None, quantity: Quantity, arm: str, headline: Metric) -> Outcome:
    if run is None:
        return "not run"
    if run.status != "ok":
        return not_usable(run)
    value = quantity.read(use_of(run, arm, headline))
    return NOT_COUNTED if value is None else value


def _arm_rows(
    question: Question,
    specs: Mapping[str, Sequence[Spec]],
    metrics: Sequence[Metric],
    arms: Sequence[Arm],
    subject: Arm,
) -> tuple[ArmRow, ...]:
    """By metric, topology and arm, where the arm has a value of the metric."""
    rows = []
    for metric in metrics:
        for topology, those in specs.items():
            subjects = side(outcomes(those, question.runs, metric, subject.name))
            for arm in arms:
                found = side(outcomes(those, question.runs, metric, arm.name))
                if found.values:
                    rows.append(
                        arm_row(arm, metric, found, subject=subjects, topology=topology, margin=question.margin)
                    )
    return tuple(rows)


def _node_rows(
    question: Question, specs: Mapping[str, Sequence[Spec]], headline: Metric, arm: str
) -> tuple[NodeRow, ...]:
    return tuple(
        row
        for topology, those in specs.items()
        for row in node_rows(topology, [use_of(run, arm, headline) for run in _usable(question, those)])
    )


def _node_metrics(
    question: Question, specs: Mapping[str, Sequence[Spec]], metrics: Sequence[Metric], arm: str
) -> tuple[NodeMetric, ...]:
    rows = []
    for metric in metrics:
        for topology, those in specs.items():
            runs = _usable(question, those)
            seen = dict.fromkeys(
                s.node for run in runs for s in run.samples if s.metric == metric.name and s.arm == arm and s.node
            )
            for node in seen:
                found = side({run.spec.block: outcome(run, metric, arm, node) for run in runs})
                rows.append(NodeMetric(metric=metric, topology=topology, node=node, side=found))
    return tuple(rows)


def _usable(question: Question, specs: Sequence[Spec]) -> list[Run]:
    return [run for spec in specs if (run := question.runs.get(spec.id)) is not None and run.status == "ok"]
