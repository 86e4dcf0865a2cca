"""How a node's machine is set up, where that changes how fast it is: read from the kernel's files, as far as they are there."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection
from pathlib import Path
from statistics import fmean

FILES = {
    "clock source": "sys/devices/system/clocksource/clocksource0/current_clocksource",
    "transparent huge pages": "sys/kernel/mm/transparent_hugepage/enabled",
    "address space randomisation": "proc/sys/kernel/randomize_va_space",
    "CPU governor": "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
    "CPU boost": "sys/devices/system/cpu/cpufreq/boost",
    "turbo is off": "sys/devices/system/cpu/intel_pstate/no_turbo",
    "SMT": "sys/devices/system/cpu/smt/active",
    "L2 cache": "sys/devices/system/cpu/cpu0/cache/index2/size",
    "L3 cache": "sys/devices/system/cpu/cpu0/cache/index3/size",
    "NUMA nodes": "sys/devices/system/node/online",
}


def settings(root: Path = Path("/")) -> dict[str, str]:
    """By name; what this machine does not tell is left out."""
    found = {name: _chosen(_text(root / path)) for name, path in FILES.items()}
    flags = re.search(r"^(?:flags|Features)\s*:\s*(.+)$", _text(root / "proc/cpuinfo"), re.MULTILINE)
    swap = _text(root / "proc/swaps").splitlines()[1:]
    found |= {
        "CPUs of the machine": str(os.cpu_count() or ""),
        "CPU flags": hashlib.sha256(flags[1].encode()).hexdigest()[:12] if flags else "",
        "swap": ("on" if swap else "off") if (root / "proc/swaps").exists() else "",
    }
    return {name: value for name, value in found.items() if value}


def speed(cpus: Collection[int], root: Path = Path("/")) -> dict[str, float | None]:
    """How fast `cpus` run on the mean, and how warm the warmest sensor is, now; None where the machine does not tell."""
    kilohertz = [_text(root / f"sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq").strip() for cpu in cpus]
    millidegrees = [_text(path).strip() for path in (root / "sys/class/thermal").glob("thermal_zone*/temp")]
    warmest = max([int(text) for text in millidegrees if text.lstrip("-").isdigit()], default=None)
    return {
        "cpu_mhz": fmean(int(text) for text in kilohertz) / 1e3
        if kilohertz and all(map(str.isdigit, kilohertz))
        else None,
        "celsius": None if warmest is None else warmest / 1e3,
    }


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _chosen(text: str) -> str:
    """Of `always [madvise] never` the one in brackets; all of anything else."""
    marked = re.search(r"\[(\w+)\]", text)
    return marked[1] if marked else text.strip()
