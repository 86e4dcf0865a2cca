"""Describes the CPUs of a machine by physical core and kind, and chooses the CPUs of each node.

Both are pure functions: a description is read from the kernel's files below a root, and a choice follows from it alone.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.machine.effective_cpus import parse_list
from bench.model import Core

ROOT = Path("/")
ALIKE = 0.9  # of the fastest of its kind: cores of one kind differ by less in frequency and capacity
_CPUS = "sys/devices/system/cpu"
_UNITS = {
    "core": "performance",
    "atom": "efficiency",
    "lowpower": "low-power",
}  # of Intel's hybrid processors, fastest first


@dataclass(frozen=True, kw_only=True)
class Cpu:
    """One hardware thread, which the scheduler counts as a CPU."""

    number: int
    siblings: tuple[int, ...]  # all hardware threads of its core, itself among them
    kind: str = ""  # "performance 4.9 GHz"; empty if all cores are alike, or nothing is known
    rank: int = 0  # of its kind: 0 is the fastest
    numa_node: int = 0
    last_cache: int = 0  # the first CPU that shares its last-level cache

    @property
    def sort_key(self) -> tuple[int, int, int]:
        """A sort key that keeps near CPUs together."""
        return self.numa_node, self.last_cache, self.siblings[0]


def read_cpus(numbers: Collection[int], root: Path = ROOT) -> tuple[Cpu, ...]:
    """These CPUs as the kernel's files describe them; without a description, cores of one thread, all alike."""
    folder = root / _CPUS
    online = sorted({*numbers, *parse_list(_text(folder / "online"))})
    kinds = _kinds(online, root)
    order = sorted(set(kinds.values()), key=lambda kind: (kind[0], -kind[2]))
    numa = {
        cpu: int(path.parent.name[4:])
        for path in (root / "sys/devices/system/node").glob("node[0-9]*/cpulist")
        for cpu in parse_list(_text(path))
    }
    return tuple(
        Cpu(
            number=number,
            siblings=_siblings(folder / f"cpu{number}", number),
            kind=kinds[number][1] if len(order) > 1 else "",
            rank=order.index(kinds[number]),
            numa_node=numa.get(number, 0),
            last_cache=_last_cache(folder / f"cpu{number}"),
        )
        for number in sorted(numbers)
    )


def cores(cpus: Sequence[Cpu]) -> tuple[Core, ...]:
    """The cores of these CPUs."""
    by_siblings: dict[tuple[int, ...], list[Cpu]] = {}
    for cpu in sorted(cpus, key=lambda cpu: cpu.number):
        by_siblings.setdefault(cpu.siblings, []).append(cpu)
    return tuple(
        Core(kind=those[0].kind, cpus=tuple(cpu.number for cpu in those), siblings=siblings)
        for siblings, those in by_siblings.items()
    )


def slices(cpus: Sequence[Cpu], *, nodes: int, cpus_per_node: int, shares: int = 0) -> tuple[tuple[int, ...], ...]:
    """CPUs for each node, without overlap: whole cores, of one kind, and the same of each kind for every node.

    As far as the machine has them: siblings are split and kinds mixed if nothing else is left. `shares`: the nodes
    of the topology that this one is compared with; one node then gets what those have together.
    """
    parts = shares if shares > nodes and nodes == 1 and cpus_per_node % shares == 0 else nodes
    per_part = nodes * cpus_per_node // parts
    free = sorted(cpus, key=lambda cpu: (cpu.rank, cpu.sort_key, cpu.number))
    chosen: list[list[Cpu]] = [[] for _ in range(parts)]
    ranks = sorted({cpu.rank for cpu in free})
    whole_kind = next((rank for rank in ranks if _deal(free, rank, parts, per_part) is not None), None)
    for rank in ranks if whole_kind is None else [whole_kind]:
        missing = per_part - len(chosen[0])
        dealt = next(
            (dealt_cpus for count in range(missing, 0, -1) if (dealt_cpus := _deal(free, rank, parts, count))), ()
        )
        for part, more in zip(chosen, dealt, strict=False):
            part.extend(more)
        taken = {cpu.number for part in chosen for cpu in part}
        free = [cpu for cpu in free if cpu.number not in taken]
    for part in chosen:  # the rest, which cannot be divided equally
        missing = per_part - len(part)
        part.extend(free[:missing])
        free = free[missing:]
    numbers = [sorted(cpu.number for cpu in part) for part in chosen]
    if parts == nodes:
        return tuple(tuple(part) for part in numbers)
    return (tuple(sorted(number for part in numbers for number in part)),)


