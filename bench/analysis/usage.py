"""What a run used of its nodes: bytes beyond the idle baseline, CPU seconds, memory, disk, shares of the work.

None stays None, "not counted": it never becomes 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median
from typing import TYPE_CHECKING, Literal

from bench.analysis.comparison import Outcome
from bench.analysis.stats import estimates
from bench.analysis.table import Column, Groups, Table, known
from bench.metrics import count, rate, ratio, seconds, size
from bench.model import Metric

if TYPE_CHECKING:
    from bench.analysis.table import Mask, Numbers, Positions

    Intervals = tuple[Positions, Numbers, Numbers]  # their runs, begins and ends

NOT_COUNTED = "not counted here"
LIKE_IDLE = "not distinguishable from idle traffic"
IDLE = "idle"  # the arm of what is used while nothing runs

Reading = Literal[
    "total",
    "beyond idle",
    "idle amount",
    "idle rate",
    "seconds",
    "peak",
    "greatest",
    "throttled share",
    "busiest link",
]
"""How the rows of one run are read, on all nodes or on one of them:

- total: the sum of a field; None where it was not counted in one row, or there are none;
- beyond idle: that, less the idle amount. Without a baseline nothing is taken off, and a caveat says so. It may come out
  below 0, where idle traffic varies more than the work sends: see `is_like_idle`;
- idle amount: what the nodes would have counted in that time with nothing to do;
- idle rate: what is counted a second when nothing runs;
- seconds: how long the intervals are together, on one node; needs no field;
- peak: the greatest that a row of a node has, added up over nodes; None where a node has none;
- greatest: the greatest that any row has; None where none was counted;
- throttled share: throttled periods by periods; 0 where there is a counter and no quota;
- busiest link: bytes a second in the busier direction of the busiest node.
"""


class ByNode:
    """Some rows of usage as tables of runs and nodes."""

    def __init__(self, table: Table, rows: Mask) -> None:
        import numpy as np

        self._usage, self._rows = table.usage, np.flatnonzero(rows)
        self.names, node = table.usage.coded("node")
        self._shape = len(table.runs), len(self.names)
        self._groups = Groups(table.usage.run[self._rows] * len(self.names) + node[self._rows], math.prod(self._shape))

    def read(self, name: str) -> Numbers:
        """A field of each row."""
        return self._usage.read(name)[self._rows]

    @property
    def seconds(self) -> Numbers:
        """How long each row's interval is."""
        return self._usage.seconds[self._rows]

    @cached_property
    def has(self) -> Mask:
        """Whether a run has rows of a node."""
        import numpy as np

        return np.not_equal(self._groups.sizes, 0).reshape(self._shape)

    def sum(self, values: Numbers) -> Numbers:
        """Of the values of each row; NaN where one of them is, 0 where there are no rows."""
        return self._groups.sums(values).reshape(self._shape)

    def most(self, values: Numbers) -> Numbers:
        """The greatest of the values of each row; NaN where there is none."""
        return self._groups.most(values).reshape(self._shape)

    def nodes_of(self, at: Sequence[int]) -> list[str]:
        """Those that any of these runs has rows of, in the order in which they come."""
        has = [self._in_turn[run] for run in at]
        return [self.names[node] for node in dict.fromkeys([node for nodes in has for node in nodes])]

    def runs_with(self, node: str, at: Sequence[int]) -> int:
        """How many of these runs have rows of a node."""
        return int(self.has[list(at), self.names.index(node)].sum())

    @cached_property
    def _in_turn(self) -> Sequence[Sequence[int]]:
        """By run, its nodes."""
        import numpy as np

        first = self._groups.least(self._rows.astype(float)).reshape(self._shape)
        order = np.argsort(first, axis=1, kind="stable").tolist()  # NaN comes last
        return [nodes[:count] for nodes, count in zip(order, self.has.sum(axis=1).tolist(), strict=True)]


