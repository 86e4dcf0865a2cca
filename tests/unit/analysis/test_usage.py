from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import MULTI, RATE, SINGLE, SessionShape, made_up

from bench import analysis
from bench.analysis.table import Table
from bench.analysis.usage import ArmUsage, Uses, is_like_idle, node_rows, overlap, quantities
from bench.model import Interval, NodeUsage, Sample
from bench.reports.sections import usage as usage_section


def a_usage(node="head", **changes):
    fields = {"node": node, "arm": "ray", "turn": 1, "warmup": False, "interval": Interval(0.0, 10.0)}
    return NodeUsage(**(fields | changes))


def a_run(*usage, rate=100.0):
    _, runs = made_up(SessionShape(cells=1, blocks=1, topologies=(SINGLE,)))
    sample = Sample(metric=RATE.name, value=rate, interval=Interval(0.0, 10.0), arm="ray", turn=1)
    return replace(runs[0], samples=(sample,), usage=usage)


def a_use(*usage):
    return Uses(ArmUsage(Table([a_run(*usage)]), "ray", RATE), [0])


def read(use, name):
    return next(q for q in quantities("input") if q.metric.name == name).read(use)[0]


def test_bytes_are_counted_once_less_the_idle_baseline():
    use = a_use(
        a_usage("head", sent_bytes=50_000, received_bytes=30_000, work=600.0),
        a_usage("worker-1", sent_bytes=30_000, received_bytes=50_000, work=400.0),
        a_usage("head", arm="idle", interval=Interval(-2.0, 0.0), sent_bytes=2_000),
        a_usage("worker-1", arm="idle", interval=Interval(-2.0, 0.0), sent_bytes=1_000),
    )
    # 80,000 sent, less 10 s of 1,000 B/s and 500 B/s, for 1,000 inputs
    assert read(use, "wire_bytes_per_input") == pytest.approx(65.0)


def test_what_was_not_counted_on_one_node_is_not_known_of_all():
    use = a_use(a_usage("head", sent_bytes=5, work=1.0), a_usage("worker-1", work=1.0))
    assert use.read("beyond idle", "sent_bytes") == [None]
    assert use.per_unit("beyond idle", "sent_bytes") == [None]
    assert use.read("throttled share") == [None]


def test_warm_ups_other_arms_and_what_lies_outside_the_samples_do_not_count():
    use = a_use(
        a_usage(cpu_seconds=4.0, work=8.0),
        a_usage(cpu_seconds=100.0, warmup=True, work=1.0),
        a_usage(cpu_seconds=100.0, arm="pool", work=1.0),
        a_usage(cpu_seconds=100.0, turn=0, interval=Interval(-20.0, -5.0)),
    )
    assert read(use, "cpu_seconds_per_input") == pytest.approx(0.5)


def test_where_nobody_says_who_did_the_work_it_is_the_rate_times_the_time():
    assert a_use(a_usage(cpu_seconds=4.0)).work == pytest.approx([1000.0])


def test_throttling_is_a_share_of_the_periods():
    assert a_use(a_usage(periods=100, throttled_periods=40)).read("throttled share") == pytest.approx([0.4])
    assert a_use(a_usage(periods=0, throttled_periods=0)).read("throttled share") == [0.0]


def test_peaks_of_a_node_are_greatest_and_those_of_nodes_add_up():
    use = a_use(
        a_usage("head", peak_memory_bytes=5),
        a_usage("head", peak_memory_bytes=7),
        a_usage("worker-1", peak_memory_bytes=1),
    )
    assert read(use, "peak_memory_bytes") == 8


def test_work_is_shared_out_by_node():
    use = a_use(a_usage("head", work=750.0), a_usage("worker-1", work=250.0))
    shares = {row.node: row.share_of_work for row in node_rows("multi", use)}
    assert shares == {"head": 0.75, "worker-1": 0.25}
    assert read(use, "evenness_of_work") == pytest.approx(0.8)


def test_a_node_is_shown_with_its_share_of_its_own_cpus_and_its_bytes_by_second():
    use = a_use(  # 10 s on nodes of 2 CPUs
        a_usage("head", cpu_seconds=15.0, sent_bytes=50_000, received_bytes=20_000),
        a_usage("worker-1", cpu_seconds=5.0, sent_bytes=20_000, received_bytes=50_000),
        a_usage("head", arm="idle", interval=Interval(-2.0, 0.0), sent_bytes=2_000, received_bytes=0),
    )
    rows = {row.node: row for row in node_rows("single", use)}
    assert rows["head"].cpu_percent == pytest.approx(75)
    assert rows["worker-1"].cpu_percent == pytest.approx(25)
    assert read(use, "cpu_percent") == pytest.approx(50)
    assert rows["head"].sent_bytes_per_second == pytest.approx(4_000)  # less 1,000 a second when idle
    assert rows["worker-1"].received_bytes_per_second == pytest.approx(5_000)
    assert node_rows("single", a_use(a_usage("head")))[0].cpu_percent is None


