from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from made_up import ARMS, MULTI, RATE, SINGLE, SessionShape, made_up

from bench import analysis
from bench.analysis.comparison import attempts_that_count, compare, judge, side
from bench.analysis.rows import Question
from bench.analysis.stats import estimates
from bench.analysis.stats.estimates import Estimate
from bench.analysis.table import Table
from bench.model import Interval, Metric, Sample

SECONDS = Metric(name="end_to_end_seconds", unit="s", better="lower", kind="time")
SHARE = Metric(name="success_ratio", unit="1", better="higher", kind="ratio")
CHUNK = Metric(name="chunk_bytes", unit="B", better=None, kind="size")

positive = st.floats(0.5, 2.0)


def a_sample(value, seconds=1.0, **changes):
    fields = {"metric": RATE.name, "value": value, "interval": Interval(0.0, seconds), "arm": "ray"} | changes
    return Sample(**fields)


def a_comparison(single, multi, metric=RATE, margin=0.02):
    sides = {
        "single": side(dict(enumerate(single, 1))),
        "multi": side(dict(enumerate(multi, 1))),
    }
    return compare(metric, sides, baseline="single", candidate="multi", margin=margin)


def a_ratio(value, low, high, n=12):
    return Estimate(value=value, low=low, high=high, level=0.95, n=n)


@pytest.mark.parametrize(
    ("metric", "ratio", "verdict"),
    [
        (RATE, a_ratio(1.10, 1.05, 1.15), "faster"),
        (RATE, a_ratio(0.90, 0.85, 0.95), "slower"),
        (SECONDS, a_ratio(1.10, 1.05, 1.15), "slower"),
        (SECONDS, a_ratio(0.90, 0.85, 0.95), "faster"),
        (CHUNK, a_ratio(1.10, 1.05, 1.15), "differs"),
        (CHUNK, a_ratio(0.90, 0.85, 0.95), "differs"),
        (CHUNK, a_ratio(1.00, 0.99, 1.01), "equivalent"),
        (RATE, a_ratio(1.00, 0.99, 1.01), "equivalent"),
        (RATE, a_ratio(1.01, 1.005, 1.015), "equivalent"),
        (RATE, a_ratio(1.015, 1.005, 1.03), "below margin"),
        (RATE, a_ratio(1.05, 0.97, 1.12), "undecided"),
        (RATE, a_ratio(1.00, 0.90, 1.10), "undecided"),
        (RATE, a_ratio(0.50, 0.45, 0.55, n=5), None),
        (RATE, Estimate(value=0.5, low=None, high=None, level=None, n=1), None),
    ],
)
def test_the_verdict_follows_from_interval_margin_and_direction(metric, ratio, verdict):
    assert judge(ratio, metric, margin=0.02)[0] == verdict


def test_without_enough_pairs_words_stand_in_for_the_verdict():
    found = a_comparison([1.0] * 5, [2.0] * 5)
    assert found.verdict is None
    assert found.why == "5 pairs, and a verdict needs 6"


def test_undecided_says_what_could_have_been_shown_and_what_it_takes():
    found = a_comparison([100, 100, 100, 100, 100, 100], [95, 105, 98, 103, 91, 108])
    assert found.verdict == "undecided"
    assert found.smallest_effect > 0.02
    assert f"{found.pairs_needed} pairs" in found.why


def test_a_block_without_one_of_its_sides_is_named_with_the_reason():
    found = a_comparison([1.0, 2.0, "invalid: lost worker-1"], [1.0, "not run", 3.0])
    assert found.pairs == 1
    assert found.missing == {2: "multi: not run", 3: "single: invalid: lost worker-1"}


def test_a_zero_has_no_ratio_and_is_named():
    found = a_comparison([1.0, 0.0], [1.0, 1.0])
    assert found.missing == {2: "a value that is not above zero has no ratio"}


def test_an_outlier_is_marked_and_still_counted():
    multi = [100.0, 101.0, 99.0, 100.5, 99.5, 100.2, 40.0]
    found = a_comparison([100.0] * 7, multi)
    assert found.outliers == (7,)
    assert found.pairs == 7


def test_stalls_in_a_few_blocks_flag_the_ratio_as_skewed():
    multi = [100, 100.1, 99.9, 100.05, 99.95, 100.02, 99.98, 100, 100.01, 99.99, 55, 50, 52, 51]
    assert not a_comparison([100] * 14, [100 + x % 3 for x in range(14)]).skewed
    assert a_comparison([100] * 14, multi).cross_check.value < 0.9


@settings(deadline=None, max_examples=20)
@given(st.lists(st.tuples(positive, positive), min_size=6, max_size=15), st.floats(0.1, 10))
def test_scaling_both_arms_changes_nothing(pairs, factor):
    single, multi = zip(*pairs, strict=True)
    one = a_comparison(single, multi).ratio
    other = a_comparison([factor * x for x in single], [factor * x for x in multi]).ratio
    assert (one.value, one.low, one.high) == pytest.approx((other.value, other.low, other.high))


@settings(deadline=None, max_examples=20)
@given(st.lists(positive, min_size=6, max_size=15))
def test_equal_arms_give_no_difference(values):
    found = a_comparison(values, values)
    assert (found.ratio.value, found.verdict) == (1.0, "equivalent")


