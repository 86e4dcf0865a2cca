"""Shows whether each training converged as the reference at the same batch does."""

from __future__ import annotations

from collections.abc import Iterator

from bench.analysis.convergence import Guard
from bench.analysis.number_format import quantity
from bench.metrics import count
from bench.reports import tables
from bench.reports.document import CellView, Section

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
    """A row an arm and topology, and why nothing can be told, where that is so."""
    if guards := view.cell.guards:
        refusals = dict.fromkeys(guard.refusal for guard in guards if guard.refusal)
        yield Section(
            title=TITLE,
            table=tables.table(HEADS, [tables.row(_cells(guard)) for guard in guards]),
            notes=tuple(f"not told: {refusal}" for refusal in refusals),
            source="MLPerf's test of reference convergence points: means without the least and the greatest, one-sided 5 %",
        )


def _cells(guard: Guard) -> list[str]:
    ends = [guard.topology, guard.arm, guard.reference, f"{guard.runs} and {guard.reference_runs}"]
    if guard.point is None or guard.needed is None:
        return [*ends, "-", "-", "-", "not told"]
    values = (guard.needed, guard.point.mean, guard.point.least_mean)
    return [*ends, *(quantity(_SAMPLES, value) for value in values), "TOO FAST" if guard.is_too_fast else "credible"]
