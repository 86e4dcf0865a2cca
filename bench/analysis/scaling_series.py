"""Scaling series: cells that differ in a parameter that counts workers alone, as a card of scaling by rate and by time to target."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import median

from bench.analysis.contrasts import cells_of, varied
from bench.analysis.rows import Question
from bench.analysis.stats.scaling import ScalingCard, card
from bench.analysis.table import Selection
from bench.analysis.warmups import level
from bench.metrics import meaning
from bench.model import Metric, Run, Value

FEWEST_STEPS = 2


@dataclass(frozen=True, kw_only=True)
class ScalingSeries:
    """One arm on one topology, by number of workers; `params` are those that other scaling series have otherwise.

    The rates of the card are those of `metric`; of a time, how often it goes into a second.
    """

    experiment: str
    parameter: str  # that counts the workers
    params: Mapping[str, Value]
    topology: str
    arm: str
    metric: Metric  # the headline, or the time to a target
    card: ScalingCard
    ceiling: float | None = None  # median over blocks of the most that the CPUs did; None: the experiment measures none
    missing: int = 0  # runs without a value, such as trainings that did not reach the target
    without: tuple[int, ...] = ()  # numbers of workers of which no run has a value, though some were to have one


def scaling_series(question: Question) -> tuple[ScalingSeries, ...]:
    """Those of all experiments, of the parameters that they mark for it."""
    return tuple(
        found
        for experiment, names in question.session.scaling.items()
        for parameter in names
        for found in _of_parameter(question, experiment, parameter)
    )


def _of_parameter(question: Question, experiment: str, parameter: str) -> Iterator[ScalingSeries]:
    names = varied(cells_of(question.session, experiment))
    if parameter not in names:
        return
    specs = [spec for spec in question.session.specs if spec.experiment == experiment]
    groups: dict[tuple[str, tuple[tuple[str, Value], ...]], list[Run]] = {}
    for run in question.usable(specs).runs:
        params = tuple((name, run.spec.params[name]) for name in names if name != parameter)
        groups.setdefault((run.spec.topology.name, params), []).append(run)
    metrics = question.session.metrics[experiment]
    timed = meaning("time to target", metrics)
    arms = [arm.name for arm in question.session.arms[experiment] if arm.role in ("subject", "peer") and arm.scales]
    for (topology, params), runs in sorted(groups.items(), key=lambda group: question.topologies.index(group[0][0])):
        alike = level(question.table.of(runs))
        for metric in dict.fromkeys([metrics[0], *([timed] if timed else [])]):
            most = _ceiling(question, alike, metric)
            for arm in arms:
                values, missing = _rates(alike, parameter, metric, arm)
                if len(values) >= FEWEST_STEPS:
                    shape = runs[0].spec.topology
                    yield ScalingSeries(
                        experiment=experiment,
                        parameter=parameter,
                        params=dict(params),
                        topology=topology,
                        arm=arm,
                        metric=metric,
                        card=card(values, cpus=shape.nodes * shape.cpus_per_node, seed=question.session.seed),
                        ceiling=most,
                        missing=sum(missing.values()),
                        without=tuple(sorted(each for each in +missing if each not in values)),
                    )


def _rates(
    runs: Selection, parameter: str, metric: Metric, arm: str
) -> tuple[dict[int, dict[int, float]], Counter[int]]:
    """By number of workers and block; and by number of workers, how many runs that measured it have no value."""
    values: dict[int, dict[int, float]] = {}
    missing: Counter[int] = Counter()
    measured = {run.spec.id for run in runs.having(metric, arm).runs}
    for run, value in zip(runs.runs, runs.outcomes(metric, arm), strict=True):
        workers = int(run.spec.params[parameter])
        if isinstance(value, str):
            missing[workers] += run.spec.id in measured
        elif metric.kind != "time" or value > 0:
            rate = 1 / value if metric.kind == "time" else value
            values.setdefault(workers, {})[run.spec.block] = rate
    return values, missing


def _ceiling(question: Question, runs: Selection, metric: Metric) -> float | None:
    """What the experiment's ceiling did in these runs, whatever the number of workers."""
    arms = [arm.name for arm in question.session.arms[runs.runs[0].spec.experiment] if arm.role == "ceiling"]
    found = [value for arm in arms for value in runs.outcomes(metric, arm)]
    values = [value for value in found if not isinstance(value, str)]
    return median(values) if values and metric.kind != "time" else None
