"""Where actors and peers sit: which node, how much of it, and a wait for them that ends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bench.context import NodeSlot
from bench.errors import RunFailed

Span = tuple[int, int]  # inputs from the first, up to and without the second


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where an actor sits, and what it may use there."""

    node: NodeSlot
    cpus: float
    threads: int


def places(actors: int, nodes: Sequence[NodeSlot]) -> list[Place]:
    """A place for each actor, the nodes in turn. Those of one node share its CPUs and its native threads evenly."""
    first, *others = _usable(nodes)
    usable = [*others, first]  # the driver's node last: a single actor is one that is reached over the network
    count = {node.name: len(range(index, actors, len(usable))) for index, node in enumerate(usable)}
    return [
        Place(
            node=node,
            # Ray counts ten-thousandths of a CPU: rounded up, the last actor of a node would wait for ever.
            cpus=math.floor(min(1.0, node.cpus / count[node.name]) * 10_000) / 10_000,
            threads=1,  # an actor has at most one CPU, on both topologies alike
        )
        for node in (usable[number % len(usable)] for number in range(actors))
    ]


def shares(inputs: int, nodes: Sequence[NodeSlot]) -> list[tuple[NodeSlot, Span]]:
    """The part of all inputs that is each node's, by its CPUs."""
    usable = _usable(nodes)
    total = sum(node.cpus for node in usable)
    result, cpus = [], 0
    for node in usable:
        start = inputs * cpus // total
        cpus += node.cpus
        result.append((node, (start, inputs * cpus // total)))
    return result


def spans(start: int, stop: int, batch: int) -> list[Span]:
    """`start` to `stop` in batches; the last one may be smaller."""
    return [(begin, min(begin + batch, stop)) for begin in range(start, stop, batch)]


def on(node: NodeSlot) -> Any:
    """Ray's strategy for "there and nowhere else"."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return NodeAffinitySchedulingStrategy(node.node_id, soft=False)


def get_in_time(references: Sequence[Any], seconds: float, what: str) -> list[Any]:
    """The values of `references`. Raises RunFailed, which names `what`, if they are not there after `seconds`."""
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
