"""Measures the time from an injected fault until the cluster has recovered from it.

It begins with the fault itself, so that the time to detect it is included, and ends:

- `worker`: when the worker's replacement has done its first part.
- `raylet`: when all items of the node's workers were done by others: a node has no replacement.
- `pause`: when the node has done a part after the pause; as with `raylet` if Ray gave it up.
- `driver`, `head`, `fill-disk`: when the next attempt has done its first part. Here it begins with that attempt: when the user starts
  it says nothing about recovery.
- `join`: when the new node has done its first part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from bench.experiments.toolkit.faults import ENDS_THE_RUN, PAUSE_SECONDS


@dataclass(frozen=True, kw_only=True)
class Recovery:
    """The recovery from one fault. `seconds` is None if it was not over before the work was done."""

    kind: str
    seconds: float | None


@dataclass(kw_only=True)
class _Injected:
    kind: str
    node: str
    at: float
    there: frozenset[str]  # names of the workers that existed before
    seconds: float | None = None


def node_of(worker: str) -> str:
    """Return the node of a worker named NODE/NUMBER."""
    return worker.rsplit("/", 1)[0]


@dataclass(kw_only=True)
class Recoveries:
    """The faults of a run, and the recoveries from them. Times are seconds of one monotonic clock."""

    workers: Callable[[], Iterable[str]]  # returns the names of the present workers, NODE/NUMBER
    _faults: list[_Injected] = field(default_factory=list)
    _counted: set[str] = field(
        default_factory=set
    )  # workers and joined nodes that are the recovery from an earlier fault

    def injected(self, kind: str, node: str, at: float) -> None:
        """Record a fault that is about to be injected into `node`."""
        self._faults.append(_Injected(kind=kind, node=node, at=at, there=frozenset(self.workers())))

    def saw(self, node: str, worker: str, at: float) -> None:
        """Record a part that a worker has done. A new worker is the recovery from one fault only: the first that waits for it."""
        for fault in self._faults:
            is_new = worker not in fault.there
            newcomer = node if fault.kind == "join" else worker
            if fault.seconds is not None or (is_new and newcomer in self._counted):
                continue
            if _is_recovery(fault, node, worker, at):
                fault.seconds = at - fault.at
                if is_new:
                    self._counted.add(newcomer)
                return

    def recovered(self, losses: Sequence[tuple[str, float]]) -> Iterator[Recovery]:
        """Yield the recovery of each fault. `losses`: nodes of lost workers, and when others had done all of their items."""
        for fault in self._faults:
            ends = [over for node, over in losses if node == fault.node and over > fault.at]
            if fault.seconds is None and fault.kind in ("raylet", "pause") and ends:
                fault.seconds = max(ends) - fault.at
            yield Recovery(kind=fault.kind, seconds=fault.seconds)


def _is_recovery(fault: _Injected, node: str, worker: str, at: float) -> bool:
    if fault.kind in ENDS_THE_RUN:
        return True
    if fault.kind == "worker":
        return node == fault.node and worker not in fault.there
    if fault.kind == "pause":
        return node == fault.node and at >= fault.at + PAUSE_SECONDS
    return fault.kind == "join" and node not in {node_of(name) for name in fault.there}
