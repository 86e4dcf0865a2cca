"""Says which runs had more workers than CPUs, by what their experiment declared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.model import NodeFacts, Run

MARK = "oversubscribed"


def usable_cpus(nodes: Sequence[NodeFacts]) -> float:
    """CPUs that nodes can keep busy together: of one machine no more than all of them may run on."""
    found = 0.0
    for boot_id in {node.boot_id for node in nodes}:
        there = [node for node in nodes if node.boot_id == boot_id]
        each = sum(node.cpus_allowed if node.cpus_effective is None else node.cpus_effective for node in there)
        together = {cpu for node in there for core in node.cores for cpu in core.cpus}
        found += min(each, len(together)) if together else each
    return found


def mark(runs: Sequence[Run]) -> str:
    """What a cell with these runs is marked with; nothing where all of them had a CPU for every worker."""
    return MARK if any(oversubscribed(runs)) else ""


def oversubscribed(runs: Sequence[Run]) -> Iterator[tuple[str, int, float]]:
    """Topology, workers and CPUs of each run that had fewer CPUs than workers."""
    for run in runs:
        if run.facts and (workers := run.spec.busy_workers):
            cpus = min(usable_cpus(run.facts.nodes), sum(node.cpus_granted for node in run.facts.nodes))
            if workers > cpus:
                yield run.spec.topology.name, workers, cpus
