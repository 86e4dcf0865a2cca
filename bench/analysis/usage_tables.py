"""The usage of one arm in many runs, read column by column: what is asked of every run is found for all of them at once.

A run has few rows, so that to read one run after the other costs more in steps of Python than in sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING

from bench.analysis.stats.grouped import Groups, known
from bench.model import Interval, Metric, NodeUsage, Run, Sample

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from bench.analysis.stats.grouped import Numbers

IDLE = "idle"

Column = Sequence[float | None]
"""By run. None: it was not counted."""


class Rows:
    """Rows of usage of several runs, and the tables that are made of them: runs x nodes.

    A sum has the bits of a long double and is rounded once, in `known`, so that the order of rows does not matter.
    """

    def __init__(self, rows: Sequence[Sequence[NodeUsage]], nodes: Sequence[str]) -> None:
        """`rows`: by run. Those of other nodes are left out."""
        import numpy as np

        column = {node: at for at, node in enumerate(nodes)}
        kept = [[row for row in those if row.node in column] for those in rows]
        self.rows = [row for those in kept for row in those]
        self._shape = len(rows), len(nodes)
        run = np.repeat(np.arange(len(rows)), [len(those) for those in kept])
        node = np.array([column[row.node] for row in self.rows], dtype=np.intp)
        self._groups = Groups(run * len(nodes) + node, len(rows) * len(nodes))

    def read(self, name: str) -> Numbers:
        """A field of each row; NaN: it was not counted."""
        import numpy as np

        return np.array(list(map(attrgetter(name), self.rows)), dtype=float)

    @cached_property
    def seconds(self) -> Numbers:
        """How long each row's interval is."""
        import numpy as np

        return np.array([row.interval.end - row.interval.begin for row in self.rows], dtype=float)

    @property
    def count(self) -> NDArray[np.intp]:
        """How many there are."""
        return self._groups.sizes.reshape(self._shape)

    def sum(self, values: Numbers) -> Numbers:
        """Of the values of each row; NaN where one of them is, 0 where there are no rows."""
        return self._groups.sums(values).reshape(self._shape)

    def most(self, values: Numbers) -> Numbers:
        """The greatest of the values of each row; NaN where there is none."""
        return self._groups.most(values).reshape(self._shape)


