"""What a run used of its nodes: bytes beyond the idle baseline, CPU seconds, memory, disk, shares of the work.

None stays None, "not counted": it never becomes 0.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from operator import attrgetter
from statistics import median

from bench.analysis.statistics import stats
from bench.model import Interval, Metric, NodeUsage, Run

IDLE = "idle"
NOT_COUNTED = "not counted here"

_READ = {each.name: attrgetter(each.name) for each in fields(NodeUsage) if each.default is None}
"""By name of field: how to read what a row counted. None: it could not be counted."""


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


@dataclass(frozen=True)
class Use:
    """The usage of one arm in one run, while its headline was timed."""

    rows: tuple[NodeUsage, ...]
    idle: tuple[NodeUsage, ...]
    work: float | None
    # What `idle_rate` has found, by node and name of field.
    rates: dict[tuple[str, str], float | None] = field(default_factory=dict, compare=False)

    def column(self, name: str) -> list[float | None]:
        """What each row counted, by the name of its field."""
        return list(map(_READ[name], self.rows))

    def total(self, name: str) -> float | None:
        """The sum over rows; None where one was not counted."""
        return total(list(map(_READ[name], self.rows)))

    @cached_property
    def seconds(self) -> list[float]:
        """How long each row's interval is."""
        return [row.interval.end - row.interval.begin for row in self.rows]

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([row.node for row in self.rows]))

    def on(self, node: str) -> Use:
        """The part of one node; its work is still that of all, so that what is per unit adds up over nodes."""
        return self._parts[node]

    @cached_property
    def _parts(self) -> Mapping[str, Use]:
        """By node, made once."""
        if len(self.nodes) == 1 and all(row.node == self.nodes[0] for row in self.idle):
            return {self.nodes[0]: self}
        return {
            node: Use(
                tuple([row for row in self.rows if row.node == node]),
                tuple([row for row in self.idle if row.node == node]),
                self.work,
                self.rates,
            )
            for node in self.nodes
        }


def use_at(run: Run, arm: str, point: str) -> Use:
    """The usage rows of `arm` at one point of a sweep, warm-ups left out."""
    rows = tuple(row for row in run.usage_of.get(arm, ()) if row.point == point and not row.warmup)
    work = total([row.work for row in rows], partly=True)
    return Use(rows, tuple(run.usage_of.get(IDLE, ())), work or None)


def use_of(run: Run, arm: str, headline: Metric) -> Use:
    """The usage rows of `arm` that belong to timed samples that count.

    Start-up and first result are watched too, outside any turn; only rows that overlap a sample of the headline count.
    """
    timed = [
        sample
        for (name, whose, node, _), samples in run.values.items()
        if name == headline.name and whose == arm and node is None
        for sample in samples
        if not sample.warmup
    ]
    rows = [row for row in run.usage_of.get(arm, ()) if not row.warmup]
    if timed:
        is_timed = overlap([sample.interval for sample in timed])
        rows = [row for row in rows if is_timed(row.interval)]
    work = total([row.work for row in rows], partly=True)
    if not work and headline.kind == "rate" and timed:
        work = math.fsum(s.value * s.interval.seconds for s in timed if s.value is not None)
    return Use(tuple(rows), tuple(run.usage_of.get(IDLE, ())), work or None)


def overlap(others: Sequence[Interval]) -> Callable[[Interval], bool]:
    """Whether an interval overlaps one of these: one that begins before its end, and ends after its begin."""
    in_order = sorted((other.begin, other.end) for other in others)
    begins = [begin for begin, _ in in_order]
    last_ends = list(itertools.accumulate((end for _, end in in_order), max, initial=-math.inf))
    return lambda one: last_ends[bisect_left(begins, one.end)] > one.begin


def total(readings: Sequence[float | None], *, partly: bool = False) -> float | None:
    """The sum; None when there are none, or when one was not counted (`partly`: when none was)."""
    if None not in readings:
        return math.fsum(readings) if readings else None  # type: ignore[arg-type]  # no None is left
    counted = [reading for reading in readings if reading is not None] if partly else ()
    return math.fsum(counted) if counted else None


def idle_rate(use: Use, node: str, name: str) -> float | None:
    """What `node` counts a second when nothing runs."""
    if (node, name) not in use.rates:
        read = _READ[name]
        rows = [(counted, row.interval) for row in use.idle if row.node == node and (counted := read(row)) is not None]
        seconds = math.fsum([each.end - each.begin for _, each in rows])
        use.rates[node, name] = math.fsum([counted for counted, _ in rows]) / seconds if seconds > 0 else None
    return use.rates[node, name]


def beyond_idle(use: Use, name: str) -> float | None:
    """The sum over nodes, less what they would have counted in that time with nothing to do.

    Without a baseline nothing is taken off, and a doubt says so. It may come out below 0, where idle chatter varies
    more than the work sends; that is shown as it is.
    """
    counted = use.total(name)
    if counted is None:
        return None
    rates = {node: idle_rate(use, node, name) or 0.0 for node in use.nodes}
    return counted - math.fsum([rates[row.node] * seconds for row, seconds in zip(use.rows, use.seconds, strict=True)])


def per_unit(amount: float | None, use: Use) -> float | None:
    """`amount` by unit of work."""
    return amount / use.work if amount is not None and use.work else None


def throttled_share(use: Use) -> float | None:
    """Throttled periods by periods; 0 where there is a counter and no quota."""
    periods = use.total("periods")
    throttled = use.total("throttled_periods")
    if periods is None or throttled is None:
        return None
    return throttled / periods if periods else 0.0


