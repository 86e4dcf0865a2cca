"""Our own pool of actors: few calls in flight, whichever is ready first, and faults that are seen and got over.

A failed item is done again elsewhere; an actor that fails often, or dies, is replaced; nothing waits for ever. From one
`map` to the next a pool keeps its actors and nothing else.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Generic, NamedTuple, TypeVar

from bench.errors import RunFailed

Item = TypeVar("Item")

STRIKES = 3  # failed calls, after which an actor is replaced
ATTEMPTS = 4  # failed calls of one item, after which it is the item that is to blame
REPLACEMENTS_PER_SEAT = 3
STALL_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class Answers:
    """What a map gave: one value an item, in the items' order, and what it took."""

    values: list[Any]
    latencies: list[float]  # seconds from a call's submission until it was seen to be ready; answered calls only
    seats: list[int]  # the number of the seat that answered each item
    failures: int  # calls that gave no answer
    replaced: int  # actors
    driver_seconds: float = 0.0  # of the driver: to hand calls over, and to take answers out of them


def success_rate(maps: Sequence[Answers]) -> float:
    """Calls that gave an answer, of all that were made."""
    answered = sum(len(calls.latencies) for calls in maps)
    return answered / (answered + sum(calls.failures for calls in maps))


class ActorPool(Generic[Item]):
    """As many actors as seats. `make(number)` gives the actor of a seat, at first and again when one has failed."""

    def __init__(
        self, make: Callable[[int], Any], seats: int, *, in_flight: int, stall_seconds: float = STALL_SECONDS
    ) -> None:
        self.in_flight = in_flight
        self.stall_seconds = stall_seconds
        self._make = make
        self._seats = [_Seat(number, make(number)) for number in range(seats)]

    @property
    def actors(self) -> list[Any]:
        """The actors that sit there now."""
        return [seat.actor for seat in self._seats]

    def map(
        self,
        call: Callable[[Any, Item], Any],
        items: Sequence[Item],
        progress: Callable[[float, float], None] | None = None,
    ) -> Answers:
        """`call(actor, item)` for each item, answered once; `progress` is told how many are, of how many.

        Raises RunFailed when that cannot be had.
        """
        for seat in self._seats:
            seat.busy = seat.strikes = 0
        return _Map(self, self._seats, call, items, progress).run()

    def replace(self, seat: _Seat) -> None:
        """End the actor of `seat`, and put a new one in its place."""
        import ray

        seat.open = False
        ray.kill(seat.actor)
        self._seats[seat.number] = _Seat(seat.number, self._make(seat.number))

    def close(self) -> None:
        """End the actors."""
        import ray

        for seat in self._seats:
            ray.kill(seat.actor)


@dataclass(eq=False)
class _Seat:
    """An actor in its place. The one that replaces it gets a new seat of the same number."""

    number: int
    actor: Any
    busy: int = 0  # calls in flight
    strikes: int = 0
    open: bool = True


class _Call(NamedTuple):
    seat: _Seat
    item: int  # its place among the items
    submitted: float


@dataclass
class _Fault:
    """What went wrong with one item so far."""

    attempts: int = 0
    seats: set[_Seat] = field(default_factory=set)


