"""What the trials of a search add up to: checked by hand, by another way of counting, and by what must always hold."""

from __future__ import annotations

import math
import random
import statistics
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.experiments.toolkit import parts
from bench.experiments.tune import trials as totals
from bench.experiments.tune.training import Config, IterationReport
from bench.experiments.tune.trials import IterationsToTarget, TrialRun, Used

CONFIG = Config(lr=0.1, momentum=0.5, hidden=32)
iterations = st.integers(1, 500)
amounts = st.lists(st.floats(0.01, 1e6), min_size=1, max_size=20)


def a_report(
    iteration: int, accuracy: float = 0.5, *, begin: float = 0.0, end: float = 1.0, node: str = "head"
) -> IterationReport:
    return IterationReport(
        iteration=iteration,
        training_accuracy=accuracy,
        held_out_accuracy=accuracy / 2,
        loss=1.0,
        cpu_seconds=0.5 * (end - begin),
        begin=begin,
        end=end,
        peak_memory_bytes=1,
        setup_seconds=0.0,
        node=node,
    )


def a_trial(*reports: IterationReport, number: int = 0) -> TrialRun:
    trial = TrialRun(number=number, config=CONFIG)
    for report in reports:
        trial.take(report)
    return trial


def test_jain_is_one_where_all_are_equal_and_one_nth_where_one_has_all() -> None:
    assert parts.jain([3.0, 3.0, 3.0]) == pytest.approx(1)
    assert parts.jain([5.0, 0.0, 0.0, 0.0]) == pytest.approx(0.25)
    assert parts.jain([1.0, 3.0]) == pytest.approx(16 / 20)
    assert parts.jain([0.0, 0.0]) == 1.0


@given(amounts, st.floats(0.1, 100))
def test_jain_does_not_change_with_the_unit_and_lies_between_its_bounds(values: list[float], factor: float) -> None:
    index = parts.jain(values)
    assert parts.jain([factor * value for value in values]) == pytest.approx(index)
    assert 1 / len(values) - 1e-9 <= index <= 1 + 1e-9


def test_shares_add_up_to_one_and_nothing_has_no_share() -> None:
    assert totals.shares({"head": 3.0, "worker-1": 1.0}) == {"head": 0.75, "worker-1": 0.25}
    assert totals.shares({"head": 0.0}) == {"head": 0.0}


def test_a_censored_trial_is_the_slowest_and_is_never_left_out() -> None:
    reached = a_trial(a_report(1, 0.5), a_report(2, 0.995), a_report(3, 0.5))
    never = a_trial(a_report(1, 0.5), a_report(2, 0.6))
    found = totals.iterations_to_target([reached, never], target=0.99, judged_by="training")
    assert found == IterationsToTarget(reached=(2,), censored=(2,))
    assert found.ordered() == [2, math.inf]
    assert totals.iterations_to_target([reached], target=0.99, judged_by="held-out") == IterationsToTarget(
        reached=(), censored=(3,)
    )


def test_the_median_of_kaplan_and_meier_counts_those_that_were_given_up() -> None:
    # Survival by hand: at 6 of 10 trials 3 end, 7/10; at 7 one of 6 at risk (one was given up at 6), 7/10 x 5/6 ...
    reached = (6, 6, 6, 7, 10, 13)
    found = IterationsToTarget(reached=reached, censored=(6, 9, 10, 11))
    survival, at_risk, expected = 1.0, 10, math.inf
    for moment in sorted({*reached, 9, 11}):
        ended = reached.count(moment)
        survival *= 1 - ended / at_risk
        if survival <= 0.5:
            expected = moment
            break
        at_risk -= ended + found.censored.count(moment)
    assert totals.median_iterations(found) == expected == 10
    assert totals.median_iterations(IterationsToTarget(reached=(4,), censored=(9, 9))) == math.inf


@given(st.lists(iterations, min_size=1, max_size=30))
def test_without_censored_trials_the_median_is_the_lower_one_of_all(values: list[int]) -> None:
    assert totals.median_iterations(IterationsToTarget(reached=tuple(values))) == statistics.median_low(values)


@pytest.mark.parametrize(("share", "expected"), [(10, 1), (50, 5), (90, 9), (100, 10), (1, 1)])
def test_a_percentile_is_a_value_that_was_seen(share: int, expected: float) -> None:
    assert totals.percentile([float(value) for value in range(1, 11)], share) == expected


def test_the_best_of_k_is_what_a_bootstrap_comes_to() -> None:
    ordered = [9.0, 11, 12, 15, 20, 22, 30, 44, 55, 60, 70, 90, 120, 200, 314, math.inf]
    draw = random.Random(1)
    bests = sorted(min(draw.choices(ordered, k=10)) for _ in range(20_000))
    for quantile in (0.5, 0.975):
        assert totals.best_of(ordered, 10, quantile) == bests[math.ceil(quantile * len(bests)) - 1]
    assert totals.best_of(ordered, 1, 0.5) == 44


@given(st.lists(iterations, min_size=1, max_size=20), st.integers(1, 20), st.sampled_from([0.025, 0.5, 0.975]))
def test_more_trials_are_never_worse(values: list[int], draws: int, quantile: float) -> None:
    ordered = sorted(map(float, values))
    assert totals.best_of(ordered, draws + 1, quantile) <= totals.best_of(ordered, draws, quantile)


def test_overhead_is_the_time_between_iterations_of_one_place_and_nothing_else() -> None:
    first = a_trial(a_report(1, begin=0.0, end=1.0), a_report(2, begin=1.2, end=2.0))
    second = a_trial(a_report(1, begin=2.5, end=3.0), number=1)
    assert totals.overhead_seconds_per_trial([first, second]) == pytest.approx((0.2 + 0.5) / 2)


