"""Timelines: what is kept of a node's readings, at which resolution, and what a file of them is read from."""

from __future__ import annotations

import gzip
import math
from array import array
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import timeline
from bench.timeline import QUANTITIES, Timeline, decode, encode

AMOUNTS = st.one_of(st.just(math.nan), st.integers(0, 10**9).map(float))


def a_timeline(*cpus: float, most_points: int = 100, seconds: float = 0.1) -> Timeline:
    """One reading after the other, each with so many busy CPUs."""
    made = Timeline(node="head", most_points=most_points)
    for number, busy in enumerate(cpus, start=1):
        made.add(number * seconds, seconds, dict.fromkeys(QUANTITIES, 2**20 * busy) | {"cpus": busy})
    return made.whole()


def mean(of: Timeline, name: str) -> float:
    known = [(v, s) for v, s in zip(of.mean[name], of.seconds, strict=True) if not math.isnan(v)]
    return math.fsum(v * s for v, s in known) / math.fsum(s for _, s in known)


@given(
    st.lists(st.tuples(st.floats(0.01, 5), st.integers(0, 10**9)), min_size=1, max_size=200),
    st.integers(2, 40),
)
def test_however_often_it_is_halved_mean_and_peak_stay(readings: list[tuple[float, int]], most: int) -> None:
    made, now = Timeline(node="head", most_points=most), 0.0
    for seconds, value in readings:
        now += seconds
        made.add(now, seconds, dict.fromkeys(QUANTITIES, float(value)))
        assert len(made) < most
    made.whole()
    covered = math.fsum(seconds for seconds, _ in readings)
    assert math.fsum(made.seconds) == pytest.approx(covered)
    assert made.ends[-1] == now
    for name in QUANTITIES:
        expected = math.fsum(seconds * value for seconds, value in readings) / covered
        assert mean(made, name) == pytest.approx(expected, rel=1e-9, abs=1e-6)
        assert max(made.peak[name]) == max(value for _, value in readings)
    few = made.at_most(3)
    assert len(few) <= 3
    assert mean(few, "cpus") == pytest.approx(mean(made, "cpus"), rel=1e-9, abs=1e-6)
    assert max(few.peak["cpus"]) == max(made.peak["cpus"])


def test_what_could_not_be_counted_is_no_zero_and_takes_nothing_off_a_mean() -> None:
    made = a_timeline(2.0, math.nan, math.nan, math.nan, most_points=4)
    assert made.readings_per_point == 2
    assert made.mean["cpus"].tolist() == pytest.approx([2.0, math.nan], nan_ok=True)


def test_where_nothing_was_read_there_is_a_gap() -> None:
    made = a_timeline(1.0, 1.0, 1.0)
    made.add(7.0, 0.1, {"cpus": 1.0})
    made.add(7.1, 0.1, {"cpus": 1.0})
    assert [list(each) for each in made.stretches()] == [[0, 1, 2], [3, 4]]
    assert list(Timeline(node="head").stretches()) == []


def test_a_timeline_can_be_moved_to_another_clock() -> None:
    assert a_timeline(1.0, 2.0).moved(-5.0).ends.tolist() == pytest.approx([-4.9, -4.8])


@given(st.lists(st.lists(AMOUNTS, min_size=6, max_size=6), max_size=60))
def test_a_file_holds_what_was_written(rows: list[list[float]]) -> None:
    made = Timeline(node="worker-1", most_points=16)
    for number, row in enumerate(rows, start=1):
        made.add(number / 10, 0.1, dict(zip(QUANTITIES, row, strict=True)))
    made.whole()
    (found,) = decode(encode([made]))
    assert (found.node, found.readings_per_point) == ("worker-1", made.readings_per_point)
    assert found.ends.tolist() == pytest.approx(made.ends.tolist(), abs=1e-3)
    for name in QUANTITIES:
        for stored, was in ((found.mean, made.mean), (found.peak, made.peak)):
            assert stored[name].tolist() == pytest.approx(was[name].tolist(), abs=0.5, nan_ok=True)


def test_ten_minutes_of_two_nodes_are_a_few_hundred_kilobytes() -> None:
    made = [a_timeline(*(1 + math.sin(n) for n in range(5_999)), most_points=6_000) for _ in range(2)]
    assert len(encode(made)) < 400_000


def stored(**changes: object) -> bytes:
    import msgspec

    fields: dict[str, object] = {
        "node": "head",
        "readings_per_point": 1,
        "ends": [0.1],
        "seconds": [0.1],
        "mean": {key: [1.0] for key in QUANTITIES},
        "peak": {},
    }
    return gzip.compress(msgspec.json.encode([fields | changes]))


@pytest.mark.parametrize(
    "content",
    [
        b"no gzip",
        gzip.compress(b"no JSON"),
        stored(ends=[0.1, 0.2]),
        stored(mean={"cpus": [1.0]}),
        stored(peak={"cpus": [1.0]}),
        stored(peak={key: [] for key in QUANTITIES}),
        stored(readings_per_point="all"),
    ],
    ids=["no gzip", "no JSON", "ends", "mean of one point", "peak of one point", "no points", "no number"],
)
def test_a_file_that_is_none_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode(content)


def test_a_file_that_unpacks_to_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "MOST_BYTES", 1_000)
    with pytest.raises(ValueError, match="unpacks to more"):
        decode(gzip.compress(b" " * 10_000))
    monkeypatch.setattr(timeline, "MOST_BYTES", 10**6)
    monkeypatch.setattr(timeline, "MOST_POINTS", 1)
    with pytest.raises(ValueError, match="the most"):
        decode(encode([a_timeline(1.0, 2.0)]))


def test_points_are_in_order_after_any_halving() -> None:
    made = a_timeline(*range(50), most_points=7)
    assert all(a < b for a, b in pairwise(made.ends))
    assert isinstance(made.ends, array)