@settings(deadline=None, max_examples=20)
@given(st.lists(st.tuples(positive, positive), min_size=6, max_size=15))
def test_swapping_the_arms_swaps_the_verdict(pairs):
    single, multi = zip(*pairs, strict=True)
    swapped = {"faster": "slower", "slower": "faster"}
    one, other = a_comparison(single, multi), a_comparison(multi, single)
    assert swapped.get(one.verdict, one.verdict) == other.verdict
    assert (other.ratio.value, other.ratio.low, other.ratio.high) == pytest.approx(
        (1 / one.ratio.value, 1 / one.ratio.high, 1 / one.ratio.low)
    )


@given(st.lists(st.floats(0.93, 1.07), min_size=3, max_size=3).map(sorted), st.sampled_from([0.02, 0.05]))
def test_near_the_margin_too_a_ratio_and_its_inverse_have_the_same_verdict_the_other_way_round(numbers, margin):
    assume(not any(math.isclose(x, edge) for x in numbers for edge in (1.0, 1 + margin, 1 / (1 + margin))))
    low, value, high = numbers
    ratio = Estimate(value=value, low=low, high=high, level=0.95, n=12)
    swapped = {"faster": "slower", "slower": "faster"}
    there, _ = judge(ratio, RATE, margin=margin)
    back, _ = judge(estimates.inverse(ratio), RATE, margin=margin)
    assert swapped.get(there, there) == back


@settings(deadline=None, max_examples=20)
@given(
    st.lists(st.tuples(positive, positive), min_size=6, max_size=15).flatmap(
        lambda p: st.tuples(st.just(p), st.permutations(p))
    )
)
def test_the_order_of_the_blocks_changes_nothing(orders):
    one, other = (a_comparison(*zip(*pairs, strict=True)) for pairs in orders)
    assert (one.ratio.low, one.ratio.high, one.verdict) == (other.ratio.low, other.ratio.high, other.verdict)
    assert (one.ratio.value, one.p, one.smallest_effect) == pytest.approx(
        (other.ratio.value, other.p, other.smallest_effect)
    )


def test_samples_that_are_there_10_times_leave_every_interval_as_it_was():
    session, runs = made_up(cells=1)
    tenfold = [replace(run, samples=tuple(run.samples) * 10) for run in runs]
    one, other = analysis.build(session, runs).cells[0], analysis.build(session, tenfold).cells[0]
    for row, same in zip(one.rows, other.rows, strict=True):
        for topology, found in row.sides.items():
            again = same.sides[topology]
            assert (found.estimate is None) == (again.estimate is None)
            if found.estimate:
                assert _numbers(again.estimate) == pytest.approx(_numbers(found.estimate))
        if row.comparison and row.comparison.ratio:
            assert _numbers(same.comparison.ratio) == pytest.approx(_numbers(row.comparison.ratio))


def _numbers(estimate):
    return (estimate.value, estimate.low, estimate.high, estimate.n)


def test_of_many_attempts_the_last_good_one_counts():
    _, runs = made_up(SessionShape(cells=1, blocks=1, topologies=(SINGLE,)))
    first = replace(runs[0], status="failed", reasons=("the head died",))
    second = replace(runs[0], spec=replace(runs[0].spec, attempt=2))
    third = replace(first, spec=replace(runs[0].spec, attempt=3))
    assert attempts_that_count([third, second, first])[runs[0].spec.id] is second
    assert attempts_that_count([third, first])[runs[0].spec.id] is third


def test_a_run_that_is_not_ok_gives_a_reason_and_never_a_number():
    session, runs = made_up(SessionShape(cells=1, blocks=1, topologies=(MULTI,)))
    bad = replace(runs[0], status="invalid", reasons=("worker-1 did nothing",))
    table = Table(runs)
    asked = Question(session=session, runs={bad.spec.id: bad}, topologies=("multi",), margin=0.02, table=table)
    row = asked.row({"multi": [bad.spec]}, RATE, "ray", asked.outcomes(RATE, "ray"))
    assert (row.sides["multi"].values, row.sides["multi"].missing) == ({}, {1: "invalid: worker-1 did nothing"})
    assert table.of(runs).outcomes(SHARE, "ray") == [1.0]
    assert table.of(runs).outcomes(SHARE, "pool") == ["not measured"]


def test_ten_copies_of_every_sample_leave_every_interval_as_it_is():
    session, runs = made_up(cells=2, blocks=8, samples=5, arms=ARMS[:3])
    copied = [replace(run, samples=tuple(s for s in run.samples for _ in range(10))) for run in runs]
    pairs = zip(analysis.build(session, runs).cells, analysis.build(session, copied).cells, strict=True)
    for one, other in pairs:
        assert intervals(one)
        assert intervals(one) == pytest.approx(intervals(other), rel=1e-9)


def intervals(cell):
    """Every number of every interval of a cell: of metrics on each topology, of ratios, arms and shifts."""
    sides = [side for row in cell.rows for side in row.sides.values()] + [row.side for row in cell.arms]
    found = [
        *(side.estimate for side in sides),
        *(row.comparison.ratio for row in cell.rows),
        *(row.share for row in cell.arms),
        *(each.shift for each in cell.steadiness),
    ]
    return [number for each in found if each for number in (each.value, each.low, each.high)]
