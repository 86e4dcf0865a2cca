"""More than two arms of a cell side by side, by their ranks inside blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.analysis.cells import CellReport
from bench.analysis.stats.omnibus import Omnibus, omnibus
from bench.model import Metric

ROLES = ("subject", "peer")  # the others do something else


@dataclass(frozen=True, kw_only=True)
class MultipleComparison:
    """The headline of several arms of one cell on one topology."""

    experiment: str
    cell: str
    topology: str
    metric: Metric
    found: Omnibus
    refused: str = ""  # why nothing may be said of it


def multiple_comparisons(cells: Sequence[CellReport]) -> Iterator[MultipleComparison]:
    """Of each cell on each topology. Arms were measured in the same turns, so that all discard the same."""
    for cell in cells:
        headline = cell.headline
        for topology in headline.sides if headline else ():
            values = {
                row.arm.name: row.side.values
                for row in cell.arms
                if headline and (row.metric, row.topology) == (headline.metric.name, topology) and row.arm.role in ROLES
            }
            if headline and (found := omnibus(values, higher_is_better=headline.metric.better == "higher")):
                yield MultipleComparison(
                    experiment=cell.experiment, cell=cell.cell, topology=topology, metric=headline.metric, found=found
                )
