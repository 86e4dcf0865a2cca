"""Turns the samples and the usage of runs into columns, so that a question is answered for all runs at once."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise, repeat
from operator import itemgetter
from statistics import fmean
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from bench.analysis.comparison import NOT_MEASURED, Outcome
from bench.columns import Columns, Layout
from bench.model import SAMPLES, USAGE, Interval, Metric, NodeUsage, Run, Sample

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.floating[Any]]
    Positions = NDArray[np.intp]
    Mask = NDArray[np.bool_]

Key = tuple[str, str, str | None, str]
"""Identifies a series of samples: metric, arm, node and point."""

Column = Sequence[float | None]
"""Values by run; None if it was not counted."""

Mean = Literal["rate", "mean", "share"]
"""How to average the samples of a run: work over time, arithmetic mean, or sum of values over time."""

Series = tuple[Sequence[Sequence[float]], Sequence[Sequence[float]]]
"""The values of each run's turns in order: first all of them, then one per turn, the mean if it has several."""

Row = TypeVar("Row")


def known(values: Numbers) -> list[float | None]:
    """Return the values as a list with None in place of NaN."""
    import numpy as np

    objects = values.astype(float).astype(object)
    objects[np.isnan(values)] = None
    return list(objects)


def numbered(*columns: Numbers | Positions) -> Positions:
    """Number the rows, so that rows that are equal in all columns get the same number."""
    import numpy as np

    order = np.lexsort(columns)
    differs = [column[order[1:]] != column[order[:-1]] for column in columns]
    numbers = np.zeros(len(order), dtype=np.intp)
    numbers[order[1:]] = np.cumsum(np.any(differs, axis=0))
    return numbers


class Groups:
    """Rows in `count` groups, given the number of each row's group; a group may be empty."""

    def __init__(self, group: Positions, count: int) -> None:
        import numpy as np

        self._count = count
        self._order = np.argsort(group, kind="stable")
        self.sizes = np.bincount(group, minlength=count)
        self._filled = np.flatnonzero(self.sizes)
        self._starts = (np.cumsum(self.sizes) - self.sizes)[self._filled]

    def sums(self, values: Numbers) -> Numbers:
        """Sum each group, in long double so that the order of rows hardly matters; 0 for an empty group."""
        import numpy as np

        return self._reduced(np.add, values.astype(np.longdouble), 0.0)

    def most(self, values: Numbers) -> Numbers:
        """Return the greatest value of each group, without NaN; NaN for an empty group."""
        import numpy as np

        return self._reduced(np.fmax, values, math.nan)

    def least(self, values: Numbers) -> Numbers:
        """Return the least value of each group, without NaN; NaN for an empty group."""
        import numpy as np

        return self._reduced(np.fmin, values, math.nan)

    def _reduced(self, operation: np.ufunc, values: Numbers, empty: float) -> Numbers:
        import numpy as np

        result = np.full(self._count, empty, dtype=values.dtype)
        if len(self._filled):
            result[self._filled] = operation.reduceat(values[self._order], self._starts)
        return result


