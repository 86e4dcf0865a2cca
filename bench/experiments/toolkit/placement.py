"""Places actors and peers on nodes, with their share of CPUs, and waits for them with a deadline."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bench.context import NodeSlot
from bench.errors import RunFailed

Span = tuple[int, int]  # a range of inputs: the first, and the one after the last


@dataclass(frozen=True, kw_only=True)
class Place:
    """The node of an actor, and what it may use there."""

    node: NodeSlot
    cpus: float
    threads: int


def places(actors: int, nodes: Sequence[NodeSlot]) -> list[Place]:
    """Return a place for each actor, on the nodes in turn. Actors on one node share its CPUs evenly."""
    first, *others = _usable(nodes)
    usable = [*others, first]  # the driver's node last: a single actor is then reached over the network
    count = {node.name: len(range(index, actors, len(usable))) for index, node in enumerate(usable)}
    return [
        Place(
            node=node,
            # Ray counts ten-thousandths of a CPU. If they were rounded up, the last actor of a node would wait for ever.
            cpus=math.floor(min(1.0, node.cpus / count[node.name]) * 10_000) / 10_000,
            threads=1,  # an actor has at most one CPU, on both topologies
        )
        for node in (usable[number % len(usable)] for number in range(actors))
    ]


def shares(inputs: int, nodes: Sequence[NodeSlot]) -> list[tuple[NodeSlot, Span]]:
    """Divide all inputs among the nodes, in proportion to their CPUs."""
    usable = _usable(nodes)
    total = sum(node.cpus for node in usable)
    result, cpus = [], 0
    for node in usable:
        start = inputs * cpus // total
        cpus += node.cpus
        result.append((node, (start, inputs * cpus // total)))
    return result


def spans(start: int, stop: int, batch: int) -> list[Span]:
    """Divide `start` to `stop` into batches; the last one may be smaller."""
    return [(begin, min(begin + batch, stop)) for begin in range(start, stop, batch)]


def on(node: NodeSlot) -> Any:
    """Return Ray's scheduling strategy that allows `node` only."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return NodeAffinitySchedulingStrategy(node.node_id, soft=False)


def get_in_time(references: Sequence[Any], seconds: float, what: str) -> list[Any]:
    """Return the values of `references`. Raises RunFailed, which names `what`, if not all are there after `seconds`."""
    import ray
    from ray.exceptions import GetTimeoutError

    try:
        return list(ray.get(list(references), timeout=seconds))
    except GetTimeoutError as error:
        raise RunFailed(
            f"{what}: not all of {len(references)} answered in {seconds:g} s.", "Look at the job's log."
        ) from error


def _usable(nodes: Sequence[NodeSlot]) -> list[NodeSlot]:
    return [node for node in nodes if node.cpus > 0]
