"""Reads ten times a second what a node uses: for the timeline of a run, and for the peaks of an interval while one goes.

It takes 0.2 to 0.6 % of a CPU on a node with a control group and 30 processes, 2 % where a node's processes are looked for
among 400 of its machine.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from math import isnan

from bench.cluster.probe.counters import Moment, NodeReader
from bench.timeline import UNKNOWN, Timeline

PERIOD_SECONDS = 0.1
MOST_UNSURE = 0.05  # of the time that a reading is of: it would be that much too large or too small
MOST_SECONDS_TO_REST = (
    30  # that a reading may take on a node that has no CPU left; what it waits to add is lost after them
)
DISK_EVERY = 10  # readings: a node's disk is counted process by process, which takes longer than all the rest


@dataclass
class Peaks:
    """The most that was seen in one interval. None: no reading lay in it, or it cannot be counted here."""

    memory_bytes: int
    cpus: float | None = None
    bytes_per_second: float | None = None

    def take_in(self, reading: dict[str, float], memory_bytes: int) -> None:
        """Another reading of the interval."""
        self.memory_bytes = max(self.memory_bytes, memory_bytes)
        self.cpus = _greater(self.cpus, reading["cpus"])
        for way in ("received_bytes_per_second", "sent_bytes_per_second"):
            self.bytes_per_second = _greater(self.bytes_per_second, reading[way])


class Sampler:
    """A thread that reads. It rests from `pause` to `resume`, and uses nothing then."""

    def __init__(self, reader: NodeReader, node: str) -> None:
        self._reader = reader
        self._timeline = Timeline(node=node)
        self._peaks: Peaks | None = None  # of the interval that goes
        self._waits_for_disk: list[
            tuple[float, float, dict[str, float]]
        ] = []  # readings without what disks did in them
        self._disk_bytes = (0, 0)
        self._is_pausing, self._rests, self._goes_on = threading.Event(), threading.Event(), threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def begin(self) -> None:
        """An interval begins: forget the peaks of the one before."""
        self._peaks = Peaks(self._reader.memory_bytes())

    def end(self) -> Peaks:
        """The interval is over: its peaks."""
        peaks, self._peaks = self._peaks, None
        memory_bytes = self._reader.memory_bytes()
        return (
            Peaks(memory_bytes)
            if peaks is None
            else Peaks(max(peaks.memory_bytes, memory_bytes), peaks.cpus, peaks.bytes_per_second)
        )

    def pause(self) -> None:
        """Read nothing from now on."""
        self._goes_on.clear()
        self._is_pausing.set()
        self._rests.wait(MOST_SECONDS_TO_REST)

    def resume(self) -> None:
        """Read again."""
        self._rests.clear()
        self._is_pausing.clear()
        self._goes_on.set()

    def finish(self) -> Timeline:
        """Read nothing more; all that was read."""
        self.pause()
        return self._timeline.whole()

    def _run(self) -> None:
        while True:
            try:
                self._read_on()
            except (OSError, ValueError):  # a file of /proc that could not be read is a gap, and no end
                self._waits_for_disk = []
                if not self._is_pausing.wait(PERIOD_SECONDS):
                    continue
            self._rests.set()
            self._goes_on.wait()

    def _read_on(self) -> None:
        """Read until a pause is asked for."""
        peaks, before = self._peaks, self._reader.moment(anew=True)
        self._disk_bytes = self._reader.disk_bytes()
        while not self._is_pausing.wait(PERIOD_SECONDS):
            seen = self._peaks
            now = self._reader.moment(anew=not self._waits_for_disk)
            if before.unsure_seconds + now.unsure_seconds > MOST_UNSURE * (now.at - before.at):
                continue  # the next one covers its time too
            reading = _rates(before, now)
            if peaks is not None and peaks is seen is self._peaks:  # the reading lies in its interval, all of it
                peaks.take_in(reading, now.memory_bytes)
            self._waits_for_disk.append((now.at, now.at - before.at, reading))
            if len(self._waits_for_disk) == DISK_EVERY:
                self._add_disk()
            peaks, before = seen, now
        if self._waits_for_disk:
            self._add_disk()

    def _add_disk(self) -> None:
        """Spread what disks did over the readings since they were counted last, and take these into the timeline."""
        last, self._disk_bytes = self._disk_bytes, self._reader.disk_bytes()
        waiting, self._waits_for_disk = self._waits_for_disk, []
        over = sum(seconds for _, seconds, _ in waiting)
        read, written = (
            (now - before) / over if now >= before else UNKNOWN
            for before, now in zip(last, self._disk_bytes, strict=True)
        )
        for end, seconds, reading in waiting:
            disk = {"disk_read_bytes_per_second": read, "disk_written_bytes_per_second": written}
            self._timeline.add(end, seconds, reading | disk)


def _rates(before: Moment, now: Moment) -> dict[str, float]:
    seconds = now.at - before.at

    def rate(last: float | None, count: float | None) -> float:
        return UNKNOWN if last is None or count is None or count < last else (count - last) / seconds

    return {
        "cpus": rate(before.cpu_seconds, now.cpu_seconds),
        "memory_bytes": now.memory_bytes,
        "received_bytes_per_second": rate(before.received_bytes, now.received_bytes),
        "sent_bytes_per_second": rate(before.sent_bytes, now.sent_bytes),
    }


def _greater(known: float | None, value: float) -> float | None:
    """Of a peak so far and a value, which may be unknown."""
    if isnan(value):
        return known
    return value if known is None else max(known, value)