class TableColumns(Generic[Row]):
    """Rows of several runs, one run after the other, as a column per field."""

    def __init__(self, by_run: Sequence[Columns[Row]], layout: Layout[Row], *names: str) -> None:
        """`names`: the fields that identify a row. Rows with equal names have the same key."""
        import numpy as np

        self._by_run = by_run
        self._layout = layout
        self._names = names
        self._counts: list[int] = [len(rows) for rows in by_run]
        self.run: Positions = np.repeat(np.arange(len(by_run)), self._counts)
        self._bounds = np.cumsum([0, *self._counts]).tolist()
        joined = np.frombuffer(b"".join([rows.numbers for rows in by_run]), dtype=float)
        self._numbers = joined.reshape(-1, len(layout.numbers))
        self._columns = dict[str, "Numbers"]()

    def read(self, name: str) -> Numbers:
        """Return a field of each row; NaN if it has none."""
        import numpy as np

        if name not in self._columns:
            self._columns[name] = np.ascontiguousarray(self._numbers[:, self._layout.position[name]])
        return self._columns[name]

    @cached_property
    def _texts(self) -> tuple[list[tuple[str | None, ...]], Positions]:
        """The texts of all runs' rows, and the position in them of each row's."""
        import numpy as np

        texts = [of_rows for rows in self._by_run for of_rows in rows.names]
        first = np.cumsum([0, *[len(rows.names) for rows in self._by_run]])[:-1]
        joined = np.frombuffer(b"".join([rows.codes for rows in self._by_run]), dtype=np.uint32)
        return texts, joined + np.repeat(first, self._counts)

    def texts(self, name: str) -> tuple[list[str | None], Positions]:
        """Return a text field of the texts that rows share, and the position in them of each row's."""
        texts, of_row = self._texts
        at = self._layout.texts.index(name)
        return [of_rows[at] for of_rows in texts], of_row

    def text(self, name: str, rows: Positions) -> list[str | None]:
        """Return a text field of these rows."""
        texts, of_row = self.texts(name)
        return [texts[which] for which in of_row[rows].tolist()]

    @cached_property
    def keys(self) -> tuple[list[Any], Positions]:
        """The distinct keys in order of appearance, and the position in them of each row's key."""
        import numpy as np

        texts, of_row = self._texts
        codes: defaultdict[Hashable, int] = defaultdict()
        codes.default_factory = codes.__len__
        names_of = itemgetter(*[self._layout.texts.index(name) for name in self._names])
        code = [codes[names_of(of_rows)] for of_rows in texts]
        return list(codes), np.array(code, dtype=np.intp)[of_row]

    def coded(self, name: str) -> tuple[list[Any], Positions]:
        """Return the distinct values of a field of the key in order of appearance, and each row's position in them."""
        import numpy as np

        keys, of_row = self.keys
        of_key = [key[self._names.index(name)] for key in keys]
        values = list(dict.fromkeys(of_key))
        return values, np.array([values.index(value) for value in of_key], dtype=np.intp)[of_row]

    def named(self, rows: Positions | slice = slice(None), **names: str | None) -> Mask:
        """Return which of these rows have these names."""
        import numpy as np

        wanted = [(self._names.index(name), value) for name, value in names.items()]
        keys, of_row = self.keys
        return np.array([all(key[at] == value for at, value in wanted) for key in keys], dtype=bool)[of_row[rows]]

    @cached_property
    def turn(self) -> Positions:
        import numpy as np

        return self.read("turn").astype(np.intp)

    @cached_property
    def warmup(self) -> Mask:
        """Whether each row is a warm-up, as recorded."""
        import numpy as np

        return self.read("warmup").astype(np.bool_)

    @property
    def begin(self) -> Numbers:
        return self.read("begin")

    @property
    def end(self) -> Numbers:
        return self.read("end")

    @cached_property
    def seconds(self) -> Numbers:
        return self.end - self.begin

    def of(self, at: Sequence[int]) -> Positions:
        """Return the rows of the runs at these positions."""
        import numpy as np

        return np.fromiter(chain.from_iterable(range(*self._bounds[run : run + 2]) for run in at), np.intp)


