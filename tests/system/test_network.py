"""The network experiment on nodes that have a link between them: what Ray adds to a socket, and what it is made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite

import pytest
from person import Bench

from bench.model import NodeUsage, Run
from bench.record import store
from bench.timeline import Timeline

pytestmark = [pytest.mark.ray, pytest.mark.root]

SIZES = ("--set", "smallest=65536", "--set", "largest=16777216", "--set", "growth=16", "--set", "most_streams=1")
ONCE = ("run", "network", "--blocks", "1", "--target", "local", "--isolation", "namespace")
BETWEEN_NODES = ("ray-put-get", "ray-get", "ray-call")


def values(run: Run, metric: str, point: str | None = None) -> Iterator[tuple[str, float]]:
    """Each arm's values, warm-ups left out."""
    return (
        (s.arm, s.value)
        for s in run.samples
        if s.metric == metric and s.value is not None and not s.warmup and (point is None or s.point == point)
    )


def test_a_socket_and_ray_stand_side_by_side_on_a_link_that_every_byte_crosses_once(bench: Bench) -> None:
    code, out, err = bench(*ONCE, *SIZES)
    assert code == 0, err
    runs = {run.spec.topology.name: run for run in bench.runs()}
    for point in ("64 KiB x 1", "1 MiB x 1", "16 MiB x 1"):
        for run in runs.values():
            assert {"tcp", *BETWEEN_NODES} <= set(dict(values(run, "goodput_bytes_per_second", point)))
        no_way_is_faster_than_its_socket(runs["multi"], point)
        the_parts_of_a_transfer_add_up(runs["multi"], point)
    for arm in ("tcp", "ray-get", "gloo-send-recv"):
        assert 1.0 <= wire_bytes_by_payload(runs["multi"], arm) < 1.2, arm
        assert wire_bytes_by_payload(runs["single"], arm) < 0.2, arm
    assert "same host" in out.lower()
    detail = " ".join(bench("report", "latest", "--detail")[1].split())
    assert "not a physical network" in detail
    assert "share of raw tcp" in detail


def no_way_is_faster_than_its_socket(run: Run, point: str) -> None:
    speeds = dict(values(run, "goodput_bytes_per_second", point))
    assert all(speeds[arm] <= 1.05 * speeds["tcp"] for arm in BETWEEN_NODES)


def the_parts_of_a_transfer_add_up(run: Run, point: str) -> None:
    parts = {
        sample.metric: sample.value
        for sample in run.samples
        if sample.metric.endswith("_share_of_transfer") and sample.point == point and not sample.warmup
    }
    assert len(parts) == 4
    assert sum(value for value in parts.values() if value is not None) == pytest.approx(1.0, abs=0.05)


def wire_bytes_by_payload(run: Run, arm: str) -> float:
    """Of the largest payload: what all nodes sent, with what they send when idle, by what was carried."""
    rows = [row for row in run.usage if row.arm == arm and row.point == "16 MiB x 1" and not row.warmup]
    return sum(row.sent_bytes or 0 for row in rows) / sum(row.work or 0.0 for row in rows)


def test_a_link_of_1_gbit_is_filled_by_large_objects(bench: Bench) -> None:
    code, _, err = bench(
        *(*ONCE, "--topology", "multi", "--link-rate", "1gbit"),
        *("--set", "smallest=33554432", "--set", "largest=33554432", "--set", "most_streams=1"),
    )
    assert code == 0, err
    (run,) = bench.runs()
    speeds = dict(values(run, "goodput_bytes_per_second", "32 MiB x 1"))
    assert speeds["tcp"] < 1.05 * 125e6
    assert speeds["ray-get"] < 1.05 * speeds["tcp"]
    a_timeline_has_what_was_counted(run, store.load_timelines(bench.session_folder(), run.spec))
    # On a quiet machine it is more than 0.9; a CPU that others use takes some of it.
    assert speeds["ray-get"] > 0.6 * speeds["tcp"]


def a_timeline_has_what_was_counted(run: Run, timelines: Sequence[Timeline]) -> None:
    """On both nodes, in all turns, from one look at the counters to the next; and no more a second than the link carries."""
    assert [each.node for each in timelines] == ["head", "worker-1"]
    for timeline in timelines:
        rows = [row for row in run.usage if row.node == timeline.node and row.turn > 0]
        for name, counted, tolerance in (
            ("sent_bytes_per_second", sum(row.sent_bytes or 0 for row in rows), 0.05),
            ("received_bytes_per_second", sum(row.received_bytes or 0 for row in rows), 0.05),
            ("cpus", sum(row.cpu_seconds or 0.0 for row in rows), 0.15),
        ):
            seen = sum(integral(timeline, name, row) for row in rows)
            if counted > 10**8 or name == "cpus":
                assert seen == pytest.approx(counted, rel=tolerance), name
        assert max(timeline.peak["sent_bytes_per_second"]) < 1.2 * 125e6  # a burst may be let through


def integral(timeline: Timeline, name: str, row: NodeUsage) -> float:
    """Of a quantity, over the time that a row of usage was counted in: a little more than its interval, on both sides."""
    more = ((row.watched_seconds or 0.0) - row.interval.seconds) / 2
    begin, end = row.interval.begin - more, row.interval.end + more
    return sum(
        rate * max(min(last, end) - max(last - seconds, begin), 0.0)
        for last, seconds, rate in zip(timeline.ends, timeline.seconds, timeline.mean[name], strict=True)
        if isfinite(rate)
    )
