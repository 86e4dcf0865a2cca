"""Counts the CPUs that a process can really use, by affinity, cpuset and CPU quota of cgroup v1 and v2."""

from __future__ import annotations

import math
import os
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bench.machine import control_groups

ROOT = Path("/")
_CPUSETS = ("cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus")  # cgroup v2, v1, and v1 of old kernels
_ROUNDING = 0.01  # of a CPU: quotas are written in microseconds


@dataclass(frozen=True, kw_only=True)
class EffectiveCpus:
    """The CPUs that a process can use, and what limits them."""

    allowed: tuple[int, ...]  # numbers, by affinity and cpuset
    quota: float | None  # CPUs; the smallest of the control group and its parents. None: no quota

    @property
    def count(self) -> float:
        """CPUs that can be busy at once, such as 1.5 by a quota."""
        return len(self.allowed) if self.quota is None else min(float(len(self.allowed)), self.quota)

    @property
    def whole(self) -> int:
        """Whole CPUs, rounded down."""
        return math.floor(self.count + _ROUNDING)

    def has(self, cpus: float) -> bool:
        """Whether `cpus` CPUs can be busy at once."""
        return is_enough(self.count, cpus)

    def __str__(self) -> str:
        quota = "" if self.quota is None else f", CPU quota {self.quota:g}"
        return f"{self.count:g} (affinity {len(self.allowed)}{quota})"


def effective_cpus(root: Path = ROOT, *, affinity: Collection[int] | None = None) -> EffectiveCpus:
    """The CPUs of this process. The kernel's files are read below `root`; `affinity` replaces the kernel's."""
    allowed = set(_affinity() if affinity is None else affinity)
    quotas: list[float] = []
    for kind, folder in control_groups.folders(frozenset({"cpu", "cpuset"}), root):
        if (quota := _quota(kind, folder)) is not None:
            quotas.append(quota)
        cpuset = next((cpus for name in _CPUSETS if (cpus := parse_list(_text(folder / name)))), ())
        if common := allowed.intersection(cpuset):  # the cpuset of another namespace names other CPUs
            allowed = common
    return EffectiveCpus(allowed=tuple(sorted(allowed)), quota=min(quotas, default=None))


def is_enough(effective: float, cpus: float) -> bool:
    """Whether `effective` CPUs are as many as `cpus`, up to the rounding of a quota."""
    return cpus <= effective + _ROUNDING


def parse_list(text: str) -> tuple[int, ...]:
    """The numbers in a list in the kernel's format, such as 0-3,8."""
    numbers: list[int] = []
    with suppress(ValueError):
        for part in text.strip().split(",") if text.strip() else ():
            first, _, last = part.partition("-")
            numbers += range(int(first), int(last or first) + 1)
    return tuple(numbers)


def format_list(cpus: Collection[int]) -> str:
    """A list of numbers in the kernel's format, such as 0-3,8."""
    parts: list[list[int]] = []
    for cpu in sorted(cpus):
        if parts and parts[-1][-1] == cpu - 1:
            parts[-1].append(cpu)
        else:
            parts.append([cpu])
    return ",".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else f"{part[0]}" for part in parts)


def _affinity() -> Collection[int]:
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return range(os.cpu_count() or 1)


def _quota(kind: str, folder: Path) -> float | None:
    if kind == "cgroup2":
        quota, _, period = _text(folder / "cpu.max").strip().partition(" ")
    else:
        quota, period = (_text(folder / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period"))
    if not quota.isdecimal() or not period.isdecimal() or int(period) == 0:
        return None  # "max" and "-1" mean no limit
    return int(quota) / int(period)


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
