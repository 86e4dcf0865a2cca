"""Contrasts: two cells of a session, held against each other block by block, to say what the change between them brought."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from bench.analysis.breakdown.amounts import PARTS
from bench.analysis.comparison import Comparison, Outcome, Side, compare, log_ratios, side
from bench.analysis.number_format import plain
from bench.analysis.rows import MetricRow, Question
from bench.analysis.warmups import level
from bench.model import Arm, Metric, Session, Value

SHOWN_KINDS = ("time", "rate")  # of the subject's metrics; of its peers' the headline

Cells = Mapping[str, Mapping[str, Value]]
"""The params of each cell of one experiment, by its name."""


@dataclass(frozen=True, kw_only=True)
class Effect:
    """What a change did to one metric of one arm. The sides of each row are the two cells, by their names."""

    metric: Metric
    arm: str
    headline: bool  # of the subject
    rows: Mapping[str, MetricRow]  # by topology
    interaction: Comparison | None = None  # the factor on the last topology by that on the first; None: one topology

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """The factor on each topology, and the interaction."""
        found = [row.comparison for row in self.rows.values() if row.comparison]
        return (*found, self.interaction) if self.interaction else tuple(found)

    def changed(self, change: Callable[[Comparison], Comparison]) -> Effect:
        """With all its comparisons changed."""
        return replace(
            self,
            rows={
                name: replace(row, comparison=change(row.comparison)) if row.comparison else row
                for name, row in self.rows.items()
            },
            interaction=change(self.interaction) if self.interaction else None,
        )


@dataclass(frozen=True, kw_only=True)
class Contrast:
    """One change: `candidate` beside `baseline`, two cells that differ in `parameters` alone."""

    experiment: str
    parameters: tuple[str, ...]  # several: they were changed at once, and cannot be told apart
    baseline: str
    candidate: str
    before: Mapping[str, Value]  # of the parameters, in the baseline
    after: Mapping[str, Value]
    params: Mapping[str, Value]  # that both cells have, and others of the experiment have otherwise
    amounts: tuple[
        str, ...
    ] = ()  # of the parameters, those that are an amount of work: the cells do not do the same work
    units: tuple[str, ...] = ()  # of work, that the parameters change: one "job" of one cell is not one of the other
    effects: tuple[Effect, ...] = ()  # the subject's headline first

    @property
    def title(self) -> str:
        """batch 1 -> 10."""
        return ", ".join(
            f"{name} {format_value(self.before[name])} -> {format_value(self.after[name])}" for name in self.parameters
        )

    @property
    def instead(self) -> str:
        """batch=10 instead of 1."""
        after = ", ".join(f"{name}={format_value(value)}" for name, value in self.after.items())
        if len(self.parameters) == 1:
            return f"{after} instead of {format_value(self.before[self.parameters[0]])}"
        return f"{after} instead of {', '.join(f'{name}={format_value(value)}' for name, value in self.before.items())}"

    @property
    def at_once(self) -> str:
        """What cannot be told from this change; empty where one parameter was changed."""
        *names, last = self.parameters
        return f"{', '.join(names)} and {last} were changed at once and cannot be told apart" if names else ""

    @property
    def work(self) -> str:
        """1.60 times the samples; empty where both cells do as much."""
        return " and ".join(
            f"{plain(after / before)} times the {name}"
            for name in self.amounts
            if isinstance(before := self.before[name], int | float)
            and isinstance(after := self.after[name], int | float)
        )

    @property
    def work_of_headline(self) -> str:
        """The same where the headline is a total, which grows with the work."""
        return self.work if self.headline and self.headline.metric.is_total else ""

    @property
    def other_units(self) -> str:
        """Each job is different work; empty where a unit of work is the same in both cells."""
        return f"each {' and each '.join(self.units)} is different work" if self.units else ""

    @property
    def where(self) -> str:
        """actors=2: what both cells have, and others have otherwise."""
        return ", ".join(f"{name}={format_value(value)}" for name, value in self.params.items())

    @property
    def cells(self) -> tuple[str, str]:
        """Both, the baseline first."""
        return self.baseline, self.candidate

    @property
    def headline(self) -> Effect | None:
        """The effect on the subject's headline."""
        return next((effect for effect in self.effects if effect.headline), None)

    def changed(self, change: Callable[[Comparison], Comparison]) -> Contrast:
        """With all its comparisons changed."""
        return replace(self, effects=tuple(effect.changed(change) for effect in self.effects))