class Table:
    """The samples and usage of runs. A run is identified by its position, several runs by a `Selection`."""

    def __init__(
        self,
        runs: Sequence[Run],
        discarded: Mapping[str, int] = MappingProxyType({}),
        *,
        columns: tuple[TableColumns[Sample], TableColumns[NodeUsage]] | None = None,
    ) -> None:
        """`discarded`: how many first turns are warm-ups, by Spec, if more than declared."""
        self.runs = tuple(runs)
        self.discarded = discarded
        self.samples, self.usage = columns or (
            TableColumns(
                [Columns.of(SAMPLES, run.samples) for run in self.runs], SAMPLES, "metric", "arm", "node", "point"
            ),
            TableColumns([Columns.of(USAGE, run.usage) for run in self.runs], USAGE, "arm", "node", "point"),
        )
        self._position = {run.spec.id: at for at, run in enumerate(self.runs)}
        self._outcomes: dict[tuple[Key, Mean], Mapping[int, Outcome]] = {}
        self._series: dict[tuple[Key, bool], Series] = {}

    def discarding(self, turns: Mapping[str, int]) -> Table:
        """Return the same table with these numbers of first turns discarded, by Spec."""
        return Table(self.runs, {**self.discarded, **turns}, columns=(self.samples, self.usage)) if turns else self

    def of(self, runs: Iterable[Run]) -> Selection:
        """Select some of the runs, in this order."""
        return Selection(self, tuple([self._position[run.spec.id] for run in runs]))

    @cached_property
    def warm_samples(self) -> Mask:
        """Which samples are warm-ups. A figure over several turns is one unless it covers exactly the turns that count."""
        import numpy as np

        if not self.discarded:
            return self.samples.warmup
        turns, since = self._turns[self.samples.run], self.samples.read("since")
        first = (self.samples.turn > 0) & (self.samples.turn <= turns)
        marked = np.where(np.isnan(since), self.samples.warmup | first, since != turns + 1)
        return np.where(turns > 0, marked, self.samples.warmup)

    @cached_property
    def warm_usage(self) -> Mask:
        """Which rows of usage are warm-ups."""
        if not self.discarded:
            return self.usage.warmup
        return self.usage.warmup | (self.usage.turn > 0) & (self.usage.turn <= self._turns[self.usage.run])

    @cached_property
    def _turns(self) -> Positions:
        import numpy as np

        return np.array([self.discarded.get(run.spec.id, 0) for run in self.runs], dtype=np.intp)

    @cached_property
    def warmups(self) -> Sequence[int]:
        """How many first turns of each run are warm-ups."""
        import numpy as np

        return self._last_turn(self.warm_samples & np.isnan(self.samples.read("since")))

    @cached_property
    def last_warm_turn(self) -> Sequence[int]:
        """The last turn of each run that has a warm-up sample."""
        return self._last_turn(self.warm_samples)

    def _last_turn(self, rows: Mask) -> Sequence[int]:
        import numpy as np

        last = np.zeros(len(self.runs), dtype=np.intp)
        np.maximum.at(last, self.samples.run[rows], self.samples.turn[rows])
        return [int(turn) for turn in last]

    @cached_property
    def covered(self) -> Mapping[str, Interval]:
        """The time from the first to the last timed interval on the driver's clock, by Spec; runs without any are left out."""
        return self._spans(self.samples.turn >= 0, self.usage.turn >= 0)

    @cached_property
    def counted(self) -> Mapping[str, Interval]:
        """The same for the turns that count."""
        return self._spans((self.samples.turn > 0) & ~self.warm_samples, (self.usage.turn > 0) & ~self.warm_usage)

    @cached_property
    def counted_turns(self) -> Sequence[int]:
        """How many turns of each run have a sample that counts."""
        import numpy as np

        counts = (self.samples.turn > 0) & ~self.warm_samples
        most = int(self.samples.turn.max(initial=0)) + 1
        runs = np.unique(self.samples.run[counts] * most + self.samples.turn[counts]) // most
        return [int(count) for count in np.bincount(runs, minlength=len(self.runs))]

    def _spans(self, samples: Mask, usage: Mask) -> Mapping[str, Interval]:
        import numpy as np

        def both(name: str) -> Numbers:
            return np.concatenate([self.samples.read(name)[samples], self.usage.read(name)[usage]])

        groups = Groups(np.concatenate([self.samples.run[samples], self.usage.run[usage]]), len(self.runs))
        begins, ends = groups.least(both("begin")).tolist(), groups.most(both("end")).tolist()
        spans = zip(self.runs, groups.sizes.tolist(), begins, ends, strict=True)
        return {run.spec.id: Interval(begin, end) for run, size, begin, end in spans if size}

    @cached_property
    def _code(self) -> Mapping[Key, int]:
        return {key: code for code, key in enumerate(self.samples.keys[0])}

    @cached_property
    def is_curve(self) -> Mask:
        """Which samples are steps of a curve."""
        import numpy as np

        return ~np.isnan(self.samples.read("step"))

    @cached_property
    def is_gap(self) -> Mask:
        """Which samples have a reason in place of a value."""
        import numpy as np

        return np.isnan(self.samples.read("value"))

    @cached_property
    def _by_key(self) -> _ByKey:
        return _ByKey(self, *self.samples.keys)

    def keys_of(self, at: Sequence[int]) -> list[Key]:
        """Return the keys of these runs' samples in order of appearance, without curves."""
        names = self.samples.keys[0]
        return [names[code] for code in dict.fromkeys(chain.from_iterable(map(self._by_key.codes_of.__getitem__, at)))]

    def outcomes(self, key: Key, mean: Mean) -> Mapping[int, Outcome]:
        """Return the value of `key`, or the reason why there is none, of each run that has samples of it."""
        if (key, mean) not in self._outcomes:
            code = self._code.get(key)
            self._outcomes[key, mean] = {} if code is None else self._by_key.outcomes(code, mean)
        return self._outcomes[key, mean]

    def series(self, key: Key, *, warmups: bool) -> Series:
        """Return the values of `key` by turn."""
        if (key, warmups) not in self._series:
            code = self._code.get(key)
            none: Sequence[Sequence[float]] = [()] * len(self.runs)
            self._series[key, warmups] = (none, none) if code is None else self._by_key.series(code, warmups=warmups)
        return self._series[key, warmups]

    def first_values(self, key: Key) -> Mapping[int, float]:
        """Return the first value of `key` by run, including warm-ups; runs in which it is 0 or missing are left out."""
        return self._by_key.first_values(self._code[key])

    def timed(self, metric: str, arm: str, rows: Positions | slice = slice(None)) -> Mask:
        """Return which of these samples are of this metric and arm, at any point, but not of a single node nor of a curve."""
        return self.samples.named(rows, metric=metric, arm=arm, node=None) & ~self.is_curve[rows]


