"""Scaling series: cells that differ in their number of workers alone, as one card of scaling for each topology and arm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from bench.analysis.rows import Question
from bench.analysis.stats.scaling import ScalingCard, card
from bench.analysis.table import Selection
from bench.analysis.warmups import level
from bench.metrics import meaning
from bench.model import Metric, Run, Value

FEWEST_STEPS = 2


@dataclass(frozen=True, kw_only=True)
class ScalingSeries:
    """One arm on one topology, by number of workers; `params` are those that other scaling series have otherwise."""

    experiment: str
    parameter: str  # that counts the workers
    params: Mapping[str, Value]
    topology: str
    arm: str
    metric: Metric
    card: ScalingCard
    ceiling: float | None = None  # median over blocks of the most that the CPUs did; None: the experiment measures none


def scaling_series(question: Question) -> tuple[ScalingSeries, ...]:
    """Those of all experiments whose runs say how many workers share a CPU."""
    return tuple(found for experiment in question.session.metrics for found in _of_experiment(question, experiment))


def _of_experiment(question: Question, experiment: str) -> Iterator[ScalingSeries]:
    per_cpu = meaning("workers per CPU", question.session.metrics[experiment])
    if per_cpu is None:
        return
    specs = [spec for spec in question.session.specs if spec.experiment == experiment]
    workers = _workers(question.usable(specs), per_cpu)
    runs = [run for run in question.usable(specs).runs if run.spec.id in workers]
    parameter = _parameter(runs, workers)
    if parameter is None:
        return
    varied = [name for name in runs[0].spec.params if len({run.spec.params.get(name) for run in runs}) > 1]
    groups: dict[tuple[str, tuple[tuple[str, Value], ...]], list[Run]] = {}
    for run in runs:
        params = tuple((name, run.spec.params[name]) for name in varied if name != parameter)
        groups.setdefault((run.spec.topology.name, params), []).append(run)
    metric = question.session.metrics[experiment][0]
    arms = [arm.name for arm in question.session.arms[experiment] if arm.role in ("subject", "peer") and arm.scales]
    for (topology, params), those in groups.items():
        alike = level(question.table.of(those))
        most = _ceiling(question, alike, metric)
        for arm in arms:
            values: dict[int, dict[int, float]] = {}
            for run, value in zip(those, alike.outcomes(metric, arm), strict=True):
                if not isinstance(value, str):
                    values.setdefault(workers[run.spec.id], {})[run.spec.block] = value
            if len(values) >= FEWEST_STEPS:
                shape = those[0].spec.topology
                yield ScalingSeries(
                    experiment=experiment,
                    parameter=parameter,
                    params=dict(params),
                    topology=topology,
                    arm=arm,
                    metric=metric,
                    card=card(values, cpus=shape.nodes * shape.cpus_per_node, seed=question.session.seed),
                    ceiling=most,
                )


def _ceiling(question: Question, runs: Selection, metric: Metric) -> float | None:
    """What the experiment's ceiling did in these runs, whatever the number of workers."""
    arms = [arm.name for arm in question.session.arms[runs.runs[0].spec.experiment] if arm.role == "ceiling"]
    found = [value for arm in arms for value in runs.outcomes(metric, arm)]
    values = [value for value in found if not isinstance(value, str)]
    return median(values) if values else None


def _workers(runs: Selection, per_cpu: Metric) -> dict[str, int]:
    """By Spec, how many workers a run has; those that do not say are left out."""
    shapes = {run.spec.id: run.spec.topology for run in runs.runs}
    found = {
        key: round(each * shapes[key].nodes * shapes[key].cpus_per_node) for key, each in runs.said(per_cpu).items()
    }
    return {key: workers for key, workers in found.items() if workers}


def _parameter(runs: Sequence[Run], workers: Mapping[str, int]) -> str | None:
    """The parameter that is the number of workers in every run, and not the same in all. `workers`: by Spec."""
    if len(set(workers.values())) < FEWEST_STEPS:
        return None
    names = runs[0].spec.params
    return next(
        (name for name in names if all(run.spec.params.get(name) == workers[run.spec.id] for run in runs)), None
    )