class ArmUsage:
    """What one arm used in every run of a table, and what its nodes used when nothing ran."""

    def __init__(self, table: Table, arm: str, headline: Metric | None, point: str = "") -> None:
        """While `headline` was timed, at any point; without one, at `point` of a sweep. Warm-ups are left out.

        Start-up and first result are watched too, outside any turn; only rows that overlap a sample of the headline count.
        """
        import numpy as np

        rows = table.usage.named(arm=arm) & ~table.warm_usage
        self.cpus_per_node = [run.spec.topology.cpus_per_node for run in table.runs]
        self._by_rate = [0.0] * len(table.runs)
        if headline is None:
            rows &= table.usage.named(point=point)
        else:
            timed = np.flatnonzero(table.timed(headline.name, arm) & ~table.warm_samples)
            rows &= _is_timed(table, rows, timed)
            if headline.kind == "rate":
                done = np.nan_to_num(table.samples.read("value")[timed]) * table.samples.seconds[timed]
                self._by_rate = Groups(table.samples.run[timed], len(table.runs)).sums(done).astype(float).tolist()
        self._rows, self._idle = ByNode(table, rows), ByNode(table, table.usage.named(arm=IDLE))
        self.nodes_of, self.runs_with = self._rows.nodes_of, self._rows.runs_with
        self._columns: dict[tuple[Reading, str, str | None], Column] = {}

    def column(self, reading: Reading, name: str, node: str | None = None) -> Column:
        """A field of all runs, on all nodes or on one of them."""
        key = reading, name, node
        if key not in self._columns:
            self._columns[key] = known(self._read(reading, name, node))
        return self._columns[key]

    @cached_property
    def work(self) -> Column:
        """Units of work done, by the headline where the rows do not say; None where neither does."""
        done = [math.fsum(each.values()) for each in self.work_by_node]
        return [by_rows or by_rate or None for by_rows, by_rate in zip(done, self._by_rate, strict=True)]

    @cached_property
    def work_by_node(self) -> Sequence[Mapping[str, float]]:
        """Units of work done on each node, by run; empty where the experiment did not say."""
        import numpy as np

        read = self._rows.read("work")
        done = self._rows.sum(np.nan_to_num(read)).astype(float).tolist()
        told = (self._rows.sum(np.where(np.isnan(read), 0.0, 1.0)).sum(axis=1) > 0).tolist()
        return [
            {node: work for node, work, is_in in zip(self._rows.names, those, has, strict=True) if is_in}
            if is_told
            else {}
            for has, those, is_told in zip(self._rows.has.tolist(), done, told, strict=True)
        ]

    def _read(self, reading: Reading, name: str, node: str | None) -> Numbers:
        import numpy as np

        if reading == "greatest":
            return np.asarray(np.fmax.reduce(self._rows.most(self._rows.read(name)), axis=1, initial=np.nan))
        if reading == "throttled share":
            return self._throttled_share(node)
        if reading == "busiest link":
            return self._busiest_link()
        if reading == "peak":
            return self._over_nodes(self._rows.most(self._rows.read(name)), node)
        by_node = {
            "seconds": lambda _: self._rows.sum(self._rows.seconds),
            "idle rate": self._idle_rate,
            "total": self._sum,
            "idle amount": self._idle_amount,
            "beyond idle": self._beyond_idle,
        }
        return self._over_nodes(by_node[reading](name), node)

    def _sum(self, name: str) -> Numbers:
        return self._rows.sum(self._rows.read(name))

    def _idle_rate(self, name: str) -> Numbers:
        import numpy as np

        read = self._idle.read(name)
        counted = self._idle.sum(np.nan_to_num(read))
        seconds = self._idle.sum(np.where(np.isnan(read), 0.0, self._idle.seconds))
        return np.divide(counted, seconds, out=np.full_like(counted, np.nan), where=seconds > 0)

    def _idle_amount(self, name: str) -> Numbers:
        return self._idle_rate(name) * self._rows.sum(self._rows.seconds)

    def _beyond_idle(self, name: str) -> Numbers:
        import numpy as np

        return self._sum(name) - np.nan_to_num(self._idle_amount(name))

    def _throttled_share(self, node: str | None) -> Numbers:
        import numpy as np

        throttled, periods = (self._over_nodes(self._sum(name), node) for name in ("throttled_periods", "periods"))
        return np.divide(throttled, periods, out=np.where(np.isnan(throttled), np.nan, periods), where=periods > 0)

    def _busiest_link(self) -> Numbers:
        import numpy as np

        seconds, none = self._rows.sum(self._rows.seconds).astype(float), np.full(self._rows.has.shape, -np.inf)
        rates = [none]
        for name in ("sent_bytes", "received_bytes"):
            counted = self._beyond_idle(name).astype(float)
            rate = np.divide(counted, seconds, out=np.where(np.isnan(counted), np.nan, none), where=seconds > 0)
            rates.append(np.where(self._rows.has, rate, none))
        most = np.max(rates, axis=(0, 2), initial=-np.inf)
        return np.where(np.isinf(most), np.nan, most)

    def _over_nodes(self, values: Numbers, node: str | None) -> Numbers:
        import numpy as np

        has = self._rows.has
        if node is not None:
            return np.where(has, values, np.nan)[:, self._rows.names.index(node)]
        return np.where(has.any(axis=1), np.where(has, values, 0).sum(axis=1), np.nan)


