"""Sums up the physical cores of nodes, so that they can be compared and described."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from bench.counts import plural
from bench.model import Facts, NodeFacts, Run

Shape = Counter[tuple[str, int, int]]
"""How many cores of each kind, by the threads of them that are used, and by those that there are."""


def describe(shape: Shape) -> str:
    """2 performance 4.9 GHz cores of 2 threads, 1 core with 1 of 2 threads."""
    parts = []
    for (kind, used, threads), count in sorted(shape.items()):
        named = plural(count, f"{kind} core".strip())
        if not threads:
            named = f"any {kind} core".replace("  ", " ")
        elif used < threads:
            named += f" with {used} of {threads} threads"
        elif threads > 1:
            named += f" of {threads} threads"
        parts.append(named)
    return ", ".join(parts)


def is_pinned(node: NodeFacts) -> bool:
    """Whether the node may run on no more CPUs than it was granted."""
    return sum(len(core.cpus) for core in node.cores) <= node.cpus_granted


def shape(node: NodeFacts) -> Shape:
    """The cores that a node has; of one that is not pinned, the kinds that it may run on."""
    if not is_pinned(node):
        return Shape({(kind, 0, 0): 1 for kind in {core.kind for core in node.cores}})
    return Shape((core.kind, len(core.cpus), len(core.siblings)) for core in node.cores)


def total(facts: Facts) -> Shape:
    """All cores of the nodes together; one that two nodes share is one."""
    used: dict[tuple[str, tuple[int, ...], str], set[int]] = {}
    for node in facts.nodes:
        for core in node.cores:
            used.setdefault((node.boot_id, core.siblings, core.kind), set()).update(core.cpus)
    return Shape((kind, len(cpus), len(siblings)) for (_, siblings, kind), cpus in used.items())


def of_each_node(runs: Sequence[Run]) -> str | None:
    """The cores of a node, or of each where they differ; None where no run says."""
    facts = next((run.facts for run in runs if run.facts and all(node.cores for node in run.facts.nodes)), None)
    if facts is None:
        return None
    by_node = {node.node: describe(shape(node)) for node in facts.nodes}
    if len(set(by_node.values())) == 1:
        return f"{next(iter(by_node.values()))}{' each node' if len(by_node) > 1 else ''}"
    return ", ".join(f"{name} {words}" for name, words in by_node.items())
