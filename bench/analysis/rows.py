"""What a session is asked, and the row that answers: one metric of one arm on each topology, and the two side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from bench.analysis.comparison import Comparison, Outcome, Side, compare, not_usable, side
from bench.analysis.statistics.stats import Estimate
from bench.analysis.usage import Use, use_of
from bench.model import Metric, Run, Session, Spec

Specs = Mapping[str, Sequence[Spec]]
"""Of one cell, by topology."""


@dataclass(frozen=True, kw_only=True)
class MetricRow:
    """One metric of one arm: on each topology, and the two side by side."""

    metric: Metric
    arm: str
    headline: bool
    sides: Mapping[str, Side]  # by topology
    comparison: Comparison | None = None  # None: one topology only, or nothing that a ratio would say
    point: str = ""  # of a sweep that each run makes by itself
    bands: Mapping[str, Estimate] = field(default_factory=dict)  # of a point, by topology: see bench/analysis/sweeps.py


@dataclass(frozen=True, kw_only=True)
class Question:
    """What a cell is asked: of which session, which runs, which topologies."""

    session: Session
    runs: Mapping[str, Run]  # by Spec, the attempt that counts
    topologies: tuple[str, ...]  # the baseline first
    margin: float
    outside_seconds: float | None = None  # what an invocation costs beside what it times
    uses: dict[tuple[str, str], Use] = field(default_factory=dict, compare=False)  # that `use` has found

    def specs(self, experiment: str, cell: str, topology: str) -> list[Spec]:
        """Those of one cell on one topology, by block."""
        return sorted(self._specs.get((experiment, cell, topology), ()), key=lambda spec: spec.block)

    def in_block(self, experiment: str, block: int, topology: str) -> Sequence[Spec]:
        """Those of one experiment in one block on one topology."""
        return self._by_block.get((experiment, block, topology), ())

    @cached_property
    def _by_block(self) -> Mapping[tuple[str, int, str], Sequence[Spec]]:
        found: dict[tuple[str, int, str], list[Spec]] = {}
        for spec in self.session.specs:
            found.setdefault((spec.experiment, spec.block, spec.topology.name), []).append(spec)
        return found

    @cached_property
    def _specs(self) -> Mapping[tuple[str, str, str], Sequence[Spec]]:
        found: dict[tuple[str, str, str], list[Spec]] = {}
        for spec in self.session.specs:
            found.setdefault((spec.experiment, spec.cell, spec.topology.name), []).append(spec)
        return found

    def usable(self, specs: Sequence[Spec]) -> list[Run]:
        """The runs of `specs` that are there and ok."""
        return [run for spec in specs if (run := self.runs.get(spec.id)) is not None and run.status == "ok"]

    def use(self, run: Run, arm: str, headline: Metric) -> Use:
        """What an arm of a usable run used: read once, and asked for by cells, ledger and doubts."""
        key = (run.spec.id, arm)
        if key not in self.uses:
            self.uses[key] = use_of(run, arm, headline)
        return self.uses[key]

    def side(self, specs: Sequence[Spec], read: Callable[[Run], Outcome]) -> Side:
        """What `read` finds in each block."""
        return side({spec.block: self._outcome(spec, read) for spec in specs})

    def row(
        self, specs: Specs, metric: Metric, arm: str, read: Callable[[Run], Outcome], *, is_compared: bool = True
    ) -> MetricRow:
        """What `read` finds on each topology, and the last topology beside the first, where there are two."""
        sides = {name: self.side(those, read) for name, those in specs.items()}
        comparison = None
        if is_compared and len(self.topologies) > 1:
            baseline, candidate = self.topologies[0], self.topologies[-1]
            comparison = compare(metric, sides, baseline=baseline, candidate=candidate, margin=self.margin)
        return MetricRow(metric=metric, arm=arm, headline=False, sides=sides, comparison=comparison)

    def _outcome(self, spec: Spec, read: Callable[[Run], Outcome]) -> Outcome:
        run = self.runs.get(spec.id)
        if run is None:
            return "not run"
        return read(run) if run.status == "ok" else not_usable(run)
