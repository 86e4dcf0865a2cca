"""METG against efficiencies that are simulated, and the real sweep."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.context import Measured
from bench.errors import BadInput
from bench.experiments.granularity.metrics import batch_for, frontier, least_task_seconds, overhead_seconds
from bench.experiments.granularity.params import LABEL, Params, Point
from bench.experiments.granularity.run import Done
from bench.model import Interval


def simulated(overhead: float, lengths: Sequence[float]) -> dict[float, float]:
    return {length: length / (length + overhead) for length in lengths}


LENGTHS = (0.0001, 0.001, 0.01, 0.1, 1.0)


def test_with_1_ms_of_overhead_half_of_the_cpu_is_kept_by_tasks_of_1_ms() -> None:
    assert least_task_seconds(simulated(0.001, LENGTHS), 0.5) == pytest.approx(0.001, rel=0.1)
    assert least_task_seconds(simulated(0.001, LENGTHS), 0.9) == pytest.approx(0.009, rel=0.1)


@given(overhead=st.floats(2e-4, 5e-2), share=st.sampled_from((0.5, 0.9)))
def test_the_frontier_is_found_between_the_lengths_that_were_tried(overhead: float, share: float) -> None:
    found = least_task_seconds(simulated(overhead, LENGTHS), share)
    assert found == pytest.approx(overhead * share / (1 - share), rel=0.1)


@given(overhead=st.floats(5e-4, 2e-2), noise=st.lists(st.floats(0.97, 1.03), min_size=5, max_size=5))
def test_a_little_noise_moves_the_half_way_point_a_little(overhead: float, noise: list[float]) -> None:
    exact = simulated(overhead, LENGTHS)
    noisy = {length: exact[length] * factor for length, factor in zip(LENGTHS, noise, strict=True)}
    assert least_task_seconds(noisy, 0.5) == pytest.approx(overhead, rel=0.35)


def test_one_lucky_short_task_does_not_move_the_frontier() -> None:
    efficiencies = {0.0001: 0.95, 0.001: 0.2, 0.01: 0.95, 0.1: 0.99}
    found = least_task_seconds(efficiencies, 0.5)
    assert found is not None
    assert 0.001 < found < 0.01


def test_out_of_reach_is_said_and_everything_in_reach_is_the_shortest() -> None:
    assert least_task_seconds({0.1: 0.4, 0.01: 0.1}, 0.5) is None
    assert least_task_seconds({}, 0.5) is None
    assert least_task_seconds({0.1: 1.2, 0.01: 0.99}, 0.9) == 0.01


@pytest.mark.parametrize(
    ("job", "task", "batch"), [(0.001, 0.009, 9), (0.001, 0.0091, 10), (0.1, 0.009, 1), (0.0001, 0.01, 100)]
)
def test_the_batch_is_the_least_that_makes_a_task_long_enough(job: float, task: float, batch: int) -> None:
    assert batch_for(job, task) == batch


def test_overhead_is_what_the_cpus_did_beside_the_work() -> None:
    assert overhead_seconds(wall_seconds=1.0, work_seconds=1.5, tasks=100, cpus=2) == pytest.approx(0.005)


def test_points_are_every_job_in_every_batch_up_to_the_longest_task() -> None:
    points = Params(shortest=0.001, longest=0.1, growth=10, most_batch=100).points
    assert [(point.job_seconds, point.batch) for point in points] == [
        (0.001, 1),
        (0.001, 10),
        (0.001, 100),
        (0.01, 1),
        (0.01, 10),
        (0.1, 1),
    ]
    with pytest.raises(BadInput, match="more than longest"):
        Params(shortest=2.0, longest=1.0)


def test_a_task_under_ten_milliseconds_carries_the_label() -> None:
    assert str(Point(job_seconds=0.001, batch=1)) == f"1 ms x 1, {LABEL}"
    assert str(Point(job_seconds=0.001, batch=10)) == "1 ms x 10"
    assert str(Point(job_seconds=0.1, batch=1)) == "100 ms x 1"


@given(job=st.floats(1e-4, 2.0), batch=st.integers(1, 100), cpus=st.integers(1, 64))
def test_every_cpu_gets_as_many_tasks_as_the_others(job: float, batch: int, cpus: int) -> None:
    tasks = Point(job_seconds=job, batch=batch).tasks(cpus)
    assert tasks >= cpus
    assert tasks % cpus == 0


def test_the_frontier_of_simulated_turns_names_the_batch_to_use() -> None:
    params = Params(shortest=0.0001, longest=1.0, most_batch=10)
    measured = {point: [point.task_seconds / (point.task_seconds + 0.001)] * 3 for point in params.points}
    whole = Measured(
        results=[Done(jobs={}, seconds=1.0)], interval=Interval(0, 1), arm="ray-tasks", turn=1, warmup=False
    )
    found = {(s.metric, s.point): s.value for s in frontier(whole, params, measured)}
    assert found["least_task_50_seconds", ""] == pytest.approx(0.001, rel=0.1)
    assert found["least_task_90_seconds", ""] == pytest.approx(0.009, rel=0.1)
    assert found["batch_for_90_percent", "0.1 ms"] == pytest.approx(90, abs=9)
    assert found["batch_for_90_percent", "100 ms"] == 1


def test_a_frontier_that_was_not_reached_is_missing_with_its_reason() -> None:
    params = Params(longest=0.001)
    whole = Measured(
        results=[Done(jobs={}, seconds=1.0)], interval=Interval(0, 1), arm="ray-tasks", turn=1, warmup=False
    )
    measured = {point: [0.3] for point in params.points}
    assert {s.reason for s in frontier(whole, params, measured)} == {
        "tasks of 0.001 s do not reach 50 %",
        "tasks of 0.001 s do not reach 90 %",
    }


def test_a_lost_job_is_a_problem() -> None:
    assert Done(jobs={"head": 3, "worker-1": 4}, seconds=1).problem(7) is None
    assert Done(jobs={"head": 3}, seconds=1).problem(7) == "3 jobs were done, and 7 were asked for"
