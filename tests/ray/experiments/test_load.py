"""Open-loop load on a real Ray: calls are sent when they are due."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from bench.experiments.toolkit.histograms import histogram, seconds_at
from bench.experiments.toolkit.load import RayCalls, closed_loop, due_seconds, open_loop


@pytest.mark.timeout(120)
def test_an_actor_that_stalls_is_seen_by_the_open_loop_and_hidden_by_the_closed_one(local_ray: Sequence[Any]) -> None:
    import ray

    class Stalling:
        def __init__(self) -> None:
            from time import monotonic

            self.next = monotonic() + 1.0

        def answer(self) -> bytes:
            from time import monotonic, sleep

            if monotonic() >= self.next:
                self.next = monotonic() + 2.0
                sleep(0.5)
            return b"ok"

    actor = ray.remote(Stalling).options(num_cpus=0).remote()
    try:
        ray.get(actor.__ray_ready__.remote())
        calls = RayCalls(lambda _slot, _number: actor.answer.remote(), slots=1)
        open_one = open_loop(calls, due_seconds("constant", 100.0, 500, "7"), most_outstanding=1_000)
        closed_one = closed_loop(calls, 5.0, in_flight=1)
    finally:
        ray.kill(actor)
    assert not open_one.overloaded
    assert [*open_one.values, *closed_one.values] == [b"ok"] * (500 + len(closed_one.values))
    # A stall of 0.5 s is a fifth of the time: of calls that do not wait for answers, a tenth waits for half of it.
    assert seconds_at(histogram(open_one.response_seconds), 900) >= 0.2
    assert seconds_at(histogram(closed_one.response_seconds), 900) <= 0.1
    assert max(closed_one.response_seconds) >= 0.5


def test_a_call_that_fails_is_an_answer_too(local_ray: Sequence[Any]) -> None:
    import ray

    def fail() -> bytes:
        raise ValueError("on purpose")

    failing = ray.remote(fail).options(num_cpus=0)
    load = open_loop(RayCalls(lambda _slot, _number: failing.remote(), slots=1), [0.01, 0.02], most_outstanding=10)
    assert [type(value).__name__ for value in load.values] == ["RayTaskError(ValueError)"] * 2
