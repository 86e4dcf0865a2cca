"""What the network experiment computes, and its transfers by every way between real processes."""

from __future__ import annotations

import itertools
import json
import re
import socket
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.context import Measured
from bench.errors import BadInput, DoesNotFit, RunFailed
from bench.experiments import network
from bench.experiments.network import iperf, metrics, payload, tcp, transports
from bench.experiments.network.points import MOST_IN_FLIGHT_BYTES, Point, format_size, sweep
from bench.experiments.network.transports import Burst
from bench.experiments.toolkit import connections
from bench.model import Interval, Topology
from bench.options import RunRequest
from bench.planning import plan

MIB = 2**20
SMALL, LARGE = Point(size=64, streams=1), Point(size=2**20, streams=1)


def passes(*bursts: Burst, arm: str = "tcp", point: Point = LARGE) -> metrics.Passes:
    return Measured(results=bursts, interval=Interval(0.0, 1.0), arm=arm, turn=1, warmup=False, point=str(point))


def burst(seconds: float, *, size: int = 2**20, copy: float = 0.0) -> Burst:
    return Burst(round_bytes=size, seconds=[seconds], copy_seconds=[copy])


# Points.


def test_a_sweep_goes_through_all_sizes_and_streams() -> None:
    points = sweep(smallest=64, largest=2**26, growth=1024, most_streams=4)
    assert [str(point) for point in points] == ["64 B x 1", "64 B x 4", "64 KiB x 1", "64 KiB x 4", "64 MiB x 1"]


@given(
    smallest=st.integers(8, 2**10).map(lambda words: words * 8),
    growth=st.integers(2, 4096),
    most_streams=st.integers(1, 64),
)
def test_no_point_crowds_the_object_store_and_every_pass_has_a_round(
    smallest: int, growth: int, most_streams: int
) -> None:
    points = sweep(smallest=smallest, largest=2**26, growth=growth, most_streams=most_streams)
    assert points[0] == Point(size=smallest, streams=1)
    assert all(point.round_bytes <= MOST_IN_FLIGHT_BYTES and point.rounds >= 1 for point in points)
    assert len({str(point) for point in points}) == len(points)


@pytest.mark.parametrize(("size", "words"), [(64, "64 B"), (1024, "1 KiB"), (3 * 2**19, "1.5 MiB"), (2**26, "64 MiB")])
def test_sizes_are_told_in_binary_units(size: int, words: str) -> None:
    assert format_size(size) == words


def test_params_refuse_what_cannot_be_sent() -> None:
    with pytest.raises(BadInput, match="no multiple of 8"):
        network.Params(smallest=65)
    with pytest.raises(BadInput, match="more than largest"):
        network.Params(smallest=2048, largest=1024)


def nodes(number: int, memory_mib: int, store_mib: int) -> Topology:
    return Topology(
        name="multi" if number > 1 else "single",
        nodes=number,
        cpus_per_node=1,
        memory_bytes_per_node=memory_mib * MIB,
        object_store_bytes_per_node=store_mib * MIB,
        threads_per_node=1,
    )


