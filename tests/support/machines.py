"""Machines as the kernel describes them: the files that say which CPUs there are, in a folder that stands in for the root."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.machine.effective_cpus import format_list, parse_list


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What tells real machines apart. Functions are of a CPU's number."""

    cpus: int
    siblings: Callable[[int], tuple[int, ...]] = lambda cpu: (cpu,)
    units: Mapping[str, str] = field(default_factory=dict)  # of /sys/devices/cpu_core and its like
    capacity: Callable[[int], int] | None = None
    max_khz: Callable[[int], int] | None = None
    cache: Callable[[int], tuple[int, ...]] | None = None  # that share the last-level cache
    numa: tuple[str, ...] = ()  # CPUs of each NUMA node

    def write(self, root: Path) -> Path:
        """The files of this machine below `root`."""
        base = root / "sys/devices/system/cpu"
        put(base / "online", format_list(range(self.cpus)))
        for cpu in range(self.cpus):
            folder = base / f"cpu{cpu}"
            put(folder / "topology/thread_siblings_list", format_list(self.siblings(cpu)))
            put(folder / "topology/physical_package_id", "0")
            if self.capacity:
                put(folder / "cpu_capacity", f"{self.capacity(cpu)}")
            if self.max_khz:
                put(folder / "cpufreq/cpuinfo_max_freq", f"{self.max_khz(cpu)}")
            if self.cache:
                put(folder / "cache/index3/shared_cpu_list", format_list(self.cache(cpu)))
        for unit, cpus in self.units.items():
            put(root / f"sys/devices/cpu_{unit}/cpus", cpus)
        for node, cpus in enumerate(self.numa):
            put(root / f"sys/devices/system/node/node{node}/cpulist", cpus)
        return root


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")


def adjacent(cpu: int) -> tuple[int, ...]:
    """Siblings are 0-1, 2-3."""
    return cpu // 2 * 2, cpu // 2 * 2 + 1


def far(cores: int) -> Callable[[int], tuple[int, ...]]:
    """Siblings are 0 and `cores`, as on most servers."""
    return lambda cpu: (cpu % cores, cpu % cores + cores)


I7_12700 = Machine(  # 8 performance cores of two threads, two of them favoured; 4 efficiency cores
    cpus=20,
    siblings=lambda cpu: adjacent(cpu) if cpu < 16 else (cpu,),
    units={"core": "0-15", "atom": "16-19"},
    max_khz=lambda cpu: 3_600_000 if cpu >= 16 else 4_900_000 if cpu in (8, 9, 10, 11) else 4_800_000,
    cache=lambda _: tuple(range(20)),
    numa=("0-19",),
)
XEON = Machine(  # 16 cores, CPU n + 16 the second thread of core n
    cpus=32, siblings=far(16), max_khz=lambda _: 3_500_000, cache=lambda _: tuple(range(32)), numa=("0-31",)
)
TWO_SOCKETS = Machine(  # 2 x 4 cores: even CPUs on the first socket
    cpus=16,
    siblings=far(8),
    cache=lambda cpu: tuple(range(cpu % 2, 16, 2)),
    numa=("0,2,4,6,8,10,12,14", "1,3,5,7,9,11,13,15"),
)
ADJACENT = Machine(cpus=8, siblings=adjacent, cache=lambda _: tuple(range(8)))
RYZEN = Machine(  # 8 cores on two complexes with a cache each, favoured cores a little faster
    cpus=16,
    siblings=far(8),
    max_khz=lambda cpu: 4_650_000 if cpu % 8 < 2 else 4_450_000,
    cache=lambda cpu: tuple([*range(4), *range(8, 12)] if cpu % 8 < 4 else [*range(4, 8), *range(12, 16)]),
)
BIG_LITTLE = Machine(  # RK3399: four small cores, then two large ones
    cpus=6,
    capacity=lambda cpu: 1024 if cpu >= 4 else 485,
    max_khz=lambda cpu: 1_800_000 if cpu >= 4 else 1_416_000,
)
DENSE = Machine(  # four cores, and four dense ones of the same threads, known by their frequency alone
    cpus=16, siblings=far(8), max_khz=lambda cpu: 5_100_000 if cpu % 8 < 4 else 3_300_000
)
SMALL_VM = Machine(cpus=2)
VM_OF_ONE_CORE = Machine(cpus=2, siblings=adjacent)

ALL = {
    "i7-12700": I7_12700,
    "Xeon": XEON,
    "two sockets": TWO_SOCKETS,
    "adjacent siblings": ADJACENT,
    "Ryzen": RYZEN,
    "big.LITTLE": BIG_LITTLE,
    "dense": DENSE,
    "small VM": SMALL_VM,
    "VM of one core": VM_OF_ONE_CORE,
}


def expand(text: str) -> tuple[int, ...]:
    return parse_list(text)
