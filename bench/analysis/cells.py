"""One cell of a session: all that was measured in it, on each topology, and side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from bench.analysis import oversubscribed
from bench.analysis.arms import ArmRow, arm_row
from bench.analysis.breakdown.amounts import PARTS
from bench.analysis.breakdown.network import NetworkBreakdown, network_breakdown
from bench.analysis.comparison import Side, side
from bench.analysis.convergence import Guard, guards
from bench.analysis.curves import Curve, curves
from bench.analysis.levels import Allocation, allocation
from bench.analysis.repeats import Repeat, repeats
from bench.analysis.rows import MetricRow, Question, Specs
from bench.analysis.steadiness import Steadiness, steadiness
from bench.analysis.sweeps import sweeps
from bench.analysis.time_to_target import TimeToTarget, times_to_target
from bench.analysis.usage import NodeRow, node_rows, quantities
from bench.model import Arm, Metric, Value


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
    sweeps: tuple[MetricRow, ...] = ()
    repeats: tuple[Repeat, ...] = ()  # of the headline, where they are few
    curves: tuple[Curve, ...] = ()
    node_metrics: tuple[NodeMetric, ...] = ()
    network_breakdown: NetworkBreakdown | None = None  # None: one topology only
    allocation: Allocation | None = None  # None: one topology, or too little to tell levels apart
    guards: tuple[Guard, ...] = ()  # of trainings, against converging too soon
    times_to_target: tuple[TimeToTarget, ...] = ()  # of trainings, how many got to their target
    steadiness: tuple[Steadiness, ...] = ()  # of the headline, by arm and topology
    marks: tuple[str, ...] = ()  # what every look at its numbers must be warned of: "oversubscribed"
    counted_longer: Mapping[str, float] = field(
        default_factory=dict
    )  # by topology: how much longer counters of CPU and bytes count than the intervals last; 0.12 is 12 %
    declared_warmups: int = 0
    warmups: int = 0  # first turns of each invocation that do not count: those declared, and those discarded by rule

    @property
    def headline(self) -> MetricRow | None:
        """The row that answers the question."""
        return next((row for row in self.rows if row.headline), None)

    @property
    def gain(self) -> float:
        """How much better the candidate does in the headline: above 1 where it does; infinite where nothing is compared."""
        row = self.headline
        if row is None or row.comparison is None or row.comparison.ratio is None:
            return math.inf
        ratio = row.comparison.ratio.value
        return ratio if row.metric.better == "higher" else 1 / ratio

    @property
    def ceilings(self) -> tuple[ArmRow, ...]:
        """The most that the CPUs did, in the metric of the headline: of each topology the ceiling that did best."""
        name = self.headline.metric.name if self.headline else ""
        best: dict[str, ArmRow] = {}
        for row in self.arms:
            if row.arm.role == "ceiling" and row.metric == name:
                best[row.topology] = min(best.get(row.topology, row), row, key=_share)
        return tuple(best.values())


def slowest(cells: Sequence[CellReport]) -> CellReport:
    """The cell in which the candidate does worst beside the baseline; the first, where nothing is compared."""
    return min(cells, key=lambda cell: cell.gain)


def _share(row: ArmRow) -> float:
    """Of that arm, what the subject reaches."""
    return row.share.value if row.share else math.inf


def build_cell(question: Question, experiment: str, cell: str, title: str) -> CellReport:
    """Everything about one cell."""
    metrics = question.session.metrics.get(experiment, ())
    arms = question.session.arms.get(experiment, ())
    subject = next((arm for arm in arms if arm.role == "subject"), Arm(name="", help="", role="subject"))
    by_topology = {name: question.specs(experiment, cell, name) for name in question.topologies}
    everything = [spec for specs in by_topology.values() for spec in specs]
    usable = question.usable(everything)
    unit = unit_of_work(metrics[0]) if metrics else "unit"
    samples = {name: question.usable(specs) for name, specs in by_topology.items()}
    rows = _metric_rows(question, by_topology, metrics, subject.name)
    return CellReport(
        experiment=experiment,
        cell=cell,
        title=title,
        unit=unit,
        params=everything[0].params if everything else {},
        subject=subject.name,
        rows=rows,
        usage=_usage_rows(question, by_topology, subject.name, unit, metrics[0]) if metrics else (),
        arms=_arm_rows(question, by_topology, rows, arms, subject),
        nodes=_node_rows(question, by_topology, subject.name, metrics[0]) if metrics else (),
        repeats=repeats(question, by_topology, metrics[0], subject.name) if metrics else (),
        sweeps=tuple(sweeps(question, by_topology, metrics, unit)),
        curves=tuple(curves(question, by_topology, metrics)),
        guards=tuple(guards(question, by_topology, metrics, arms)),
        times_to_target=tuple(times_to_target(question, by_topology, metrics, arms)),
        node_metrics=_node_metrics(question, by_topology, metrics, subject.name),
        network_breakdown=network_breakdown(question, by_topology, metrics, arms, unit),
        allocation=_allocation(question, by_topology, metrics[0], subject.name) if metrics else None,
        steadiness=steadiness(samples, metrics[0], [arm.name for arm in arms], margin=question.margin)
        if metrics
        else (),
        marks=tuple(filter(None, [oversubscribed.mark(usable.runs)])),
        counted_longer=_counted_longer(question, by_topology, subject.name, metrics[0]) if metrics else {},
        declared_warmups=max((spec.warmups for spec in everything), default=0),
        warmups=max([usable.table.last_warm_turn[at] for at in usable.at], default=0),
    )


def unit_of_work(headline: Metric) -> str:
    """What one of the headline's things is called: inputs/s counts inputs."""
    if headline.kind == "rate" and headline.unit.endswith("/s"):
        return headline.unit.removesuffix("/s").removesuffix("s") or "unit"
    return "unit"


