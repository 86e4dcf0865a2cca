"""Variance by level: against the worked examples of Kalibera and Jones, and against what was put into made-up runs."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from statistics import fmean

import numpy as np
import pytest
from made_up import ARMS, RATE, made_up

from bench import analysis
from bench.analysis.levels import allocation, best_repetitions, half_width, levels, outside_seconds
from bench.analysis.stats import estimates
from bench.analysis.table import Table
from bench.model import Interval
from bench.reports.sections.metrics import describe_allocation

# libkalibera, python/tests/test_data.py
THREE_LEVELS = [[[9, 5], [8, 3]], [[10, 6], [7, 11]], [[1, 12], [2, 4]]]
TWO_LEVELS = [[9, 5, 8, 3], [10, 6, 7, 11], [1, 12, 2, 4]]
COSTLY = [[[3, 4, 3], [1.2, 3.1, 3]], [[0.2, 1, 1.5], [1, 2, 3]]]


def test_variances_are_those_of_the_worked_example_of_three_levels():
    found = levels(THREE_LEVELS)
    assert found.repetitions == (2, 2, 3)
    assert [round(s, 1) for s in found.of_means] == [16.5, 2.6, 3.6]
    assert [round(t, 1) for t in found.added] == [16.5, -5.7, 2.3]


def test_variances_are_those_of_the_worked_example_of_two_levels():
    found = levels(TWO_LEVELS)
    assert [round(s, 1) for s in found.of_means] == [12.7, 3.6]
    assert [round(t, 1) for t in found.added] == [12.7, 0.4]


def test_the_best_repetitions_are_those_of_libkalibera():
    found = levels(COSTLY)
    assert found.added == pytest.approx((0.7266667, 0.262777778, 0.7747), abs=1e-4)
    assert best_repetitions(found, (3, 20, 100)) == pytest.approx((4.2937, 1.3023), abs=1e-3)


def test_where_a_level_adds_nothing_more_of_the_one_below_is_never_wrong():
    first, second = best_repetitions(levels(THREE_LEVELS), (3, 20, 100))
    assert (first, second) == (math.inf, 0.0)


def test_the_half_width_is_students_of_the_highest_means():
    # means 6.25, 8.5, 4.75: SD 1.8875, t(0.975, 2) = 4.3027
    assert half_width(levels(TWO_LEVELS)) == pytest.approx(4.3027 * 1.8875 / math.sqrt(3), rel=1e-3)


def test_copies_of_samples_leave_the_half_width_as_it_is():
    copied = [[value for value in invocation for _ in range(10)] for invocation in TWO_LEVELS]
    assert half_width(levels(copied)) == pytest.approx(half_width(levels(TWO_LEVELS)))


def test_one_repeat_has_no_variance():
    with pytest.raises(ValueError, match="needs 2"):
        levels([[1.0], [2.0]])


def test_known_variances_come_back_from_simulated_values():
    draw = np.random.default_rng(3)
    pairs = draw.normal(0, 0.03, (2000, 1))
    found = levels((pairs + draw.normal(0, 0.02, (2000, 5))).tolist())
    assert found.added == pytest.approx((0.02**2, 0.03**2), rel=0.1)
    assert best_repetitions(found, (1, 16))[0] == pytest.approx(4 * 0.02 / 0.03, rel=0.1)


def one_after_the_other(runs, *, gap=4.0, new_cluster=10.0):
    """`runs` on one clock, with so many seconds between them."""
    now, before, moved = 0.0, None, []
    for run in runs:
        cluster = (run.spec.block, run.spec.topology.name)
        now += gap if cluster == before else new_cluster
        before = cluster
        every = [each.interval for each in (*run.samples, *run.usage)]
        shift = now - min(interval.begin for interval in every)
        moved.append(later(run, shift))
        now += max(interval.end for interval in every) - min(interval.begin for interval in every)
    return moved


def later(run, seconds):
    def moved(each):
        return replace(each, interval=Interval(each.interval.begin + seconds, each.interval.end + seconds))

    return replace(run, samples=tuple(map(moved, run.samples)), usage=tuple(map(moved, run.usage)))


def selected(runs, topology):
    return Table(runs).of(of(runs, topology))


def of(runs, topology):
    return [run for run in runs if run.spec.topology.name == topology]


def with_rates(run, rates):
    """The subject's counted rates, in order, in place of those there are."""
    left = iter(rates)
    return replace(
        run,
        samples=tuple(
            replace(s, value=next(left)) if (s.metric, s.arm, s.warmup) == (RATE.name, "ray", False) else s
            for s in run.samples
        ),
    )


