"""The breakdown gives back the parts that a gap was made of, and what it cannot know it calls unexplained."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up_breakdown import ALONE, APART, ARMS, METRICS, Truth, a_session, the_network_experiment

from bench import analysis
from bench.analysis.breakdown.network import NAMES, network_breakdown
from bench.analysis.cells import unit_of_work
from bench.analysis.rows import Question
from bench.analysis.table import Table
from bench.experiments.toolkit import parts
from bench.model import Metric
from bench.reports import as_text

MEAN_BLOCK = 1.035  # block 1 of 6 is slower by 1 %, block 6 by 6 %


def breakdown_of(session, runs):
    topologies = ("single", "multi")
    known = {run.spec.id: run for run in runs}
    question = Question(session=session, runs=known, topologies=topologies, margin=0.02, table=Table(runs))
    specs = {name: question.specs("inference", "c01", name) for name in topologies}
    unit = unit_of_work(session.metrics["inference"][0])
    return network_breakdown(question, specs, session.metrics["inference"], session.arms["inference"], unit)


def seconds_of(breakdown):
    return {part.name: part.seconds.value for part in breakdown.parts if part.seconds}


def without_metric(runs, name):
    return [replace(run, samples=tuple(s for s in run.samples if s.metric != name)) for run in runs]


def uncounted(runs):
    return [
        replace(run, usage=tuple(replace(row, sent_bytes=None, received_bytes=None) for row in run.usage))
        for run in runs
    ]


def test_the_parts_that_were_put_in_come_out():
    found = seconds_of(breakdown_of(*a_session()))
    expected = {
        "network": 6_272.0 * 20e-9,
        "serialise/copy": 0.0,
        "queue and schedule": 10e-6,
        "compute": 10e-6,
        "straggler": 30e-6,
        "unexplained": 5e-6,
    }
    assert list(found) == list(expected) == list(NAMES)
    for name, seconds in expected.items():
        assert found[name] == pytest.approx(seconds * MEAN_BLOCK, rel=0.01, abs=1e-8), name


micros = st.floats(min_value=0.0, max_value=1e-3)
truths = st.builds(
    Truth,
    compute=st.floats(min_value=1e-6, max_value=1e-3),
    straggler=micros,
    serialise=micros,
    queue=st.floats(min_value=1e-6, max_value=1e-3),
    link_bytes=st.floats(min_value=0.0, max_value=1e6),
    byte_seconds=st.floats(min_value=0.0, max_value=1e-6),
    unexplained=micros,
)
losses = st.sets(st.sampled_from(["bytes", "full-calls", "bare-calls", *(metric.name for metric in METRICS[1:])]))


@given(single=truths, multi=truths, lost=losses, blocks=st.integers(1, 7))
def test_the_parts_add_up_to_the_gap_whatever_was_measured(single, multi, lost, blocks):
    session, runs = a_session(single, multi, blocks=blocks, arms=tuple(a for a in ARMS if a.name not in lost))
    for name in lost:
        runs = uncounted(runs) if name == "bytes" else without_metric(runs, name)
    breakdown = breakdown_of(session, runs)
    size = max(estimate.value for estimate in breakdown.seconds.values()) * 1e-9
    assert math.fsum(seconds_of(breakdown).values()) == pytest.approx(breakdown.gap.value, abs=size)
    gap = breakdown.seconds["multi"].value - breakdown.seconds["single"].value
    assert breakdown.gap.value == pytest.approx(gap, abs=size)
    assert breakdown.parts[-1].name == "unexplained"
    assert breakdown.parts[-1].seconds is not None


GROWS = {
    "network": ("byte_seconds", APART.link_bytes),
    "serialise/copy": ("serialise", 1.0),
    "queue and schedule": ("queue", 1.0),
    "compute": ("compute", 1.0),
    "straggler": ("straggler", 1.0),
    "unexplained": ("unexplained", 1.0),
}


@given(name=st.sampled_from(sorted(GROWS)), times=st.floats(min_value=1.1, max_value=20.0))
def test_what_grows_in_a_run_grows_in_its_own_part_alone_and_by_as_much(name, times):
    field, factor = GROWS[name]
    was = getattr(APART, field)
    more = was * (times - 1) * factor * MEAN_BLOCK
    before = seconds_of(breakdown_of(*a_session()))
    after = seconds_of(breakdown_of(*a_session(multi=replace(APART, **{field: was * times}))))
    for part in NAMES:
        grown = after[part] - before[part]
        # Bytes are whole numbers: a part may be off by what one of them in 10,000 units of work takes.
        assert grown == pytest.approx(more if part == name else 0.0, rel=0.01, abs=1e-8 * times), part


def test_a_link_of_half_the_rate_doubles_the_network_part():
    slow = replace(APART, byte_seconds=8 / 25e6)
    fast = replace(APART, byte_seconds=8 / 50e6)
    found = {each: seconds_of(breakdown_of(*a_session(multi=each)))["network"] for each in (fast, slow)}
    assert found[slow] / found[fast] == pytest.approx(2.0, rel=0.001)
    assert found[slow] == pytest.approx(6_272 * 8 / 25e6 * MEAN_BLOCK, rel=0.01)


def test_a_stall_in_one_turn_of_the_calls_is_no_price():
    smooth, stalled = (seconds_of(breakdown_of(*a_session(samples=3, stalled_turn=turn))) for turn in (None, 4))
    assert stalled == pytest.approx(smooth, rel=0.01, abs=1e-8)


def test_each_part_has_an_interval_over_blocks():
    for part in breakdown_of(*a_session()).parts:
        assert part.seconds.n == 6
        assert part.seconds.low <= part.seconds.value <= part.seconds.high
        assert part.seconds.level == 0.95


def test_what_no_sample_says_is_not_measured_and_stays_in_what_is_unexplained():
    session, runs = a_session()
    whole = seconds_of(breakdown_of(session, runs))
    breakdown = breakdown_of(session, without_metric(runs, parts.STRAGGLER.name))
    (straggler,) = [part for part in breakdown.parts if part.name == "straggler"]
    assert straggler.seconds is None
    assert straggler.rests_on == "this experiment does not measure it"
    assert seconds_of(breakdown)["unexplained"] == pytest.approx(whole["unexplained"] + whole["straggler"])


def test_without_bytes_there_is_no_network_part_and_the_calls_say_what_is_in_them():
    session, runs = a_session()
    by_name = {part.name: part for part in breakdown_of(session, uncounted(runs)).parts}
    assert by_name["network"].seconds is None
    assert by_name["network"].rests_on == "bytes: not counted here"
    assert by_name["queue and schedule"].rests_on == "full-calls, with what their bytes cost"


@pytest.mark.parametrize(
    ("arms", "why"),
    [
        (ARMS[:1], "no arm that makes its calls without the work"),
        (ARMS[:2], "one arm with calls alone does not tell what their bytes cost"),
    ],
)
def test_without_two_arms_of_calls_a_byte_has_no_cost(arms, why):
    (network, *_) = breakdown_of(*a_session(arms=arms)).parts
    assert network.seconds is None
    assert why in network.rests_on


def test_calls_that_carry_no_more_than_bare_ones_give_no_cost_of_a_byte_in_any_block():
    session, runs = a_session(multi=replace(APART, link_bytes=0.0))
    breakdown = breakdown_of(session, runs)
    assert breakdown.parts[0].seconds is None
    assert "carry hardly more than" in breakdown.parts[0].rests_on
    assert breakdown.blocks == (1, 2, 3, 4, 5, 6)


def test_raw_tcp_says_what_a_byte_costs_and_what_ray_adds_is_a_copy():
    breakdown = breakdown_of(*the_network_experiment(*a_session(), goodput=100e6))
    found = seconds_of(breakdown)
    bytes_ = APART.link_bytes
    assert found["network"] == pytest.approx(bytes_ / 100e6, rel=0.001)
    assert found["serialise/copy"] == pytest.approx(bytes_ * (20e-9 * MEAN_BLOCK - 10e-9), rel=0.01)
    assert found["queue and schedule"] == pytest.approx(10e-6 * MEAN_BLOCK, rel=0.01)
    assert found["unexplained"] == pytest.approx(5e-6 * MEAN_BLOCK, rel=0.01)


def test_round_trips_cost_what_the_network_experiment_says_where_no_arm_makes_calls_alone():
    session, runs = a_session(arms=ARMS[:1], metrics=(*METRICS, parts.ROUND_TRIPS))
    trips = [
        replace(
            run,
            samples=(
                *run.samples,
                *(
                    replace(s, metric=parts.ROUND_TRIPS.name, value=0.5 * s.value * s.interval.seconds)
                    for s in run.samples
                    if s.metric == METRICS[0].name
                ),
            ),
        )
        for run in runs
    ]
    found = breakdown_of(*the_network_experiment(session, trips, goodput=100e6, round_trip=8e-6))
    assert seconds_of(found)["queue and schedule"] == pytest.approx(0.5 * 8e-6)


def test_waiting_that_an_experiment_sees_is_taken_as_it_is():
    session, runs = a_session(metrics=(*METRICS, parts.QUEUE))
    waits = [
        replace(
            run,
            samples=(
                *run.samples,
                *(replace(s, metric=parts.QUEUE.name) for s in run.samples if s.metric == parts.STRAGGLER.name),
            ),
        )
        for run in runs
    ]
    found = seconds_of(breakdown_of(session, waits))
    assert found["queue and schedule"] == pytest.approx(found["straggler"])


def test_blocks_without_a_pair_are_left_out_and_named():
    session, runs = a_session()
    spoilt = [
        replace(run, status="invalid", reasons=("a node was lost",)) if i == 0 else run for i, run in enumerate(runs)
    ]
    breakdown = breakdown_of(session, spoilt[:-1])
    assert breakdown.blocks == (2, 3, 4, 5)
    assert breakdown.missing == {1: "single: invalid: a node was lost", 6: "multi: not run"}


def test_a_block_that_lacks_one_part_is_left_out_for_sums_of_unlike_blocks_would_not_add_up():
    session, runs = a_session()
    last = without_metric(runs[-1:], parts.COMPUTE.name)
    breakdown = breakdown_of(session, [*runs[:-1], *last])
    assert breakdown.blocks == (1, 2, 3, 4, 5)
    assert breakdown.missing == {6: "compute: this experiment does not measure it"}


def test_nothing_run_gives_no_gap_and_the_reasons():
    session, _ = a_session(blocks=1)
    breakdown = breakdown_of(session, [])
    assert (breakdown.gap, breakdown.parts) == (None, ())
    assert breakdown.missing == {1: "not run"}


def test_a_headline_without_seconds_says_so():
    score = Metric(name=METRICS[0].name, unit="1", better="higher", kind="ratio")
    breakdown = breakdown_of(*a_session(metrics=(score, *METRICS[1:])))
    assert breakdown.gap is None
    assert "is neither a rate by the second nor a time" in breakdown.missing[1]


def test_a_time_is_its_own_seconds():
    session, runs = a_session(metrics=(replace(METRICS[0], unit="s", kind="time"), *METRICS[1:]))
    took = [
        replace(
            run,
            samples=tuple(
                replace(s, value=s.interval.seconds) if s.metric == METRICS[0].name else s for s in run.samples
            ),
        )
        for run in runs
    ]
    breakdown = breakdown_of(session, took)
    assert breakdown.unit == "unit"
    assert breakdown.seconds["single"].value == pytest.approx(25_000 * ALONE.seconds * MEAN_BLOCK)
    assert seconds_of(breakdown)["straggler"] == pytest.approx(25_000 * 30e-6 * MEAN_BLOCK, rel=0.001)


def test_nodes_of_one_machine_are_stamped_wherever_the_network_is_named():
    session, runs = a_session()
    (network, *_) = breakdown_of(session, runs).parts
    assert network.title == "network, same host"
    page = " ".join(as_text.render(analysis.build(session, runs)).split())
    assert "takes longer, means of 6 blocks (veth at 50mbit, all nodes on one machine)" in page
    assert "+ network, same host" in page
    (apart, *_) = breakdown_of(*a_session(same_host=False)).parts
    assert apart.title == "network"


def test_the_report_shows_the_metrics_of_the_breakdown_nowhere_else():
    session, runs = a_session()
    (cell,) = analysis.build(session, runs).cells
    assert [row.metric for row in cell.rows] == [METRICS[0]]
    assert {row.metric for row in cell.arms} == {METRICS[0].name}


def test_the_report_names_what_was_not_measured_and_keeps_its_lines_short():
    session, runs = a_session(arms=ARMS[:2])
    page = as_text.render(analysis.build(session, without_metric(runs, parts.SERIALISE.name)))
    lines = " ".join(page.split())
    assert "so that what is unexplained has it: network (cost of a byte: one arm with calls alone" in lines
    assert "; serialise/copy (this experiment does not measure it)" in lines
    assert "+ unexplained" in page
    assert max(map(len, page.splitlines())) <= 120


def test_what_the_breakdown_asks_of_the_experiment_network_is_there():
    from bench.experiments import load

    asked = load("network")
    assert {"raw TCP", "actor call"} <= {arm.means for arm in asked.arms}
    assert {"goodput", "round trip"} <= {metric.means for metric in asked.metrics}
