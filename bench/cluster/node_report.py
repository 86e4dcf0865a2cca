"""Prints a node's state for `bench doctor`, as JSON. Runs as a process beside Ray on that node."""

from __future__ import annotations

import os
import platform
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bench.cluster.probe.counters import find_cgroup
from bench.identity import code_hash
from bench.machine.effective_cpus import effective_cpus
from bench.model import to_json

PACKAGES = ("ray", "numpy", "prometheus-client", "msgspec")
CLOCK = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")


def look() -> dict[str, object]:
    """Return the present state of this node. Sizes are in bytes, `time` in seconds since the epoch."""
    shared = os.statvfs("/dev/shm")
    periods, throttled = find_cgroup(os.environ).throttling()
    return {
        "time": time.time(),
        "clock": CLOCK.read_text().strip() if CLOCK.exists() else "unknown",
        "shared_memory_bytes": shared.f_frsize * shared.f_blocks,
        "periods": periods,
        "throttled_periods": throttled,
        "cpus_effective": effective_cpus().count,
        "code_hash": code_hash(),
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in PACKAGES}},
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


if __name__ == "__main__":
    sys.stdout.write(to_json(look()).decode())