def rates(run):
    return [s.value for s in run.samples if (s.metric, s.arm, s.warmup) == (RATE.name, "ray", False)]


def test_an_invocation_costs_its_job_and_its_share_of_a_cluster():
    session, runs = made_up(cells=2, blocks=3)
    moved = one_after_the_other(runs, gap=4.0, new_cluster=10.0)
    # 12 runs in 6 clusters: 6 gaps inside a cluster, 5 between two
    assert outside_seconds(session, Table(moved)) == pytest.approx((6 * 4 + 5 * 10) / 11)


def test_a_night_between_two_runs_does_not_count():
    session, runs = made_up(cells=1, blocks=4)
    moved = one_after_the_other(runs, new_cluster=10.0)
    late = [*moved[:4], *(later(run, 30_000.0) for run in moved[4:])]
    assert outside_seconds(session, Table(late)) == pytest.approx(10.0)


def test_clocks_of_two_machines_are_not_compared():
    session, runs = made_up(cells=1, blocks=2)
    moved = [replace(run, facts=None) for run in one_after_the_other(runs)]
    assert outside_seconds(session, Table(moved)) is None


def test_costs_are_read_from_the_record():
    _, runs = made_up(cells=1, blocks=6, arms=ARMS[:2])
    found = allocation(selected(runs, "single"), selected(runs, "multi"), RATE, "ray", 10.0)
    assert found is not None
    # A turn of made-up runs is an interval of 0.5 s an arm, and 0.5 s between: 3 turns of 2 arms in 5.5 s
    assert found.sample_seconds == pytest.approx(2 * 5.5 / 3)
    assert found.pair_seconds is not None
    before = 100.0 + 3 * 3 + 2 - 90.0  # idle from 90 on, three metrics of 2 s and a second, and a warm-up
    assert found.pair_seconds == pytest.approx(2 * before + 2 * 10.0)
    assert found.seconds(12, 4) == pytest.approx(12 * (found.pair_seconds + 4 * found.sample_seconds))


def test_the_levels_of_a_comparison_are_those_of_its_log_ratios():
    _, runs = made_up(cells=1, blocks=200, arms=ARMS[:1])
    draw = random.Random(5)
    noisy = []
    for run in runs:
        level = math.exp(draw.gauss(0, 0.03))
        noisy.append(with_rates(run, [1000 * level * math.exp(draw.gauss(0, 0.04)) for _ in range(3)]))
    found = allocation(selected(noisy, "single"), selected(noisy, "multi"), RATE, "ray", 10.0)
    assert found is not None
    assert found.of_samples == pytest.approx(2 * 0.04**2, rel=0.15)  # of both topologies
    assert found.of_pairs == pytest.approx(2 * 0.03**2, rel=0.25)
    logs = [
        math.log(fmean(rates(one)) / fmean(rates(other)))
        for one, other in zip(of(noisy, "multi"), of(noisy, "single"), strict=True)
    ]
    cross_check = estimates.mean_with_t_interval(logs)
    assert found.half_width == pytest.approx((cross_check.high - cross_check.low) / 2, rel=0.02)
    assert found.deviation(3) == pytest.approx(math.sqrt(2 * 0.03**2 + 2 * 0.04**2 / 3), rel=0.15)
    assert found.best_samples == math.ceil(
        math.sqrt(found.pair_seconds / found.sample_seconds * found.of_samples / found.of_pairs)
    )


def test_one_sample_an_invocation_says_nothing_of_levels():
    _, runs = made_up(cells=1, blocks=6)
    few = [replace(run, samples=tuple(s for s in run.samples if s.turn <= 2)) for run in runs]
    assert allocation(selected(few, "single"), selected(few, "multi"), RATE, "ray", 10.0) is None


def test_a_report_says_where_the_variance_is_and_what_would_be_best():
    session, runs = made_up(cells=1, blocks=6)
    found = analysis.build(session, one_after_the_other(runs)).cells[0].allocation
    assert found is not None
    words = describe_allocation(found)
    assert "between invocations, which only more blocks make less of" in words
    assert "best would be" in words
    assert "(there were 3)" in words


def test_one_topology_has_no_pairs_to_look_into():
    session, runs = made_up(cells=1, blocks=6)
    session = replace(session, specs=tuple(s for s in session.specs if s.topology.name == "single"))
    assert analysis.build(session, of(runs, "single")).cells[0].allocation is None
