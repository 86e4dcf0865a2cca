"""The worker pool on a clock of its own: what becomes of items whose workers are slow, die, or come later."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
import ray
from hypothesis import given, settings
from hypothesis import strategies as st
from ray.exceptions import ObjectLostError, RayActorError

from bench.context import NodeSlot
from bench.errors import RunFailed
from bench.experiments.toolkit import pool as module
from bench.experiments.toolkit.placement import Place
from bench.experiments.toolkit.pool import MAX_FAILURES, OVERDUE_SECONDS, Answer, Counts, WorkerPool

NEVER = 1e9
IN_FLIGHT = 2
STALL_SECONDS = 300.0


def call(actor: Actor, item: int) -> Any:
    return actor.do.remote(item)


def place(name: str = "head") -> Place:
    return Place(node=NodeSlot(name=name, node_id=name, cpus=1, threads=1), cpus=0.0, threads=1)


@dataclass(eq=False)
class Call:
    """A reference: when its answer is there, and what it is."""

    at: float
    answer: Any
    part: int


@dataclass(eq=False)
class Actor:
    """Does one part after another; `dies_at` ends it with all that it has."""

    world: World
    name: str
    seconds: Callable[[str, int], float]
    dies_at: float = NEVER
    free_at: float = 0.0

    @property
    def do(self) -> Any:
        return SimpleNamespace(remote=self._do)

    def _do(self, part: int) -> Call:
        self.world.calls.append((self.name, part))
        begin = max(self.world.now, self.free_at)
        self.free_at = begin + self.seconds(self.name, part)
        if part in self.world.raises:
            return Call(self.free_at, ValueError("this item is no good"), part)
        if self.free_at <= self.dies_at:
            return Call(self.free_at, part, part)
        return Call(max(self.dies_at, self.world.now), RayActorError(), part)


@dataclass
class World:
    """Stands in for Ray and for the clock: `wait` moves the time on."""

    seconds: Callable[[str, int], float] = lambda _name, _part: 1.0
    deaths: dict[str, float] = field(default_factory=dict)  # by the worker's name
    places: list[Place] = field(default_factory=lambda: [place(), place("worker-1")])
    joins: list[tuple[float, Place]] = field(default_factory=list)
    now: float = 0.0
    calls: list[tuple[str, int]] = field(default_factory=list)
    done: list[int] = field(default_factory=list)
    cancelled: list[int] = field(default_factory=list)
    raises: tuple[int, ...] = ()
    max_failures: int = MAX_FAILURES
    lost_answers: list[int] = field(default_factory=list)  # parts whose answer goes with its node, once each

    def spawn(self, _: Place, name: str) -> Actor:
        return Actor(self, name, self.seconds, self.deaths.get(name, NEVER), self.now)

    def standing(self) -> Sequence[Place]:
        return [*self.places, *(there for at, there in self.joins if at <= self.now)]

    def wait(
        self, calls: Sequence[Call], *, num_returns: int = 1, timeout: float, fetch_local: bool = True
    ) -> tuple[list[Call], list[Call]]:
        first = min((call.at for call in calls), default=NEVER)
        self.now = max(self.now, min(first, self.now + timeout))
        ready = [call for call in calls if call.at <= self.now][:num_returns]
        return ready, [call for call in calls if call not in ready]

    def get(self, calls: Call | Sequence[Call]) -> Any:
        if not isinstance(calls, Call):
            lost = list(self.lost_answers)
            try:
                return [self._answer(call) for call in calls]
            except ObjectLostError:
                self.lost_answers = lost  # the call is then asked for by itself
                raise
        return self._answer(calls)

    def _answer(self, call: Call) -> Any:
        if isinstance(call.answer, Exception):
            raise call.answer
        if call.part in self.lost_answers:
            self.lost_answers.remove(call.part)
            raise ObjectLostError("00", "", "")
        return call.answer

    def cancel(self, call: Call, *, force: bool) -> None:
        assert not force
        self.cancelled.append(call.part)

    def kill(self, actor: Actor) -> None:
        assert actor.dies_at <= self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def keep(self, answers: Sequence[Answer]) -> None:
        assert all(answer.number == answer.value for answer in answers)
        self.done += [answer.value for answer in answers]

    def run(self, count: int, *, rounds: int = 1) -> Counts:
        """All items by a new pool, every one answered once."""
        with pytest.MonkeyPatch.context() as patch:
            for name in ("wait", "get", "cancel", "kill"):
                patch.setattr(ray, name, getattr(self, name))
            patch.setattr(module, "sleep", self.sleep)
            patch.setattr(module, "monotonic", lambda: self.now)
            pool = WorkerPool(
                self.spawn,
                self.standing,
                in_flight=IN_FLIGHT,
                stall_seconds=STALL_SECONDS,
                max_failures=self.max_failures,
                speculation=True,
            )
            for _ in range(rounds):
                self.done.clear()
                counts = pool.run(call, range(count), self.keep)
                assert sorted(self.done) == list(range(count))
            assert all(worker.calls == 0 for worker in pool.workers)
            return counts


def test_a_worker_never_has_more_than_the_part_in_hand_and_one_that_waits() -> None:
    held: list[int] = []
    world = World()

    def seconds(name: str, part: int) -> float:
        held.append(
            sum(who == name for who, _ in world.calls) - sum(p in world.done for w, p in world.calls if w == name)
        )
        return 1.0

    world.seconds = seconds
    counts = world.run(20)
    assert max(held) <= IN_FLIGHT + 1  # an answer that is taken but not noted yet is one more
    assert (counts.calls, counts.duplicates, counts.losses) == (20, [], [])


def test_a_slow_worker_gets_less_and_nobody_waits_long_for_it() -> None:
    world = World(seconds=lambda name, _: 4.0 if name == "head/0" else 1.0)
    counts = world.run(50)
    shares = Counter(name for name, _ in world.calls)
    assert shares["worker-1/1"] == pytest.approx(40, abs=2)
    ends = counts.last_answer.values()
    assert max(ends) - min(ends) <= 2 * 4.0


def test_a_part_that_is_overdue_is_given_to_another_and_its_late_answer_is_asked_for_no_more() -> None:
    held_up = [True]

    def seconds(_: str, part: int) -> float:
        return 50.0 if part == 3 and held_up and held_up.pop() else 1.0

    world = World(seconds=seconds)
    counts = world.run(30)
    assert 3 in world.cancelled
    assert Counter(part for _, part in world.calls)[3] == 2
    assert world.now < 50.0
    assert counts.duplicates == []


def test_a_worker_that_is_held_up_by_the_round_before_holds_up_no_other() -> None:
    held_up = [True]
    world = World(seconds=lambda _, part: 500.0 if part == 3 and held_up and held_up.pop() else 1.0)
    world.run(30, rounds=3)
    assert world.now < 200.0


def test_a_late_answer_that_comes_after_the_second_is_counted_and_thrown_away() -> None:
    held_up = [True]

    def seconds(_: str, part: int) -> float:
        return 3 * OVERDUE_SECONDS if part == 0 and held_up and held_up.pop() else 1.0

    world = World(seconds=seconds)
    counts = world.run(80)
    assert counts.duplicates
    assert counts.calls == 80 + len(counts.duplicates)
    assert counts.losses == []


def test_what_takes_long_for_everybody_is_given_to_nobody_else() -> None:
    world = World(seconds=lambda _name, _part: 3 * OVERDUE_SECONDS)
    counts = world.run(12)
    assert counts.calls == 12


def test_a_worker_that_died_is_replaced_and_its_parts_are_done_by_others_the_oldest_first() -> None:
    world = World(deaths={"head/0": 2.5})
    counts = world.run(20)
    assert [loss.worker for loss in counts.losses] == ["head/0"]
    assert 0 < counts.losses[0].recovered_at - counts.losses[0].at <= 4.0
    assert counts.calls == 20 + IN_FLIGHT
    spawned = [name for name, _ in world.calls if name == "head/2"]
    assert spawned  # in the place of the dead one
    again = [part for part, times in Counter(part for _, part in world.calls).items() if times == 2]
    order = [part for _, part in world.calls if part in again]
    assert order[IN_FLIGHT:] == sorted(order[IN_FLIGHT:])


@pytest.mark.parametrize("losses", range(1, MAX_FAILURES))
def test_a_part_may_cost_workers_up_to_one_less_than_would_prove_it_deadly(losses: int) -> None:
    begun: list[str] = []

    def seconds(name: str, part: int) -> float:
        if part == 5:
            begun.append(name)
        return NEVER if part == 5 and len(begun) <= losses else 1.0

    deaths = {f"head/{number}": 10.0 * (number + 1) for number in range(losses)}
    counts = World(seconds=seconds, deaths=deaths, places=[place()]).run(10)
    assert [loss.worker for loss in counts.losses] == list(deaths)
    assert len(set(begun)) == losses + 1


def test_a_part_that_ends_whoever_does_it_ends_the_run() -> None:
    world = World(
        seconds=lambda _, part: NEVER if part == 4 else 1.0,
        deaths={f"head/{number}": 10.0 * (number + 1) for number in range(10)},
        places=[place()],
    )
    with pytest.raises(RunFailed, match=f"Item 4 failed {MAX_FAILURES} times"):
        world.run(10)


def test_where_no_item_may_raise_the_first_error_ends_the_run() -> None:
    world = World(raises=(3,), max_failures=1)
    with pytest.raises(RunFailed, match="Item 3 failed once with: this item is no good"):
        world.run(9)
    assert Counter(item for _, item in world.calls)[3] == 1


def test_an_item_that_raises_is_tried_on_every_worker_before_one_has_it_again() -> None:
    world = World(raises=(3,))
    with pytest.raises(RunFailed, match=f"Item 3 failed {MAX_FAILURES} times, the last time with"):
        world.run(9)
    tried = [name for name, item in world.calls if item == 3]
    assert len(tried) == MAX_FAILURES
    assert set(tried[:2]) == {"head/0", "worker-1/1"}


def test_a_node_that_joins_gets_a_worker_and_work() -> None:
    world = World(joins=[(5.0, place("joined-2"))])
    counts = world.run(40)
    assert any(name.startswith("joined-2/") for name, _ in world.calls)
    assert {name.split("/")[0] for name in counts.last_answer} == {"head", "worker-1", "joined-2"}
    assert world.now < 18.0


def test_without_a_worker_it_waits_for_one_and_not_for_ever() -> None:
    assert World(places=[], joins=[(20.0, place())]).run(3).calls == 3
    world = World(places=[])
    with pytest.raises(RunFailed, match="from 0 workers"):
        world.run(3)
    assert STALL_SECONDS < world.now < STALL_SECONDS + 2


def test_workers_that_never_answer_end_the_run() -> None:
    world = World(seconds=lambda _name, _part: NEVER)
    with pytest.raises(RunFailed, match="No answer in 300 s from 2 workers with 4 calls in flight"):
        world.run(9)


def test_an_answer_that_went_with_its_node_is_made_again() -> None:
    world = World(lost_answers=[2, 5])
    counts = world.run(10)
    assert (counts.calls, counts.duplicates) == (12, [])


@settings(deadline=None, max_examples=60)
@given(
    st.integers(0, 40),
    st.lists(st.floats(0.0, 30.0), min_size=5, max_size=5),
    st.lists(st.sampled_from([0.01, 0.5, 1.0, 4.0, 40.0]), min_size=7, max_size=7),
    st.floats(0.0, 20.0),
)
def test_whatever_happens_to_workers_every_item_is_answered_once(
    count: int, deaths: list[float], seconds: list[float], joins_at: float
) -> None:
    names = ("head/0", "worker-1/1", "head/2", "worker-1/3", "head/4")
    world = World(
        seconds=lambda name, part: seconds[(part + len(name)) % 7],
        deaths=dict(zip(names, deaths, strict=True)),
        joins=[(joins_at, place("joined-2"))],
    )
    try:
        counts = world.run(count)
    except RunFailed as failed:  # all of them may die at the same part
        assert f"failed {MAX_FAILURES} times" in str(failed)  # noqa: PT017, the only way out that there may be
        return
    assert counts.calls >= count