def test_payloads_that_would_kill_the_head_are_refused_before_the_start_and_the_memory_that_is_asked_for_is_enough() -> (
    None
):
    large = network.Params(smallest=128 * MIB, largest=128 * MIB)
    for usual in (nodes(1, 4096, 1024), nodes(2, 2048, 512)):
        network.check_fits(network.Params(), usual)
    with pytest.raises(DoesNotFit, match=r"128 MiB x 1 need 2\d\d\d MiB on the head of multi") as refused:
        network.check_fits(large, nodes(2, 2048, 512))
    (asked,) = re.findall(r"--memory-mib (\d+)", str(refused.value))
    network.check_fits(large, nodes(2, int(asked) // 2, 512))
    with pytest.raises(DoesNotFit):
        network.check_fits(large, nodes(2, int(asked) // 2 - 256, 512))


def test_payloads_that_would_crowd_an_object_store_are_refused() -> None:
    network.check_fits(network.Params(), nodes(2, 2048, 192))
    with pytest.raises(DoesNotFit, match="192 MiB in the object store of each node of multi, and it has 191 MiB"):
        network.check_fits(network.Params(), nodes(2, 2048, 191))


def test_the_headline_is_the_largest_payload_one_at_a_time() -> None:
    assert network.Params(growth=1024).reference == Point(size=2**26, streams=1)


# Payloads.


def test_both_ends_draw_the_same_words_and_another_seed_others() -> None:
    assert np.array_equal(payload.draw(3, 4096), payload.draw(3, 4096))
    assert not np.array_equal(payload.draw(3, 4096), payload.draw(4, 4096))


@given(number=st.integers(1, 2**62), damaged=st.integers(0, 63), bit=st.integers(0, 63))
def test_one_wrong_bit_anywhere_is_seen(number: int, damaged: int, bit: int) -> None:
    checker = payload.Checker(payload.draw(3, 1024))
    sent = checker.words[:64].copy()
    payload.stamp(sent, number)
    assert checker.number_of(sent) == number
    assert checker.number_of(sent.tobytes()) == number
    sent[damaged] ^= np.uint64(1 << bit)
    assert checker.number_of(sent) == payload.DAMAGED


def test_a_sum_of_both_ends_is_checked_to_the_last_bit() -> None:
    checker = payload.Checker(payload.draw(3, 1024))
    sent = checker.words[:32].copy()
    payload.stamp(sent, 9)
    total = sent + checker.words[:32]
    assert checker.number_in_sum(total) == 9
    total[5] += np.uint64(1)
    assert checker.number_in_sum(total) == payload.DAMAGED


def test_lost_doubled_and_damaged_payloads_are_complained_of() -> None:
    assert payload.complaint([1, 2, 2], [2, 1, 2]) is None
    assert payload.complaint([1, 2], [1, 1]) == "1 of 2 payloads did not arrive as they were sent (0 damaged)"
    assert (
        payload.complaint([1, 2], [payload.DAMAGED, 1])
        == "1 of 2 payloads did not arrive as they were sent (1 damaged)"
    )


# Raw TCP, between two threads of this process.


@pytest.fixture
def pair() -> Iterator[tuple[tcp.Tcp, payload.Checker]]:
    checker = payload.Checker(payload.draw(5, 2**20))
    server = tcp.Receiver("127.0.0.1", checker)
    way = tcp.Tcp("127.0.0.1", server.port)
    yield way, checker
    way.close()
    server.close()


@pytest.mark.parametrize("point", [SMALL, Point(size=2**20, streams=1), Point(size=4096, streams=4)], ids=str)
def test_raw_tcp_carries_every_payload(pair: tuple[tcp.Tcp, payload.Checker], point: Point) -> None:
    way, checker = pair
    numbers = itertools.count(1)
    done = transports.run(way, point, checker.words, lambda: next(numbers))
    assert done.problem is None
    assert len(done.seconds) == len(done.one_way_seconds) == point.rounds
    assert next(numbers) == point.rounds * point.streams + 1  # each payload was another one
    assert done.bytes == point.round_bytes * point.rounds
    assert all(0 < there <= trip for there, trip in zip(done.one_way_seconds, done.seconds, strict=True))


def test_a_receiver_that_finds_other_words_makes_the_pass_a_problem(pair: tuple[tcp.Tcp, payload.Checker]) -> None:
    way, _ = pair
    done = transports.run(way, SMALL, payload.draw(6, 2**20), iter(range(1, 1000)).__next__)
    assert done.problem == "1 of 1 payloads did not arrive as they were sent (1 damaged)"


@pytest.mark.parametrize("streams", [1, 4])
def test_raw_tcp_that_throws_away_carries_as_many_bytes_and_checks_the_last_block(streams: int) -> None:
    checker, point = payload.Checker(payload.draw(5, 2**20)), Point(size=2**20, streams=streams)
    server = tcp.Receiver("127.0.0.1", checker)
    way = tcp.Tcp("127.0.0.1", server.port, tcp.BLOCK_BYTES)
    numbers = itertools.count(1)
    done = transports.run(way, point, checker.words, lambda: next(numbers))
    assert (done.problem, done.bytes) == (None, point.round_bytes * point.rounds)
    others = transports.run(way, point, payload.draw(6, 2**20), lambda: next(numbers))
    assert others.problem == f"{streams} of {streams} payloads did not arrive as they were sent ({streams} damaged)"
    way.close()
    server.close()


def test_a_connection_that_ends_early_is_no_payload() -> None:
    here, there = socket.socketpair()
    there.sendall(b"abc")
    there.close()
    with here, pytest.raises(ConnectionError, match="5 bytes early"):
        connections.receive(here, 8)


def test_the_clock_does_not_start_before_the_receiver_has_room() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        way = tcp.Tcp("127.0.0.1", listener.getsockname()[1])
        way.begin(SMALL)
        there, _ = listener.accept()
        there.close()  # without a word
        with pytest.raises(ConnectionError):
            way.prepare([payload.draw(3, SMALL.size)])
        way.close()


# iperf3's report.


def test_the_report_of_iperf3_is_read_and_its_errors_are_told() -> None:
    report = {"end": {"sum_received": {"bytes": 1000, "seconds": 0.5}}}
    assert iperf.read(json.dumps(report)) == Burst(round_bytes=1000, seconds=[0.5])
    with pytest.raises(RunFailed, match="unable to connect"):
        iperf.read(json.dumps({"error": "unable to connect"}))
    for text in ("", "[]", "{}", '{"end": {"sum_received": null}}'):
        with pytest.raises(RunFailed, match="no report that can be read"):
            iperf.read(text)


# Figures.


def test_goodput_is_all_bytes_by_all_seconds_on_the_clock() -> None:
    two = passes(burst(0.5, size=100), burst(1.5, size=100))
    assert metrics.goodput(two) == 100.0  # and not the mean of 200 and 66.7


def test_a_damaged_payload_is_a_missing_value_with_its_reason() -> None:
    bad = Burst(round_bytes=1, seconds=[1.0], problem="damaged")
    (only,) = metrics.samples(passes(bad), is_headline=True)
    assert only.value is None
    assert only.reason == "damaged"


def test_the_headline_has_no_point_and_cpu_is_by_gigabyte() -> None:
    one = Burst(round_bytes=10**9, seconds=[2.0], sender_cpu_seconds=1.5, receiver_cpu_seconds=None)
    found = [(s.metric, s.point, s.value) for s in metrics.samples(passes(one), is_headline=True)]
    assert found == [
        ("goodput_bytes_per_second", "1 MiB x 1", 5e8),
        ("goodput_bytes_per_second", "", 5e8),
        ("sender_cpu_seconds_per_gigabyte", "1 MiB x 1", 1.5),
    ]


@given(whole=st.floats(1e-6, 10), copy=st.floats(0, 10), raw=st.none() | st.floats(0, 10), call=st.floats(0, 10))
def test_the_parts_of_a_transfer_add_up_to_it(whole: float, copy: float, raw: float | None, call: float) -> None:
    shares = metrics.parts(whole=whole, copy=copy, raw_tcp=raw, call=call)
    known = sum(share for part, share in shares.items() if part != "unaccounted")
    assert shares["unaccounted"] + known == pytest.approx(1.0, abs=1e-6 * max(1.0, known))


def test_a_transfer_is_set_beside_raw_tcp_of_its_own_turn() -> None:
    story = metrics.RunTotals(is_between_nodes=True, smallest=SMALL)
    done = {
        ("tcp", LARGE): passes(burst(0.010)),
        ("ray-call", SMALL): passes(burst(0.001), arm="ray-call", point=SMALL),
        ("ray-put-get", LARGE): passes(burst(0.020, copy=0.004), arm="ray-put-get"),
    }
    found = {s.metric: s.value for s in story.turn(done, is_warmup=False)}
    assert found == pytest.approx(
        {
            "share_of_raw_tcp": 0.5,
            "copy_share_of_transfer": 0.2,
            "raw_tcp_share_of_transfer": 0.5,
            "call_share_of_transfer": 0.05,
            "unaccounted_share_of_transfer": 0.25,
        }
    )
    assert story.too_fast() == []


def test_ray_faster_than_its_socket_is_a_fault_of_the_harness_between_nodes_only() -> None:
    done = {("tcp", LARGE): passes(burst(0.010)), ("ray-get", LARGE): passes(burst(0.009), arm="ray-get")}
    for is_between_nodes, is_warmup, faults in ((True, False, 1), (False, False, 0), (True, True, 0)):
        story = metrics.RunTotals(is_between_nodes=is_between_nodes, smallest=SMALL)
        list(story.turn(done, is_warmup=is_warmup))
        assert len(story.too_fast()) == faults


def test_a_socket_that_was_held_up_once_is_no_measure_of_the_link() -> None:
    slow, ray = passes(burst(0.025)), passes(burst(0.014), arm="ray-get")
    for others in ({("gloo-send-recv", LARGE): passes(burst(0.010), arm="gloo-send-recv")}, {}):
        story = metrics.RunTotals(is_between_nodes=True, smallest=SMALL)
        list(story.turn({("tcp", LARGE): slow, ("ray-get", LARGE): ray, **others}, is_warmup=False))
        assert bool(story.too_fast()) is not bool(others)
    list(story.turn({("tcp", LARGE): passes(burst(0.010))}, is_warmup=True))
    assert story.too_fast() == []


def test_percentiles_are_of_all_rounds_and_missing_where_there_are_too_few() -> None:
    half = Burst(round_bytes=1, seconds=[0.001] * 499 + [1.0], one_way_seconds=[0.0005] * 500)
    found = {s.metric: s for s in metrics.percentiles([passes(half, half)], is_one_clock=True)}
    assert found["round_trip_seconds"].value == 0.001
    assert found["round_trip_p99_seconds"].value == 0.001
    assert found["one_way_p90_seconds"].value == 0.0005
    few = {s.metric: s for s in metrics.percentiles([passes(burst(0.5))], is_one_clock=True)}
    assert few["round_trip_seconds"].value == 0.5
    assert few["round_trip_p99_seconds"].reason == "1 rounds; p99 needs 1000"


def test_without_a_shared_clock_there_is_half_a_round_trip_named_so() -> None:
    one = Burst(round_bytes=1, seconds=[0.5], one_way_seconds=[0.1])
    found = {s.metric: s.value for s in metrics.percentiles([passes(one)], is_one_clock=False)}
    assert found["half_round_trip_seconds"] == 0.25
    assert found["one_way_seconds"] is None


def test_clocks_that_disagree_give_no_one_way_time() -> None:
    one = Burst(round_bytes=1, seconds=[0.5], one_way_seconds=[-0.1])
    found = {s.metric: s for s in metrics.percentiles([passes(one)], is_one_clock=True)}
    assert found["one_way_seconds"].value is None


def test_the_recommended_settings_are_the_least_that_reach_the_best() -> None:
    speeds = {
        Point(size=2**16, streams=1): [10.0],
        Point(size=2**20, streams=4): [95.0, 95.0, 1.0],
        Point(size=2**20, streams=16): [100.0],
        Point(size=2**26, streams=1): [98.0],
    }
    assert metrics.recommended(speeds) == Point(size=2**20, streams=4)


def test_the_recommended_settings_say_what_share_of_a_socket_of_their_own_turn_they_reach() -> None:
    ray = {LARGE: [passes(burst(0.020), arm="ray-put-get")]}
    found = {s.metric: s for s in metrics.settings(ray, {LARGE: [passes(burst(0.010))]}, 2**20)}
    assert (found["recommended_share_of_raw_tcp"].value, found["chunk_bytes"].value) == (0.5, 2**20)
    inside = {s.metric: s for s in metrics.settings(ray, {}, 2**20)}
    assert inside["recommended_share_of_raw_tcp"].reason == "inside one node objects do not go by TCP"


def test_only_settings_that_are_not_rays_own_are_set() -> None:
    assert network.ray_settings(network.Params()) == {}
    assert network.ray_settings(network.Params(chunk_bytes=2**20, store_pages="at-start")) == {
        "object_manager_default_chunk_size": "1048576",
        "preallocate_plasma_memory": "1",
    }


def test_a_broadcast_that_leaves_a_node_out_is_refused_before_anything_starts() -> None:
    shape = RunRequest(experiments=("network",), sets=("receivers=1",), cpus=2, blocks=1)
    with pytest.raises(DoesNotFit, match=r"receivers=1 does not reach the 2 nodes of multi\. Use --set receivers=2"):
        plan.make(shape)
    assert plan.make(replace(shape, topology="single")).specs
