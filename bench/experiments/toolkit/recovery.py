"""Measures how long it takes after an injected fault until what it took is back.

From the moment of the fault, which is before it could be seen, so that the time to notice it counts too:

- `worker`: until the worker that took its place has done its first part.
- `raylet`: until all that the node's workers had in hand was done elsewhere: nothing takes a node's place.
- `pause`: until the node has done a part after it woke; or as with `raylet`, where it was given up meanwhile.
- `driver`, `head`, `fill-disk`: from the beginning of the next attempt until its first part is done. When that is
  started is not measured.
- `join`: until the new node has done its first part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from bench.experiments.toolkit.faults import ENDS_THE_RUN, PAUSE_SECONDS


@dataclass(frozen=True, kw_only=True)
class Recovery:
    """The recovery from one fault; None: not before the work was done."""

    kind: str
    seconds: float | None


@dataclass(kw_only=True)
class _Injected:
    kind: str
    node: str
    at: float
    there: frozenset[str]  # workers, by name, that were there already
    seconds: float | None = None


def node_of(worker: str) -> str:
    """Of a worker that is called NODE/NUMBER."""
    return worker.rsplit("/", 1)[0]


@dataclass(kw_only=True)
class Recoveries:
    """Faults, and what was done after them. Times are seconds of one monotonic clock."""

    workers: Callable[[], Iterable[str]]  # the names of those there are now, NODE/NUMBER
    _faults: list[_Injected] = field(default_factory=list)
    _counted: set[str] = field(
        default_factory=set
    )  # workers that were the recovery from a fault, and nodes that joined

    def injected(self, kind: str, node: str, at: float) -> None:
        """A fault has just been injected into this node."""
        self._faults.append(_Injected(kind=kind, node=node, at=at, there=frozenset(self.workers())))

    def saw(self, node: str, worker: str, at: float) -> None:
        """This worker has done a part. A worker that came is the recovery from one fault: the first that waits for it."""
        for fault in self._faults:
            has_come = worker not in fault.there
            comer = node if fault.kind == "join" else worker
            if fault.seconds is not None or (has_come and comer in self._counted):
                continue
            if _is_recovery(fault, node, worker, at):
                fault.seconds = at - fault.at
                if has_come:
                    self._counted.add(comer)
                return

    def recovered(self, losses: Sequence[tuple[str, float]]) -> Iterator[Recovery]:
        """All faults. `losses` are the nodes of workers that died, and when all that these had in hand was done elsewhere."""
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
    return fault.kind == "join" and node not in {node_of(each) for each in fault.there}
