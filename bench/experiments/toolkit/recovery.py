"""How long it takes after a strike of chaos until what it took is back.

From the moment of the strike, which is before anybody could see it, so that the time to see it counts too:

- `worker`: until the worker that took its place has done its first part.
- `raylet`: until all that the node's workers had in hand was done elsewhere: nothing takes a node's place.
- `pause`: until the node has done a part after it woke; or as with `raylet`, where it was given up meanwhile.
- `driver`, `head`, `fill-disk`: from the beginning of the next attempt until its first part is done. Who starts that, and
  when, is outside.
- `join`: until the new node has done its first part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from bench.faults import ENDS_THE_RUN, PAUSE_SECONDS, Kind


@dataclass(frozen=True, kw_only=True)
class Recovery:
    """Of one strike; None: not before the work was done."""

    kind: Kind
    seconds: float | None


@dataclass(kw_only=True)
class _Struck:
    kind: Kind
    node: str
    at: float
    there: frozenset[str]  # workers, by name, that were there already
    seconds: float | None = None


def node_of(worker: str) -> str:
    """Of a worker that is called NODE/NUMBER."""
    return worker.rsplit("/", 1)[0]


@dataclass(kw_only=True)
class Recoveries:
    """Strikes, and what was done after them. Times are seconds of one monotonic clock."""

    workers: Callable[[], Iterable[str]]  # the names of those there are now, NODE/NUMBER
    _strikes: list[_Struck] = field(default_factory=list)
    _counted: set[str] = field(default_factory=set)  # workers that were some strike's recovery, and nodes that joined

    def struck(self, kind: Kind, node: str, at: float) -> None:
        """It has just been done, to this node."""
        self._strikes.append(_Struck(kind=kind, node=node, at=at, there=frozenset(self.workers())))

    def saw(self, node: str, worker: str, at: float) -> None:
        """This worker has done a part. A worker that came is the recovery of one strike: of the first that waits for it."""
        for strike in self._strikes:
            has_come = worker not in strike.there
            comer = node if strike.kind == "join" else worker
            if strike.seconds is not None or (has_come and comer in self._counted):
                continue
            if _is_recovery(strike, node, worker, at):
                strike.seconds = at - strike.at
                if has_come:
                    self._counted.add(comer)
                return

    def recovered(self, losses: Sequence[tuple[str, float]]) -> Iterator[Recovery]:
        """All strikes. `losses` are the nodes of workers that died, and when all that these had in hand was done elsewhere."""
        for strike in self._strikes:
            ends = [over for node, over in losses if node == strike.node and over > strike.at]
            if strike.seconds is None and strike.kind in ("raylet", "pause") and ends:
                strike.seconds = max(ends) - strike.at
            yield Recovery(kind=strike.kind, seconds=strike.seconds)


def _is_recovery(strike: _Struck, node: str, worker: str, at: float) -> bool:
    if strike.kind in ENDS_THE_RUN:
        return True
    if strike.kind == "worker":
        return node == strike.node and worker not in strike.there
    if strike.kind == "pause":
        return node == strike.node and at >= strike.at + PAUSE_SECONDS
    return strike.kind == "join" and node not in {node_of(each) for each in strike.there}
