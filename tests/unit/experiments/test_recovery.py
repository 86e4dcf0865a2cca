"""A fault is recovered from when what it took is back, and not before."""

from __future__ import annotations

import pytest

from bench.experiments.toolkit.faults import PAUSE_SECONDS, Kind
from bench.experiments.toolkit.recovery import Recoveries, Recovery

THERE = ["head/0", "worker-1/1", "worker-1/2"]


def after(kind: Kind, node: str = "worker-1") -> Recoveries:
    found = Recoveries(workers=lambda: THERE)
    found.injected(kind, node, 100.0)
    return found


def seconds(found: Recoveries, losses: list[tuple[str, float]] | None = None) -> list[float | None]:
    return [each.seconds for each in found.recovered(losses or [])]


def test_a_worker_is_back_when_the_one_in_its_place_has_done_a_part() -> None:
    found = after("worker")
    found.saw("worker-1", "worker-1/1", 101.0)  # was there before
    found.saw("head", "head/3", 102.0)  # is in another place
    assert seconds(found) == [None]
    found.saw("worker-1", "worker-1/3", 103.5)
    found.saw("worker-1", "worker-1/3", 104.0)
    assert seconds(found) == [3.5]


def test_one_worker_is_the_recovery_of_one_fault() -> None:
    found = after("worker")
    found.injected("worker", "worker-1", 101.0)
    found.saw("worker-1", "worker-1/3", 103.0)
    found.saw("worker-1", "worker-1/3", 103.1)
    assert seconds(found) == [3.0, None]


def test_a_node_that_joins_is_the_recovery_of_one_fault_however_many_its_workers_are() -> None:
    found = after("join", "")
    found.injected("join", "", 101.0)
    found.saw("joined-1", "joined-1/3", 103.0)
    found.saw("joined-1", "joined-1/4", 103.5)
    found.saw("joined-2", "joined-2/5", 105.0)
    assert seconds(found) == [3.0, 4.0]


def test_a_node_is_got_over_when_all_that_it_had_in_hand_is_done_elsewhere() -> None:
    found = after("raylet")
    found.saw("head", "head/0", 101.0)
    losses = [("worker-1", 99.0), ("worker-1", 107.0), ("worker-1", 109.0), ("head", 120.0)]
    assert seconds(found, losses) == [9.0]
    assert seconds(after("raylet")) == [None]


def test_a_node_that_was_paused_is_back_when_it_does_a_part_after_it_woke() -> None:
    found = after("pause")
    found.saw("worker-1", "worker-1/1", 100.1)  # was on its way
    found.saw("worker-1", "worker-1/1", 101.0 + PAUSE_SECONDS)
    assert seconds(found) == [1.0 + PAUSE_SECONDS]
    assert seconds(after("pause"), [("worker-1", 111.0)]) == [11.0]  # it was given up


@pytest.mark.parametrize("kind", ["driver", "head"])
def test_the_next_attempt_is_under_way_with_its_first_part(kind: Kind) -> None:
    found = after(kind)
    found.saw("head", "head/0", 102.0)
    assert list(found.recovered([])) == [Recovery(kind=kind, seconds=2.0)]
