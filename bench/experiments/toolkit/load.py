"""Generates load: an open loop, which sends calls at fixed times, and a closed loop, which waits for answers.

A closed loop sends its next call after an answer. While the server stalls, it sends nothing, so the waits of the calls that others
would have sent are missing from its latencies. In an open loop each call is due at a time set before, whether or not answers have
come, and its response time counts from then. The closed loop is measured too, because open-loop loads are shares of its maximum.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from queue import Empty, SimpleQueue
from time import monotonic, sleep
from typing import Any, Literal, NamedTuple, Protocol

from bench.counts import plural
from bench.errors import RunFailed

Schedule = Literal["poisson", "constant"]

ANSWER_SECONDS = 120.0  # longest wait for any answer while calls are unanswered
SPIN_SECONDS = 100e-6  # a sleep ends later by about this time


class Answer(NamedTuple):
    """The result of a call, or the exception that it raised, and when it arrived at the driver."""

    number: int
    came: float
    value: Any


class Calls(Protocol):
    """Sends calls to slots, and has the clock: Ray's calls and the monotonic clock, or a test's."""

    @property
    def slots(self) -> int:
        """The number of slots that answer calls."""
        ...

    def now(self) -> float: ...

    def sleep_until(self, moment: float) -> None: ...

    def send(self, slot: int, number: int) -> None:
        """Send call `number` to `slot`, without waiting."""
        ...

    def answers(self, seconds: float) -> Sequence[Answer]:
        """Return the answers that arrived since the last call; wait up to `seconds` for the first."""
        ...


@dataclass(frozen=True, kw_only=True)
class Load:
    """The calls of one pass of a load, by number; all of them were answered."""

    begin: float
    end: float  # when the last answer arrived
    response_seconds: Sequence[float]  # from when a call was due
    late_seconds: Sequence[float]  # from when it was due until it was sent
    slots: Sequence[int]
    values: Sequence[Any]
    overloaded: str = ""  # the reason if sending ended early


def due_seconds(schedule: Schedule, rate_per_second: float, calls: int, seed: str) -> list[float]:
    """Return when each call is due, in seconds from the start.

    With the same seed the times at another rate are the same but for the scale, so that both topologies get the same bursts.
    """
    draw = random.Random(seed)
    moments, now = [], 0.0
    for _ in range(calls):
        now += draw.expovariate(1.0) if schedule == "poisson" else 1.0
        moments.append(now / rate_per_second)
    return moments


def open_loop(calls: Calls, due: Sequence[float], most_outstanding: int) -> Load:
    """Send each call when it is due. It never slows down: with `most_outstanding` unanswered calls it ends, and says why."""
    log = _CallLog(calls)
    for offset in due:
        moment = log.begin + offset
        calls.sleep_until(moment)
        log.take(calls.answers(0.0))
        if log.outstanding >= most_outstanding:
            log.overloaded = f"overloaded: {plural(log.outstanding, 'call was', 'calls were')} unanswered {calls.now() - log.begin:.3g} s after the start"
            break
        log.send(moment)
    return log.finish()


def closed_loop(calls: Calls, seconds: float, in_flight: int) -> Load:
    """Let each slot have `in_flight` calls at a time for `seconds`, which gives the maximum rate of such calls."""
    log = _CallLog(calls)
    while (now := calls.now()) - log.begin < seconds:
        if log.outstanding < in_flight * calls.slots:
            log.send(now)
        else:
            log.wait()
    return log.finish()


@dataclass
class _CallLog:
    """The calls of one pass: when each was due, sent and answered, and how many each slot has in flight."""

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
        """Send a call to the slot with the fewest calls in flight; among equals, to the one that was used longest ago."""
        number = len(self.due)
        slot = min(range(len(self.busy)), key=lambda candidate: (self.busy[candidate], self.last[candidate]))
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
        """Wait for one more answer at least. Raises RunFailed if none arrives in ANSWER_SECONDS."""
        answers = self.calls.answers(ANSWER_SECONDS)
        if not answers:
            raise RunFailed(
                f"No answer in {ANSWER_SECONDS:g} s to {plural(self.outstanding, 'call')}.", "Look at the job's log."
            )
        self.take(answers)

    def finish(self) -> Load:
        """Wait for all answers, and return the load."""
        while self.outstanding:
            self.wait()
        self.answers.sort()  # by number, which is unique
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
    """Calls of Ray: `call(slot, number)` returns an object reference; an answer is timed in the thread that receives it."""

    def __init__(self, call: Callable[[int, int], Any], slots: int) -> None:
        self.slots = slots
        self._call = call
        self._answers: SimpleQueue[Answer] = SimpleQueue()

    def now(self) -> float:
        return monotonic()

    def sleep_until(self, moment: float) -> None:
        while (left := moment - monotonic()) > 0:
            sleep(max(0.0, left - SPIN_SECONDS))  # a sleep of 0 s lets the receiving thread run

    def send(self, slot: int, number: int) -> None:
        self._call(slot, number).future().add_done_callback(partial(self._keep, number))

    def answers(self, seconds: float) -> Sequence[Answer]:
        return list(self._arrived(seconds))

    def _arrived(self, seconds: float) -> Iterator[Answer]:
        try:
            yield self._answers.get(block=seconds > 0, timeout=seconds or None)
            while True:
                yield self._answers.get_nowait()
        except Empty:
            return

    def _keep(self, number: int, future: Any) -> None:
        came = monotonic()
        error = future.exception()
        self._answers.put(Answer(number, came, future.result() if error is None else error))
