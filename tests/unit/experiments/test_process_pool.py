"""A pool of plain processes does every task once, says which process was lost, and leaves none."""

from __future__ import annotations

import os
import signal
import time

import psutil
import pytest

from bench.errors import RunFailed, RunInvalid
from bench.experiments.toolkit import process_pool
from bench.experiments.toolkit.process_pool import ProcessPool

pytestmark = pytest.mark.timeout(120)


class Squares:
    """A worker of a pool."""

    def __init__(self, offset: int) -> None:
        self.offset = offset

    def square(self, number: int) -> tuple[int, int]:
        return os.getpid(), number**2 + self.offset

    def here(self) -> tuple[int, str]:
        return os.getpid(), os.environ["OMP_NUM_THREADS"]

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)


def test_every_task_is_done_once_by_workers_made_of_the_arguments() -> None:
    with ProcessPool(Squares, 100, processes=2, threads=3) as pool:
        assert sorted(square for _, square in pool.results("square", range(5), seconds=60.0)) == [
            100 + number**2 for number in range(5)
        ]
        each = pool.on_each("here", seconds=60.0)
        assert sorted(each) == [(process, "3") for process in sorted(pool.processes)]
        assert len(pool.processes) == 2
        assert os.environ.get("OMP_NUM_THREADS") != "3"


def test_the_processes_of_a_pool_end_with_it() -> None:
    with ProcessPool(Squares, 0, processes=2) as pool:
        processes = [psutil.Process(process) for process in pool.processes]
        assert len(processes) == 2
    assert psutil.wait_procs(processes, timeout=30)[1] == []


def test_a_process_that_is_lost_is_no_wait_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_pool, "END_SECONDS", 0.5)  # the lost process may hold a lock that the end waits for
    with ProcessPool(Squares, 0, processes=1) as pool:
        pool.on_each("here", seconds=60.0)
        results = pool.results("wait", [60.0], seconds=90.0)
        (process,) = pool.processes
        os.kill(process, signal.SIGKILL)
        with pytest.raises(RunInvalid, match="A process of a pool was lost"):
            next(results)


def test_tasks_that_take_too_long_are_given_up() -> None:
    with ProcessPool(Squares, 0, processes=1) as pool:
        pool.on_each("here", seconds=60.0)
        with pytest.raises(RunFailed, match="did no task in time"):
            next(pool.results("wait", [60.0], seconds=0.5))
