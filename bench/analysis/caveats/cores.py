"""Finds caveats in the physical cores of the nodes: unequal ones, shared ones, and several kinds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from bench.analysis.caveats.evidence import SESSION, Caveat, Evidence, confounds
from bench.analysis.core_shapes import describe, is_pinned, shape, total
from bench.counts import plural
from bench.model import Facts


def unequal_cores(evidence: Evidence) -> Iterator[Caveat]:
    """Nodes of one topology, or topologies in total, with different kinds of cores or different sharing of cores."""
    totals: dict[str, set[str]] = {}
    for topology, facts in _facts(evidence):
        nodes = {node.node: describe(shape(node)) for node in facts.nodes}
        if len(set(nodes.values())) > 1:
            sides = "; ".join(f"{name}: {cores}" for name, cores in nodes.items())
            text = f"the nodes of {topology} have unequal CPUs ({sides}): ask for --nodes and --cpus that divide them."
            yield Caveat(severity=confounds(evidence), about=SESSION, text=text)
        if all(map(is_pinned, facts.nodes)):
            totals.setdefault(topology, set()).add(describe(total(facts)))
    if len(set().union(*totals.values())) > 1:
        sides = "; ".join(
            f"{topology.name}: {' or '.join(sorted(totals[topology.name]))}"
            for topology in evidence.topologies
            if topology.name in totals
        )
        text = f"the topologies did not have the same CPUs ({sides})."
        yield Caveat(severity=confounds(evidence), about=SESSION, text=text)


def shared_cores(evidence: Evidence) -> Iterator[Caveat]:
    """Two nodes with a thread each on the same core: each slows the other."""
    for topology, facts in _facts(evidence):
        for one, other in combinations(facts.nodes, 2):
            if one.boot_id == other.boot_id and is_pinned(one) and is_pinned(other):
                shared = {core.siblings for core in one.cores}.intersection(core.siblings for core in other.cores)
                if shared:
                    text = (
                        f"{one.node} and {other.node} of {topology} share {plural(len(shared), 'physical core')}:"
                        " each slows the other. Fewer --cpus give each node cores of its own."
                    )
                    yield Caveat(severity="weakens", about=SESSION, text=text)


def any_kind(evidence: Evidence) -> Iterator[Caveat]:
    """Nodes that are not pinned on a machine with several kinds of cores, so that the scheduler decides their speed."""
    for topology, facts in _facts(evidence):
        for node in facts.nodes:
            kinds = sorted({core.kind for core in node.cores})
            if len(kinds) > 1 and not is_pinned(node):
                text = (
                    f"{node.node} of {topology} may run on any of several kinds of cores ({' and '.join(kinds)}):"
                    " the scheduler decides how fast it is."
                )
                yield Caveat(severity="weakens", about=SESSION, text=text)


def _facts(evidence: Evidence) -> Iterator[tuple[str, Facts]]:
    """Yield each topology with the facts of its cores, each combination once."""
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
