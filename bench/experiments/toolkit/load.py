"""Generates load: calls at times set beforehand, whether or not answers come, or in a closed loop.

A closed loop sends its next call when one is answered: while a server stands still it is asked nothing, and the wait that
others would have had is in none of its latencies. Here a call has a time at which it is due, and its response time counts
from then. The closed loop stands beside it, because its maximum is what the load is a share of.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from queue import Empty, SimpleQueue
from time import monotonic, sleep
from typing import Any, Literal, NamedTuple, Protocol

from bench.errors import RunFailed

Schedule = Literal["poisson", "constant"]

ANSWER_SECONDS = 120.0  # without a single answer, while some are due
SPIN_SECONDS = 100e-6  # a sleep ends about that much too late


class Answer(NamedTuple):
    """What a call gave, or the exception that it raised, and when it was in the driver's hand."""

    number: int
    came: float
    value: Any


class Calls(Protocol):
    """The way to those who answer, and the clock: Ray's and the wall's, or a test's."""

    @property
    def slots(self) -> int:
        """How many answer."""
        ...

    def now(self) -> float: ...

    def sleep_until(self, moment: float) -> None: ...

    def send(self, slot: int, number: int) -> None:
        """Hand call `number` to `slot`, and wait for nothing."""
        ...

    def answers(self, seconds: float) -> Sequence[Answer]:
        """Those that came and were not given before; none after `seconds` without one."""
        ...


@dataclass(frozen=True, kw_only=True)
class Load:
    """What became of the calls of one go, by number: every one that was sent was answered."""

    begin: float
    end: float  # the last answer
    response_seconds: Sequence[float]  # from when a call was due
    late_seconds: Sequence[float]  # from when it was due until it was sent
    slots: Sequence[int]
    values: Sequence[Any]
    overloaded: str = ""  # why sending ended early


def due_seconds(schedule: Schedule, rate_per_second: float, calls: int, seed: str) -> list[float]:
    """When each call is due, in seconds from the start.

    Of one seed the times are the same at every rate, but for the scale: two topologies have the same bursts.
    """
    draw = random.Random(seed)
    moments, now = [], 0.0
    for _ in range(calls):
        now += draw.expovariate(1.0) if schedule == "poisson" else 1.0
        moments.append(now / rate_per_second)
    return moments


def open_loop(calls: Calls, due: Sequence[float], most_outstanding: int) -> Load:
    """Send each call when it is due. With `most_outstanding` unanswered it ends and says so: it never slows down."""
    book = _Book(calls)
    for offset in due:
        moment = book.begin + offset
        calls.sleep_until(moment)
        book.take(calls.answers(0.0))
        if book.outstanding >= most_outstanding:
            book.overloaded = (
                f"overloaded: {book.outstanding} calls were unanswered {calls.now() - book.begin:.3g} s after the start"
            )
            break
        book.send(moment)
    return book.closed()


def closed_loop(calls: Calls, seconds: float, in_flight: int) -> Load:
    """Have each slot answer `in_flight` calls at a time for `seconds`: the most that this way of calling gets."""
    book = _Book(calls)
    while (now := calls.now()) - book.begin < seconds:
        if book.outstanding < in_flight * calls.slots:
            book.send(now)
        else:
            book.wait()
    return book.closed()


@dataclass
class _Book:
    """Who has what in hand, and when each call was due, sent and answered."""

    calls: Calls
    begin: float = 0.0
    outstanding: int = 0
    overloaded: str = ""
    due: list[float] = field(default_factory=list)
    late: list[float] = field(default_factory=list)
    slots: list[int] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.busy = [0] * self.calls.slots
        self.last = list(range(-self.calls.slots, 0))  # the number of each slot's latest call
        self.begin = self.calls.now()

    def send(self, moment: float) -> None:
        """To the slot with the fewest calls in hand; of those, to the one whose turn was longest ago."""
        number = len(self.due)
        slot = min(range(len(self.busy)), key=lambda each: (self.busy[each], self.last[each]))
        self.due.append(moment)
        self.late.append(self.calls.now() - moment)
        self.slots.append(slot)
        self.calls.send(slot, number)
        self.busy[slot] += 1
        self.last[slot] = number
        self.outstanding += 1

    def take(self, answers: Sequence[Answer]) -> None:
        for answer in answers:
            self.busy[self.slots[answer.number]] -= 1
        self.outstanding -= len(answers)
        self.answers += answers

    def wait(self) -> None:
        """Until one more is answered. Raises RunFailed if none is."""
        found = self.calls.answers(ANSWER_SECONDS)
        if not found:
            raise RunFailed(f"No answer in {ANSWER_SECONDS:g} s to {self.outstanding} calls.", "Look at the job's log.")
        self.take(found)

    def closed(self) -> Load:
        """All that was sent, once all of it is answered."""
        while self.outstanding:
            self.wait()
        self.answers.sort()  # by number, which no two share
        return Load(
            begin=self.begin,
            end=max((answer.came for answer in self.answers), default=self.begin),
            response_seconds=[answer.came - due for answer, due in zip(self.answers, self.due, strict=True)],
            late_seconds=self.late,
            slots=self.slots,
            values=[answer.value for answer in self.answers],
            overloaded=self.overloaded,
        )


class RayCalls:
    """Calls of Ray: `call(slot, number)` gives a reference, and an answer is timed in the thread that receives it."""

    def __init__(self, call: Callable[[int, int], Any], slots: int) -> None:
        self.slots = slots
        self._call = call
        self._came: SimpleQueue[Answer] = SimpleQueue()

    def now(self) -> float:
        return monotonic()

    def sleep_until(self, moment: float) -> None:
        while (left := moment - monotonic()) > 0:
            sleep(max(0.0, left - SPIN_SECONDS))  # a sleep of nothing lets answers in

    def send(self, slot: int, number: int) -> None:
        self._call(slot, number).future().add_done_callback(partial(self._keep, number))

    def answers(self, seconds: float) -> Sequence[Answer]:
        return list(self._arrived(seconds))

    def _arrived(self, seconds: float) -> Iterator[Answer]:
        try:
            yield self._came.get(block=seconds > 0, timeout=seconds or None)
            while True:
                yield self._came.get_nowait()
        except Empty:
            return

    def _keep(self, number: int, future: Any) -> None:
        came = monotonic()
        error = future.exception()
        self._came.put(Answer(number, came, future.result() if error is None else error))