class _Map(Generic[Item]):
    """One map, with all its state, so that none of that outlives it."""

    def __init__(
        self,
        pool: ActorPool[Item],
        seats: list[_Seat],
        call: Callable[[Any, Item], Any],
        items: Sequence[Item],
        progress: Callable[[float, float], None] | None,
    ) -> None:
        self.pool = pool
        self.seats = seats  # the pool's own list: a replaced seat changes here too
        self.call = call
        self.items = items
        self.progress = progress
        self.next = 0
        self.calls: dict[Any, _Call] = {}
        self.again: deque[int] = deque()
        self.faults: dict[int, _Fault] = {}
        self.values: list[Any] = [None] * len(items)
        self.latencies: list[float] = []
        self.answered_by = [-1] * len(items)
        self.failures = 0
        self.replaced = 0
        self.driver_seconds = 0.0

    def run(self) -> Answers:
        self.fill()
        while self.calls:
            ready = self.wait()
            now = monotonic()
            done = [(reference, self.calls.pop(reference)) for reference in ready]
            # A freed actor gets its next item before the answers are unpacked: it must not wait for that.
            for _, call in done:
                call.seat.busy -= 1
                self.submit(call.seat)
            self.collect(done, now)
            if self.progress:
                self.progress(len(self.latencies), len(self.items))
        return Answers(
            values=self.values,
            latencies=self.latencies,
            seats=self.answered_by,
            failures=self.failures,
            replaced=self.replaced,
            driver_seconds=self.driver_seconds,
        )

    def fill(self) -> None:
        """Give every seat all that it may have in flight, in turn."""
        for level in range(self.pool.in_flight):
            for seat in self.seats:
                if seat.busy <= level:
                    self.submit(seat)

    def submit(self, seat: _Seat) -> None:
        """Give `seat` one more item, if there is one for it."""
        if not seat.open:
            return
        index = self.retry_for(seat) if self.again else None
        if index is None:
            index = self.next
            if index == len(self.items):
                return
            self.next += 1
        submitted = monotonic()
        reference = self.call(seat.actor, self.items[index])
        self.driver_seconds += monotonic() - submitted
        self.calls[reference] = _Call(seat, index, submitted)
        seat.busy += 1

    def wait(self) -> list[Any]:
        """All calls that are ready, and at least one."""
        import ray

        calls = list(self.calls)
        ready, _ = ray.wait(calls, num_returns=1, timeout=self.pool.stall_seconds, fetch_local=False)
        if not ready:
            raise RunFailed(
                f"No answer in {self.pool.stall_seconds:g} s from {len(self.seats)} actors"
                f" with {len(calls)} calls in flight.",
                "Look at the job's log, or use fewer actors or a smaller batch.",
            )
        more, _ = ray.wait(calls, num_returns=len(calls), timeout=0, fetch_local=False)
        return list(more or ready)

    def collect(self, done: Sequence[tuple[Any, _Call]], now: float) -> None:
        """Put each answer in its item's place, and see to the calls that gave none."""
        import ray

        begin = monotonic()
        try:
            values = ray.get([reference for reference, _ in done])
        except Exception:  # noqa: BLE001 an actor raises what it likes: each call is then judged by itself
            self.collect_singly(done, now)
        else:
            self.driver_seconds += monotonic() - begin
            for (_, call), value in zip(done, values, strict=True):
                self.keep(call, value, now)

    def collect_singly(self, done: Sequence[tuple[Any, _Call]], now: float) -> None:
        import ray

        for reference, call in done:
            try:
                value = ray.get(reference)
            except Exception as error:  # noqa: BLE001 an actor raises what it likes
                self.blame(call, error)
            else:
                self.keep(call, value, now)
        self.fill()

    def keep(self, call: _Call, value: Any, now: float) -> None:
        self.values[call.item] = value
        self.latencies.append(now - call.submitted)
        self.answered_by[call.item] = call.seat.number

    def blame(self, call: _Call, error: Exception) -> None:
        """Note a call that gave no answer: its item is done again, and its actor may have to go."""
        from ray.exceptions import OutOfMemoryError, RayActorError

        if isinstance(error, (OutOfMemoryError, MemoryError)):
            raise RunFailed(
                f"An actor ran out of memory: {_last_line(error)}", "Use fewer actors or a smaller batch."
            ) from error
        fault = self.faults.setdefault(call.item, _Fault())
        fault.attempts += 1
        fault.seats.add(call.seat)
        if fault.attempts == ATTEMPTS:
            raise RunFailed(
                f"Item {call.item} failed {ATTEMPTS} times, the last time so: {_last_line(error)}"
            ) from error
        self.failures += 1
        self.again.append(call.item)
        call.seat.strikes += 1
        if call.seat.open and (call.seat.strikes >= STRIKES or isinstance(error, RayActorError)):
            self.retire(call.seat, error)

    def retire(self, seat: _Seat, error: Exception) -> None:
        """Replace the actor of `seat`; what it still had in flight is done again elsewhere."""
        limit = REPLACEMENTS_PER_SEAT * len(self.seats)
        if self.replaced == limit:
            raise RunFailed(f"{limit} actors were replaced and the next one failed too: {_last_line(error)}") from error
        self.replaced += 1
        for reference, call in list(self.calls.items()):
            if call.seat is seat:
                del self.calls[reference]
                self.failures += 1
                self.again.append(call.item)
        self.pool.replace(seat)

    def retry_for(self, seat: _Seat) -> int | None:
        """A failed item that `seat` may try: one that failed elsewhere, or in every seat there is."""
        for index in self.again:
            fault = self.faults.get(index)
            if fault is None or seat not in fault.seats or fault.seats.issuperset(self.seats):
                self.again.remove(index)
                return index
        return None


def _last_line(error: Exception) -> str:
    """The last line of an error's text: what Ray puts before it is a traceback."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
