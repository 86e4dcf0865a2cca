"""What more CPUs for each piece of work buy: cells that differ in that alone, side by side in the blocks that have both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from bench.analysis.comparison import compare
from bench.analysis.rows import MetricRow, Question
from bench.analysis.warmups import level
from bench.metrics import meaning
from bench.model import Arm, Metric, Value

SHOWN_KINDS = ("time", "rate")  # of the subject's metrics; of its peers' the headline

Params = tuple[tuple[str, Value], ...]


@dataclass(frozen=True, kw_only=True)
class MoreCpus:
    """One step up on one topology: `rows` have the two numbers of CPUs for sides, and the ratio of the two."""

    experiment: str
    params: Mapping[str, Value]  # those that the experiment's other cells have otherwise
    topology: str
    fewer: str  # "1 CPU"
    more: str
    rows: tuple[MetricRow, ...]


def more_cpus(question: Question) -> tuple[MoreCpus, ...]:
    """Those of all experiments whose runs say how many CPUs each piece of their work has."""
    return tuple(found for experiment in question.session.metrics for found in _of_experiment(question, experiment))


def _of_experiment(question: Question, experiment: str) -> Iterator[MoreCpus]:
    each = meaning("CPUs each", question.session.metrics[experiment])
    if each is None:
        return
    specs = [spec for spec in question.session.specs if spec.experiment == experiment]
    said = question.usable(specs).said(each)
    runs = [(run, round(said[run.spec.id])) for run in question.usable(specs).runs if run.spec.id in said]
    parameter = _parameter([run.spec.params for run, _ in runs], [cpus for _, cpus in runs])
    if parameter is None:
        return
    varied = [name for name in runs[0][0].spec.params if len({run.spec.params.get(name) for run, _ in runs}) > 1]
    groups: dict[tuple[str, Params], dict[int, str]] = {}  # the cell with so many CPUs
    for run, cpus in runs:
        params = tuple((name, run.spec.params[name]) for name in varied if name != parameter)
        groups.setdefault((run.spec.topology.name, params), {})[cpus] = run.spec.cell
    for (topology, params), cells in groups.items():
        steps = sorted(cells)
        alike = _alike(question, experiment, cells.values(), topology)
        for fewer, more in pairwise(steps):
            yield MoreCpus(
                experiment=experiment,
                params=dict(params),
                topology=topology,
                fewer=_words(fewer),
                more=_words(more),
                rows=tuple(
                    _row(
                        alike,
                        experiment,
                        {_words(cpus): cells[cpus] for cpus in (fewer, more)},
                        topology,
                        metric,
                        arm,
                    )
                    for metric, arm in _shown(question, experiment)
                ),
            )


def _alike(question: Question, experiment: str, cells: Iterable[str], topology: str) -> Question:
    """The question with as many turns discarded in each of `cells`, which are the sides of its comparisons."""
    specs = [spec for cell in cells for spec in question.specs(experiment, cell, topology)]
    return replace(question, table=level(question.usable(specs)).table)


def _shown(question: Question, experiment: str) -> Iterator[tuple[Metric, Arm]]:
    """The headline of the subject and of each peer, then what else of the subject is a time or a rate."""
    headline, *others = question.session.metrics[experiment]
    arms = question.session.arms[experiment]
    yield from ((headline, arm) for role in ("subject", "peer") for arm in arms if arm.role == role)
    subjects = [arm for arm in arms if arm.role == "subject"]
    yield from ((metric, arm) for metric in others if metric.kind in SHOWN_KINDS for arm in subjects)


def _row(
    question: Question, experiment: str, cells: Mapping[str, str], topology: str, metric: Metric, arm: Arm
) -> MetricRow:
    read = question.outcomes(metric, arm.name)
    sides = {name: question.side(question.specs(experiment, cell, topology), read) for name, cell in cells.items()}
    fewer, more = cells
    comparison = compare(metric, sides, baseline=fewer, candidate=more, margin=question.margin)
    return MetricRow(metric=metric, arm=arm.name, headline=False, sides=sides, comparison=comparison)


def _parameter(params: list[Mapping[str, Value]], cpus: list[int]) -> str | None:
    """The parameter that always is the number of CPUs, and is not the same in all runs; None: there is none."""
    if len(set(cpus)) < 2:
        return None
    return next((name for name in params[0] if all(each.get(name) == cpus[at] for at, each in enumerate(params))), None)


def _words(cpus: int) -> str:
    return "1 CPU" if cpus == 1 else f"{cpus} CPUs"