def _is_timed(table: Table, rows: Mask, timed: Positions) -> Mask:
    """Which of `rows` overlap a sample of their run that is in `timed`; of a run without one, all do."""
    import numpy as np

    samples, usage, at = table.samples, table.usage, np.flatnonzero(rows)
    found: Mask = (np.bincount(samples.run[timed], minlength=len(table.runs)) == 0)[usage.run]
    found[at] |= overlap(
        (usage.run[at], usage.begin[at], usage.end[at]), (samples.run[timed], samples.begin[timed], samples.end[timed])
    )
    return found


def overlap(those: Intervals, others: Intervals) -> Mask:
    """Whether each interval overlaps one of the others of its run: it begins before its end, and ends after its begin."""
    import numpy as np

    (run, *those_times), (other_run, *other_times) = those, others
    times, rank = np.unique(np.concatenate([*those_times, *other_times]), return_inverse=True)
    # Whole numbers in place of times, which grow from run to run: all intervals are then on one clock.
    on_clock = np.concatenate([run, run, other_run, other_run]) * (len(times) + 1) + rank + 1
    begin, end, other_begin, other_end = np.split(on_clock, np.cumsum([len(run), len(run), len(other_run)]))
    order = np.argsort(other_begin, kind="stable")
    begun = np.searchsorted(other_begin[order], end)  # so many others begin before it ends
    last_end = np.maximum.accumulate(np.append(0, other_end[order]))
    return np.asarray(last_end[begun] > begin)


