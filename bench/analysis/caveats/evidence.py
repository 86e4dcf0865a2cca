"""What caveats are found from, and what a caveat is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from bench.analysis.cells import CellReport
from bench.analysis.exclusions import Exclusions, QuietChecks
from bench.analysis.rows import Question
from bench.analysis.table import Selection, Table
from bench.model import Run, Session, Topology

Severity = Literal["refuses", "weakens", "note"]
SESSION = "session"


@dataclass(frozen=True, kw_only=True)
class Caveat:
    """A reason not to believe a number. One that refuses blocks the verdict on what it is about."""

    severity: Severity
    about: str  # SESSION, or a cell as `cell_name` has it
    text: str


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What the rules look at."""

    question: Question
    attempts: tuple[Run, ...]  # all of them
    cells: tuple[CellReport, ...]
    topologies: tuple[Topology, ...]  # the baseline first
    exclusions: Exclusions = field(default_factory=Exclusions)
    quiet_checks: QuietChecks | None = None

    @property
    def session(self) -> Session:
        return self.question.session

    @property
    def table(self) -> Table:
        return self.question.table

    @property
    def runs(self) -> tuple[Run, ...]:
        """Of a Spec that was tried more than once, the attempt that counts."""
        return self.table.runs

    @cached_property
    def usable(self) -> tuple[Run, ...]:
        """Runs whose numbers are used."""
        return tuple(run for run in self.runs if run.status == "ok")

    def usable_of(self, cell: CellReport) -> Selection:
        """Those of one cell."""
        return self._by_cell.get((cell.experiment, cell.cell), Selection(self.table, ()))

    @cached_property
    def _by_cell(self) -> Mapping[tuple[str, str], Selection]:
        found: dict[tuple[str, str], list[Run]] = {}
        for run in self.usable:
            found.setdefault((run.spec.experiment, run.spec.cell), []).append(run)
        return {cell: self.table.of(runs) for cell, runs in found.items()}

    @property
    def is_comparison(self) -> bool:
        """Whether two topologies are to be compared."""
        return len(self.topologies) > 1


Rule = Callable[[Evidence], Iterator[Caveat]]


def cell_name(experiment: str, cell: str) -> str:
    """What a caveat calls a cell."""
    return f"{experiment} {cell}"


def about(cell: CellReport) -> str:
    """What a caveat about `cell` names."""
    return cell_name(cell.experiment, cell.cell)


def confounds(evidence: Evidence) -> Severity:
    """What becomes of a difference that confounds: who insists has the verdict, and a stamp on it."""
    return "weakens" if evidence.session.allow_unequal else "refuses"
