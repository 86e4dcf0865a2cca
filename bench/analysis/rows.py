"""Reads from a session what a cell's rows show: one metric of one arm on each topology, and their comparison."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from bench.analysis.comparison import Comparison, Outcome, Side, compare, not_usable, side
from bench.analysis.stats.estimates import Estimate
from bench.analysis.table import Selection, Table
from bench.analysis.usage import ArmUsage, Quantity, Uses, is_like_idle, outcomes
from bench.model import Metric, Run, Session, Spec

Specs = Mapping[str, Sequence[Spec]]
"""The Specs of one cell, by topology."""

Read = Callable[[Sequence[Spec]], Sequence[Outcome]]
"""Reads the outcomes of the usable runs of some Specs, in their order."""


@dataclass(frozen=True, kw_only=True)
class MetricRow:
    """One metric of one arm on each topology, with their comparison."""

    metric: Metric
    arm: str
    headline: bool
    sides: Mapping[str, Side]  # by topology
    comparison: Comparison | None = None  # None with one topology, or if a ratio has no meaning
    point: str = ""  # of a sweep within each run
    bands: Mapping[str, Estimate] = field(default_factory=dict)  # of a point, by topology; see bench/analysis/sweeps.py


@dataclass(frozen=True, kw_only=True)
class Question:
    """The session, runs and topologies from which cells are reported."""

    session: Session
    runs: Mapping[str, Run]  # the attempt that counts, by Spec
    topologies: tuple[str, ...]  # the baseline first
    margin: float
    table: Table  # of these runs, of any status
    outside_seconds: float | None = None  # seconds that an invocation needs beside what it times
    _selections: dict[int, tuple[Sequence[Spec], Selection]] = field(default_factory=dict, compare=False, init=False)
    _usage: dict[tuple[str, str, str], ArmUsage] = field(default_factory=dict, compare=False, init=False)

    def specs(self, experiment: str, cell: str, topology: str) -> list[Spec]:
        """Return the Specs of one cell on one topology, by block."""
        return sorted(self._specs.get((experiment, cell, topology), ()), key=lambda spec: spec.block)

    def in_block(self, experiment: str, block: int, topology: str) -> Sequence[Spec]:
        """Return the Specs of one experiment in one block on one topology."""
        return self._by_block.get((experiment, block, topology), ())

    @cached_property
    def _by_block(self) -> Mapping[tuple[str, int, str], Sequence[Spec]]:
        specs_by_block: dict[tuple[str, int, str], list[Spec]] = {}
        for spec in self.session.specs:
            specs_by_block.setdefault((spec.experiment, spec.block, spec.topology.name), []).append(spec)
        return specs_by_block

    @cached_property
    def _specs(self) -> Mapping[tuple[str, str, str], Sequence[Spec]]:
        specs_by_cell: dict[tuple[str, str, str], list[Spec]] = {}
        for spec in self.session.specs:
            specs_by_cell.setdefault((spec.experiment, spec.cell, spec.topology.name), []).append(spec)
        return specs_by_cell

    def usable(self, specs: Sequence[Spec]) -> Selection:
        """Select the runs of `specs` that exist and are ok."""
        if id(specs) not in self._selections:
            runs = [self.runs.get(spec.id) for spec in specs]
            usable = self.table.of(run for run in runs if run is not None and run.status == "ok")
            self._selections[id(specs)] = specs, usable  # keeps `specs` alive, so that its id is not reused
        return self._selections[id(specs)][1]

    def usage(self, arm: str, headline: Metric) -> ArmUsage:
        """Return what an arm used in every run, while the headline was timed."""
        return self._usage_of(arm, headline, "")

    def usage_at(self, arm: str, point: str) -> ArmUsage:
        """Return what an arm used in every run, at one point of a sweep."""
        return self._usage_of(arm, None, point)

    def _usage_of(self, arm: str, headline: Metric | None, point: str) -> ArmUsage:
        key = (arm, headline.name if headline else "", point)
        if key not in self._usage:
            self._usage[key] = ArmUsage(self.table, arm, headline, point)
        return self._usage[key]

    def uses(self, specs: Sequence[Spec], arm: str, headline: Metric) -> Uses:
        """Return what an arm used in the usable runs of `specs`."""
        return Uses(self.usage(arm, headline), self.usable(specs).at)

    def side(self, specs: Sequence[Spec], read: Read) -> Side:
        """Summarise what `read` returns for each block."""
        usable = self.usable(specs)
        by_block = dict(zip(usable.blocks, read(specs), strict=True))
        if len(usable.at) < len(specs):
            by_block = {
                spec.block: by_block[spec.block] if spec.block in by_block else self.why_not(spec) for spec in specs
            }
        return side(by_block)

    def outcomes(self, metric: Metric, arm: str, point: str = "") -> Read:
        """Return the function that reads the outcomes of an arm, at a point of a sweep or without one."""
        return lambda specs: self.usable(specs).outcomes(metric, arm, point=point)

    def used(self, specs: Specs, quantity: Quantity, arm: str, usage: ArmUsage) -> MetricRow:
        """Return the row of what an arm used on each topology, from `usage`."""
        uses = {name: Uses(usage, self.usable(of_topology).at) for name, of_topology in specs.items()}
        columns = {name: quantity.read(used) for name, used in uses.items()}
        of_specs = {id(of_topology): columns[name] for name, of_topology in specs.items()}
        row = self.row(
            specs,
            quantity.metric,
            arm,
            lambda of_topology: outcomes(of_specs[id(of_topology)]),
            is_compared=quantity.compared,
        )
        if quantity.idle is None:
            return row
        like_idle = {name: is_like_idle(columns[name], quantity.idle(used)) for name, used in uses.items()}
        sides = {name: replace(side, like_idle=like_idle[name]) for name, side in row.sides.items()}
        return replace(row, sides=sides)

    def row(self, specs: Specs, metric: Metric, arm: str, read: Read, *, is_compared: bool = True) -> MetricRow:
        """Return the row of what `read` returns on each topology; with two or more, the last is compared with the first."""
        sides = {name: self.side(of_topology, read) for name, of_topology in specs.items()}
        comparison = None
        if is_compared and len(self.topologies) > 1:
            baseline, candidate = self.topologies[0], self.topologies[-1]
            comparison = compare(metric, sides, baseline=baseline, candidate=candidate, margin=self.margin)
        return MetricRow(metric=metric, arm=arm, headline=False, sides=sides, comparison=comparison)

    def why_not(self, spec: Spec) -> str:
        """Return the reason why the run of a Spec is not usable."""
        run = self.runs.get(spec.id)
        return "not run" if run is None else not_usable(run)
