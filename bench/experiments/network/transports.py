"""Carries payloads from one process to another by a transport, and times all transports alike in one loop.

The clock runs from the first byte handed over until every acknowledgement is in hand. Making and checking payloads would
take as long as sending them, and make all transports look alike: both are done with the clock stopped, before the next round,
and one payload that is not what was sent makes the run invalid.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic, process_time
from typing import TYPE_CHECKING

from bench.experiments.network import payload
from bench.experiments.network.points import WORD_BYTES, Point

if TYPE_CHECKING:
    from bench.experiments.network.payload import Words


class Transport(ABC):
    """How one arm carries rounds of payloads."""

    copies = 1  # of each payload, as many as there are receivers
    copy_seconds = 0.0  # of the last round: serialising and copying at the sender, as far as that can be told

    def begin(self, point: Point) -> None:  # noqa: B027 most transports need nothing
        """Get ready for the rounds of a pass: connections, the other end's loop."""

    def prepare(self, payloads: Sequence[Words]) -> None:  # noqa: B027
        """Before the clock of each round."""

    @abstractmethod
    def carry(self, payloads: Sequence[Words]) -> list[float]:
        """On the clock: send all, and wait for all acknowledgements, which say when each arrived (monotonic seconds)."""

    @abstractmethod
    def received(self) -> list[int]:
        """After the clock: the numbers of the payloads as the other end found them. It lets go of them."""

    def end(self) -> None:  # noqa: B027
        """The rounds are done."""


@dataclass(kw_only=True)
class Burst:
    """The rounds of one pass, and what they took. CPU seconds are None where nothing says which process did the work."""

    round_bytes: int  # payload that came to its receivers
    seconds: list[float] = field(default_factory=list)  # of each round
    one_way_seconds: list[float] = field(default_factory=list)  # of each round, until its last payload was there
    copy_seconds: list[float] = field(default_factory=list)
    sender_cpu_seconds: float | None = None
    receiver_cpu_seconds: float | None = None
    problem: str | None = None

    @property
    def bytes(self) -> int:
        return self.round_bytes * len(self.seconds)


def run(transport: Transport, point: Point, words: Words, next_number: Callable[[], int]) -> Burst:
    """One pass at `point`. `next_number` numbers payloads, none twice."""
    burst = Burst(round_bytes=point.round_bytes * transport.copies)
    cpu_seconds = 0.0
    payloads = [words[: point.size // WORD_BYTES].copy() for _ in range(point.streams)]
    transport.begin(point)
    for _ in range(point.rounds):
        sent = [next_number() for _ in payloads]
        for one, number in zip(payloads, sent, strict=True):
            payload.stamp(one, number)
        transport.prepare(payloads)
        cpu, begin = process_time(), monotonic()
        arrivals = transport.carry(payloads)
        burst.seconds.append(monotonic() - begin)
        cpu_seconds += process_time() - cpu
        if arrivals:
            burst.one_way_seconds.append(max(arrivals) - begin)
        burst.copy_seconds.append(transport.copy_seconds)
        burst.problem = burst.problem or payload.complaint(sent * transport.copies, transport.received())
    transport.end()
    burst.sender_cpu_seconds = cpu_seconds
    return burst
