"""Reads the kernel's counters of the machine: busy CPUs, steal, pressure, swapping."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
PROC = Path("/proc")
_BUSY = (0, 1, 2, 5, 6)  # user, nice, system, irq, softirq: columns of /proc/stat, see proc(5); guests are in user
_STEAL = 7


@dataclass(frozen=True, kw_only=True)
class HostCounts:
    """Counters since boot. None: not counted here, which is not zero."""

    host_busy_seconds: float | None = None  # of all its CPUs together
    steal_seconds: float | None = None  # of the chosen CPUs: time that the hypervisor gave to others
    pressure_cpu_seconds: float | None = None  # in which some task waited for a CPU, a disk, memory
    pressure_io_seconds: float | None = None
    pressure_memory_seconds: float | None = None
    swapped_bytes: int | None = None  # in and out


def read_host(cpus: Collection[int], proc: Path = PROC) -> HostCounts:
    """The counters of this machine, with the steal of `cpus` only."""
    stat = {line.split()[0]: line.split()[1:] for line in _text(proc / "stat").splitlines() if line.startswith("cpu")}
    return HostCounts(
        host_busy_seconds=sum(int(stat["cpu"][column]) for column in _BUSY) / CLOCK_TICKS if "cpu" in stat else None,
        steal_seconds=_steal_seconds(stat, cpus),
        pressure_cpu_seconds=_pressure_seconds(proc, "cpu"),
        pressure_io_seconds=_pressure_seconds(proc, "io"),
        pressure_memory_seconds=_pressure_seconds(proc, "memory"),
        swapped_bytes=_swapped_bytes(proc),
    )


def _steal_seconds(stat: dict[str, list[str]], cpus: Collection[int]) -> float | None:
    lines = [stat.get(f"cpu{number}", ()) for number in cpus]
    if not lines or any(len(columns) <= _STEAL for columns in lines):
        return None
    return sum(int(columns[_STEAL]) for columns in lines) / CLOCK_TICKS


def _pressure_seconds(proc: Path, what: str) -> float | None:
    """The `some` total of pressure stall information, which the kernel gives in microseconds."""
    for line in _text(proc / "pressure" / what).splitlines():
        kind, *fields = line.split()
        if kind == "some":
            return next((int(field[6:]) / 1e6 for field in fields if field.startswith("total=")), None)
    return None


def _swapped_bytes(proc: Path) -> int | None:
    counted = dict(line.split() for line in _text(proc / "vmstat").splitlines() if line.startswith("pswp"))
    return sum(map(int, counted.values())) * PAGE_BYTES if counted else None


def _text(path: Path) -> str:
    """A file of /proc; empty if it is missing or unreadable."""
    try:
        return path.read_text()
    except OSError:
        return ""
