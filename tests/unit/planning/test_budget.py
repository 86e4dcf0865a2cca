"""A session keeps to its time: what has no room is dropped by name, and it ends before it is over."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from builders import RATE, a_session, a_spec, a_topology

from bench.errors import BadInput, DoesNotFit
from bench.model import Session, Spec
from bench.options import seconds_of, share_of
from bench.planning import plan
from bench.planning.budget import Limits, cells_of, fit
from bench.planning.plan import NOTHING_KNOWN, Known
from bench.studies import Study

UP = sum(plan.UP_SECONDS.values()) + 2 * plan.DOWN_SECONDS  # of a block


def a_plan(*, blocks: int, cells: int = 1, **changes: object) -> Session:
    specs = tuple(
        a_spec(
            id=f"b{block:02d}-{name}-inference-c{cell:02d}",
            block=block,
            cell=f"c{cell:02d}",
            params={"batch": cell},
            topology=a_topology(name),
        )
        for block in range(1, blocks + 1)
        for name in ("single", "multi")
        for cell in range(1, cells + 1)
    )
    return a_session(specs, **changes)


def known(session: Session, seconds: float = 10.0, **changes: Any) -> Known:
    return Known(**{"runs": {plan.time_key(spec): seconds for spec in session.specs}, "quiet_check": 0.0} | changes)


def fitted(blocks: int, cells: int, budget_seconds: float) -> tuple[int, int, tuple[str, ...]]:
    """Blocks and cells that are left of a plan in which a run takes 10 s, and what was dropped."""
    session = a_plan(blocks=blocks, cells=cells, budget=f"{budget_seconds:.0f}s")
    found = fit(session, known(session))
    assert plan.estimate_seconds(found, known(session)) <= budget_seconds
    return max(spec.block for spec in found.specs), len(cells_of(found)), found.dropped


def test_a_plan_that_fits_is_left_as_it_is() -> None:
    session = a_plan(blocks=8, budget=f"{8 * (UP + 20):.0f}s")
    assert fit(session, known(session)) == session
    assert fit(replace(session, budget=""), NOTHING_KNOWN).specs == session.specs


def test_blocks_beyond_six_are_dropped_first_then_cells_from_the_end_then_blocks() -> None:
    assert fitted(8, 3, 7 * (UP + 60)) == (7, 3, ("block 8",))
    assert fitted(9, 3, 6 * (UP + 60)) == (6, 3, ("blocks 7 to 9",))
    assert fitted(8, 3, 6 * (UP + 40)) == (6, 2, ("blocks 7 to 8", "cell inference c03 (batch=3)"))
    assert fitted(6, 3, 6 * (UP + 40)) == (6, 2, ("cell inference c03 (batch=3)",))
    assert fitted(6, 2, 2 * (UP + 20)) == (2, 1, ("blocks 3 to 6", "cell inference c02 (batch=2)"))


def test_a_budget_without_room_for_one_block_is_refused() -> None:
    session = a_plan(blocks=6, budget="30s")
    with pytest.raises(DoesNotFit, match=r"must be at least .* the time of one block of one cell"):
        fit(session, known(session))


def test_an_experiment_without_a_cell_is_no_part_of_the_session() -> None:
    spec = a_spec(experiment="network", id="b01-single-network-c01", params={})
    metrics = {"inference": (RATE,), "network": (RATE,)}
    studies = dict.fromkeys(metrics, Study(title="a study", settings=(), tables=()))
    session = a_session(
        (a_spec(), spec), metrics=metrics, arms=dict.fromkeys(metrics, ()), studies=studies, budget="20s"
    )
    found = fit(session, known(session))
    assert (list(found.metrics), list(found.arms), list(found.studies)) == (["inference"],) * 3


def test_waits_before_blocks_and_clusters_are_given_the_time_that_they_took_in_earlier_sessions() -> None:
    session = a_plan(blocks=8, budget=f"{8 * (UP + 20):.0f}s")
    waits = known(session, quiet_check=12.0)
    assert len({spec.block for spec in fit(session, waits).specs}) == int(8 * (UP + 20) / (UP + 20 + 12))
    slow = known(session, clusters={"single": 20.0, "multi": 30.0})
    assert plan.estimate_seconds(session, slow) == pytest.approx(8 * (20 + 30 + 20))
    assert plan.estimate_seconds(session, slow) == pytest.approx(
        plan.estimate_seconds(session, known(session)) + 8 * (50 - UP)
    )


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def lived(  # type: ignore[no-untyped-def]
    session: Session,
    takes: Callable[[Spec], float],
    is_precise: Callable[[], bool] = lambda: False,
    waits: Callable[[], float] = lambda: 0.0,
    up_seconds: Mapping[str, float] = plan.UP_SECONDS,
):
    """What a session that takes so long comes to: runs done, its seconds, why it ended. Asked as `session.perform` asks."""
    clock = Clock()
    limits = Limits(session=session, todo=session.specs, known=known(session), is_precise=is_precise, clock=clock)
    stood_up, block, done = None, None, []
    for spec in session.specs:
        if spec.block != block:
            block = spec.block
            if why := limits.enough(spec):
                return done, clock.now - 100.0, why
            clock.now += min(waits(), limits.most_wait_seconds)
        if why := limits.enough(spec):
            return done, clock.now - 100.0, why
        if (spec.block, spec.topology.name) != stood_up:
            stood_up = (spec.block, spec.topology.name)
            clock.now += up_seconds[spec.topology.name] + plan.DOWN_SECONDS
        clock.now += takes(spec)
        done.append(spec)
    return done, clock.now - 100.0, ""


@pytest.mark.parametrize("seed", range(10))
def test_ten_simulated_sessions_end_within_a_tenth_over_their_budget(seed: int) -> None:
    draw = random.Random(seed)
    slower = draw.uniform(0.5, 3.0)  # than was expected
    wanted = a_plan(blocks=draw.randint(6, 40), cells=draw.randint(1, 4), budget=f"{draw.randint(600, 3600)}s")
    session = fit(wanted, known(wanted))
    done, seconds, why = lived(session, lambda _: 10.0 * slower * draw.uniform(0.8, 1.2))
    assert seconds <= 1.1 * (session.budget_seconds or 0.0)
    assert bool(why) == (len(done) < len(session.specs))


def test_a_block_may_wait_as_long_as_the_budget_and_a_tenth_of_it_last() -> None:
    clock, session = Clock(), a_plan(blocks=6, budget="60s")
    limits = Limits(session=session, todo=session.specs, known=known(session), clock=clock)
    clock.now += 58.0
    assert limits.most_wait_seconds == pytest.approx(2.0 + 6.0)
    without = replace(session, budget="")
    endless = Limits(session=without, todo=without.specs, known=known(without), clock=clock)
    assert endless.most_wait_seconds == math.inf


@pytest.mark.parametrize("seed", range(10))
def test_waits_for_a_quiet_machine_and_slow_clusters_end_no_session_later_than_that(seed: int) -> None:
    draw = random.Random(seed)
    wanted = a_plan(blocks=draw.randint(6, 40), cells=draw.randint(1, 4), budget=f"{draw.randint(300, 1800)}s")
    session = fit(wanted, known(wanted))
    up = {"single": 6.0, "multi": draw.uniform(9.0, 12.0)}
    _, seconds, _ = lived(session, lambda _: 10.0, waits=lambda: draw.choice((0.5, 60.0)), up_seconds=up)
    assert seconds <= 1.1 * (session.budget_seconds or 0.0)


def test_a_session_as_slow_as_expected_is_done_whole() -> None:
    session = a_plan(blocks=8, budget=f"{8 * (UP + 20) + 1:.0f}s")
    done, _, why = lived(session, lambda _: 10.0)
    assert (len(done), why) == (16, "")


def test_a_slow_session_ends_between_blocks_and_says_what_was_left() -> None:
    session = a_plan(blocks=8, budget=f"{8 * (UP + 20):.0f}s")
    done, _, why = lived(session, lambda _: 20.0)
    assert len(done) % 2 == 0
    assert "of the budget of 7 min were left, and a block takes 67 s" in why


def test_a_block_far_slower_than_expected_is_not_seen_to_its_end() -> None:
    session = a_plan(blocks=2, cells=4, budget=f"{2 * (UP + 80) + 1:.0f}s")
    done, seconds, why = lived(session, lambda _: 110.0)
    assert (len(done), seconds <= 1.1 * (session.budget_seconds or 0.0) + 90) == (2, True)
    assert "no room for another run" in why


def test_precision_is_asked_for_before_each_block_and_ends_the_session() -> None:
    session = a_plan(blocks=4, cells=2, precision="3%")
    asked: list[int] = []

    def is_precise() -> bool:
        asked.append(1)
        return len(asked) == 3

    done, _, why = lived(session, lambda _: 10.0, is_precise)
    assert (len(done), len(asked), why) == (8, 3, "the precision of 3 % was reached")


def test_without_a_precision_no_result_is_looked_at() -> None:
    def never() -> bool:
        raise AssertionError("a result was looked at")

    assert lived(a_plan(blocks=2, budget="1000000s"), lambda _: 10.0, never)[2] == ""


@pytest.mark.parametrize(("text", "seconds"), [("20m", 1200), ("90s", 90), ("1h30m", 5400), ("2h", 7200)])
def test_a_budget_is_a_time(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "20", "m", "0m", "-5m", "20m5h", "1.5h"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="must be a time such as 20m"):
        seconds_of(text)


def test_a_precision_is_a_percentage() -> None:
    assert share_of("3%") == pytest.approx(0.03)
    assert share_of("0.5 %") == pytest.approx(0.005)
    for text in ("3", "0%", "100%", "x%"):
        with pytest.raises(BadInput, match="must be a percentage such as 3%"):
            share_of(text)