class Tables:
    """The rows of one arm in several runs, while its headline was timed, and those of its nodes when nothing ran."""

    def __init__(
        self,
        rows: Sequence[Sequence[NodeUsage]],
        idle: Sequence[Sequence[NodeUsage]],
        told: Callable[[int], float | None],
    ) -> None:
        """`rows` and `idle`: by run. `told`: the work that the n-th run did, asked where none of its rows says so."""
        self.nodes = tuple(dict.fromkeys([row.node for those in rows for row in those]))
        self._rows, self._idle = Rows(rows, self.nodes), Rows(idle, self.nodes)
        self._told = told
        self._columns: dict[tuple[str, str, str | None], Column] = {}

    def total(self, name: str, node: str | None = None) -> Column:
        """The sum over the rows of all nodes, or of one; None where one was not counted, or there are none."""
        return self._once("total", name, node, lambda: self._over_nodes(self._sum(name), node))

    def beyond_idle(self, name: str, node: str | None = None) -> Column:
        """That sum, less what the nodes would have counted in that time with nothing to do."""
        return self._once("beyond idle", name, node, lambda: self._over_nodes(self._beyond_idle(name), node))

    def idle_rate(self, name: str, node: str) -> Column:
        """What a node counts a second when nothing runs."""
        return self._once("idle", name, node, lambda: self._over_nodes(self._idle_rate(name), node))

    def peak(self, name: str, node: str | None = None) -> Column:
        """The greatest that a row of a node has, and the sum of those of all nodes; None where a node has none."""
        return self._once("peak", name, node, lambda: self._over_nodes(self._most(name), node))

    def throttled_share(self, node: str | None = None) -> Column:
        """Throttled periods by periods; 0 where there is a counter and no quota."""
        return self._once("throttled", "", node, lambda: self._throttled_share(node))

    def busiest_link(self) -> Column:
        """Bytes a second in the busier direction of the busiest node; None where one was not counted."""
        return self._once("link", "", None, self._busiest_link)

    def most(self, name: str) -> Column:
        """The greatest that any row has; None where none was counted."""
        import numpy as np

        return self._once("most", name, None, lambda: np.fmax.reduce(self._most(name), axis=1, initial=np.nan))

    @cached_property
    def nodes_of(self) -> Sequence[Sequence[str]]:
        """Those that each run has rows of."""
        return [
            tuple([node for node, is_in in zip(self.nodes, those, strict=True) if is_in])
            for those in self._has.tolist()
        ]

    @cached_property
    def work(self) -> Column:
        """Units of work done; None where nobody says."""
        done = [math.fsum(each.values()) for each in self.work_by_node]
        return [by_rows or self._told(run) or None for run, by_rows in enumerate(done)]

    @cached_property
    def work_by_node(self) -> Sequence[Mapping[str, float]]:
        """Units of work done on each node, by run; empty where the experiment did not say."""
        import numpy as np

        read = self._rows.read("work")
        done = self._rows.sum(np.nan_to_num(read)).astype(float).tolist()
        told = (self._rows.sum(np.where(np.isnan(read), 0.0, 1.0)).sum(axis=1) > 0).tolist()
        return [
            {node: work for node, work in zip(self.nodes, those, strict=True) if node in nodes} if is_told else {}
            for nodes, those, is_told in zip(self.nodes_of, done, told, strict=True)
        ]

    @cached_property
    def _has(self) -> NDArray[np.bool_]:
        """Whether a run has rows of a node."""
        import numpy as np

        return np.not_equal(self._rows.count, 0)

    def _sum(self, name: str) -> Numbers:
        return self._rows.sum(self._rows.read(name))

    def _most(self, name: str) -> Numbers:
        return self._rows.most(self._rows.read(name))

    def _idle_rate(self, name: str) -> Numbers:
        import numpy as np

        read = self._idle.read(name)
        counted = self._idle.sum(np.nan_to_num(read))
        seconds = self._idle.sum(np.where(np.isnan(read), 0.0, self._idle.seconds))
        return np.divide(counted, seconds, out=np.full_like(counted, np.nan), where=seconds > 0)

    def _beyond_idle(self, name: str) -> Numbers:
        import numpy as np

        return self._sum(name) - np.nan_to_num(self._idle_rate(name)) * self._rows.sum(self._rows.seconds)

    def _throttled_share(self, node: str | None) -> Numbers:
        import numpy as np

        throttled, periods = (self._over_nodes(self._sum(name), node) for name in ("throttled_periods", "periods"))
        return np.divide(throttled, periods, out=np.where(np.isnan(throttled), np.nan, periods), where=periods > 0)

    def _busiest_link(self) -> Numbers:
        import numpy as np

        seconds, none = self._rows.sum(self._rows.seconds).astype(float), np.full(self._has.shape, -np.inf)
        rates = [none]
        for name in ("sent_bytes", "received_bytes"):
            counted = self._beyond_idle(name).astype(float)
            rate = np.divide(counted, seconds, out=np.where(np.isnan(counted), np.nan, none), where=seconds > 0)
            rates.append(np.where(self._has, rate, none))
        most = np.max(rates, axis=(0, 2), initial=-np.inf)
        return np.where(np.isinf(most), np.nan, most)

    def _over_nodes(self, table: Numbers, node: str | None) -> Numbers:
        import numpy as np

        if node is not None:
            return np.where(self._has, table, np.nan)[:, self.nodes.index(node)]
        return np.where(self._has.any(axis=1), np.where(self._has, table, 0).sum(axis=1), np.nan)

    def _once(self, what: str, name: str, node: str | None, make: Callable[[], Numbers]) -> Column:
        key = (what, name, node)
        if key not in self._columns:
            self._columns[key] = known(make())
        return self._columns[key]


