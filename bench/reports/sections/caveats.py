"""Says what weakens or blocks the verdicts of a report."""

from __future__ import annotations

from collections.abc import Iterator

from bench.analysis import Report
from bench.analysis.caveats.evidence import SESSION, Severity, about
from bench.analysis.cells import CellReport


def entries(report: Report) -> Iterator[tuple[Severity, str]]:
    """Each with its severity; one that holds for several cells is said once."""
    cells = {about(cell): cell for cell in report.cells}
    by_text: dict[tuple[Severity, str], list[str]] = {}
    for caveat in report.caveats:
        by_text.setdefault((caveat.severity, caveat.text), []).append(caveat.about)
    for (severity, text), places in by_text.items():
        if SESSION in places or len(report.cells) == 1:
            yield severity, text[:1].upper() + text[1:]
        else:
            yield severity, f"{', '.join(_place(place, cells) for place in places)}: {text}"


def _place(place: str, cells: dict[str, CellReport]) -> str:
    experiments = {cell.experiment for cell in cells.values()}
    return cells[place].cell if place in cells and len(experiments) == 1 else place
