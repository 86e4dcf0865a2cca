"""Measures how far apart the clocks of the client, the nodes and Prometheus are, and refuses what would mix up their times."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

from bench import http_client
from bench.cluster import TIME_HEADER
from bench.errors import TargetFailed
from bench.prometheus.client import Prometheus
from bench.targets import Cluster

MOST_SECONDS = 1.0  # apart: series in Prometheus and samples of the record are joined by the time of day
FIX = "Let all machines keep time by NTP: `timedatectl set-ntp true`, or chrony."
TIMEOUT_SECONDS = 5.0


def offset(before: float, there: float, after: float) -> float:
    """Seconds by which a clock is surely ahead, or behind where negative, that was read between two looks at one's own."""
    return there - after if there > after else min(there - before, 0.0)


def measure(cluster: Cluster) -> dict[str, float]:
    """Offsets from this machine's clock, by who was asked; who does not answer is left out."""
    asked: dict[str, Callable[[], float]] = {"head": lambda: _of_exporter(cluster.exporter_url)}
    if url := cluster.prometheus_url:
        asked["Prometheus"] = lambda: Prometheus(url).query("time()")[0].last
    found = {}
    for name, ask in asked.items():
        with suppress(http_client.RequestException, TargetFailed, ValueError, LookupError):
            before = time.time()
            there = ask()
            found[name] = round(offset(before, there, time.time()), 3)
    return found


def too_far(offsets: Mapping[str, float], *, whose: str = "this machine's") -> Iterator[str]:
    """A line for each clock that is too far from `whose`."""
    for name, seconds in offsets.items():
        if abs(seconds) > MOST_SECONDS:
            yield f"the clock of {name} is {abs(seconds):.1f} s {'ahead of' if seconds > 0 else 'behind'} {whose}"


def check(offsets: Mapping[str, float]) -> None:
    """Raise TargetFailed where a clock is too far from this machine's."""
    if wrong := list(too_far(offsets)):
        raise TargetFailed(f"Clocks are more than {MOST_SECONDS:g} s apart: {'; '.join(wrong)}.", FIX)


def _of_exporter(url: str) -> float:
    answer = http_client.get(f"{url}/healthz", timeout_seconds=TIMEOUT_SECONDS)
    return float(answer.headers[TIME_HEADER])
