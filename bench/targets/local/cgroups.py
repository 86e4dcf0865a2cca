"""Makes, reads and removes the control groups of nodes, of version 1 and 2."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bench.machine import control_groups

PERIOD_MICROSECONDS = 100_000
_WANTED = ("cpu", "cpuacct", "memory")
_MEMORY_V1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
_MEMORY_V2 = ("memory.max", "memory.current", "inactive_file")


@dataclass(frozen=True)
class Mounts:
    """Where control groups are mounted: a folder for each controller (version 1), or one for all (version 2)."""

    controllers: Mapping[str, Path]
    unified: Path | None = None

    @property
    def roots(self) -> tuple[Path, ...]:
        """The folders in which a node's group is made, without duplicates."""
        folders = [self.unified] if self.unified else [self.controllers[c] for c in _WANTED if c in self.controllers]
        return tuple(dict.fromkeys(folders))


def mounts(text: str | None = None, root: Path = Path("/")) -> Mounts:
    """The mounts of /proc/self/mounts, or of `text`; paths are read below `root`."""
    if text is None:
        try:
            text = Path("/proc/self/mounts").read_text()
        except OSError:
            return Mounts({})
    controllers: dict[str, Path] = {}
    unified: Path | None = None
    for line in text.splitlines():
        _, mount_point, kind, options, *_ = line.split()
        path = root / mount_point.lstrip("/")
        if kind == "cgroup":
            controllers |= {option: path for option in options.split(",") if option in _WANTED}
        elif kind == "cgroup2" and "cpu" in _read(path / "cgroup.controllers").split():
            unified = path
    # A hybrid system mounts an empty version 2 beside version 1: the one with the controllers counts.
    return Mounts(controllers) if controllers else Mounts({}, unified)


def create(where: Mounts, group: str, *, cpus: int, memory_bytes: int) -> bool:
    """Make `group` and limit it. Returns False and leaves nothing if this system does not permit it."""
    if not where.roots:
        return False
    try:
        for root in where.roots:
            if root == where.unified:
                _delegate(root, group)
            (root / group).mkdir(parents=True, exist_ok=True)
        if where.unified:
            _write(where.unified / group / "cpu.max", f"{cpus * PERIOD_MICROSECONDS} {PERIOD_MICROSECONDS}")
            _write(where.unified / group / "memory.max", str(memory_bytes))
        if cpu := where.controllers.get("cpu"):
            _write(cpu / group / "cpu.cfs_period_us", str(PERIOD_MICROSECONDS))
            _write(cpu / group / "cpu.cfs_quota_us", str(cpus * PERIOD_MICROSECONDS))
        if memory := where.controllers.get("memory"):
            _write(memory / group / "memory.limit_in_bytes", str(memory_bytes))
    except OSError:
        remove(where, group)
        return False
    return True


def enter(where: Mounts, group: str, pid: int) -> None:
    """Put `pid`, with its future children, into `group`."""
    for root in where.roots:
        with suppress(ProcessLookupError):  # it has ended; the wait for it reports why
            _write(root / group / "cgroup.procs", str(pid))


def exists(where: Mounts, group: str) -> bool:
    """Whether any part of `group` exists."""
    return any((root / group).is_dir() for root in where.roots)


def remove(where: Mounts, group: str, *, deadline_seconds: float = 2.0) -> None:
    """Remove `group`, and its parents if they are empty."""
    for root in where.roots:
        deadline = time.monotonic() + deadline_seconds
        path = root / group
        while path.is_dir():
            try:
                path.rmdir()
            except OSError:  # the kernel has not removed its last process yet
                if time.monotonic() > deadline:
                    break
                time.sleep(0.02)
        for parent in path.relative_to(root).parents[:-1]:
            with suppress(OSError):
                (root / parent).rmdir()


def memory_events(where: Mounts, group: str) -> str:
    """The kernel's count of memory events of `group`, as text for memory_kills.count."""
    if where.unified:
        return _read(where.unified / group / "memory.events")
    memory = where.controllers.get("memory")
    return _read(memory / group / "memory.oom_control") if memory else ""


def available_memory_bytes(root: Path = Path("/")) -> int | None:
    """Memory that the limits of this process's control groups still allow; None without a limit."""
    left = []
    for kind, folder in control_groups.folders(frozenset({"memory"}), root):
        files = _MEMORY_V2 if kind == "cgroup2" else _MEMORY_V1
        limit, used = (_read(folder / name) for name in files[:2])
        if limit.isdecimal() and used.isdecimal() and int(limit) < 2**60:
            cached = re.search(rf"^{files[2]} (\d+)$", _read(folder / "memory.stat"), re.MULTILINE)
            in_use = int(used) - (int(cached[1]) if cached else 0)  # the kernel frees this cache on demand
            left.append(max(int(limit) - in_use, 0))
    return min(left, default=None)


def _delegate(root: Path, group: str) -> None:
    for parent in reversed(Path(group).parents):
        (root / parent).mkdir(exist_ok=True)
        _write(root / parent / "cgroup.subtree_control", "+cpu +memory")


def _write(path: Path, text: str) -> None:
    path.write_text(text)


def _read(path: Path) -> str:
    with suppress(OSError):
        return path.read_text().strip()
    return ""
