"""More than two conditions of one metric side by side: the arms of a cell, and the cells of an experiment, by ranks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.analysis.cells import CellReport
from bench.analysis.rows import Question
from bench.analysis.stats.omnibus import Omnibus, omnibus
from bench.analysis.warmups import level
from bench.model import Metric

ROLES = ("subject", "peer")  # the others do something else


@dataclass(frozen=True, kw_only=True)
class MultipleComparison:
    """The headline of several arms of one cell, or of the subject in several cells, on one topology."""

    experiment: str
    cell: str  # whose arms they are; empty: they are the experiment's cells
    topology: str
    metric: Metric
    found: Omnibus
    refused: str = ""  # why nothing may be said of it


def multiple_comparisons(question: Question, cells: Sequence[CellReport]) -> Iterator[MultipleComparison]:
    """Of each experiment and topology: its cells, then the arms of each of them."""
    for experiment in dict.fromkeys(cell.experiment for cell in cells):
        those = [cell for cell in cells if cell.experiment == experiment and cell.headline]
        for topology in question.topologies:
            yield from _asked(those, "", topology, _of_cells(question, those, topology))
            for cell in those:
                yield from _asked([cell], cell.cell, topology, _of_arms(cell, topology))


def _asked(
    cells: Sequence[CellReport], name: str, topology: str, values: Mapping[str, Mapping[int, float]]
) -> Iterator[MultipleComparison]:
    headline = cells[0].headline if cells else None
    if headline is None:
        return
    found = omnibus(values, higher_is_better=headline.metric.better == "higher")
    if found is not None:
        yield MultipleComparison(
            experiment=cells[0].experiment, cell=name, topology=topology, metric=headline.metric, found=found
        )


def _of_arms(cell: CellReport, topology: str) -> dict[str, Mapping[int, float]]:
    """They were measured in the same turns, so that all discard the same."""
    return {
        row.arm.name: row.side.values
        for row in cell.arms
        if cell.headline
        and (row.metric, row.topology) == (cell.headline.metric.name, topology)
        and row.arm.role in ROLES
    }


def _of_cells(question: Question, cells: Sequence[CellReport], topology: str) -> dict[str, Mapping[int, float]]:
    """With as many turns discarded in each cell as in the one that discards most."""
    if len({cell.warmups for cell in cells}) == 1:
        return {cell.cell: cell.headline.sides[topology].values for cell in cells if cell.headline}
    specs = {cell.cell: question.specs(cell.experiment, cell.cell, topology) for cell in cells}
    alike = level(question.usable([spec for those in specs.values() for spec in those]))
    found: dict[str, Mapping[int, float]] = {}
    for cell in cells:
        if cell.headline:
            those = alike.table.of(run for run in alike.runs if run.spec.cell == cell.cell)
            found[cell.cell] = those.values(cell.headline.metric, cell.subject)
    return found