@dataclass(frozen=True, slots=True)
class Uses:
    """What one arm used in several runs, while its headline was timed: on all nodes, or on one of them."""

    tables: Tables
    node: str | None = None

    @property
    def nodes(self) -> Sequence[str]:
        """Those that any of the runs has."""
        return self.tables.nodes

    @property
    def work(self) -> Column:
        """That of all nodes, on one node too, so that what is per unit adds up over nodes."""
        return self.tables.work

    @property
    def work_by_node(self) -> Sequence[Mapping[str, float]]:
        """Units of work done on each node, by run; empty where the experiment did not say."""
        return self.tables.work_by_node

    def on(self, node: str) -> Uses:
        """The part of one node."""
        return Uses(self.tables, node)

    def total(self, name: str) -> Column:
        """The sum over rows; None where one was not counted."""
        return self.tables.total(name, self.node)

    def beyond_idle(self, name: str) -> Column:
        """The sum over nodes, less what they would have counted in that time with nothing to do.

        Without a baseline nothing is taken off, and a caveat says so. It may come out below 0, where idle chatter varies
        more than the work sends; that is shown as it is.
        """
        return self.tables.beyond_idle(name, self.node)

    def peak(self, name: str) -> Column:
        """The peaks of all nodes added up; None where a node has none."""
        return self.tables.peak(name, self.node)

    def throttled_share(self) -> Column:
        """Throttled periods by periods; 0 where there is a counter and no quota."""
        return self.tables.throttled_share(self.node)


Use = tuple[Uses, int]
"""What one run used: what several did, and which of them it is."""


def use_of(run: Run, arm: str, headline: Metric) -> Use:
    """What one run alone used, as `uses_of` has it."""
    return uses_of([run], arm, headline), 0


def uses_at(runs: Sequence[Run], arm: str, point: str) -> Uses:
    """The usage rows of `arm` at one point of a sweep, warm-ups left out."""
    rows = [[row for row in run.usage_of.get(arm, ()) if row.point == point and not row.warmup] for run in runs]
    return Uses(Tables(rows, _idle(runs), lambda _: None))


def uses_of(runs: Sequence[Run], arm: str, headline: Metric) -> Uses:
    """The usage rows of `arm` that belong to timed samples that count.

    Start-up and first result are watched too, outside any turn; only rows that overlap a sample of the headline count.
    """
    timed = [_timed(run, arm, headline) for run in runs]
    watched = [[row for row in run.usage_of.get(arm, ()) if not row.warmup] for run in runs]
    is_in = overlap(
        [[row.interval for row in rows] for rows in watched], [[s.interval for s in those] for those in timed]
    )
    rows = [
        [row for row, counts in zip(rows, found, strict=True) if counts] if those else rows
        for rows, found, those in zip(watched, is_in, timed, strict=True)
    ]
    return Uses(Tables(rows, _idle(runs), lambda run: _by_rate(timed[run]) if headline.kind == "rate" else None))


def _idle(runs: Sequence[Run]) -> Sequence[Sequence[NodeUsage]]:
    return [run.usage_of.get(IDLE, ()) for run in runs]


def _timed(run: Run, arm: str, headline: Metric) -> Sequence[Sample]:
    """What counts of the headline, at any point."""
    return [
        sample
        for (name, whose, node, _), samples in run.values.items()
        if name == headline.name and whose == arm and node is None
        for sample in samples
        if not sample.warmup
    ]


def _by_rate(timed: Sequence[Sample]) -> float:
    """Units of work: the rate, times the time."""
    return math.fsum([sample.value * sample.interval.seconds for sample in timed if sample.value is not None])


def overlap(those: Sequence[Sequence[Interval]], others: Sequence[Sequence[Interval]]) -> list[list[bool]]:
    """By run, whether each interval overlaps one of the others: it begins before its end, and ends after its begin."""
    import numpy as np

    most = max(map(len, others), default=0)
    run = np.repeat(np.arange(len(those)), [len(each) for each in those])
    begin = np.array([each.begin for intervals in those for each in intervals])
    end = np.array([each.end for intervals in those for each in intervals])
    nothing = Interval(math.inf, -math.inf)
    padded = [[*each, *[nothing] * (most - len(each))] for each in others]
    found = np.zeros(len(run), dtype=bool)
    for nth in range(most):
        begins = np.array([each[nth].begin for each in padded])
        ends = np.array([each[nth].end for each in padded])
        found |= (begin < ends[run]) & (begins[run] < end)
    in_turn = iter(found.tolist())
    return [list(islice(in_turn, len(each))) for each in those]