def format_value(value: Value) -> str:
    """A value of a parameter; empty text is none."""
    return "none" if value == "" else str(value)


def varied(cells: Cells) -> tuple[str, ...]:
    """The parameters that are not the same in all cells."""
    names = dict.fromkeys(name for params in cells.values() for name in params)
    return tuple(name for name in names if len({params.get(name) for params in cells.values()}) > 1)


def contrasts(question: Question) -> tuple[Contrast, ...]:
    """Those of all experiments: of the parameters that the session names, or else of every one that is varied."""
    return tuple(
        contrast
        for experiment in question.session.metrics
        for group in _by_baseline(planned(question.session, experiment))
        for contrast in _measured(question, group)
    )


def asked(session: Session) -> list[tuple[str, ...]]:
    """What `--contrast` names: actors,batch is one after the other, actors+batch is both at once."""
    parts = [tuple(name.strip() for name in part.split("+")) for part in session.contrast.split(",")]
    return [names for names in parts if any(names)]


def cells_of(session: Session, experiment: str) -> Cells:
    """Those of one experiment, in the order of their names."""
    found = {spec.cell: spec.params for spec in session.specs if spec.experiment == experiment}
    return {cell: found[cell] for cell in sorted(found)}


def planned(session: Session, experiment: str) -> tuple[Contrast, ...]:
    """Which cells of one experiment are held against which, without any value yet."""
    cells = cells_of(session, experiment)
    named = asked(session)
    found = [pair for names in named or [(name,) for name in varied(cells)] for pair in pairs(cells, names)]
    if not named:
        found += _at_once(cells, found)
    amounts = session.amounts.get(experiment, ())
    units = session.changed_units.get(experiment, {})
    return tuple(_contrast(experiment, cells, amounts, units, *pair) for pair in found)


def pairs(cells: Cells, changed: Sequence[str]) -> list[tuple[str, str]]:
    """Of cells that differ in `changed` alone: each beside the one with the least values, or the first where they are words."""
    groups: dict[tuple[Value | None, ...], list[str]] = {}
    others = [name for name in varied(cells) if name not in changed]
    for cell, params in cells.items():
        groups.setdefault(tuple(params.get(name) for name in others), []).append(cell)
    return [pair for group in groups.values() for pair in _beside_first(cells, group, changed)]


def _beside_first(cells: Cells, group: list[str], changed: Sequence[str]) -> Iterator[tuple[str, str]]:
    values = {cell: [cells[cell].get(name) for name in changed] for cell in group}
    if all(isinstance(value, int | float) for each in values.values() for value in each):
        group = sorted(group, key=lambda cell: cast(list[float], values[cell]))
    baseline, *others = group
    for other in others:
        if all(one != two for one, two in zip(values[baseline], values[other], strict=True)):
            yield baseline, other


