"""The pool gives one answer an item, in order, and gets over actors that fail, die or are slow."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from bench.context import NodeSlot
from bench.errors import RunFailed
from bench.experiments.toolkit.placement import Place
from bench.experiments.toolkit.pool import Answer, Counts, WorkerPool

pytestmark = pytest.mark.timeout(60)


class Worker:
    """Answers with the item, unless it was told to fail."""

    def __init__(self, fails: str = "") -> None:
        self._fails = fails

    def answer(self, item: int) -> int:
        if self._fails == "always":
            raise ValueError("this actor is no good")
        if self._fails == "memory":
            raise MemoryError("cannot allocate 9 GB")
        if self._fails == "exits":
            os._exit(1)
        return item

    def answer_or_raise(self, item: int) -> int:
        if item == 3:
            raise ValueError("this item is no good")
        return item

    def answer_late(self, item: int) -> int:
        time.sleep(0.2)
        return item

    def answer_never(self, item: int) -> int:
        time.sleep(30)
        return item

    def answer_uneven(self, item: int) -> int:
        time.sleep(0.002 * (7 - item % 8))
        return item


Make = Callable[..., WorkerPool]
SLOT = Place(node=NodeSlot(name="head", node_id="", cpus=2, threads=2), cpus=0.5, threads=1)


@dataclass(frozen=True)
class Found:
    """What a run gave, in the items' order."""

    values: list[Any]
    answers: list[Answer]
    counts: Counts


@pytest.fixture
def a_pool(local_ray: object) -> Iterator[Make]:
    import ray

    pools: list[WorkerPool] = []

    def make(*fails: str, in_flight: int = 2, stall_seconds: float = 120.0, again: bool = False) -> WorkerPool:
        left = list(fails)

        def spawn(_: Place, __: str) -> Any:
            fault = left.pop(0) if left else max(fails) if again else ""
            return ray.remote(Worker).options(num_cpus=0.5).remote(fault)

        pools.append(WorkerPool(spawn, lambda: [SLOT] * len(fails), in_flight=in_flight, stall_seconds=stall_seconds))
        return pools[-1]

    yield make
    for pool in pools:
        pool.close()


def answers_of(pool: WorkerPool, items: int, method: str = "answer", first: int = 0) -> Found:
    answers: list[Answer] = []
    counts = pool.run(
        lambda actor, item: getattr(actor, method).remote(item), range(first, first + items), answers.extend
    )
    answers.sort(key=lambda answer: answer.number)
    return Found([answer.value for answer in answers], answers, counts)


@pytest.mark.parametrize("in_flight", [1, 3, 50])
def test_every_item_has_its_own_answer_whatever_the_order_they_come_in(a_pool: Make, in_flight: int) -> None:
    found = answers_of(a_pool("", "", in_flight=in_flight), 40, "answer_uneven")
    assert found.values == list(range(40))
    assert all(answer.seconds > 0 for answer in found.answers)
    assert {answer.worker.name for answer in found.answers} == {"head/0", "head/1"}
    assert (found.counts.failures, found.counts.losses) == (0, [])


def test_the_drivers_own_time_is_that_of_handing_over_and_taking_out_and_not_of_waiting(a_pool: Make) -> None:
    pool = a_pool("", "")
    answers_of(pool, 2)
    begin = time.monotonic()
    found = answers_of(pool, 8, "answer_late")
    took = time.monotonic() - begin
    assert 0 < found.counts.driver_seconds < took / 2  # the rest of it the actors sleep


def test_no_items_give_no_answers(a_pool: Make) -> None:
    assert answers_of(a_pool(""), 0).values == []


@pytest.mark.parametrize("again", [False, True], ids=["replaced by a good one", "replaced by a bad one"])
def test_one_actor_that_always_raises_costs_no_answer_and_is_counted(a_pool: Make, again: bool) -> None:
    found = answers_of(a_pool("", "always", again=again), 6)
    assert found.values == list(range(6))
    assert found.counts.failures > 0


def test_an_actor_that_exits_is_replaced_in_time(a_pool: Make) -> None:
    found = answers_of(a_pool("", "exits"), 40, "answer")
    assert found.values == list(range(40))
    assert [loss.worker for loss in found.counts.losses] == ["head/1"]
    assert found.counts.failures >= 1


def test_actors_that_fail_wherever_they_are_made_end_the_map_with_the_cause(a_pool: Make) -> None:
    with pytest.raises(RunFailed, match="this actor is no good"):
        answers_of(a_pool("always", "always", again=True), 6)


def test_items_of_a_map_that_was_given_up_are_never_in_the_next(a_pool: Make) -> None:
    pool = a_pool("", "")
    with pytest.raises(RunFailed, match=r"Item 3 failed 4 times.*this item is no good"):
        answers_of(pool, 12, "answer_or_raise")
    found = answers_of(pool, 12, first=100)
    assert found.values == list(range(100, 112))
    assert found.counts.failures == 0


def test_memory_that_runs_out_is_called_so(a_pool: Make) -> None:
    with pytest.raises(RunFailed, match=r"out of memory.*9 GB"):
        answers_of(a_pool("", "memory"), 6)


def test_a_worker_that_ray_ended_for_its_memory_is_called_so(a_pool: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    import ray
    from ray.exceptions import OutOfMemoryError

    pool = a_pool("")

    def ended(_: object) -> None:
        raise OutOfMemoryError("Task was killed due to the node running low on memory.")

    monkeypatch.setattr(ray, "get", ended)
    with pytest.raises(RunFailed, match="out of memory"):
        answers_of(pool, 1)


def test_actors_that_never_answer_end_the_map_in_time(a_pool: Make) -> None:
    with pytest.raises(RunFailed, match=r"No answer in 0\.5 s from 2 workers with 4 calls in flight"):
        answers_of(a_pool("", "", stall_seconds=0.5), 6, "answer_never")


def test_whichever_is_ready_is_taken_and_the_slow_do_not_hold_the_rest(a_pool: Make) -> None:
    import ray

    pool = a_pool("", "")
    answers_of(pool, 2)
    begin = time.monotonic()
    assert answers_of(pool, 8, "answer_late").values == list(range(8))
    together = time.monotonic() - begin
    begin = time.monotonic()
    assert [ray.get(pool.workers[item % 2].actor.answer_late.remote(item)) for item in range(8)] == list(range(8))
    in_a_loop = time.monotonic() - begin
    assert in_a_loop / together > 1.4  # 2.0 on a machine that does nothing else
