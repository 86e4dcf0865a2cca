"""What the client sends of a session for the boards: what the report says, and no more series than its cells need."""

from __future__ import annotations

import pytest
from made_up import RATE
from made_up_boards import EXCLUDED, board_session

from bench.analysis.number_format import label
from bench.prometheus import session_gauges
from bench.prometheus.session_gauges import SENT, Gauge
from bench.reports import board_gauges

AT = 1_800_000_000
PROGRESS = board_gauges.SessionProgress(runs_done=12, blocks_done=3, left_seconds=60.0)


@pytest.fixture(scope="module")
def gauges() -> tuple[Gauge, ...]:
    made = board_session()
    return board_gauges.render(made.session, PROGRESS, made.report(3), at=AT)


def of(gauges: tuple[Gauge, ...], name: str) -> dict[tuple[str, ...], float]:
    """The values of a family by its labels after those of the cell or session."""
    first = 4 if name.startswith("bench_cell_") else 1
    return {
        (gauge.labels[2] if first == 4 else "", *gauge.labels[first:]): gauge.value
        for gauge in gauges
        if gauge.name == name
    }


def test_every_gauge_is_declared(gauges: tuple[Gauge, ...]) -> None:
    assert session_gauges.check(gauges, board_session().session.id) == ""
    assert {gauge.name for gauge in gauges} == set(session_gauges.FAMILIES)


def test_ratios_and_values_are_those_of_the_report(gauges: tuple[Gauge, ...]) -> None:
    ratios, values = of(gauges, "bench_cell_ratio"), of(gauges, "bench_cell_value")
    for cell in board_session().report(3).cells:
        row = cell.headline
        assert row
        assert row.comparison
        assert row.comparison.ratio
        assert ratios[cell.cell, "ratio"] == row.comparison.ratio.value
        assert ratios[cell.cell, "gain"] == cell.gain
        for topology, side in row.sides.items():
            assert side.estimate
            assert values[cell.cell, topology, "median"] == side.estimate.value
    assert label(RATE) == "throughput"


def test_texts_have_the_time_at_which_they_were_sent(gauges: tuple[Gauge, ...]) -> None:
    texts = [gauge for gauge in gauges if gauge.name in ("bench_caveat", "bench_block_excluded", "bench_cell_verdict")]
    assert {gauge.value for gauge in texts} == {AT}
    assert of(gauges, SENT) == {("",): AT}
    ((_, block, reason),) = of(gauges, "bench_block_excluded")
    assert block == f"{EXCLUDED:02d}"
    assert "swapped" in reason


def test_usage_like_idle_traffic_is_left_out(gauges: tuple[Gauge, ...]) -> None:
    sent = {topology for _, topology, resource, _ in of(gauges, "bench_cell_used") if resource == "wire bytes"}
    assert sent == {"multi"}


def test_before_the_first_block_there_is_progress_alone() -> None:
    made = board_session()
    before = board_gauges.render(made.session, PROGRESS, None, at=AT)
    assert {gauge.name: gauge.value for gauge in before} == {
        SENT: AT,
        "bench_session_runs_wanted": 16,
        "bench_session_runs_done": 12,
        "bench_session_blocks_wanted": 4,
        "bench_session_blocks_done": 3,
        "bench_session_left_seconds": 60.0,
    }


def test_more_blocks_make_no_more_series_of_cells() -> None:
    few, many = (board_session(blocks=blocks) for blocks in (5, 7))
    counts = [
        sum(
            gauge.name.startswith("bench_cell")
            for gauge in board_gauges.render(each.session, PROGRESS, each.report(blocks), at=AT)
        )
        for each, blocks in ((few, 4), (many, 6))
    ]
    assert counts[0] == counts[1]
