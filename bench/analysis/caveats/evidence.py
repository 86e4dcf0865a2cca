"""Defines a caveat, and the evidence from which rules find caveats."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from bench.analysis.cells import CellReport
from bench.analysis.contrasts import Contrast
from bench.analysis.exclusions import Exclusions, QuietChecks
from bench.analysis.rows import Question
from bench.analysis.table import Selection, Table
from bench.model import Run, Session, Topology

Severity = Literal["refuses", "weakens", "note"]
SESSION = "session"


@dataclass(frozen=True, kw_only=True)
class Caveat:
    """A reason not to trust a number. One of severity `refuses` blocks the verdicts of what it is about."""

    severity: Severity
    about: str  # SESSION, or the cell's `cell_name`
    text: str
    topology: str = ""  # on which it is so; empty: it concerns the cell as a whole


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Everything that the rules read."""

    question: Question
    attempts: tuple[Run, ...]  # all of them
    cells: tuple[CellReport, ...]
    topologies: tuple[Topology, ...]  # the baseline first
    exclusions: Exclusions = field(default_factory=Exclusions)
    quiet_checks: QuietChecks | None = None
    contrasts: tuple[Contrast, ...] = ()  # corrected for their number

    @property
    def session(self) -> Session:
        return self.question.session

    @property
    def table(self) -> Table:
        return self.question.table

    @property
    def runs(self) -> tuple[Run, ...]:
        """The attempt that counts, of every Spec that was run."""
        return self.table.runs

    @cached_property
    def usable(self) -> tuple[Run, ...]:
        """The runs whose samples are used."""
        return tuple(run for run in self.runs if run.status == "ok")

    def usable_of(self, cell: CellReport) -> Selection:
        """Return the usable runs of one cell."""
        return self._by_cell.get((cell.experiment, cell.cell), Selection(self.table, ()))

    @cached_property
    def _by_cell(self) -> Mapping[tuple[str, str], Selection]:
        runs_by_cell: dict[tuple[str, str], list[Run]] = {}
        for run in self.usable:
            runs_by_cell.setdefault((run.spec.experiment, run.spec.cell), []).append(run)
        return {cell: self.table.of(runs) for cell, runs in runs_by_cell.items()}

    @property
    def is_comparison(self) -> bool:
        """Whether the session compares topologies."""
        return len(self.topologies) > 1


Rule = Callable[[Evidence], Iterator[Caveat]]


def cell_name(experiment: str, cell: str) -> str:
    """Return the name of a cell in caveats."""
    return f"{experiment} {cell}"


def about(cell: CellReport) -> str:
    """Return what a caveat about `cell` has in `about`."""
    return cell_name(cell.experiment, cell.cell)


def confounds(evidence: Evidence) -> Severity:
    """Return the severity of a difference that confounds: with --allow-unequal it only weakens the verdict."""
    return "weakens" if evidence.session.allow_unequal else "refuses"
