"""Shows what the work cost on each topology, where there is a price."""

from __future__ import annotations

from collections.abc import Iterator

from bench.analysis.number_format import with_interval
from bench.reports import tables
from bench.reports.document import CellView, Section


def sections(view: CellView) -> Iterator[Section]:
    """A row a topology."""
    here = (view.cell.experiment, view.cell.cell)
    if own := [each for each in view.report.costs if (each.experiment, each.cell) == here]:
        yield Section(
            title=f"What a million {own[0].unit}s cost, at {view.report.price_per_cpu_hour} a CPU hour",
            table=tables.table(
                [("topology", False), (own[0].currency, True), ("n", True)],
                (tables.row([each.topology, with_interval(each.per_million), str(each.per_million.n)]) for each in own),
            ),
            source="the price of all CPUs of the topology, busy or not, over the steady rate; start-up is not in it",
        )
