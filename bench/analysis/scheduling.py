"""Summarises how the nodes' threads were scheduled during timed intervals: waits for a CPU, context switches, clock, temperature.

It excludes nothing: a node with more threads than CPUs makes them wait itself. It helps to explain why a topology took longer.
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
    """Scheduling on one topology, over its usable runs, without warm-ups and idle time. None: not counted here."""

    topology: str
    # Seconds that threads were ready to run but had no CPU, for each second that they had one.
    waited_per_cpu_second: float | None
    voluntary_switches_per_cpu_second: float | None
    involuntary_switches_per_cpu_second: float | None
    least_mhz: float | None  # of any CPU of a node, at the end of a sample
    most_mhz: float | None
    most_celsius: float | None
    cores: str | None  # of each node, such as "2 performance 4.9 GHz cores of 2 threads"
    copy_bytes_per_second: float | None  # median over runs of how fast one core of the driver's node copies memory


def scheduling(topology: str, selection: Selection) -> Scheduling:
    """Summarise runs of one topology."""
    import numpy as np

    table, runs = selection.table, selection.runs
    rows = selection.usage[~(table.usage.named(arm=IDLE) | table.warm_usage)[selection.usage]]
    copy_rates = [run.facts.copy_bytes_per_second for run in runs if run.facts and run.facts.copy_bytes_per_second]
    waited, voluntary, involuntary = (_per_cpu_second(table.usage, rows, name) for name in _COUNTED)
    mhz, celsius = (table.usage.read(name)[rows] for name in ("cpu_mhz", "celsius"))
    least_mhz, most_mhz, most_celsius = known(
        np.array(
            [
                np.fmin.reduce(mhz, initial=np.nan),
                *(np.fmax.reduce(values, initial=np.nan) for values in (mhz, celsius)),
            ]
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
        copy_bytes_per_second=median(copy_rates) if copy_rates else None,
    )


def _per_cpu_second(usage: TableColumns[NodeUsage], rows: Positions, name: str) -> float | None:
    """Return the sum of a counter per CPU second, over the rows that have both: processes that ended are in neither."""
    import numpy as np

    counted, cpu = usage.read(name)[rows], usage.read("cpu_seconds")[rows]
    both = ~(np.isnan(counted) | np.isnan(cpu))
    seconds = float(cpu[both].sum())
    return float(counted[both].sum()) / seconds if seconds else None


def by_topology(names: Sequence[str], table: Table) -> Iterator[Scheduling]:
    """Yield the scheduling of each topology that has any."""
    usable = [run for run in table.runs if run.status == "ok"]
    for name in names:
        summary = scheduling(name, table.of(run for run in usable if run.spec.topology.name == name))
        if summary != Scheduling(topology=name, **dict.fromkeys(_FIELDS)):
            yield summary


_FIELDS = tuple(name for name in Scheduling.__dataclass_fields__ if name != "topology")
