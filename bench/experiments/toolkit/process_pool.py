"""Starts, calls, watches and ends the processes that Ray is compared with: an actor on each node, and plain processes under it.

Ray only places one peer process on each node, and transfers its calls and results. The work itself is done without Ray: in the
peer process, or in a `ProcessPool` of new processes that it starts.
"""

from __future__ import annotations

import multiprocessing
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

from bench.context import NodeSlot
from bench.errors import RunFailed, RunInvalid
from bench.experiments.toolkit.environment import environment
from bench.experiments.toolkit.placement import get_in_time, on

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
WATCH_SECONDS = 1.0  # between checks that the processes of a pool are alive
END_SECONDS = 10.0


class ProcessPool:
    """New processes on this node, each with `threads` native threads and its own worker, made by `make(*arguments)`.

    `make` is the worker's class or a function; a new process must be able to import it.
    """

    def __init__(self, make: Callable[..., Any], *arguments: Any, processes: int, threads: int = 1) -> None:
        spawn, before = multiprocessing.get_context("spawn"), _children()
        with environment(dict.fromkeys(THREAD_VARIABLES, str(threads))), _without_main_script():
            self._pool = spawn.Pool(processes, _make_worker, (spawn.Barrier(processes), make, arguments))
        self.processes = _children() - before  # their ids

    def results(self, method: str, tasks: Iterable[Any], *, seconds: float) -> Iterator[Any]:
        """Yield the results of the workers' `method` for each task, in the order of completion. A free process takes the next task.

        Raises RunInvalid if a process was lost, and RunFailed if no task was done for `seconds`.
        """
        done = self._pool.imap_unordered(_call_worker, ((method, task) for task in tasks))
        while True:
            try:
                yield self._next(done, time.monotonic() + seconds)
            except StopIteration:
                return

    def on_each(self, method: str, *, seconds: float) -> list[Any]:
        """Return the result of `method` of each process's worker, called without arguments. Raises TimeoutError after `seconds`."""
        calls = self._pool.map_async(_call_each, [(method, seconds)] * len(self.processes), chunksize=1)
        results: list[Any] = calls.get(timeout=seconds)
        return results

    def _next(self, done: Any, deadline: float) -> Any:
        while True:
            try:
                return done.next(timeout=min(WATCH_SECONDS, max(0.0, deadline - time.monotonic())))
            except multiprocessing.TimeoutError as error:
                if self.processes - _children():
                    raise RunInvalid("A process of a pool was lost in the midst of its work.") from error
                if time.monotonic() >= deadline:
                    raise RunFailed("A pool of processes did no task in time.", "Look at the job's log.") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # `terminate` waits for a lock, which a killed process may hold for ever: so do not wait for it longer than END_SECONDS.
        ending = threading.Thread(target=self._pool.terminate, daemon=True)
        ending.start()
        ending.join(END_SECONDS)


@dataclass(frozen=True, kw_only=True)
class PeerProcesses:
    """A peer process on each of several nodes."""

    actors: Sequence[Any]
    nodes: Sequence[NodeSlot]

    @classmethod
    def start(
        cls, peer: type, nodes: Sequence[NodeSlot], arguments: Callable[[NodeSlot], Sequence[Any]], **options: Any
    ) -> Self:
        """Start a `peer` with its `arguments` on each of `nodes`, with Ray's `options`, without waiting until they are ready."""
        import ray

        make = ray.remote(num_cpus=0, max_restarts=0, **options)(peer)
        actors = [make.options(scheduling_strategy=on(node)).remote(*arguments(node)) for node in nodes]
        return cls(actors=actors, nodes=nodes)

    def call(self, method: str, arguments: Sequence[Sequence[Any] | None], *, seconds: float) -> list[Any]:
        """Return the results of `method` of the peers, each called with its own `arguments`. Peers with None are not called.

        A shorter list calls only the first peers. Raises RunInvalid if a peer was lost, and RunFailed if not all have answered in
        `seconds`.
        """
        from ray.exceptions import RayActorError

        calls = [
            getattr(actor, method).remote(*peer_arguments)
            for actor, peer_arguments in zip(self.actors, arguments, strict=False)
            if peer_arguments is not None
        ]
        try:
            return get_in_time(calls, seconds, f"Peer processes at `{method}`")
        except RayActorError as error:
            raise RunInvalid("A peer process was lost in the midst of its work, by itself or with its node.") from error

    def close(self) -> None:
        """End the peer processes; the processes of their pools end with them."""
        import ray

        for actor in self.actors:
            ray.kill(actor)


# In a process of a pool: the worker that the initializer made, and the barrier of all processes of the pool.
_worker: Any = None
_barrier: Any = None


def _make_worker(barrier: Any, make: Callable[..., Any], arguments: Sequence[Any]) -> None:
    global _worker, _barrier
    _worker, _barrier = make(*arguments), barrier


def _call_worker(task: tuple[str, Any]) -> Any:
    method, argument = task
    return getattr(_worker, method)(argument)


def _call_each(task: tuple[str, float]) -> Any:
    method, seconds = task
    result = getattr(_worker, method)()
    _barrier.wait(seconds)  # so that no process takes another one's call
    return result


def _children() -> set[int]:
    return {process.pid for process in multiprocessing.active_children() if process.pid is not None}


@contextmanager
def _without_main_script() -> Iterator[None]:
    """Prevent new processes from running this one's main script: it is Ray's worker, and takes a second to import."""
    main = sys.modules["__main__"]
    script = getattr(main, "__file__", None)
    main.__file__ = None
    try:
        yield
    finally:
        main.__file__ = script
