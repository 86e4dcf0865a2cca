"""Measures the offsets between the clocks of the client, the nodes and Prometheus, and refuses offsets that would mix up times."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

from bench import http_client
from bench.cluster import TIME_HEADER
from bench.errors import TargetFailed
from bench.prometheus.client import Prometheus
from bench.targets import Cluster

MOST_SECONDS = 1.0  # largest offset: series in Prometheus and samples of the record are joined by the time of day
FIX = "Let all machines keep time by NTP: `timedatectl set-ntp true`, or chrony."
TIMEOUT_SECONDS = 5.0


def offset(before: float, there: float, after: float) -> float:
    """Return the seconds by which another clock is at least ahead (negative: behind). 0 if the offset may be the delay of reading.

    `there` was read from the other clock, between `before` and `after` on this machine's.
    """
    return there - after if there > after else min(there - before, 0.0)


def measure(cluster: Cluster) -> dict[str, float]:
    """Return the offsets in seconds from this machine's clock, by name. Clocks that cannot be read are left out."""
    clocks: dict[str, Callable[[], float]] = {"head": lambda: _of_exporter(cluster.exporter_url)}
    if url := cluster.prometheus_url:
        clocks["Prometheus"] = lambda: Prometheus(url).query("time()")[0].last
    offsets = {}
    for name, read_clock in clocks.items():
        with suppress(http_client.RequestException, TargetFailed, ValueError, LookupError):
            before = time.time()
            there = read_clock()
            offsets[name] = round(offset(before, there, time.time()), 3)
    return offsets


def too_far(offsets: Mapping[str, float], *, whose: str = "this machine's") -> Iterator[str]:
    """Yield a line for each clock that is more than MOST_SECONDS from the clock of `whose`."""
    for name, seconds in offsets.items():
        if abs(seconds) > MOST_SECONDS:
            yield f"the clock of {name} is {abs(seconds):.1f} s {'ahead of' if seconds > 0 else 'behind'} {whose}"


def check(offsets: Mapping[str, float]) -> None:
    """Raise TargetFailed if a clock is more than MOST_SECONDS from this machine's."""
    if wrong := list(too_far(offsets)):
        raise TargetFailed(f"Clocks are more than {MOST_SECONDS:g} s apart: {'; '.join(wrong)}.", FIX)


def _of_exporter(url: str) -> float:
    answer = http_client.get(f"{url}/healthz", timeout_seconds=TIMEOUT_SECONDS)
    return float(answer.headers[TIME_HEADER])
