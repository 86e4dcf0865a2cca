"""Runs items on a pool of Ray actors: limits calls in flight, retries, replaces dead workers, and ends a run that stalls.

The first answer to an item counts; later ones are duplicates. A failed item is retried on another worker. A worker that dies or
fails often is replaced if its node is alive, and a node that joins gets workers. With `speculation` an overdue item is also sent to
a second worker. Between runs a pool keeps only its workers.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median
from time import monotonic, sleep
from typing import Any, Generic, NamedTuple, TypeVar

from bench.counts import plural
from bench.errors import RunFailed
from bench.experiments.toolkit.placement import Place

Item = TypeVar("Item")

TICK_SECONDS = 0.5  # between checks for new nodes and overdue items
MAX_FAILURES = 4  # of one item; then the item itself is taken for the cause
MAX_ERRORS = 3  # raised by one worker; then it is replaced
MAX_REPLACEMENTS_PER_WORKER = 3  # because of errors that it raised
OVERDUE_TIMES = 10.0  # multiple of the median duration of a call
OVERDUE_SECONDS = 10.0  # at least
STALL_SECONDS = 60.0  # without any answer


@dataclass(eq=False, kw_only=True)
class Worker:
    """An actor in its place."""

    name: str  # NODE/NUMBER
    place: Place
    actor: Any
    calls: int = 0  # in flight
    errors: int = 0  # calls that raised


class Answer(NamedTuple):
    """The first answer to an item."""

    number: int  # of the item, in the items' order
    value: Any
    worker: Worker
    seconds: float  # from the call's submission until the driver saw the answer
    failures: int  # earlier calls for this item that failed


@dataclass(frozen=True, kw_only=True)
class Loss:
    """A lost worker, and when the last item that it had in flight was done by another one."""

    worker: str
    at: float  # monotonic clock
    recovered_at: float


@dataclass(kw_only=True)
class Counts:
    """What a run of the pool needed: calls, failures, losses, and time."""

    calls: int = 0
    failures: int = 0  # calls without an answer
    duplicates: list[Any] = field(default_factory=list)  # later answers to an item, which do not count
    losses: list[Loss] = field(default_factory=list)  # workers that were lost, or replaced for their errors
    driver_seconds: float = 0.0  # spent on submitting calls and on fetching their answers
    last_answer: dict[str, float] = field(default_factory=dict)  # seconds from the begin of the run, by worker
    seconds: float = 0.0


@dataclass(eq=False, slots=True)
class _Task:
    """An item that was taken from the items, with its failures."""

    number: int
    item: Any
    is_done: bool = False
    failures: int = 0
    avoid: set[Worker] = field(default_factory=set)  # workers where it failed or is overdue


class _Call(NamedTuple):
    worker: Worker
    task: _Task
    submitted: float


@dataclass(eq=False, kw_only=True)
class _Outage:
    """A lost worker, and its tasks that are not done yet."""

    worker: Worker
    at: float
    left: set[_Task]


class WorkerPool:
    """Actors in the places that `slots()` returns at the moment. `spawn(place, name)` starts one of them."""

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
        """Spawn a worker in every slot. `max_failures`: how many calls for one item may raise; the last of them ends the run."""
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
        """Call `call(actor, item)` for each item until it is answered, and `on_answers` with the answers as they come.

        Without answers, `on_answers` gets an empty list every TICK_SECONDS. Raises RunFailed if an item or all workers keep failing.
        """
        for worker in self.workers:
            worker.calls = worker.errors = 0
        return _Run(self, call, items, on_answers).run()

    def spawn_missing(self) -> None:
        """Spawn a worker in every slot without one."""
        free = list(self._slots())
        for worker in self.workers:
            if worker.place in free:
                free.remove(worker.place)
        for place in free:
            name = f"{place.node.name}/{self._spawned}"
            self._spawned += 1
            self.workers.append(Worker(name=name, place=place, actor=self._spawn(place, name)))

    def remove(self, worker: Worker) -> None:
        """Kill a worker, and spawn another one if its slot still exists."""
        import ray

        if worker in self.workers:
            self.workers.remove(worker)
            ray.kill(worker.actor)
        self.spawn_missing()

    def close(self) -> None:
        """Kill all workers."""
        import ray

        for worker in self.workers:
            ray.kill(worker.actor)
        self.workers.clear()


class _Run(Generic[Item]):
    """One run over all items, with the state that ends with it."""

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
        self._is_exhausted = False  # whether all items were taken
        self._open = 0  # tasks that were taken and are not done
        self._calls: dict[Any, _Call] = {}
        self._retries: deque[_Task] = deque()
        self._outages: list[_Outage] = []
        self._took: deque[float] = deque(maxlen=101)  # seconds of the latest calls
        self._replaced = 0  # workers replaced because of their errors
        self._begin = self._last_answer_at = monotonic()
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
            self._fill()  # before the answers are handled, so that no worker waits for that
            self._on_answers(answers)
        self._counts.seconds = monotonic() - self._begin
        self._cancel_late_calls()
        return self._counts

    def _fill(self) -> None:
        """Submit to every worker as many tasks as it has room for, one each in turn."""
        for level in range(self._pool.in_flight):
            for worker in self._pool.workers:
                if worker.calls <= level and (task := self._next_for(worker)):
                    self._submit(task, worker)

    def _next_for(self, worker: Worker) -> _Task | None:
        """Return a retry that failed on another worker (or on every one), else the next item; None if there is neither."""
        for task in list(self._retries):
            if task.is_done:  # by an overdue call, meanwhile
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
        """Wait for the first answer, and take all that have arrived. Raises RunFailed after `stall_seconds` without any."""
        references = self._ready()
        begin = monotonic()
        results = list(zip(references, _results(references), strict=True))
        self._counts.driver_seconds += monotonic() - begin
        answers = []
        for reference, value in results:
            if not isinstance(value, Exception) and (answer := self._keep(self._calls.pop(reference), value, begin)):
                answers.append(answer)
        for reference, error in results:
            if reference in self._calls and isinstance(error, Exception):  # otherwise its worker was just removed
                self._handle_failure(self._calls.pop(reference), error)
        if answers:
            self._last_answer_at = begin
        elif begin - self._last_answer_at > self._pool.stall_seconds:
            raise RunFailed(
                f"No answer in {self._pool.stall_seconds:g} s from {plural(len(self._pool.workers), 'worker')}"
                f" with {plural(len(self._calls), 'call')} in flight.",
                "Look at the job's log, or use fewer workers or smaller items.",
            )
        return answers

    def _ready(self) -> list[Any]:
        import ray

        calls = list(self._calls)
        if not calls:  # there are no workers; a joining node may bring some
            sleep(TICK_SECONDS)
            return []
        timeout = min(TICK_SECONDS, self._pool.stall_seconds)
        ready, _ = ray.wait(calls, num_returns=1, timeout=timeout, fetch_local=False)
        if ready and len(calls) > 1:
            ready, _ = ray.wait(calls, num_returns=len(calls), timeout=0, fetch_local=False)
        return list(ready)

    def _keep(self, call: _Call, value: Any, now: float) -> Answer | None:
        """Count an answered call and return the answer; None if its task was done before."""
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
        """Retry the task of a call without an answer, and replace its worker if necessary."""
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
        elif isinstance(error, ObjectLostError):  # its node was lost after the answer, but before the fetch
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
                f"{plural(limit, 'worker was', 'workers were')} replaced and the next one failed too: {_last_line(error)}"
            ) from error

    def _replace(self, worker: Worker, task: _Task) -> None:
        """Remove a worker, and retry its tasks: first `task`, then the oldest."""
        lost = {reference: call.task for reference, call in self._calls.items() if call.worker is worker}
        for reference in lost:
            del self._calls[reference]
        self._counts.failures += len(lost)
        tasks = [task, *lost.values()]
        self._retry(tasks)
        self._outages.append(
            _Outage(worker=worker, at=monotonic(), left={other for other in tasks if not other.is_done})
        )
        self._pool.remove(worker)
        self._close_outages(monotonic())

    def _retry(self, tasks: Sequence[_Task]) -> None:
        """Put the tasks that are not done in front of all others, in their order."""
        waiting = set(self._retries)
        self._retries.extendleft(task for task in reversed(tasks) if not task.is_done and task not in waiting)

    def _close_outages(self, now: float) -> None:
        for outage in [outage for outage in self._outages if not outage.left]:
            self._outages.remove(outage)
            self._counts.losses.append(Loss(worker=outage.worker.name, at=outage.at, recovered_at=now))

    def _retry_overdue(self) -> None:
        """Send tasks that are overdue to a second worker too."""
        if not self._pool.speculation or not self._took:
            return
        limit = max(OVERDUE_SECONDS, OVERDUE_TIMES * median(self._took))
        calls_by_task = Counter(call.task for call in self._calls.values())
        now = monotonic()
        for worker, task, submitted in self._calls.values():
            is_overdue = now - submitted > limit and not task.is_done
            if is_overdue and calls_by_task[task] == 1 and task not in self._retries:
                task.avoid.add(worker)
                self._retries.append(task)

    def _cancel_late_calls(self) -> None:
        """Cancel the calls in flight: other workers have answered their tasks first."""
        import ray

        for reference, call in self._calls.items():
            call.worker.calls -= 1
            ray.cancel(reference, force=False)
        self._calls.clear()


def _results(references: Sequence[Any]) -> list[Any]:
    """Return the value of each call, or the exception that it raised."""
    import ray

    try:
        return list(ray.get(list(references)))
    except Exception:  # noqa: BLE001, an actor may raise anything: each call is then fetched separately
        return [_result(reference) for reference in references]


def _result(reference: Any) -> Any:
    import ray

    try:
        return ray.get(reference)
    except Exception as error:  # noqa: BLE001, an actor may raise anything
        return error


def _last_line(error: Exception) -> str:
    """Return the last line of an error's text: Ray puts a traceback before it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
