"""What a run used of its nodes: bytes beyond the idle baseline, CPU seconds, memory, disk, shares of the work.

None stays None, "not counted": it never becomes 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median

from bench.analysis.comparison import Outcome
from bench.analysis.stats import estimates
from bench.analysis.usage_tables import Column, Uses
from bench.metrics import count, rate, ratio, seconds, size
from bench.model import Metric

NOT_COUNTED = "not counted here"


@dataclass(frozen=True, kw_only=True)
class NodeRow:
    """One node of one topology: medians over the `n` usable invocations; None: not counted."""

    topology: str
    node: str
    n: int
    share_of_work: float | None
    cpu_seconds_per_unit: float | None
    sent_bytes_per_unit: float | None  # beyond the idle baseline, like the next
    received_bytes_per_unit: float | None
    idle_bytes_per_second: float | None  # sent when nothing runs
    retransmits: float | None
    peak_bytes_per_second: float | None
    peak_memory_bytes: float | None
    throttled_share: float | None
    disk_read_bytes: float | None
    disk_written_bytes: float | None
    spilled_bytes: float | None


def per_unit(amounts: Column, uses: Uses) -> Column:
    """`amounts` by unit of work."""
    return [
        amount / work if amount is not None and work else None for amount, work in zip(amounts, uses.work, strict=True)
    ]


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """One thing that a whole topology used: as a metric, and how to read it from one run."""

    metric: Metric
    read: Callable[[Uses], Column]
    compared: bool = False

    @property
    def by_unit(self) -> bool:
        """Whether it is for a unit of work: then the points of a sweep have it too."""
        return "/" in self.metric.unit and not self.metric.unit.endswith("/s")


def quantities(unit: str) -> tuple[Quantity, ...]:
    """All that is read from the usage of a run, where a unit of work is called `unit`."""

    def amount(name: str, help: str, read: Callable[[Uses], Column]) -> Quantity:
        return Quantity(metric=size(name, "B", help), read=read)

    wire = size(
        f"wire_bytes_per_{unit}",
        f"B/{unit}",
        "sent by all nodes beyond the idle baseline, each byte counted once",
        means="wire bytes",
    )
    packets = count(f"wire_packets_per_{unit}", f"packets/{unit}", "sent by all nodes beyond the idle baseline")
    peak = rate("peak_bytes_per_second", "B/s", "of the busiest node", better="lower")
    again = count("retransmits", "", "of TCP, in all samples")
    cpu = seconds(
        f"cpu_seconds_per_{unit}",
        "of all processes of all nodes; steadier than wall time where others use the machine",
        unit=f"s/{unit}",
    )
    held = ratio("throttled_share", "1", "of the periods of a CPU quota", better="lower")
    even = ratio("evenness_of_work", "1", "Jain's index of work by node", better="higher")
    return (
        Quantity(metric=wire, read=lambda uses: per_unit(uses.beyond_idle("sent_bytes"), uses)),
        Quantity(metric=packets, read=lambda uses: per_unit(uses.beyond_idle("sent_packets"), uses)),
        Quantity(metric=peak, read=lambda uses: uses.tables.most("peak_bytes_per_second")),
        Quantity(metric=again, read=lambda uses: uses.total("retransmits")),
        Quantity(metric=cpu, read=lambda uses: per_unit(uses.total("cpu_seconds"), uses), compared=True),
        amount("peak_memory_bytes", "peaks of all nodes added up", lambda uses: uses.peak("peak_memory_bytes")),
        Quantity(metric=held, read=lambda uses: uses.throttled_share()),
        amount("disk_read_bytes", "in all samples", lambda uses: uses.total("disk_read_bytes")),
        amount("disk_written_bytes", "in all samples", lambda uses: uses.total("disk_written_bytes")),
        amount("spilled_bytes", "from the object store", lambda uses: uses.total("spilled_bytes")),
        Quantity(
            metric=even, read=lambda uses: [estimates.evenness(list(done.values())) for done in uses.work_by_node]
        ),
    )


def outcomes(column: Column) -> list[Outcome]:
    """Each value, or the reason that there is none."""
    return [NOT_COUNTED if value is None else value for value in column]


def node_rows(topology: str, uses: Uses) -> tuple[NodeRow, ...]:
    """A row for each node that any of these runs had."""
    return tuple(_node_row(topology, node, uses.on(node)) for node in uses.nodes)


def _node_row(topology: str, node: str, here: Uses) -> NodeRow:
    def summed(name: str) -> float | None:
        return _median(here.total(name))

    return NodeRow(
        topology=topology,
        node=node,
        n=sum(node in nodes for nodes in here.tables.nodes_of),
        share_of_work=_median([_share(done, node) for done in here.work_by_node]),
        cpu_seconds_per_unit=_median(per_unit(here.total("cpu_seconds"), here)),
        sent_bytes_per_unit=_median(per_unit(here.beyond_idle("sent_bytes"), here)),
        received_bytes_per_unit=_median(per_unit(here.beyond_idle("received_bytes"), here)),
        idle_bytes_per_second=_median(here.tables.idle_rate("sent_bytes", node)),
        retransmits=summed("retransmits"),
        peak_bytes_per_second=_median(here.peak("peak_bytes_per_second")),
        peak_memory_bytes=_median(here.peak("peak_memory_bytes")),
        throttled_share=_median(here.throttled_share()),
        disk_read_bytes=summed("disk_read_bytes"),
        disk_written_bytes=summed("disk_written_bytes"),
        spilled_bytes=summed("spilled_bytes"),
    )


def _share(done: Mapping[str, float], node: str) -> float | None:
    everything = math.fsum(done.values())
    return done[node] / everything if everything and node in done else None


def _median(column: Column) -> float | None:
    counted = [value for value in column if value is not None]
    return float(median(counted)) if counted else None