def test_the_peak_of_a_node_is_its_busiest_tenth_of_a_second_by_its_own_cpus():
    use = a_use(a_usage(cpu_seconds=5.0, peak_cpus=1.5), a_usage(cpu_seconds=5.0, peak_cpus=1.9))
    assert node_rows("single", use)[0].peak_cpu_percent == pytest.approx(95)


@pytest.mark.parametrize(("sent", "like_idle"), [(9_000, True), (20_000, True), (20_100, False)])
def test_up_to_twice_what_idle_nodes_send_is_not_told_from_idle_traffic(sent, like_idle):
    use = a_use(  # 10 s, in which idle nodes send 10,000 bytes
        a_usage(sent_bytes=sent, received_bytes=500_000, work=10.0),
        a_usage(arm="idle", interval=Interval(-2.0, 0.0), sent_bytes=2_000, received_bytes=2_000),
    )
    (row,) = node_rows("single", use)
    assert row.sent_bytes_per_second == pytest.approx(sent / 10 - 1_000)
    assert row.like_idle == (("sent_bytes_per_second", "sent_bytes_per_unit") if like_idle else ())
    wire = next(each for each in quantities("input") if each.metric.means == "wire bytes")
    assert wire.idle
    assert is_like_idle(wire.read(use), wire.idle(use)) == like_idle


def test_no_bytes_where_idle_nodes_send_none_are_no_idle_traffic():
    idle = a_usage(arm="idle", interval=Interval(-2.0, 0.0), sent_bytes=0, received_bytes=0)
    assert node_rows("single", a_use(a_usage(sent_bytes=0, received_bytes=0), idle))[0].like_idle == ()
    assert node_rows("single", a_use(a_usage(sent_bytes=5)))[0].like_idle == ()


def test_bytes_per_input_of_nodes_add_up_to_those_of_the_topology():
    session, runs = made_up(cells=1)
    cell = analysis.build(session, runs).cells[0]
    total = (
        next(row for row in cell.usage if row.metric.name == "wire_bytes_per_input").sides[MULTI.name].estimate.value
    )
    nodes = [row.sent_bytes_per_unit for row in cell.nodes if row.topology == MULTI.name]
    assert sum(nodes) == pytest.approx(total, rel=1e-3)
    assert total == pytest.approx(480, rel=0.01)


def test_a_run_without_usage_has_nothing_and_not_zero():
    use = a_use()
    assert all(quantity.read(use) == [None] for quantity in quantities("input"))


INTERVALS = st.builds(lambda begin, seconds: Interval(begin, begin + seconds), st.integers(0, 20), st.integers(0, 5))


def intervals(run, those):
    return np.full(len(those), run), *(np.array([getattr(each, name) for each in those]) for name in ("begin", "end"))


@given(st.lists(INTERVALS, max_size=8), st.lists(INTERVALS, max_size=4), INTERVALS)
def test_rows_count_that_overlap_a_sample_of_their_run_however_these_lie(others, of_next_run, one):
    plainly = any(other.begin < one.end and one.begin < other.end for other in others)
    every = [np.concatenate(parts) for parts in zip(intervals(1, others), intervals(2, of_next_run), strict=True)]
    assert overlap(intervals(1, [one]), every).tolist() == [plainly]


def test_how_much_longer_counters_count_than_their_intervals_last_is_known_where_their_clock_was_recorded() -> None:
    assert a_use(a_usage(watched_seconds=11.0), a_usage("worker-1", watched_seconds=11.4)).longer == pytest.approx(0.12)
    assert a_use(a_usage(watched_seconds=11.0), a_usage("worker-1")).longer is None


@pytest.mark.parametrize(("longer", "said"), [(0.01, []), (0.12, ["12 % more time on single"])])
def test_a_report_says_beside_its_counts_how_much_more_time_they_cover(longer: float, said: list[str]) -> None:
    session, runs = made_up(SessionShape(cells=1, blocks=1, topologies=(SINGLE,)))
    runs = [
        replace(run, usage=[replace(row, watched_seconds=(1 + longer) * row.interval.seconds) for row in run.usage])
        for run in runs
    ]
    (cell,) = analysis.build(session, runs).cells
    notes = list(usage_section.counted_longer(cell))
    assert [
        note.removeprefix("counters of CPU, bytes and disk cover ").partition(" than ")[0] for note in notes
    ] == said