def _at_once(cells: Cells, found: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """A pair for each group of cells that no pair joins to the first: with the cell that differs from it in least."""
    groups = {cell: {cell} for cell in cells}
    for one, other in found:
        joined = groups[one] | groups[other]
        groups |= dict.fromkeys(joined, joined)
    joined = groups[next(iter(cells))] if cells else set()
    for cell in cells:
        if cell not in joined:
            nearest = min(
                (each for each in cells if each in joined), key=lambda each: len(_differing(cells, each, cell))
            )
            if _differing(cells, nearest, cell):
                yield nearest, cell
            joined |= groups[cell]


def _differing(cells: Cells, one: str, other: str) -> tuple[str, ...]:
    return varied({cell: cells[cell] for cell in (one, other)})


def _contrast(
    experiment: str,
    cells: Cells,
    amounts: Collection[str],
    units: Mapping[str, str],
    baseline: str,
    candidate: str,
) -> Contrast:
    one, other = cells[baseline], cells[candidate]
    parameters = _differing(cells, baseline, candidate)
    return Contrast(
        experiment=experiment,
        parameters=parameters,
        baseline=baseline,
        candidate=candidate,
        before={name: one[name] for name in parameters},
        after={name: other[name] for name in parameters},
        params={name: one[name] for name in varied(cells) if name not in parameters},
        amounts=tuple(name for name in parameters if name in amounts),
        units=tuple(dict.fromkeys(units[name] for name in parameters if name in units)),
    )


def _by_baseline(found: Sequence[Contrast]) -> Sequence[Sequence[Contrast]]:
    groups: dict[tuple[str, tuple[str, ...]], list[Contrast]] = {}
    for each in found:
        groups.setdefault((each.baseline, each.parameters), []).append(each)
    return tuple(groups.values())


def _measured(question: Question, group: Sequence[Contrast]) -> Iterator[Contrast]:
    """Contrasts of one baseline with their effects; as many turns are discarded in each of their cells, on all topologies."""
    experiment = group[0].experiment
    cells = dict.fromkeys(cell for each in group for cell in each.cells)
    everything = [
        spec
        for cell in cells
        for topology in question.topologies
        for spec in question.specs(experiment, cell, topology)
    ]
    usable = question.usable(everything)
    alike = replace(question, table=level(usable).table)
    sides = _Sides(alike, experiment)
    measured = {(name, arm) for name, arm, node, point in usable.keys if not node and not point}
    for each in group:
        effects = (_effect(sides, each, *shown) for shown in _shown(question, experiment, measured))
        yield replace(each, effects=tuple(effect for effect in effects if effect))


def _shown(question: Question, experiment: str, measured: set[tuple[str, str]]) -> Iterator[tuple[Metric, Arm, bool]]:
    """The headline of the subject and of each peer, then what else of the subject is a time or a rate."""
    headline, *others = question.session.metrics[experiment]
    arms = question.session.arms[experiment]
    of_role = {role: [arm for arm in arms if arm.role == role] for role in ("subject", "peer")}
    found = [
        *((headline, arm, arm.role == "subject") for role in of_role for arm in of_role[role]),
        *(
            (metric, arm, False)
            for metric in others
            if metric.kind in SHOWN_KINDS and not metric.axis and metric.means not in PARTS
            for arm in of_role["subject"]
        ),
    ]
    yield from ((metric, arm, first) for metric, arm, first in found if (metric.name, arm.name) in measured)


class _Sides:
    """What each cell did, read once where it is in several contrasts."""

    def __init__(self, question: Question, experiment: str) -> None:
        self.question = question
        self._experiment = experiment
        self._found: dict[tuple[str, str, str, str], Side] = {}

    def of(self, cell: str, topology: str, metric: Metric, arm: str) -> Side:
        """One metric of one arm in one cell on one topology."""
        key = (cell, topology, metric.name, arm)
        if key not in self._found:
            specs = self.question.specs(self._experiment, cell, topology)
            self._found[key] = self.question.side(specs, self.question.outcomes(metric, arm))
        return self._found[key]


def _effect(sides: _Sides, contrast: Contrast, metric: Metric, arm: Arm, headline: bool) -> Effect | None:
    if contrast.units or (contrast.amounts and metric.is_total):
        metric = replace(metric, better=None)  # more work takes longer, and is not slower for it
    rows: dict[str, MetricRow] = {}
    for topology in sides.question.topologies:
        both = {cell: sides.of(cell, topology, metric, arm.name) for cell in contrast.cells}
        if any(each.values for each in both.values()):
            found = compare(
                metric,
                both,
                baseline=contrast.baseline,
                candidate=contrast.candidate,
                margin=sides.question.margin,
            )
            rows[topology] = MetricRow(metric=metric, arm=arm.name, headline=headline, sides=both, comparison=found)
    if not rows:
        return None
    return Effect(
        metric=metric,
        arm=arm.name,
        headline=headline,
        rows=rows,
        interaction=_interaction(sides.question, rows, contrast),
    )


def _interaction(question: Question, rows: Mapping[str, MetricRow], contrast: Contrast) -> Comparison | None:
    """Whether the change does the same on the last topology as on the first: the ratio of its factors in each block."""
    first, last = question.topologies[0], question.topologies[-1]
    if first == last or first not in rows or last not in rows:
        return None
    factors = {name: _factors(rows[name], contrast) for name in (first, last)}
    return compare(rows[first].metric, factors, baseline=first, candidate=last, margin=question.margin)


def _factors(row: MetricRow, contrast: Contrast) -> Side:
    """The factor of each block, or why there is none."""
    one, other = (row.sides[cell].values for cell in contrast.cells)
    found: dict[int, Outcome] = {block: math.exp(log) for block, log in log_ratios(one, other).items()}
    return side(found | dict(row.comparison.missing) if row.comparison else found)