def spare(cpus: Sequence[Cpu], taken: Collection[int]) -> tuple[int, ...]:
    """CPUs for exporter and monitoring: on cores that no node uses, else CPUs that no node uses, else all."""
    free = [cpu for cpu in cpus if cpu.number not in taken]
    apart = [cpu for cpu in free if not set(cpu.siblings).intersection(taken)]
    return tuple(sorted(cpu.number for cpu in apart or free or cpus))


def _deal(cpus: Sequence[Cpu], rank: int, parts: int, per_part: int) -> list[list[Cpu]] | None:
    """The same number of CPUs of one kind for every part, core by core; None if there are too few."""
    by_siblings: dict[tuple[int, ...], list[Cpu]] = {}
    for cpu in cpus:
        if cpu.rank == rank:
            by_siblings.setdefault(cpu.siblings, []).append(cpu)
    free = list(by_siblings.values())
    dealt: list[list[Cpu]] = [[] for _ in range(parts)]
    while missing := per_part - len(dealt[0]):
        taken, threads = _take(free, parts, missing)
        if not taken:
            return None
        for part, group in zip(dealt, taken, strict=True):
            part += [cpu for core in group for cpu in core[:threads]]
        used = [core for group in taken for core in group]
        free = [core for core in free if core not in used]
    return dealt


def _take(free: Sequence[list[Cpu]], parts: int, missing: int) -> tuple[list[list[list[Cpu]]], int]:
    """Cores for every part, and the number of threads of each: whole cores of one size if there are enough."""
    for size in sorted({len(core) for core in free}, reverse=True):
        of_size = [core for core in free if len(core) == size]
        if size <= missing and len(of_size) >= parts:
            return _side_by_side(of_size, parts, min(missing // size, len(of_size) // parts)), size
    larger = [core for core in free if len(core) > missing]
    threads, usable = (missing, larger) if len(larger) >= parts else (1, list(free))
    if len(usable) < parts:
        return [], 0
    return [[core] for core in sorted(usable, key=len)[:parts]], threads


def _side_by_side(free: Sequence[list[Cpu]], parts: int, count: int) -> list[list[list[Cpu]]]:
    """`count` cores for every part, sharing a last-level cache if every part can."""
    by_cache: dict[tuple[int, int], list[list[Cpu]]] = {}
    for core in free:
        by_cache.setdefault(core[0].sort_key[:2], []).append(core)
    near = [those[i : i + count] for those in by_cache.values() for i in range(0, len(those) - count + 1, count)]
    return (near if len(near) >= parts else [list(free[i * count : (i + 1) * count]) for i in range(parts)])[:parts]


def _kinds(numbers: Collection[int], root: Path) -> dict[int, tuple[int, str, float]]:
    """By CPU: the rank of its unit, the name of its kind, and the speed of that."""
    units = {cpu: unit for unit in _UNITS for cpu in parse_list(_text(root / f"sys/devices/cpu_{unit}/cpus"))}
    speeds: dict[int, float] = dict.fromkeys(numbers, 0.0)
    label_format = ""
    for file, candidate in (("cpu_capacity", "capacity {:.0f}"), ("cpufreq/cpuinfo_max_freq", "{:.1f} GHz")):
        read = {number: _text(root / _CPUS / f"cpu{number}" / file).strip() for number in numbers}
        if not all(text.isdecimal() for text in read.values()):
            continue
        levels = _levels({int(text) for text in read.values()})
        if len(set(levels.values())) > 1:
            speeds, label_format = {number: float(levels[int(text)]) for number, text in read.items()}, candidate
            break
    scale = 1e6 if "GHz" in label_format else 1.0
    is_hybrid = len({units.get(number) for number in numbers}) > 1
    order = list(_UNITS)
    kinds = {}
    for number in numbers:
        unit = units.get(number, "") if is_hybrid else ""
        label = " ".join(filter(None, (_UNITS.get(unit, ""), label_format.format(speeds[number] / scale))))
        kinds[number] = (order.index(unit) if unit else 0, label, speeds[number])
    return kinds


def _levels(values: Collection[int]) -> dict[int, int]:
    """By value, the fastest value of its kind."""
    levels: dict[int, int] = {}
    top = 0
    for value in sorted(values, reverse=True):
        top = top if value >= ALIKE * top and top else value
        levels[value] = top
    return levels


def _siblings(folder: Path, number: int) -> tuple[int, ...]:
    names = ("thread_siblings_list", "core_cpus_list")
    siblings = next((those for name in names if (those := parse_list(_text(folder / "topology" / name)))), ())
    return siblings if number in siblings else (number,)


def _last_cache(folder: Path) -> int:
    shared = parse_list(_text(folder / "cache/index3/shared_cpu_list"))
    package = _text(folder / "topology/physical_package_id").strip()
    return shared[0] if shared else int(package) if package.isdecimal() else 0


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
