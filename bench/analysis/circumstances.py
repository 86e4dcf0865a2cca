"""What the nodes' threads met with while something was timed: waits for a CPU, switches away from it, its speed and warmth.

It vetoes nothing: a node with more threads than CPUs makes them wait itself. It is for who asks why one topology took longer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from statistics import median

from bench.analysis.core_shapes import of_each_node
from bench.analysis.usage_tables import IDLE
from bench.model import Run

_COUNTED = ("run_queue_wait_seconds", "voluntary_switches", "involuntary_switches")
_read = attrgetter("cpu_seconds", "cpu_mhz", "celsius", *_COUNTED)


@dataclass(frozen=True, kw_only=True)
class Circumstances:
    """Of one topology, over its usable runs, warm-ups and idle time left out. None: not counted here."""

    topology: str
    waited_per_cpu_second: (
        float | None
    )  # seconds that threads were fit to run without a CPU, for each that they had one
    voluntary_switches_per_cpu_second: float | None
    involuntary_switches_per_cpu_second: float | None
    least_mhz: float | None  # of a node's CPUs, at the end of a sample
    most_mhz: float | None
    most_celsius: float | None
    cores: str | None  # of each node: "2 performance 4.9 GHz cores of 2 threads"
    copy_bytes_per_second: float | None  # median over runs: what one core of the driver's node copies


def circumstances(topology: str, runs: Sequence[Run]) -> Circumstances:
    """What is known of `runs`, which are of one topology."""
    rows = [_read(row) for run in runs for row in run.usage if not row.warmup and row.arm != IDLE]
    mhz = [row[1] for row in rows if row[1] is not None]
    copied = [run.facts.copy_bytes_per_second for run in runs if run.facts and run.facts.copy_bytes_per_second]
    waited, voluntary, involuntary = (_per_cpu_second(rows, column) for column in range(3, 6))
    return Circumstances(
        topology=topology,
        waited_per_cpu_second=waited,
        voluntary_switches_per_cpu_second=voluntary,
        involuntary_switches_per_cpu_second=involuntary,
        least_mhz=min(mhz, default=None),
        most_mhz=max(mhz, default=None),
        most_celsius=max([row[2] for row in rows if row[2] is not None], default=None),
        cores=of_each_node(runs),
        copy_bytes_per_second=median(copied) if copied else None,
    )


def _per_cpu_second(rows: Sequence[tuple[float | None, ...]], column: int) -> float | None:
    """Over the rows that have both: what ended with a process is counted in neither."""
    both = [(counted, row[0]) for row in rows if (counted := row[column]) is not None and row[0] is not None]
    seconds = sum(cpu for _, cpu in both)
    return sum(counted for counted, _ in both) / seconds if seconds else None


def by_topology(names: Sequence[str], runs: Sequence[Run]) -> Iterator[Circumstances]:
    """Of each topology of which anything is known."""
    for name in names:
        found = circumstances(name, [run for run in runs if run.spec.topology.name == name])
        if found != Circumstances(topology=name, **dict.fromkeys(_FIELDS)):
            yield found


_FIELDS = tuple(name for name in Circumstances.__dataclass_fields__ if name != "topology")
