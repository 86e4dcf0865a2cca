"""Work is told from waiting: what a worker does, and what the others wait for it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.analysis.breakdown import amounts as breakdown_amounts
from bench.context import Measured
from bench.experiments.toolkit import parts
from bench.experiments.toolkit.parts import WorkDone, compute_and_straggler, work_samples
from bench.model import Interval


def workers(*done: tuple[float, float]) -> list[WorkDone]:
    return [
        WorkDone(node=f"n{number}", busy_seconds=seconds, units=units) for number, (seconds, units) in enumerate(done)
    ]


@pytest.mark.parametrize(
    ("done", "compute", "straggler"),
    [
        ([(2.0, 10), (2.0, 10)], 2.0, 0.0),
        ([(2.0, 10), (5.0, 10)], 2.0, 3.0),  # the same share each: the others wait for the slow one
        ([(3.0, 15), (3.0, 5)], 2.0, 1.0),  # the quick one took over work of the slow one
        ([(2.0, 10), (2.0, 10), (2.5, 10), (9.0, 10)], 2.0, 7.0),
        ([(4.0, 20), (0.0, 0)], 2.0, 2.0),  # one was given nothing
        ([(0.0, 0), (1.0, 0)], 0.0, 1.0),
        ([], 0.0, 0.0),
    ],
)
def test_workers_like_the_middle_one_would_take_compute_and_the_rest_is_the_stragglers(
    done: list[tuple[float, float]], compute: float, straggler: float
) -> None:
    assert compute_and_straggler(workers(*done)) == pytest.approx((compute, straggler))


some_work = st.lists(st.tuples(st.floats(0, 1e3), st.floats(0.001, 1e6)), min_size=2, max_size=9)


@given(done=some_work, sleep=st.floats(0, 1e3))
def test_a_sleep_in_the_busiest_worker_is_a_stragglers_and_no_work(
    done: list[tuple[float, float]], sleep: float
) -> None:
    done = [(seconds, 10.0) for seconds, _ in done]  # the same share each
    compute, straggler = compute_and_straggler(workers(*done))
    slowest = done.index(max(done))
    done[slowest] = (done[slowest][0] + sleep, done[slowest][1])
    assert compute_and_straggler(workers(*done)) == pytest.approx((compute, straggler + sleep))


@given(done=some_work)
def test_both_parts_together_are_what_the_busiest_worker_took(done: list[tuple[float, float]]) -> None:
    compute, straggler = compute_and_straggler(workers(*done))
    assert compute + straggler == pytest.approx(max(seconds for seconds, _ in done))
    assert min(compute, straggler) >= 0


def test_rounds_add_up_and_nodes_have_the_mean_of_their_workers() -> None:
    measured = Measured[None](results=(), interval=Interval(0, 10), arm="ray", turn=1, warmup=False)
    halves = [
        WorkDone(node=node, busy_seconds=seconds, units=1) for node, seconds in (("a", 1.0), ("a", 3.0), ("b", 1.0))
    ]
    found = {(sample.metric, sample.node): sample.value for sample in work_samples(measured, [halves, halves])}
    assert found == {
        ("compute_seconds", None): 2.0,
        ("straggler_seconds", None): 4.0,
        ("busy_seconds", "a"): 4.0,
        ("busy_seconds", "b"): 2.0,
    }


def test_the_breakdown_knows_the_parts_by_what_they_mean() -> None:
    defined = (*parts.WORK_METRICS, parts.SERIALISE, parts.QUEUE, parts.ROUND_TRIPS)
    assert {metric.means for metric in defined} == set(breakdown_amounts.PARTS)
