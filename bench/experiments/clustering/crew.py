"""Workers that pull parts as they have room, and what is done about those that are slow, lost, or come later.

Nothing is sent up front but the one part that a worker has waiting. Whoever answers a part first has done it; a second
answer is thrown away and counted. A worker that died is replaced where it was, if its node still stands. A part whose
answer is long overdue is given to somebody else too. A node that joins gets workers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median
from time import monotonic
from typing import Any

from bench.errors import RunFailed
from bench.experiments.clustering.split import Part
from bench.experiments.clustering.work import Outcome
from bench.experiments.toolkit.placement import Place

IN_FLIGHT = 2  # of a worker: the part in hand, and the one that waits for it
TICK_SECONDS = 0.5  # between two looks at what befell the nodes
LOSSES = 4  # of one part, after which it is the part that ends its workers
OVERDUE_TIMES = 10.0  # as long as the middle part took
OVERDUE_SECONDS = 10.0  # and never sooner
STALL_SECONDS = 300.0  # without any answer


@dataclass(frozen=True, kw_only=True)
class Loss:
    """A worker that died with parts in hand, and how long it took until the last of these was done elsewhere."""

    worker: str
    recovery_seconds: float
    over: float = 0.0  # when that was, by the monotonic clock


@dataclass(kw_only=True)
class Tally:
    """What became of all parts."""

    handed_over: int = 0  # calls
    duplicates: int = 0  # second answers, thrown away
    again_seconds: float = 0.0  # of jobs that were done before, by a second answer or by a worker that died
    losses: list[Loss] = field(default_factory=list)
    driver_seconds: float = 0.0  # to hand parts over and to take answers out
    last_answer: dict[str, float] = field(default_factory=dict)  # worker: seconds from the begin
    seconds: float = 0.0


@dataclass(eq=False, kw_only=True)
class Worker:
    """An actor in its place."""

    name: str
    place: Place
    actor: Any
    process: Any  # a reference to its id, which is there when the worker is ready
    calls: int = 0


@dataclass(frozen=True, kw_only=True)
class _Call:
    worker: Worker
    part: Part
    since: float


@dataclass(kw_only=True)
class _Open:
    """A worker's death, and which of its parts are not done yet."""

    worker: Worker
    at: float
    left: set[int]


@dataclass(kw_only=True)
class Crew:
    """`hire(place, name)` gives an actor with methods `ready()` and `do(part)`; `places()` says where workers ought to be now."""

    hire: Callable[[Place, str], Any]
    places: Callable[[], Sequence[Place]]
    tick: Callable[[], None] = lambda: None
    stall_seconds: float = STALL_SECONDS
    workers: list[Worker] = field(default_factory=list)
    _hired: int = 0

    def start(self) -> None:
        """A worker in every place."""
        for place in self.places():
            self._take_on(place)

    def do(self, parts: Iterable[Part], done: Callable[[Sequence[Outcome]], None]) -> Tally:
        """Have every part done once; `done` is told of those that were, as they are. Raises RunFailed where none can be."""
        return _Round(self, iter(parts), done).run()

    def close(self) -> None:
        """End the workers."""
        import ray

        for worker in self.workers:
            ray.kill(worker.actor)
        self.workers.clear()

    def _take_on(self, place: Place) -> Worker:
        name = f"{place.node.name}/{self._hired}"
        actor = self.hire(place, name)
        worker = Worker(name=name, place=place, actor=actor, process=actor.ready.remote())
        self._hired += 1
        self.workers.append(worker)
        return worker

    def replace_missing(self) -> None:
        """Take on a worker wherever one ought to be and is none."""
        wanted = list(self.places())
        for worker in self.workers:
            if worker.place in wanted:
                wanted.remove(worker.place)
        for place in wanted:
            self._take_on(place)