class _ByKey:
    """Samples in groups of one key and run, without curves, sorted by key and then by run."""

    def __init__(self, table: Table, keys: Sequence[Key], code: Positions) -> None:
        import numpy as np

        self._table = table
        order = np.argsort(
            code.astype(np.uint16) if len(keys) < 2**16 else code, kind="stable"
        )  # of 16 bits: a radix sort
        self._order = order[~table.is_curve[order]]
        code, run = code[self._order], table.samples.run[self._order]
        starts = np.flatnonzero(np.diff(code, prepend=-1) | np.diff(run, prepend=-1))
        self._bounds = np.append(starts, len(code))
        self._run, self._code = run[starts], code[starts]
        self._of_key = np.searchsorted(self._code, np.arange(len(keys) + 1))

    @cached_property
    def codes_of(self) -> Sequence[Sequence[int]]:
        """The keys of each run, in order of appearance."""
        import numpy as np

        in_turn = np.lexsort((self._order[self._bounds[:-1]], self._run))
        codes = self._code[in_turn].tolist()
        bounds = np.searchsorted(self._run[in_turn], np.arange(len(self._table.runs) + 1)).tolist()
        return [codes[a:b] for a, b in pairwise(bounds)]

    @cached_property
    def _value(self) -> Numbers:
        return self._table.samples.read("value")[self._order]

    @cached_property
    def _counts(self) -> Mask:
        return ~(self._table.is_gap | self._table.warm_samples)[self._order]

    @cached_property
    def _totals(self) -> Mapping[str, Numbers]:
        """Sums over the samples that count, by group."""
        import numpy as np

        seconds = self._table.samples.seconds[self._order]
        parts = {"n": self._counts, "seconds": seconds, "values": self._value, "work": self._value * seconds}
        counted = {name: np.where(self._counts, part, 0).astype(np.longdouble) for name, part in parts.items()}
        return {name: np.add.reduceat(part, self._bounds[:-1]).astype(float) for name, part in counted.items()}

    def outcomes(self, code: int, mean: Mean) -> Mapping[int, Outcome]:
        """Return the value of a key, or the reason why there is none, of each run that has samples of it."""
        import numpy as np

        above, below = {"rate": ("work", "seconds"), "mean": ("values", "n"), "share": ("values", "seconds")}[mean]
        first, last = self._of_key[code : code + 2].tolist()
        divisor = self._totals[below][first:last]
        means = np.full_like(divisor, math.nan)
        np.divide(self._totals[above][first:last], divisor, out=means, where=divisor > 0)
        values = zip(range(first, last), self._run[first:last].tolist(), means.tolist(), strict=True)
        return {run: self._without_time(group, mean) if math.isnan(value) else value for group, run, value in values}

    def _without_time(self, group: int, mean: Mean) -> Outcome:
        """Return the outcome of a group whose samples have no duration or do not count: a harmonic mean of rates, or the reason."""
        samples = slice(*self._bounds[group : group + 2].tolist())
        values = self._value[samples][self._counts[samples]].tolist()
        if values and mean == "rate":
            return len(values) / math.fsum(1 / rate for rate in values) if all(values) else 0.0
        rows = self._order[samples]
        rows = rows[~self._table.warm_samples[rows]]
        return next(filter(None, self._table.samples.text("reason", rows)), NOT_MEASURED)

    def first_values(self, code: int) -> Mapping[int, float]:
        """Return the first value of a key by run, if it is not missing nor 0."""
        groups = slice(*self._of_key[code : code + 2].tolist())
        values = zip(self._run[groups].tolist(), self._value[self._bounds[groups]].tolist(), strict=True)
        return {run: value for run, value in values if value and not math.isnan(value)}

    def series(self, code: int, *, warmups: bool) -> Series:
        """Return the values of a key by turn."""
        import numpy as np

        samples = slice(*self._bounds[self._of_key[code : code + 2]].tolist())
        run, turn = (column[self._order[samples]] for column in (self._table.samples.run, self._table.samples.turn))
        is_in = (turn > 0) & (~np.isnan(self._value[samples]) if warmups else self._counts[samples])
        in_turn = np.flatnonzero(is_in)[np.lexsort((turn[is_in], run[is_in]))]
        values, run, turn = self._value[samples][in_turn].tolist(), run[in_turn], turn[in_turn]
        bounds = np.searchsorted(run, np.arange(len(self._table.runs) + 1)).tolist()
        every = [values[a:b] for a, b in pairwise(bounds)]
        if not np.any((np.diff(run) == 0) & (np.diff(turn) == 0)):
            return every, every
        turns = turn.tolist()
        return every, [_one_each(turns[a:b], values[a:b]) for a, b in pairwise(bounds)]


