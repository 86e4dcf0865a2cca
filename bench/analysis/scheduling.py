"""What the nodes' threads met with while something was timed: waits for a CPU, switches away from it, its speed and warmth.

It excludes nothing: a node with more threads than CPUs makes them wait itself. It is for who asks why one topology took longer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from bench.analysis.core_shapes import of_each_node
from bench.analysis.table import Selection, Table, TableColumns, known
from bench.analysis.usage import IDLE
from bench.model import NodeUsage

if TYPE_CHECKING:
    from bench.analysis.table import Positions

_COUNTED = ("run_queue_wait_seconds", "voluntary_switches", "involuntary_switches")


@dataclass(frozen=True, kw_only=True)
class Scheduling:
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


def scheduling(topology: str, those: Selection) -> Scheduling:
    """What is known of runs which are of one topology."""
    import numpy as np

    table, runs = those.table, those.runs
    rows = those.usage[~(table.usage.named(arm=IDLE) | table.warm_usage)[those.usage]]
    copied = [run.facts.copy_bytes_per_second for run in runs if run.facts and run.facts.copy_bytes_per_second]
    waited, voluntary, involuntary = (_per_cpu_second(table.usage, rows, name) for name in _COUNTED)
    mhz, celsius = (table.usage.read(name)[rows] for name in ("cpu_mhz", "celsius"))
    least_mhz, most_mhz, most_celsius = known(
        np.array(
            [np.fmin.reduce(mhz, initial=np.nan), *(np.fmax.reduce(each, initial=np.nan) for each in (mhz, celsius))]
        )
    )
    return Scheduling(
        topology=topology,
        waited_per_cpu_second=waited,
        voluntary_switches_per_cpu_second=voluntary,
        involuntary_switches_per_cpu_second=involuntary,
        least_mhz=least_mhz,
        most_mhz=most_mhz,
        most_celsius=most_celsius,
        cores=of_each_node(runs),
        copy_bytes_per_second=median(copied) if copied else None,
    )


def _per_cpu_second(usage: TableColumns[NodeUsage], rows: Positions, name: str) -> float | None:
    """Over the rows that have both: what ended with a process is counted in neither."""
    import numpy as np

    counted, cpu = usage.read(name)[rows], usage.read("cpu_seconds")[rows]
    both = ~(np.isnan(counted) | np.isnan(cpu))
    seconds = float(cpu[both].sum())
    return float(counted[both].sum()) / seconds if seconds else None


def by_topology(names: Sequence[str], table: Table) -> Iterator[Scheduling]:
    """Of each topology of which anything is known."""
    usable = [run for run in table.runs if run.status == "ok"]
    for name in names:
        found = scheduling(name, table.of(run for run in usable if run.spec.topology.name == name))
        if found != Scheduling(topology=name, **dict.fromkeys(_FIELDS)):
            yield found


_FIELDS = tuple(name for name in Scheduling.__dataclass_fields__ if name != "topology")