def _metric_rows(question: Question, specs: Specs, metrics: Sequence[Metric], arm: str) -> tuple[MetricRow, ...]:
    """The headline, and every other metric but curves, the breakdown's own, and those of points of a sweep alone."""
    points: dict[str, set[str]] = {}
    for those in specs.values():
        for name, _, node, point in question.usable(those).keys:
            points.setdefault(name, set()).add(node or point)  # what nodes alone have is in their table
    return tuple(
        replace(question.row(specs, metric, arm, question.outcomes(metric, arm)), headline=position == 0)
        for position, metric in enumerate(metrics)
        if not metric.axis and metric.means not in PARTS and (position == 0 or "" in points.get(metric.name, {""}))
    )


def _counted_longer(question: Question, specs: Specs, arm: str, headline: Metric) -> dict[str, float]:
    """By topology, where the clock of the counters was recorded."""
    found = {name: question.uses(those, arm, headline).longer for name, those in specs.items()}
    return {name: longer for name, longer in found.items() if longer is not None}


def _usage_rows(question: Question, specs: Specs, arm: str, unit: str, headline: Metric) -> tuple[MetricRow, ...]:
    usage = question.usage(arm, headline)
    return tuple(question.used(specs, quantity, arm, usage) for quantity in quantities(unit))


def _arm_rows(
    question: Question, specs: Specs, of_subject: Sequence[MetricRow], arms: Sequence[Arm], subject: Arm
) -> tuple[ArmRow, ...]:
    """By metric, topology and arm, where the arm has a value of the metric."""
    rows = []
    measured = {(topology, *key) for topology, those in specs.items() for key in question.usable(those).keys}
    for row in of_subject:
        metric = row.metric
        for topology, those in specs.items():
            subjects = row.sides[topology]
            for arm in arms:
                if (topology, metric.name, arm.name, None, "") not in measured:
                    continue
                found = subjects
                if arm.name != subject.name:
                    found = question.side(those, question.outcomes(metric, arm.name))
                if found.values:
                    rows.append(
                        arm_row(arm, metric, found, subject=subjects, topology=topology, margin=question.margin)
                    )
    return tuple(rows)


def _allocation(question: Question, specs: Specs, headline: Metric, arm: str) -> Allocation | None:
    """Where the variance of the headline's ratio is, if two topologies are compared."""
    if len(question.topologies) < 2:
        return None
    one, other = (question.usable(specs[name]) for name in (question.topologies[0], question.topologies[-1]))
    return allocation(one, other, headline, arm, question.outside_seconds)


def _node_rows(question: Question, specs: Specs, arm: str, headline: Metric) -> tuple[NodeRow, ...]:
    return tuple(
        row for topology, those in specs.items() for row in node_rows(topology, question.uses(those, arm, headline))
    )


def _node_metrics(question: Question, specs: Specs, metrics: Sequence[Metric], arm: str) -> tuple[NodeMetric, ...]:
    rows = []
    for metric in metrics:
        for topology, those in specs.items():
            samples = question.usable(those)
            seen = [node for name, whose, node, _ in samples.keys if node and name == metric.name and whose == arm]
            for node in dict.fromkeys(seen):
                found = side(dict(zip(samples.blocks, samples.outcomes(metric, arm, node=node), strict=True)))
                rows.append(NodeMetric(metric=metric, topology=topology, node=node, side=found))
    return tuple(rows)