@dataclass(frozen=True)
class Selection:
    """Some runs of a table, by position; results are in their order."""

    table: Table
    at: tuple[int, ...]

    @property
    def runs(self) -> list[Run]:
        return [self.table.runs[at] for at in self.at]

    @cached_property
    def blocks(self) -> list[int]:
        """The block of each run."""
        return [run.spec.block for run in self.runs]

    @cached_property
    def keys(self) -> Sequence[Key]:
        """The keys of all samples of these runs, without curves."""
        return self.table.keys_of(self.at)

    @cached_property
    def samples(self) -> Positions:
        """All samples of these runs."""
        return self.table.samples.of(self.at)

    @cached_property
    def usage(self) -> Positions:
        """All rows of usage of these runs."""
        return self.table.usage.of(self.at)

    def outcomes(self, metric: Metric, arm: str, *, node: str | None = None, point: str = "") -> list[Outcome]:
        """Return the value of `metric` in each invocation, or the reason why there is none.

        Warm-ups and samples without a value do not count. A rate is total work over total time: each sample's rate weighted by its interval,
        which is right also if samples did unequal work; with equal work it is the harmonic mean. Everything else is the arithmetic mean.
        """
        outcomes = self.table.outcomes((metric.name, arm, node, point), "rate" if metric.kind == "rate" else "mean")
        return list(map(outcomes.get, self.at, repeat(NOT_MEASURED)))

    def values(self, metric: Metric, arm: str) -> dict[int, float]:
        """Return the values of the runs that have one, by block."""
        outcomes = zip(self.blocks, self.outcomes(metric, arm), strict=True)
        return {block: value for block, value in outcomes if not isinstance(value, str)}

    def shares(self, metric: Metric | None, arm: str) -> list[Outcome]:
        """Return, for each run, the sum of the values of `metric` divided by that of their intervals, or the reason for none."""
        outcomes = self.table.outcomes((metric.name, arm, None, ""), "share") if metric else {}
        return [outcomes.get(at, NOT_MEASURED) for at in self.at]

    def said(self, metric: Metric) -> dict[str, float]:
        """Return the first value of `metric` that is not 0, of any arm and point, by Spec."""
        first_values: dict[int, float] = {}
        for key in self.keys:
            if key[0] == metric.name and key[2] is None:
                first_values = {**self.table.first_values(key), **first_values}
        return {self.table.runs[at].spec.id: first_values[at] for at in self.at if at in first_values}

    def having(self, metric: Metric, arm: str) -> Selection:
        """Select the runs that have a value of `metric`, or a reason why there is none."""
        outcomes = self.table.outcomes((metric.name, arm, None, ""), "mean")
        return Selection(self.table, tuple([at for at in self.at if at in outcomes]))

    def turns(self, metric: Metric, arm: str) -> list[Sequence[float]]:
        """Return all values of `metric` in the turns that count, in order, by run; without curves and points."""
        all_values, _ = self.table.series((metric.name, arm, None, ""), warmups=False)
        return [all_values[at] for at in self.at]

    def series(self, metric: Metric, arm: str, *, warmups: bool = False) -> list[Sequence[float]]:
        """Return the same with one value per turn, the mean if it has several; with `warmups`, also those turns."""
        _, by_turn = self.table.series((metric.name, arm, None, ""), warmups=warmups)
        return [by_turn[at] for at in self.at]


def _one_each(turns: Sequence[int], values: Sequence[float]) -> list[float]:
    """Return one value per turn: the mean if it has several."""
    values_by_turn: dict[int, list[float]] = {}
    for turn, value in zip(turns, values, strict=True):
        values_by_turn.setdefault(turn, []).append(value)
    return [fmean(values_of_turn) for values_of_turn in values_by_turn.values()]