def test_two_places_of_a_node_are_two_and_two_nodes_share_no_clock() -> None:
    one = a_trial(a_report(1, begin=0.0, end=4.0), a_report(2, begin=4.1, end=5.0))
    other = a_trial(a_report(1, begin=0.0, end=2.0), a_report(2, begin=2.3, end=5.0), number=1)
    assert totals.overhead_seconds_per_trial([one, other]) == pytest.approx((0.1 + 0.3) / 2)
    away = a_trial(a_report(1, begin=900.0, end=901.0, node="worker-1"), number=2)
    assert totals.overhead_seconds_per_trial([one, other, away]) == pytest.approx((0.1 + 0.3) / 3)


def test_an_iteration_that_is_done_again_keeps_its_time_and_loses_its_result() -> None:
    trial = a_trial(
        a_report(1, begin=0, end=1),
        a_report(2, 0.6, begin=1, end=2),
        a_report(1, begin=5, end=6),
        a_report(2, 0.7, begin=6, end=7),
    )
    assert [report.training_accuracy for report in trial.reports] == [0.5, 0.7]
    assert (trial.seconds, trial.cpu_seconds, len(trial.done)) == (4.0, 2.0, 4)


def test_each_node_has_what_was_done_on_it() -> None:
    moved = a_trial(a_report(1, begin=0, end=2), a_report(2, begin=0, end=4, node="worker-1"))
    found = totals.by_node([moved], ["head", "worker-1", "worker-2"])
    assert found == {
        "head": Used(cpu_seconds=1.0, busy_seconds=2.0, trials=0),
        "worker-1": Used(cpu_seconds=2.0, busy_seconds=4.0, trials=1),
        "worker-2": Used(),
    }


def test_trials_are_ranked_by_iterations_and_then_by_accuracy() -> None:
    slow = a_trial(a_report(1), a_report(2, 0.995), number=0)
    quick = a_trial(a_report(1, 0.999), number=1)
    near, far = a_trial(a_report(1, 0.9), number=2), a_trial(a_report(1, 0.2), number=3)
    ranked = sorted([far, slow, near, quick], key=lambda trial: trial.rank(0.99, "training"))
    assert [trial.number for trial in ranked] == [1, 0, 2, 3]


def test_a_trial_that_diverged_reaches_no_target_and_is_the_last_whatever_its_accuracy_was() -> None:
    diverged = a_trial(replace(a_report(1, 0.999), loss=None), number=0)
    poor = a_trial(a_report(1, 0.01), number=1)
    assert diverged.iterations_to(0.05, "training") is None
    assert min([diverged, poor], key=lambda trial: trial.rank(0.05, "training")) is poor
    assert totals.iterations_to_target([diverged, poor], target=0.01, judged_by="training").censored == (1,)


@pytest.mark.parametrize(
    ("cpus", "each", "expected"), [((2,), 1, 2), ((2,), 2, 1), ((3, 3), 2, 2), ((4, 1), 2, 2), ((1, 1), 2, 0)]
)
def test_nodes_have_room_for_whole_trials(cpus: tuple[int, ...], each: int, expected: int) -> None:
    assert totals.cap(cpus, each) == expected


def test_as_many_were_at_work_at_once_as_overlap_on_a_node_and_one_that_follows_does_not() -> None:
    first = a_trial(a_report(1, begin=0.0, end=2.0), a_report(2, begin=2.0, end=4.0))
    second = a_trial(a_report(1, begin=1.0, end=3.0), number=1)
    elsewhere = a_trial(a_report(1, begin=90.0, end=91.0, node="worker-1"), number=2)
    assert totals.most_at_once([first]) == 1
    assert totals.most_at_once([first, second]) == 2
    assert totals.most_at_once([first, second, elsewhere]) == 3  # nodes have clocks of their own


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 20)), min_size=1, max_size=12))
def test_most_at_once_is_what_looking_at_every_moment_finds(spans: list[tuple[int, int]]) -> None:
    trials = [a_trial(a_report(1, begin=b, end=b + length), number=n) for n, (b, length) in enumerate(spans)]
    every_moment = max(sum(b <= at < b + length for b, length in spans) for at in range(71))
    assert totals.most_at_once(trials) == every_moment


def test_what_a_search_took_beyond_its_ideal_adds_up_and_each_part_is_what_it_says() -> None:
    first = a_trial(a_report(1, begin=3.0, end=5.0), a_report(2, begin=5.5, end=7.5))
    second = a_trial(a_report(1, begin=4.0, end=8.0), number=1)  # each used half of its time, by `a_report`
    found = totals.beyond_ideal(
        [first, second], search_seconds=9.0, startup_seconds=[3.0, 4.0], cpus=2, cpus_per_trial=1
    )
    assert found == pytest.approx(
        {"start-up": 7 / 4, "in iterations": 4 / 4, "between iterations": 0.5 / 4, "without a trial": 2.5 / 4}
    )
    assert 1 + sum(found.values()) == pytest.approx(9.0 * 2 / 4)


def test_a_second_cpu_that_a_trial_does_not_use_is_lost_in_its_iterations() -> None:
    trial = a_trial(a_report(1, begin=0.0, end=4.0))
    found = totals.beyond_ideal([trial], search_seconds=4.0, startup_seconds=[0.0], cpus=2, cpus_per_trial=2)
    assert found == pytest.approx({"start-up": 0, "in iterations": 3.0, "between iterations": 0, "without a trial": 0})