@dataclass(frozen=True, slots=True)
class Uses:
    """What one arm used in several runs: on all nodes, or on one of them."""

    usage: ArmUsage
    at: Sequence[int]
    node: str | None = None

    @property
    def nodes(self) -> Sequence[str]:
        """Those that any of the runs has."""
        return self.usage.nodes_of(self.at)

    @property
    def work(self) -> Column:
        """That of all nodes, on one node too, so that what is per unit adds up over nodes."""
        return list(map(self.usage.work.__getitem__, self.at))

    @property
    def work_by_node(self) -> Sequence[Mapping[str, float]]:
        """Units of work done on each node, by run; empty where the experiment did not say."""
        return [self.usage.work_by_node[run] for run in self.at]

    def read(self, reading: Reading, name: str = "") -> Column:
        """A field, by run."""
        column = self.usage.column(reading, name, self.node)
        return list(map(column.__getitem__, self.at))

    def per_unit(self, reading: Reading, name: str) -> Column:
        """The same by unit of work."""
        amounts = self.read(reading, name)
        return [
            amount / work if amount is not None and work else None
            for amount, work in zip(amounts, self.work, strict=True)
        ]

    def per_second(self, reading: Reading, name: str) -> Column:
        """The same by second of the intervals that count."""
        amounts = self.read(reading, name)
        return [
            amount / seconds if amount is not None and seconds else None
            for amount, seconds in zip(amounts, self.read("seconds"), strict=True)
        ]

    @property
    def longer(self) -> float | None:
        """How much longer the counters count than the intervals last that they are of, in the median run: 0.12 is 12 %."""
        pairs = zip(self.read("total", "watched_seconds"), self.read("seconds"), strict=True)
        return _median(
            [watched / seconds - 1 if watched is not None and seconds else None for watched, seconds in pairs]
        )

    @property
    def cpu_percent(self) -> Column:
        """Busy CPUs by those that there are, on one node or on all: 100 is all of them all the time."""
        return self._percent(self.per_second("total", "cpu_seconds"))

    @property
    def peak_cpu_percent(self) -> Column:
        """The same of one node in its busiest tenth of a second."""
        return self._percent(self.read("peak", "peak_cpus"))

    def _percent(self, busy: Column) -> Column:
        """`per_second` is by the time of all nodes together, so that CPUs are those of one."""
        return [
            None if cpus is None else 100 * cpus / self.usage.cpus_per_node[run]
            for run, cpus in zip(self.at, busy, strict=True)
        ]


def is_like_idle(beyond: Column, idle: Column) -> bool:
    """Whether amounts beyond the idle baseline cannot be told from idle traffic: in the median they are no larger than it.

    The baseline is one look of two seconds, and what idle nodes send varies by about as much as it is.
    """
    amount, baseline = _median(beyond), _median(idle)
    return amount is not None and bool(baseline) and amount <= (baseline or 0.0)


@dataclass(frozen=True, kw_only=True)
class NodeRow:
    """One node of one topology: medians over the `n` usable invocations; None: not counted."""

    topology: str
    node: str
    n: int
    share_of_work: float | None
    cpu_percent: float | None  # of the node's CPUs, while its work was timed
    peak_cpu_percent: float | None  # in the busiest tenth of a second
    sent_bytes_per_second: float | None  # beyond the idle baseline, like the next
    received_bytes_per_second: float | None
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
    like_idle: tuple[str, ...] = ()  # fields whose amount cannot be told from idle traffic


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """One thing that a whole topology used: as a metric, and how to read it from one run."""

    metric: Metric
    read: Callable[[Uses], Column]
    compared: bool = False
    idle: Callable[[Uses], Column] | None = None  # what idle nodes would have used, where that is taken off

    @property
    def by_unit(self) -> bool:
        """Whether it is for a unit of work: then the points of a sweep have it too."""
        return "/" in self.metric.unit and not self.metric.unit.endswith("/s")


