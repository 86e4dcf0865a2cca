"""What is read of many runs at once is what each of them says by itself."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import ARMS, LATENCIES, RATE, SINGLE, made_up

from bench.analysis.table import Groups, Table, known, numbered
from bench.model import Interval, Sample

_, (RUN,) = made_up(cells=1, blocks=1, topologies=(SINGLE,))
SECONDS = replace(RATE, name="seconds", unit="s", better="lower", kind="time")


def a_sample(value, begin, seconds, turn, warmup):
    return Sample(
        metric=RATE.name,
        value=value,
        reason="lost" if value is None else None,
        interval=Interval(begin, begin + seconds),
        arm="ray",
        turn=turn,
        warmup=warmup,
    )


SAMPLES = st.lists(
    st.builds(
        a_sample,
        st.none() | st.floats(0.001, 1e9),
        st.integers(0, 100),
        st.sampled_from([0.0, 0.1, 0.5, 3.0]),
        st.integers(0, 4),
        st.booleans(),
    ),
    max_size=6,
).map(tuple)


def everything(every):
    """All of a table of runs that have these samples."""
    runs = [replace(RUN, spec=replace(RUN.spec, id=f"r{at}"), samples=each) for at, each in enumerate(every)]
    return Table(runs).of(runs)


def value_of(metric, *samples):
    (found,) = everything([samples]).outcomes(metric, "ray")
    return found


def plainly(samples, kind):
    """The value of one run, or the reason that there is none, step by step."""
    counted = [s for s in samples if s.value is not None and not s.warmup]
    seconds = math.fsum(s.interval.seconds for s in counted)
    if not counted:
        return next((s.reason for s in samples if s.reason and not s.warmup), "not measured")
    if kind != "rate":
        return math.fsum(s.value for s in counted) / len(counted)
    if seconds:
        return math.fsum(s.value * s.interval.seconds for s in counted) / seconds
    return len(counted) / math.fsum(1 / s.value for s in counted)


@given(st.lists(SAMPLES, max_size=5), st.sampled_from(["rate", "time"]))
def test_every_run_has_the_value_or_the_reason_that_it_has_by_itself(every, kind):
    metric = replace(RATE if kind == "rate" else SECONDS, name=RATE.name)
    found = everything(every).outcomes(metric, "ray")
    for value, samples in zip(found, every, strict=True):
        expected = plainly(samples, kind)
        assert value == (expected if isinstance(expected, str) else pytest.approx(expected, rel=1e-15))


def test_a_rate_is_total_work_over_total_time():
    # 100 units in 1 s and 100 in 4 s: 200 in 5 s, which no mean of 100 and 25 gives
    samples = (a_sample(100.0, 0, 1.0, 1, False), a_sample(25.0, 1, 4.0, 2, False))
    assert value_of(RATE, *samples) == pytest.approx(40.0)


def test_a_rate_of_equal_work_is_the_harmonic_mean():
    rates = (100.0, 50.0, 20.0)
    samples = [a_sample(rate, 0, 10 / rate, turn, False) for turn, rate in enumerate(rates, start=1)]
    assert value_of(RATE, *samples) == pytest.approx(3 / sum(1 / rate for rate in rates))


def test_a_cost_is_the_mean():
    samples = (a_sample(1.0, 0, 1.0, 1, False), a_sample(4.0, 1, 4.0, 2, False))
    assert value_of(replace(SECONDS, name=RATE.name), *samples) == 2.5


def test_warm_ups_and_missing_samples_do_not_count():
    samples = (a_sample(9.0, 0, 1, 1, True), a_sample(None, 1, 1, 2, False), a_sample(3.0, 2, 1, 3, False))
    assert value_of(RATE, *samples) == 3.0
    assert value_of(RATE, *samples[:2]) == "lost"


@given(st.lists(SAMPLES, max_size=5), st.booleans())
def test_a_series_has_each_turn_once_in_the_order_of_turns(every, warmups):
    found = everything(every).series(RATE, "ray", warmups=warmups)
    for samples, values in zip(every, found, strict=True):
        counted = [s for s in samples if s.turn and s.value is not None and (warmups or not s.warmup)]
        by_turn = {turn: [s.value for s in counted if s.turn == turn] for turn in sorted({s.turn for s in counted})}
        assert values == pytest.approx([sum(those) / len(those) for those in by_turn.values()], rel=1e-12)


def test_what_no_run_has_was_not_measured():
    those = everything([RUN.samples, RUN.samples])
    assert those.outcomes(replace(RATE, name="never"), "ray") == ["not measured"] * 2
    assert those.outcomes(LATENCIES[2], "ray") == ["p99 needs 1,000 calls"] * 2
    assert list(map(list, those.series(replace(RATE, name="never"), "ray"))) == [[], []]


def test_keys_are_those_of_the_runs_in_the_order_in_which_they_come_and_curves_are_none():
    one, other = a_sample(1.0, 0, 1, 1, False), replace(a_sample(1.0, 0, 1, 1, False), point="70 %")
    curve = replace(one, metric="loss", step=3.0)
    keys = [("throughput_inputs_per_second", "ray", None, point) for point in ("70 %", "")]
    assert everything([[curve, other], [one]]).keys == keys
    assert everything([[curve]]).keys == []
    assert everything([[curve]]).outcomes(replace(RATE, name="loss"), "ray") == ["not measured"]


def test_a_table_of_no_runs_has_nothing():
    table = Table(())
    assert (table.of(()).keys, table.covered, table.of(()).outcomes(RATE, "ray")) == ([], {}, [])


def test_runs_are_covered_from_their_first_interval_to_their_last():
    without = replace(RUN, spec=replace(RUN.spec, id="empty"), samples=(), usage=())
    every = [each.interval for each in (*RUN.samples, *RUN.usage)]
    expected = Interval(min(each.begin for each in every), max(each.end for each in every))
    assert Table([RUN, without]).covered == {RUN.spec.id: expected}


def test_turns_that_are_discarded_count_neither_as_samples_nor_as_usage():
    table = Table([RUN]).discarding({RUN.spec.id: 2})
    samples = [s for s in RUN.samples if (s.metric, s.arm) == (RATE.name, ARMS[0].name) and s.turn > 2]
    assert [s.value for s in samples] == list(table.of([RUN]).series(RATE, ARMS[0].name)[0])
    assert {u.turn for u, warm in zip(RUN.usage, table.warm_usage, strict=True) if not warm} == {3, 4}
    assert Table([RUN]).discarding({}).warmups == [1]


VALUES = st.lists(st.tuples(st.integers(0, 4), st.floats(-1e9, 1e9)), max_size=20)


@given(VALUES)
def test_each_group_has_its_own_sum_its_greatest_and_its_least(pairs):
    groups = Groups(np.array([group for group, _ in pairs], dtype=np.intp), 5)
    values = np.array([value for _, value in pairs], dtype=float)
    own = [[value for group, value in pairs if group == wanted] for wanted in range(5)]
    assert groups.sizes.tolist() == [len(those) for those in own]
    assert groups.sums(values).astype(float) == pytest.approx([math.fsum(those) for those in own], rel=1e-15, abs=1e-9)
    assert known(groups.most(values)) == [max(those, default=None) for those in own]
    assert known(groups.least(values)) == [min(those, default=None) for those in own]


def test_what_was_not_counted_takes_the_sum_and_leaves_the_greatest():
    groups = Groups(np.array([0, 0, 1, 1], dtype=np.intp), 2)
    values = np.array([1.0, math.nan, math.nan, math.nan])
    assert known(groups.sums(values)) == [None, None]
    assert known(groups.most(values)) == [1.0, None]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=12))
def test_rows_have_the_same_number_where_they_are_equal(rows):
    found = numbered(*(np.array([row[at] for row in rows], dtype=np.intp) for at in (0, 1))).tolist()
    assert len({*zip(found, rows, strict=True)}) == len(set(found)) == len(set(rows))
