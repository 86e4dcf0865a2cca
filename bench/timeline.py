"""Holds what one node used over the time of a run: CPU, memory, network and disk, point by point, in columns."""

from __future__ import annotations

import gzip
import math
import zlib
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import msgspec

MOST_POINTS = 6_000  # of a node and a run: ten minutes at ten readings a second
MOST_BYTES = 64 * 2**20  # of a file, unpacked: what a few hundred nodes have
QUANTITIES = (
    "cpus",  # that are busy
    "memory_bytes",
    "received_bytes_per_second",
    "sent_bytes_per_second",
    "disk_read_bytes_per_second",
    "disk_written_bytes_per_second",
)
UNKNOWN = math.nan


def _columns() -> dict[str, array[float]]:
    return {name: array("d") for name in QUANTITIES}


@dataclass(kw_only=True)
class Timeline:
    """What one node used, reading by reading. A reading that was not taken leaves a gap; NaN: it could not be counted.

    When it is full, two neighbours become one point each time: half the resolution, the same mean and the same peak.
    """

    node: str
    most_points: int = MOST_POINTS
    readings_per_point: int = 1
    ends: array[float] = field(default_factory=lambda: array("d"))  # seconds on a monotonic clock
    seconds: array[float] = field(default_factory=lambda: array("d"))  # that each point covers
    mean: dict[str, array[float]] = field(default_factory=_columns)  # by quantity
    peak: dict[str, array[float]] = field(default_factory=_columns)  # the greatest reading of each point
    _begun: list[tuple[float, float, Mapping[str, float]]] = field(default_factory=list)  # readings of the next point

    def __len__(self) -> int:
        return len(self.ends)

    def add(self, end: float, seconds: float, reading: Mapping[str, float]) -> None:
        """One reading: what was used in the `seconds` before `end`."""
        self._begun.append((end, seconds, reading))
        if len(self._begun) < self.readings_per_point:
            return
        self._take_in()
        if len(self) >= self.most_points:
            self._halve()

    def whole(self) -> Timeline:
        """This timeline, the readings of its unfinished point with it."""
        if self._begun:
            self._take_in()
        return self

    def moved(self, seconds: float) -> Timeline:
        """The same on a clock that shows so much more."""
        self.ends = array("d", [end + seconds for end in self.ends])
        return self

    def at_most(self, points: int) -> Timeline:
        """The same with no more than `points` points: those that are neighbours become one."""
        found = self
        while len(found) > points:
            found = found.halved()
        return found

    def stretches(self) -> Iterator[range]:
        """The points that follow each other without a gap."""
        begin = 0
        for at, (last, end) in enumerate(pairwise(self.ends), start=1):
            if end - self.seconds[at] - last > self.seconds[at]:
                yield range(begin, at)
                begin = at
        if len(self):
            yield range(begin, len(self))

    def _take_in(self) -> None:
        covered = math.fsum(seconds for _, seconds, _ in self._begun)
        self.ends.append(self._begun[-1][0])
        self.seconds.append(covered)
        for name in QUANTITIES:
            values = [(reading.get(name, UNKNOWN), seconds) for _, seconds, reading in self._begun]
            self.mean[name].append(_mean(values))
            self.peak[name].append(_most(value for value, _ in values))
        self._begun = []

    def _halve(self) -> None:
        half = self.halved()
        self.readings_per_point = half.readings_per_point
        self.ends, self.seconds, self.mean, self.peak = half.ends, half.seconds, half.mean, half.peak

    def halved(self) -> Timeline:
        pairs = [range(at, min(at + 2, len(self))) for at in range(0, len(self), 2)]
        return Timeline(
            node=self.node,
            most_points=self.most_points,
            readings_per_point=2 * self.readings_per_point,
            ends=array("d", [self.ends[pair[-1]] for pair in pairs]),
            seconds=array("d", [math.fsum(self.seconds[at] for at in pair) for pair in pairs]),
            mean={
                name: array("d", [_mean([(column[at], self.seconds[at]) for at in pair]) for pair in pairs])
                for name, column in self.mean.items()
            },
            peak={
                name: array("d", [_most(column[at] for at in pair) for pair in pairs])
                for name, column in self.peak.items()
            },
        )


def _mean(values: Sequence[tuple[float, float]]) -> float:
    """Of values that are known, each with its weight."""
    known = [(value, weight) for value, weight in values if not math.isnan(value)]
    weights = math.fsum(weight for _, weight in known)
    return math.fsum(value * weight for value, weight in known) / weights if weights > 0 else UNKNOWN


def _most(values: Iterator[float]) -> float:
    return max((value for value in values if not math.isnan(value)), default=UNKNOWN)


class _Stored(msgspec.Struct, kw_only=True, gc=False):
    """A timeline in a record: a column an array, null where nothing could be counted."""

    node: str
    readings_per_point: int
    ends: list[float]
    seconds: list[float]
    mean: dict[str, list[float | None]]
    peak: dict[str, list[float | None]]  # empty where each point is one reading


_DIGITS = {"cpus": 3}  # behind the point; bytes have none


def encode(timelines: Sequence[Timeline]) -> bytes:
    """The file of a run: JSON in gzip, columns of rounded numbers."""
    stored = [
        _Stored(
            node=each.node,
            readings_per_point=each.readings_per_point,
            ends=[round(end, 3) for end in each.ends],
            seconds=[round(seconds, 4) for seconds in each.seconds],
            mean=_rounded(each.mean),
            peak=_rounded(each.peak) if each.readings_per_point > 1 else {},
        )
        for each in timelines
    ]
    return gzip.compress(msgspec.json.encode(stored), mtime=0)


def _rounded(columns: Mapping[str, array[float]]) -> dict[str, list[float | None]]:
    return {
        name: [None if math.isnan(value) else round(value, _DIGITS.get(name)) for value in column]
        for name, column in columns.items()
    }


def decode(content: bytes) -> list[Timeline]:
    """The timelines of a file. Raises ValueError where it is none, or none of a likely size."""
    reader = zlib.decompressobj(wbits=31)
    try:
        text = reader.decompress(content, MOST_BYTES)
        if reader.unconsumed_tail:
            raise ValueError(f"it unpacks to more than {MOST_BYTES // 2**20} MiB")
        stored = msgspec.json.decode(text, type=list[_Stored])
    except (zlib.error, msgspec.DecodeError) as error:
        raise ValueError(str(error)) from error
    return [_timeline(each) for each in stored]


def _timeline(stored: _Stored) -> Timeline:
    of_peaks = stored.peak or stored.mean
    lengths = {
        len(stored.ends),
        len(stored.seconds),
        *(len(each) for each in (*stored.mean.values(), *of_peaks.values())),
    }
    if len(lengths) != 1 or set(stored.mean) != set(QUANTITIES) or set(of_peaks) != set(QUANTITIES):
        raise ValueError(f"the columns of {stored.node} do not fit each other")
    if len(stored.ends) > MOST_POINTS:
        raise ValueError(f"{stored.node} has {len(stored.ends)} points, and {MOST_POINTS} are the most")
    return Timeline(
        node=stored.node,
        readings_per_point=stored.readings_per_point,
        ends=array("d", stored.ends),
        seconds=array("d", stored.seconds),
        mean={name: _read(stored.mean[name]) for name in QUANTITIES},
        peak={name: _read(of_peaks[name]) for name in QUANTITIES},
    )


def _read(column: Sequence[float | None]) -> array[float]:
    return array("d", [UNKNOWN if value is None else value for value in column])
