"""Doubts about the physical cores of the nodes: unequal ones, shared ones, and any of several kinds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations

from bench.analysis.doubts.evidence import SESSION, Doubt, Evidence, confounds
from bench.analysis.numbers import plural
from bench.model import Facts, NodeFacts

Shape = Counter[tuple[str, int, int]]
"""How many cores of each kind, by the threads of them that are used, and by those that there are."""


def unequal_cores(evidence: Evidence) -> Iterator[Doubt]:
    """Nodes of one topology, or topologies in total, whose cores are of other kinds, or shared with other threads."""
    totals: dict[str, set[str]] = {}
    for topology, facts in _facts(evidence):
        nodes = {node.node: describe(_shape(node)) for node in facts.nodes}
        if len(set(nodes.values())) > 1:
            sides = "; ".join(f"{name}: {what}" for name, what in nodes.items())
            text = f"the nodes of {topology} have unequal CPUs ({sides}): ask for --nodes and --cpus that divide them."
            yield Doubt(severity=confounds(evidence), about=SESSION, text=text)
        if all(map(_is_pinned, facts.nodes)):
            totals.setdefault(topology, set()).add(describe(_total(facts)))
    if len(set().union(*totals.values())) > 1:
        sides = "; ".join(
            f"{each.name}: {' or '.join(sorted(totals[each.name]))}"
            for each in evidence.topologies
            if each.name in totals
        )
        text = f"the topologies did not have the same CPUs ({sides})."
        yield Doubt(severity=confounds(evidence), about=SESSION, text=text)


def shared_cores(evidence: Evidence) -> Iterator[Doubt]:
    """Two nodes with a thread each of the same core: each is slower while the other works."""
    for topology, facts in _facts(evidence):
        for one, other in combinations(facts.nodes, 2):
            if one.boot_id == other.boot_id and _is_pinned(one) and _is_pinned(other):
                shared = {core.siblings for core in one.cores}.intersection(core.siblings for core in other.cores)
                if shared:
                    text = (
                        f"{one.node} and {other.node} of {topology} share {plural(len(shared), 'physical core')}:"
                        " each slows the other. Fewer --cpus give each node cores of its own."
                    )
                    yield Doubt(severity="weakens", about=SESSION, text=text)


def any_kind(evidence: Evidence) -> Iterator[Doubt]:
    """Nodes that are not pinned on a machine with several kinds of cores: the scheduler decides how fast they are."""
    for topology, facts in _facts(evidence):
        for node in facts.nodes:
            kinds = sorted({core.kind for core in node.cores})
            if len(kinds) > 1 and not _is_pinned(node):
                text = (
                    f"{node.node} of {topology} may run on any of several kinds of cores ({' and '.join(kinds)}):"
                    " the scheduler decides how fast it is."
                )
                yield Doubt(severity="weakens", about=SESSION, text=text)


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


def _facts(evidence: Evidence) -> Iterator[tuple[str, Facts]]:
    """Facts that tell cores, each with its topology, the same cores once."""
    seen: set[tuple[str, tuple[tuple[object, ...], ...]]] = set()
    for run in evidence.usable:
        if run.facts and all(node.cores for node in run.facts.nodes):
            key = (
                run.spec.topology.name,
                tuple((node.node, node.cpus_granted, node.cores) for node in run.facts.nodes),
            )
            if key not in seen:
                seen.add(key)
                yield run.spec.topology.name, run.facts


def _is_pinned(node: NodeFacts) -> bool:
    return sum(len(core.cpus) for core in node.cores) <= node.cpus_granted


def _shape(node: NodeFacts) -> Shape:
    if not _is_pinned(node):
        return Shape({(kind, 0, 0): 1 for kind in {core.kind for core in node.cores}})
    return Shape((core.kind, len(core.cpus), len(core.siblings)) for core in node.cores)


def _total(facts: Facts) -> Shape:
    """All cores of the nodes together; one that two nodes share is one."""
    used: dict[tuple[str, tuple[int, ...], str], set[int]] = {}
    for node in facts.nodes:
        for core in node.cores:
            used.setdefault((node.boot_id, core.siblings, core.kind), set()).update(core.cpus)
    return Shape((kind, len(cpus), len(siblings)) for (_, siblings, kind), cpus in used.items())
