"""The breakdown of real sessions on a link that is shaped: what is slower is what was made slower."""

from __future__ import annotations

from dataclasses import replace

import pytest
from person import Bench

from bench import analysis
from bench.analysis.breakdown.network import NetworkBreakdown
from bench.model import Run, Session

pytestmark = [pytest.mark.ray, pytest.mark.root, pytest.mark.timeout(600)]

# One actor sits on the worker: every input crosses the link, and the pool has no way around it. In batches of 100 it
# takes 30 to 60 times as long to send an input as to do all else, which leaves little to the noise of a busy machine.
# A slower link would leave less, and make every cluster slower to start.
BY_VALUE = tuple(
    word
    for setting in (
        "actors=1",
        "batch=100",
        "inputs=400",
        "dtype=float32",
        "data_path=by-value",
        "open_loop=off",
    )
    for word in ("--set", setting)
)
ARMS = ("--arms", "empty-calls,bare-calls")  # the bare calls say what a byte costs on the wire
INPUT_BYTES = 784 * 4
FRAME_BYTES = 14 + 1500  # Ethernet's header, and what its largest frame carries
PAYLOAD_BYTES = 1500 - 20 - 32  # less the headers of IP, and of TCP with its timestamps
BUCKET_BYTES = 16 * 1024  # what links as slow as these let through at once when a pass of 400 inputs begins


def session_at(bench: Bench, link_rate: str, *words: str) -> tuple[Session, list[Run]]:
    once = ("--target", "local", "--blocks", "1", "--samples", "3", "--link-rate", link_rate)
    code, _, err = bench("run", "inference", *once, *ARMS, *BY_VALUE, *words)
    assert code == 0, err
    return replace(bench.session(), allow_noise=True), bench.runs()  # the tests themselves may keep this machine busy


def breakdown_of(session: Session, runs: list[Run]) -> NetworkBreakdown:
    (cell,) = analysis.build(session, runs).cells
    assert cell.network_breakdown is not None
    assert cell.network_breakdown.gap is not None
    return cell.network_breakdown


def seconds_of(breakdown: NetworkBreakdown) -> dict[str, float]:
    return {part.name: part.seconds.value for part in breakdown.parts if part.seconds}


def test_half_the_rate_of_the_link_is_found_in_the_network_part_and_nowhere_else(bench: Bench) -> None:
    session, runs = session_at(bench, "20mbit")
    fast = breakdown_of(session, runs)
    (single,) = (run for run in runs if run.spec.topology.name == "single")
    session, multi = session_at(bench, "10mbit", "--topology", "multi")
    slow = breakdown_of(replace(session, specs=(single.spec, *session.specs)), [single, *multi])  # one node has no link

    before, after = seconds_of(fast), seconds_of(slow)
    assert set(before) == set(after) == {part.name for part in fast.parts}  # each was measured
    assert fast.parts[0].title == "network, same host"

    sent = INPUT_BYTES * FRAME_BYTES / PAYLOAD_BYTES - BUCKET_BYTES / 400
    expected = sent * (8 / 10e6 - 8 / 20e6)
    assert after["network"] - before["network"] == pytest.approx(expected, rel=0.15)
    for name in set(before) - {"network"}:
        assert abs(after[name] - before[name]) < 0.25 * expected, name
