"""Runs items on a pool of Ray actors: few calls in flight, retries, replacement of dead workers, and a deadline for a stall.

The first answer to an item counts; a second one is kept apart. A failed item is retried on another worker. A worker that dies, or
fails often, is replaced while its node is up, and a node that joins gets workers. With `speculation` an overdue item is given to a
second worker too. From one run to the next a pool keeps its workers and nothing else.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median
from time import monotonic, sleep
from typing import Any, Generic, NamedTuple, TypeVar

from bench.errors import RunFailed
from bench.experiments.toolkit.placement import Place

Item = TypeVar("Item")

TICK_SECONDS = 0.5  # between two checks of the nodes, and of overdue items
MAX_FAILURES = 4  # of one item, after which the item is held to be the cause
MAX_ERRORS = 3  # raised by one worker, after which it is replaced
MAX_REPLACEMENTS_PER_WORKER = 3  # for errors that it raised
OVERDUE_TIMES = 10.0  # the median time of a call
OVERDUE_SECONDS = 10.0  # at least
STALL_SECONDS = 60.0  # without any answer


@dataclass(eq=False, kw_only=True)
class Worker:
    """An actor in its slot."""

    name: str  # NODE/NUMBER
    place: Place
    actor: Any
    calls: int = 0  # in flight
    errors: int = 0  # calls that raised


class Answer(NamedTuple):
    """The first answer to an item."""

    number: int  # of the item, in their order
    value: Any
    worker: Worker
    seconds: float  # from the call's submission until it was seen to be ready
    failures: int  # calls for the same item that had failed before


@dataclass(frozen=True, kw_only=True)
class Loss:
    """A worker that was lost, and when the last item that it had in hand was done elsewhere."""

    worker: str
    at: float  # monotonic clock
    recovered_at: float


@dataclass(kw_only=True)
class Counts:
    """What a run took."""

    calls: int = 0
    failures: int = 0  # calls that gave no answer
    duplicates: list[Any] = field(default_factory=list)  # second answers, which do not count
    losses: list[Loss] = field(default_factory=list)  # workers that were lost, or replaced for their errors
    driver_seconds: float = 0.0  # to submit calls, and to take their answers out
    last_answer: dict[str, float] = field(default_factory=dict)  # by worker: seconds from the beginning
    seconds: float = 0.0


@dataclass(eq=False, slots=True)
class _Task:
    """An item that was handed over."""

    number: int
    item: Any
    is_done: bool = False
    failures: int = 0
    avoid: set[Worker] = field(default_factory=set)  # where it failed, or is overdue


class _Call(NamedTuple):
    worker: Worker
    task: _Task
    submitted: float


@dataclass(eq=False, kw_only=True)
class _Outage:
    """A lost worker, and which of its tasks are not done yet."""

    worker: Worker
    at: float
    left: set[_Task]


class WorkerPool:
    """`slots()` says where workers ought to be now; `spawn(place, name)` gives an actor for one of them."""

    def __init__(
        self,
        spawn: Callable[[Place, str], Any],
        slots: Callable[[], Sequence[Place]],
        *,
        in_flight: int,
        stall_seconds: float = STALL_SECONDS,
        max_failures: int = MAX_FAILURES,
        speculation: bool = False,
    ) -> None:
        """Spawn a worker in every slot. `max_failures`: calls for one item that may raise, with the last one ending the run."""
        self.workers: list[Worker] = []
        self.in_flight = in_flight
        self.stall_seconds = stall_seconds
        self.max_failures = max_failures
        self.speculation = speculation
        self._spawn = spawn
        self._slots = slots
        self._spawned = 0
        self.spawn_missing()

    def run(
        self,
        call: Callable[[Any, Item], Any],
        items: Iterable[Item],
        on_answers: Callable[[Sequence[Answer]], None],
    ) -> Counts:
        """`call(actor, item)` for each item until it is answered; `on_answers` is given the answers as they come.

        While none comes, `on_answers` is called with none, twice a second. Raises RunFailed where an item or all workers keep failing.
        """
        for worker in self.workers:
            worker.calls = worker.errors = 0
        return _Run(self, call, items, on_answers).run()

    def spawn_missing(self) -> None:
        """Spawn a worker in every slot that has none."""
        free = list(self._slots())
        for worker in self.workers:
            if worker.place in free:
                free.remove(worker.place)
        for place in free:
            name = f"{place.node.name}/{self._spawned}"
            self._spawned += 1
            self.workers.append(Worker(name=name, place=place, actor=self._spawn(place, name)))

    def remove(self, worker: Worker) -> None:
        """End a worker, and spawn another where its slot is still there."""
        import ray

        if worker in self.workers:
            self.workers.remove(worker)
            ray.kill(worker.actor)
        self.spawn_missing()

    def close(self) -> None:
        """End the workers."""
        import ray

        for worker in self.workers:
            ray.kill(worker.actor)
        self.workers.clear()


class _Run(Generic[Item]):
    """One run over all items, with all its state, so that none of that outlives it."""

    def __init__(
        self,
        pool: WorkerPool,
        call: Callable[[Any, Item], Any],
        items: Iterable[Item],
        on_answers: Callable[[Sequence[Answer]], None],
    ) -> None:
        self._pool = pool
        self._call = call
        self._items = enumerate(items)
        self._on_answers = on_answers
        self._is_exhausted = False  # whether a worker with room found no item left
        self._open = 0  # tasks that were handed over and are not done
        self._calls: dict[Any, _Call] = {}
        self._retries: deque[_Task] = deque()
        self._outages: list[_Outage] = []
        self._took: deque[float] = deque(maxlen=101)  # seconds of the last calls
        self._replaced = 0  # workers, for their errors
        self._begin = self._heard = monotonic()
        self._counts = Counts(last_answer=dict.fromkeys((worker.name for worker in pool.workers), 0.0))

    def run(self) -> Counts:
        self._fill()
        checked = monotonic()
        while self._open or not self._is_exhausted:
            answers = self._take_answers()
            if monotonic() - checked >= TICK_SECONDS:
                self._pool.spawn_missing()
                self._retry_overdue()
                checked = monotonic()
            self._fill()  # before the answers are handled: no worker waits for that
            self._on_answers(answers)
        self._counts.seconds = monotonic() - self._begin
        self._cancel_late_calls()
        return self._counts

    def _fill(self) -> None:
        """Give every worker what it has room for, one each in turn."""
        for level in range(self._pool.in_flight):
            for worker in self._pool.workers:
                if worker.calls <= level and (task := self._next_for(worker)):
                    self._submit(task, worker)

    def _next_for(self, worker: Worker) -> _Task | None:
        """A retry that failed elsewhere, or on every worker; else the next item."""
        for task in list(self._retries):
            if task.is_done:  # meanwhile, by an overdue call
                self._retries.remove(task)
            elif worker not in task.avoid or task.avoid.issuperset(self._pool.workers):
                self._retries.remove(task)
                return task
        numbered = next(self._items, None)
        if numbered is None:
            self._is_exhausted = True
            return None
        self._open += 1
        return _Task(*numbered)

    def _submit(self, task: _Task, worker: Worker) -> None:
        submitted = monotonic()
        reference = self._call(worker.actor, task.item)
        self._counts.driver_seconds += monotonic() - submitted
        self._calls[reference] = _Call(worker, task, submitted)
        self._counts.calls += 1
        worker.calls += 1

    def _take_answers(self) -> list[Answer]:
        """Wait for the first call that is ready, and take all that are. Raises RunFailed where none has been for too long."""
        references = self._ready()
        begin = monotonic()
        results = list(zip(references, _results(references), strict=True))
        self._counts.driver_seconds += monotonic() - begin
        answers = []
        for reference, value in results:
            if not isinstance(value, Exception) and (answer := self._keep(self._calls.pop(reference), value, begin)):
                answers.append(answer)
        for reference, error in results:
            if reference in self._calls and isinstance(error, Exception):  # else its worker was removed a moment ago
                self._handle_failure(self._calls.pop(reference), error)
        if answers:
            self._heard = begin
        elif begin - self._heard > self._pool.stall_seconds:
            raise RunFailed(
                f"No answer in {self._pool.stall_seconds:g} s from {len(self._pool.workers)} workers"
                f" with {len(self._calls)} calls in flight.",
                "Look at the job's log, or use fewer workers or smaller items.",
            )
        return answers

    def _ready(self) -> list[Any]:
        import ray

        calls = list(self._calls)
        if not calls:  # there is no worker: one may come
            sleep(TICK_SECONDS)
            return []
        timeout = min(TICK_SECONDS, self._pool.stall_seconds)
        ready, _ = ray.wait(calls, num_returns=1, timeout=timeout, fetch_local=False)
        if ready and len(calls) > 1:
            ready, _ = ray.wait(calls, num_returns=len(calls), timeout=0, fetch_local=False)
        return list(ready)

    def _keep(self, call: _Call, value: Any, now: float) -> Answer | None:
        """Count a call that was answered; None where its task was done before."""
        task, worker, seconds = call.task, call.worker, now - call.submitted
        worker.calls -= 1
        self._took.append(seconds)
        self._counts.last_answer[worker.name] = now - self._begin
        if task.is_done:
            self._counts.duplicates.append(value)
            return None
        task.is_done = True
        self._open -= 1
        for outage in self._outages:
            outage.left.discard(task)
        self._close_outages(now)
        return Answer(task.number, value, worker, seconds, task.failures)

    def _handle_failure(self, call: _Call, error: Exception) -> None:
        """Retry the task of a call that gave no answer, and replace its worker if need be."""
        from ray.exceptions import (
            ActorUnschedulableError,
            NodeDiedError,
            ObjectLostError,
            OutOfMemoryError,
            RayActorError,
        )

        if isinstance(error, (OutOfMemoryError, MemoryError)):
            raise RunFailed(
                f"A worker ran out of memory: {_last_line(error)}", "Use fewer workers or smaller items."
            ) from error
        task, worker = call.task, call.worker
        worker.calls -= 1
        self._counts.failures += 1
        if isinstance(error, (RayActorError, ActorUnschedulableError, NodeDiedError)):
            self._count_failure(call, error, MAX_FAILURES)
            self._replace(worker, task)
        elif isinstance(error, ObjectLostError):  # its node was lost after the answer, before it was fetched
            self._retry([task])
        else:
            self._count_failure(call, error, self._pool.max_failures)
            worker.errors += 1
            if worker.errors == MAX_ERRORS:
                self._check_replacements(error)
                self._replace(worker, task)
            else:
                self._retry([task])

    def _count_failure(self, call: _Call, error: Exception, at_most: int) -> None:
        task = call.task
        if task.is_done:
            return
        task.failures += 1
        task.avoid.add(call.worker)
        if task.failures >= at_most:
            times = "once" if task.failures == 1 else f"{task.failures} times, the last time"
            raise RunFailed(f"Item {task.item} failed {times} with: {_last_line(error)}") from error

    def _check_replacements(self, error: Exception) -> None:
        self._replaced += 1
        limit = MAX_REPLACEMENTS_PER_WORKER * len(self._pool.workers)
        if self._replaced > limit:
            raise RunFailed(
                f"{limit} workers were replaced and the next one failed too: {_last_line(error)}"
            ) from error

    def _replace(self, worker: Worker, task: _Task) -> None:
        """Remove a worker: what it had in hand is retried, `task` and the oldest first."""
        lost = {reference: call.task for reference, call in self._calls.items() if call.worker is worker}
        for reference in lost:
            del self._calls[reference]
        self._counts.failures += len(lost)
        tasks = [task, *lost.values()]
        self._retry(tasks)
        self._outages.append(_Outage(worker=worker, at=monotonic(), left={each for each in tasks if not each.is_done}))
        self._pool.remove(worker)
        self._close_outages(monotonic())

    def _retry(self, tasks: Sequence[_Task]) -> None:
        """Put tasks that are not done before all others, in their order."""
        waiting = set(self._retries)
        self._retries.extendleft(task for task in reversed(tasks) if not task.is_done and task not in waiting)

    def _close_outages(self, now: float) -> None:
        for outage in [each for each in self._outages if not each.left]:
            self._outages.remove(outage)
            self._counts.losses.append(Loss(worker=outage.worker.name, at=outage.at, recovered_at=now))

    def _retry_overdue(self) -> None:
        """Give tasks that are long overdue to another worker too."""
        if not self._pool.speculation or not self._took:
            return
        limit = max(OVERDUE_SECONDS, OVERDUE_TIMES * median(self._took))
        in_hand = Counter(call.task for call in self._calls.values())
        now = monotonic()
        for worker, task, submitted in self._calls.values():
            is_overdue = now - submitted > limit and not task.is_done
            if is_overdue and in_hand[task] == 1 and task not in self._retries:
                task.avoid.add(worker)
                self._retries.append(task)

    def _cancel_late_calls(self) -> None:
        """Cancel the calls that are still in flight: another worker answered their tasks first."""
        import ray

        for reference, call in self._calls.items():
            call.worker.calls -= 1
            ray.cancel(reference, force=False)
        self._calls.clear()


def _results(references: Sequence[Any]) -> list[Any]:
    """The value of each call, or the exception that it raised."""
    import ray

    try:
        return list(ray.get(list(references)))
    except Exception:  # noqa: BLE001, an actor raises what it likes: each call is then judged by itself
        return [_result(reference) for reference in references]


def _result(reference: Any) -> Any:
    import ray

    try:
        return ray.get(reference)
    except Exception as error:  # noqa: BLE001, an actor raises what it likes
        return error


def _last_line(error: Exception) -> str:
    """The last line of an error's text: what Ray puts before it is a traceback."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
