"""Shows whether each training converged as the reference at the same batch does."""

from __future__ import annotations

from collections.abc import Iterator

from bench.analysis.cells import CellReport
from bench.analysis.convergence import Guard
from bench.analysis.numbers import quantity
from bench.metrics import count
from bench.reports import tables
from bench.reports.document import CellView, Section
from bench.reports.tables import Table

TITLE = "Convergence beside the reference at the same batch: samples to the target"
HEADS = (
    ("topology", False),
    ("arm", False),
    ("reference", False),
    ("runs", True),
    ("needed", True),
    ("reference needed", True),
    ("least credible", True),
    ("", False),
)
_SAMPLES = count("needed", "samples")


def sections(view: CellView) -> Iterator[Section]:
    """Where trainings have a reference."""
    if view.cell.guards:
        yield Section(
            title=TITLE,
            table=table(view.cell),
            notes=tuple(notes(view.cell)),
            source="MLPerf's test of reference convergence points: means without the least and the greatest, one-sided 5 %",
        )


def table(cell: CellReport) -> Table:
    """A row an arm and topology."""
    return tables.table(HEADS, [tables.row(_cells(guard)) for guard in cell.guards])


def notes(cell: CellReport) -> Iterator[str]:
    """Why nothing can be told, where that is so."""
    for refusal in dict.fromkeys(guard.refusal for guard in cell.guards if guard.refusal):
        yield f"not told: {refusal}"


def _cells(guard: Guard) -> list[str]:
    ends = [guard.topology, guard.arm, guard.reference, f"{guard.runs} and {guard.reference_runs}"]
    if guard.point is None or guard.needed is None:
        return [*ends, "-", "-", "-", "not told"]
    values = (guard.needed, guard.point.mean, guard.point.least_mean)
    return [*ends, *(quantity(_SAMPLES, value) for value in values), "TOO FAST" if guard.is_too_fast else "credible"]
