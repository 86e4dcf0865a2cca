"""What a million units of work cost, at a price for a CPU that is there for an hour, whether it is busy or not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.analysis.cells import CellReport, unit_of_work
from bench.analysis.stats.estimates import Estimate
from bench.model import Topology

UNITS = 1_000_000
SECONDS_PER_HOUR = 3600.0


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Of one cell on one topology: the steady rate at the price of all CPUs that the topology has. Start-up is not in it."""

    experiment: str
    cell: str
    topology: str
    unit: str  # of the work: input, job
    currency: str
    per_million: Estimate

    @property
    def metric(self) -> str:
        """What it is called where it stands among other numbers."""
        return f"cost_of_a_million_{self.unit}s"


def costs(cells: Sequence[CellReport], topologies: Sequence[Topology], price: str) -> Iterator[Cost]:
    """Of every cell whose headline is a rate of work. `price`: of a CPU hour, as `0.04 EUR`; empty: nothing is said."""
    if not price:
        return
    amount, currency = price.split(" ", 1)
    for cell in cells:
        headline = cell.headline
        if headline is None or headline.metric.kind != "rate" or not headline.metric.unit.endswith("/s"):
            continue
        for topology in topologies:
            rate = headline.sides[topology.name].estimate if topology.name in headline.sides else None
            if rate is None or rate.value <= 0:
                continue
            per_second = float(amount) * topology.nodes * topology.cpus_per_node / SECONDS_PER_HOUR
            yield Cost(
                experiment=cell.experiment,
                cell=cell.cell,
                topology=topology.name,
                unit=unit_of_work(headline.metric),
                currency=currency,
                per_million=_of_rate(rate, UNITS * per_second),
            )


def _of_rate(rate: Estimate, scale: float) -> Estimate:
    """`scale` over a rate: what is most of the one is least of the other. An end that is not above zero bounds nothing."""

    def end(value: float | None) -> float | None:
        return None if value is None or value <= 0 else scale / value

    low, high = end(rate.high), end(rate.low)
    known = low is not None and high is not None
    return Estimate(
        value=scale / rate.value,
        low=low if known else None,
        high=high if known else None,
        level=rate.level if known else None,
        n=rate.n,
    )