class _Round:
    """One go at all parts, with all its state, so that none of that outlives it."""

    def __init__(self, crew: Crew, parts: Iterator[Part], done: Callable[[Sequence[Outcome]], None]) -> None:
        self._crew = crew
        self._parts = parts
        self._done = done
        self._is_dealt_out = False  # whether somebody with room has asked for a part, and there was none left
        self._calls: dict[Any, _Call] = {}
        self._open: dict[int, Part] = {}  # handed over, and not done
        self._again: deque[Part] = deque()
        self._lost: dict[int, int] = {}  # part: how many workers died with it
        self._deaths: list[_Open] = []
        self._took: deque[float] = deque(maxlen=101)  # seconds of the last calls
        self._tally = Tally()
        self._begun = self._heard = monotonic()
        self._tally.last_answer = dict.fromkeys((worker.name for worker in crew.workers), 0.0)

    def run(self) -> Tally:
        self._fill()
        looked = monotonic()
        while self._open or not self._is_dealt_out:  # with no worker there, nothing is open and nothing done
            self._take_answers()
            self._crew.tick()
            self._fill()
            if monotonic() - looked >= TICK_SECONDS:
                self._look()
                looked = monotonic()
        self._tally.seconds = monotonic() - self._begun
        self._forget_late_ones()
        return self._tally

    def _fill(self) -> None:
        """Give every worker what it has room for, one each in turn."""
        for level in range(IN_FLIGHT):
            for worker in self._crew.workers:
                if worker.calls <= level and (part := self._next()) is not None:
                    self._hand_over(part, worker)

    def _next(self) -> Part | None:
        while self._again:
            part = self._again.popleft()
            if part.number in self._open:
                return part
        part_or_none = next(self._parts, None)
        if part_or_none is None:
            self._is_dealt_out = True
        else:
            self._open[part_or_none.number] = part_or_none
        return part_or_none

    def _hand_over(self, part: Part, worker: Worker) -> None:
        begun = monotonic()
        self._calls[worker.actor.do.remote(part)] = _Call(worker=worker, part=part, since=begun)
        worker.calls += 1
        self._tally.handed_over += 1
        self._tally.driver_seconds += monotonic() - begun

    def _take_answers(self) -> None:
        """Wait for the first answer, and take all that are there."""
        import ray

        if not self._calls:
            self._wait_for_workers()
            return
        calls = list(self._calls)
        ready, _ = ray.wait(calls, num_returns=1, timeout=TICK_SECONDS, fetch_local=False)
        begun = monotonic()
        if len(ready) and len(calls) > 1:
            ready, _ = ray.wait(calls, num_returns=len(calls), timeout=0, fetch_local=False)
        outcomes = [outcome for reference in ready if (outcome := self._answer(reference)) is not None]
        self._tally.driver_seconds += monotonic() - begun
        if outcomes:
            self._fill()  # before anything is written: a worker must not wait for a disk
            self._done(outcomes)
            self._heard = monotonic()
        elif monotonic() - self._heard > self._crew.stall_seconds:
            raise RunFailed(
                f"No part was done in {self._crew.stall_seconds:g} s, with {len(self._open)} in hand.",
                "Look at the job's log.",
            )

    def _answer(self, reference: Any) -> Outcome | None:
        """What a call came to; None where it is not the first answer, or there is none."""
        import ray
        from ray.exceptions import (
            ActorUnschedulableError,
            NodeDiedError,
            ObjectLostError,
            OutOfMemoryError,
            RayActorError,
            RayTaskError,
        )

        call = self._calls.pop(reference, None)
        if call is None:  # its worker was buried a moment ago
            return None
        call.worker.calls -= 1
        try:
            outcome: Outcome = ray.get(reference)
        except (RayActorError, ActorUnschedulableError, NodeDiedError):
            self._bury(call)
            return None
        except ObjectLostError:  # its node was lost between the answer and its fetching
            self._again.appendleft(call.part)
            return None
        except OutOfMemoryError as error:
            raise RunFailed("A worker ran out of memory.", "Use fewer workers, or smaller parts.") from error
        except RayTaskError as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            raise RunFailed(f"Part {call.part.number} broke its worker's code: {lines[-1]}") from error
        now = monotonic()
        self._took.append(now - call.since)
        self._tally.last_answer[call.worker.name] = now - self._begun
        if self._open.pop(outcome.part, None) is None:
            self._tally.duplicates += 1
            self._tally.again_seconds += outcome.busy_seconds
            return None
        self._tally.again_seconds += outcome.busy_seconds * self._lost.get(outcome.part, 0)
        for death in self._deaths:
            death.left.discard(outcome.part)
        self._close_deaths(now)
        return outcome

    def _bury(self, call: _Call) -> None:
        """A worker died: all that it had in hand goes to others, the oldest first. A part that ends all its workers ends the run."""
        worker = call.worker
        lost = [call, *(each for each in self._calls.values() if each.worker is worker)]
        for reference in [key for key, each in self._calls.items() if each.worker is worker]:
            del self._calls[reference]
        if worker in self._crew.workers:
            self._crew.workers.remove(worker)
        numbers = [each.part.number for each in lost if each.part.number in self._open]
        self._again.extendleft(self._open[number] for number in reversed(numbers))
        self._deaths.append(_Open(worker=worker, at=monotonic(), left=set(numbers)))
        for number in numbers[:1]:  # the one it was at
            self._lost[number] = self._lost.get(number, 0) + 1
            if self._lost[number] == LOSSES:
                raise RunFailed(f"{LOSSES} workers died at part {number}: it ends whoever does it.")
        self._crew.replace_missing()
        self._close_deaths(monotonic())

    def _close_deaths(self, now: float) -> None:
        for death in [each for each in self._deaths if not each.left]:
            self._deaths.remove(death)
            self._tally.losses.append(
                Loss(
                    worker=death.worker.name,
                    recovery_seconds=now - death.at,
                    over=now,
                )
            )

    def _look(self) -> None:
        """What befell the nodes meanwhile: new ones get workers, and what is long overdue goes to somebody else too."""
        self._crew.replace_missing()
        limit = max(OVERDUE_SECONDS, OVERDUE_TIMES * median(self._took)) if self._took else self._crew.stall_seconds
        now = monotonic()
        waiting = {part.number for part in self._again}
        for call in self._calls.values():
            number = call.part.number
            given = sum(each.part.number == number for each in self._calls.values())
            if now - call.since > limit and given == 1 and number in self._open and number not in waiting:
                self._again.append(call.part)

    def _wait_for_workers(self) -> None:
        """Nobody is there to ask: see whether somebody comes."""
        import time

        if monotonic() - self._heard > STALL_SECONDS:
            raise RunFailed(f"No worker was left, and none came in {STALL_SECONDS:g} s.", "Look at `bench status`.")
        time.sleep(TICK_SECONDS)

    def _forget_late_ones(self) -> None:
        """What is still under way is done already: by somebody who was asked later and answered first."""
        import ray

        for reference, call in self._calls.items():
            call.worker.calls -= 1
            ray.cancel(reference, force=False)
        self._calls.clear()