def quantities(unit: str) -> tuple[Quantity, ...]:
    """All that is read from the usage of a run, where a unit of work is called `unit`."""

    def amount(name: str, help: str, read: Callable[[Uses], Column]) -> Quantity:
        return Quantity(metric=size(name, "B", help), read=read)

    def beyond_idle(metric: Metric, name: str) -> Quantity:
        return Quantity(
            metric=metric,
            read=lambda uses: uses.per_unit("beyond idle", name),
            idle=lambda uses: uses.per_unit("idle amount", name),
        )

    wire = size(
        f"wire_bytes_per_{unit}",
        f"B/{unit}",
        "sent by all nodes beyond the idle baseline, each byte counted once",
        means="wire bytes",
    )
    packets = count(f"wire_packets_per_{unit}", f"packets/{unit}", "sent by all nodes beyond the idle baseline")
    peak = rate("peak_bytes_per_second", "B/s", "of the busiest node", better="lower")
    again = count("retransmits", "segments", "of TCP, in all samples")
    used = size("cpu_percent", "%", "of all CPUs of all nodes, in the mean over the intervals", better=None)
    cpu = seconds(
        f"cpu_seconds_per_{unit}",
        "of all processes of all nodes; steadier than wall time where others use the machine",
        unit=f"s/{unit}",
    )
    held = ratio("throttled_share", "1", "of the periods of a CPU quota", better="lower")
    even = ratio("evenness_of_work", "1", "Jain's index of work by node", better="higher")
    return (
        beyond_idle(wire, "sent_bytes"),
        beyond_idle(packets, "sent_packets"),
        Quantity(metric=peak, read=lambda uses: uses.read("greatest", "peak_bytes_per_second")),
        Quantity(metric=again, read=lambda uses: uses.read("total", "retransmits")),
        Quantity(metric=used, read=lambda uses: uses.cpu_percent),
        Quantity(metric=cpu, read=lambda uses: uses.per_unit("total", "cpu_seconds"), compared=True),
        amount("peak_memory_bytes", "peaks of all nodes added up", lambda uses: uses.read("peak", "peak_memory_bytes")),
        Quantity(metric=held, read=lambda uses: uses.read("throttled share")),
        amount("disk_read_bytes", "in all samples", lambda uses: uses.read("total", "disk_read_bytes")),
        amount("disk_written_bytes", "in all samples", lambda uses: uses.read("total", "disk_written_bytes")),
        amount("spilled_bytes", "from the object store", lambda uses: uses.read("total", "spilled_bytes")),
        Quantity(
            metric=even, read=lambda uses: [estimates.evenness(list(done.values())) for done in uses.work_by_node]
        ),
    )


def outcomes(column: Column) -> list[Outcome]:
    """Each value, or the reason that there is none."""
    return [NOT_COUNTED if value is None else value for value in column]


def node_rows(topology: str, uses: Uses) -> tuple[NodeRow, ...]:
    """A row for each node that any of these runs had."""
    return tuple(_node_row(topology, Uses(uses.usage, uses.at, node)) for node in uses.nodes)


def _node_row(topology: str, here: Uses) -> NodeRow:
    node = here.node or ""

    def summed(name: str) -> float | None:
        return _median(here.read("total", name))

    like_idle = [
        f"{way}_{end}"
        for way in ("sent_bytes", "received_bytes")
        for end, by in (("per_second", here.per_second), ("per_unit", here.per_unit))
        if is_like_idle(by("beyond idle", way), by("idle amount", way))
    ]
    return NodeRow(
        topology=topology,
        node=node,
        n=here.usage.runs_with(node, here.at),
        share_of_work=_median([_share(done, node) for done in here.work_by_node]),
        cpu_percent=_median(here.cpu_percent),
        peak_cpu_percent=_median(here.peak_cpu_percent),
        sent_bytes_per_second=_median(here.per_second("beyond idle", "sent_bytes")),
        received_bytes_per_second=_median(here.per_second("beyond idle", "received_bytes")),
        cpu_seconds_per_unit=_median(here.per_unit("total", "cpu_seconds")),
        sent_bytes_per_unit=_median(here.per_unit("beyond idle", "sent_bytes")),
        received_bytes_per_unit=_median(here.per_unit("beyond idle", "received_bytes")),
        idle_bytes_per_second=_median(here.read("idle rate", "sent_bytes")),
        retransmits=summed("retransmits"),
        peak_bytes_per_second=_median(here.read("peak", "peak_bytes_per_second")),
        peak_memory_bytes=_median(here.read("peak", "peak_memory_bytes")),
        throttled_share=_median(here.read("throttled share")),
        disk_read_bytes=summed("disk_read_bytes"),
        disk_written_bytes=summed("disk_written_bytes"),
        spilled_bytes=summed("spilled_bytes"),
        like_idle=tuple(like_idle),
    )


def _share(done: Mapping[str, float], node: str) -> float | None:
    everything = math.fsum(done.values())
    return done[node] / everything if everything and node in done else None


def _median(column: Column) -> float | None:
    counted = [value for value in column if value is not None]
    return float(median(counted)) if counted else None