def work_by_node(use: Use) -> dict[str, float]:
    """Units of work done on each node; empty where the experiment did not say."""
    done = {node: total(use.on(node).column("work"), partly=True) for node in use.nodes}
    if all(work is None for work in done.values()):
        return {}
    return {node: work or 0.0 for node, work in done.items()}


def _most(readings: Sequence[float | None]) -> float | None:
    return max([reading for reading in readings if reading is not None], default=None)


def _peak_memory(use: Use) -> float | None:
    peaks = [_most(use.on(node).column("peak_memory_bytes")) for node in use.nodes]
    counted = [peak for peak in peaks if peak is not None]
    return math.fsum(counted) if counted and len(counted) == len(peaks) else None


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """One thing that a whole topology used: as a metric, and how to read it from one run."""

    metric: Metric
    read: Callable[[Use], float | None]
    compared: bool = False

    @property
    def by_unit(self) -> bool:
        """Whether it is for a unit of work: then the points of a sweep have it too."""
        return "/" in self.metric.unit and not self.metric.unit.endswith("/s")


def quantities(unit: str) -> tuple[Quantity, ...]:
    """All that is read from the usage of a run, where a unit of work is called `unit`."""

    def size(name: str, help: str, read: Callable[[Use], float | None], unit: str = "B") -> Quantity:
        return Quantity(metric=Metric(name=name, unit=unit, better="lower", kind="size", help=help), read=read)

    def count(name: str, unit: str, help: str, read: Callable[[Use], float | None]) -> Quantity:
        return Quantity(metric=Metric(name=name, unit=unit, better="lower", kind="count", help=help), read=read)

    cpu = Metric(
        name=f"cpu_seconds_per_{unit}",
        unit=f"s/{unit}",
        better="lower",
        kind="time",
        help="of all processes of all nodes; steadier than wall time where others use the machine",
    )
    peak = Metric(name="peak_bytes_per_second", unit="B/s", better="lower", kind="rate", help="of the busiest node")
    even = Metric(name="evenness_of_work", unit="1", better="higher", kind="ratio", help="Jain's index of work by node")
    held = Metric(name="throttled_share", unit="1", better="lower", kind="ratio", help="of the periods of a CPU quota")
    return (
        size(
            f"wire_bytes_per_{unit}",
            "sent by all nodes beyond the idle baseline, each byte counted once",
            lambda use: per_unit(beyond_idle(use, "sent_bytes"), use),
            f"B/{unit}",
        ),
        count(
            f"wire_packets_per_{unit}",
            f"packets/{unit}",
            "sent by all nodes beyond the idle baseline",
            lambda use: per_unit(beyond_idle(use, "sent_packets"), use),
        ),
        Quantity(metric=peak, read=lambda use: _most(use.column("peak_bytes_per_second"))),
        count("retransmits", "", "of TCP, in all samples", lambda use: use.total("retransmits")),
        Quantity(metric=cpu, read=lambda use: per_unit(use.total("cpu_seconds"), use), compared=True),
        size("peak_memory_bytes", "peaks of all nodes added up", _peak_memory),
        Quantity(metric=held, read=throttled_share),
        size("disk_read_bytes", "in all samples", lambda use: use.total("disk_read_bytes")),
        size("disk_written_bytes", "in all samples", lambda use: use.total("disk_written_bytes")),
        size("spilled_bytes", "from the object store", lambda use: use.total("spilled_bytes")),
        Quantity(metric=even, read=lambda use: stats.evenness(list(work_by_node(use).values()))),
    )


def node_rows(topology: str, uses: Sequence[Use]) -> tuple[NodeRow, ...]:
    """A row for each node that any of these runs had."""
    nodes = tuple(dict.fromkeys(node for use in uses for node in use.nodes))
    return tuple(_node_row(topology, node, [use for use in uses if node in use.nodes]) for node in nodes)


def _node_row(topology: str, node: str, uses: Sequence[Use]) -> NodeRow:
    here = [use.on(node) for use in uses]

    def middle(read: Callable[[Use], float | None]) -> float | None:
        return _median(map(read, here))

    def summed(name: str) -> float | None:
        return middle(lambda use: use.total(name))

    return NodeRow(
        topology=topology,
        node=node,
        n=len(uses),
        share_of_work=_median(_share(use, node) for use in uses),
        cpu_seconds_per_unit=middle(lambda use: per_unit(use.total("cpu_seconds"), use)),
        sent_bytes_per_unit=middle(lambda use: per_unit(beyond_idle(use, "sent_bytes"), use)),
        received_bytes_per_unit=middle(lambda use: per_unit(beyond_idle(use, "received_bytes"), use)),
        idle_bytes_per_second=middle(lambda use: idle_rate(use, node, "sent_bytes")),
        retransmits=summed("retransmits"),
        peak_bytes_per_second=middle(lambda use: _most(use.column("peak_bytes_per_second"))),
        peak_memory_bytes=middle(lambda use: _most(use.column("peak_memory_bytes"))),
        throttled_share=middle(throttled_share),
        disk_read_bytes=summed("disk_read_bytes"),
        disk_written_bytes=summed("disk_written_bytes"),
        spilled_bytes=summed("spilled_bytes"),
    )


def _share(use: Use, node: str) -> float | None:
    done = work_by_node(use)
    everything = math.fsum(done.values())
    return done[node] / everything if everything else None


def _median(readings: Iterable[float | None]) -> float | None:
    counted = [reading for reading in readings if reading is not None]
    return float(median(counted)) if counted else None
