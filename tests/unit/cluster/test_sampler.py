"""The sampler of a probe: what it reads of real processes, when it rests, and the peaks of an interval."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.cluster.probe.counters import Cgroup, Moment, NodeReader, Processes
from bench.cluster.probe.sampler import DISK_EVERY, PERIOD_SECONDS, Sampler


class Scripted(NodeReader):
    """A node of which one CPU is busy, and that sends 1,000 bytes a second."""

    def __init__(self) -> None:
        self.moments = self.disks = 0
        self.unsure_seconds = self.held_up_seconds = 0.0
        self.fails = self.is_held_up = False

    def moment(self, *, anew: bool) -> Moment:
        if self.fails:
            raise ValueError("a file of /proc that is not text")
        self.is_held_up = self.held_up_seconds > 0
        time.sleep(self.held_up_seconds)
        self.moments += 1
        at = time.monotonic()
        return Moment(
            at=at,
            unsure_seconds=self.unsure_seconds,
            memory_bytes=self.moments,
            cpu_seconds=at,
            received_bytes=None,
            sent_bytes=int(1_000 * at),
        )

    def disk_bytes(self) -> tuple[int, int]:
        self.disks += 1
        return 1_000 * self.disks, -self.disks

    def memory_bytes(self) -> int:
        return 7


def until(is_so: Callable[[], bool], *, pause_seconds: float = 0.01) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(pause_seconds)


def test_each_reading_has_what_was_used_since_the_last_one() -> None:
    node = Scripted()
    sampler = Sampler(node, "head")
    until(lambda: node.moments > 2 * DISK_EVERY + 2)
    found = sampler.finish()
    assert len(found) == node.moments - 1
    assert found.mean["cpus"].tolist() == pytest.approx([1.0] * len(found))
    assert all(math.isnan(rate) for rate in found.mean["received_bytes_per_second"])
    sent = sum(rate * s for rate, s in zip(found.mean["sent_bytes_per_second"], found.seconds, strict=True))
    assert sent == pytest.approx(1_000 * sum(found.seconds), abs=2)
    read = sum(rate * s for rate, s in zip(found.mean["disk_read_bytes_per_second"], found.seconds, strict=True))
    assert read == pytest.approx(1_000 * (node.disks - 1))
    assert all(math.isnan(rate) for rate in found.mean["disk_written_bytes_per_second"])  # a count that fell


def test_nothing_is_read_in_a_pause_and_what_went_on_in_it_is_in_no_reading() -> None:
    node = Scripted()
    sampler = Sampler(node, "head")
    until(lambda: node.moments > 3)
    sampler.pause()
    before, paused = node.moments, time.monotonic()
    time.sleep(4 * PERIOD_SECONDS)
    assert node.moments == before
    resumed = time.monotonic()
    sampler.resume()
    until(lambda: node.moments > before + 3)
    found = sampler.finish()
    assert len(list(found.stretches())) == 2
    for end, seconds in zip(found.ends, found.seconds, strict=True):
        assert end <= paused or end - seconds >= resumed


def test_what_was_read_too_slowly_is_no_reading_and_its_time_is_in_the_next_one() -> None:
    node = Scripted()
    sampler = Sampler(node, "head")
    until(lambda: node.moments > 3)
    node.unsure_seconds = 10.0
    until(lambda: node.moments > 8)
    node.unsure_seconds = 0.0
    until(lambda: node.moments > 12)
    found = sampler.finish()
    assert len(list(found.stretches())) == 1
    assert max(found.seconds) >= 4 * PERIOD_SECONDS
    assert found.mean["cpus"].tolist() == pytest.approx([1.0] * len(found))


def test_peaks_are_of_readings_that_lie_in_the_interval() -> None:
    node = Scripted()
    sampler = Sampler(node, "head")
    assert sampler.end().cpus is None
    until(lambda: node.moments > 2)
    sampler.begin()
    begun = node.moments
    until(lambda: node.moments > begun + 3)
    peaks = sampler.end()
    assert peaks.cpus == pytest.approx(1.0)
    assert peaks.bytes_per_second == pytest.approx(1_000, rel=0.2)
    assert peaks.memory_bytes >= begun + 2
    sampler.begin()
    assert sampler.end().bytes_per_second is None  # too short for a reading
    sampler.finish()


def test_a_file_that_cannot_be_read_is_a_gap_and_no_end() -> None:
    node = Scripted()
    sampler = Sampler(node, "head")
    until(lambda: node.moments > 2 * DISK_EVERY)
    node.fails = True
    time.sleep(3 * PERIOD_SECONDS)
    node.fails = False
    before = node.moments
    until(lambda: node.moments > before + DISK_EVERY)
    found = sampler.finish()
    assert len(list(found.stretches())) == 2
    assert found.mean["cpus"].tolist() == pytest.approx([1.0] * len(found))


def test_what_a_process_used_before_it_was_found_is_in_no_reading() -> None:
    reader = NodeReader({"RAYMETER_NODE_CGROUP": "", "RAYMETER_LINK": "loopback"})
    reader._processes = Processes(Cgroup(0, ""), frozenset(), listed=())
    reader.moment(anew=True)
    before = reader.moment(anew=True)
    until_cpu = time.process_time() + 0.3
    while time.process_time() < until_cpu:
        pass
    reader._processes = Processes(Cgroup(0, ""), frozenset(), listed=(Path(f"/proc/{os.getpid()}"),))
    found = reader.moment(anew=True)
    assert found.cpu_seconds == pytest.approx(before.cpu_seconds, abs=0.1)
    while time.process_time() < until_cpu + 0.3:
        pass
    later = reader.moment(anew=False)
    assert later.cpu_seconds is not None
    assert found.cpu_seconds is not None
    assert later.cpu_seconds - found.cpu_seconds > 0.2


def test_a_process_that_computes_is_seen_on_its_node() -> None:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as other:
        try:
            reader = NodeReader({"RAYMETER_NODE_CGROUP": "", "RAYMETER_LINK": "loopback"})
            reader._processes = Processes(Cgroup(0, ""), frozenset(), listed=(Path(f"/proc/{other.pid}"),))
            sampler = Sampler(reader, "head")

            def used() -> float:
                found = sampler.finish()
                sampler.resume()
                return sum(cpus * s for cpus, s in zip(found.mean["cpus"], found.seconds, strict=True))

            until(lambda: used() >= 0.3, pause_seconds=0.5)
            assert max(sampler.finish().mean["memory_bytes"]) > 2**20
        finally:
            other.kill()


def test_a_reading_that_takes_long_is_still_in_what_was_read() -> None:
    node = Scripted()
    sampler = Sampler(node, "head")
    until(lambda: node.moments > 3)
    node.held_up_seconds = 1.5
    until(lambda: node.is_held_up)
    assert len(sampler.finish()) == node.moments - 1
